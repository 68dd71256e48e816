"""What the guard says of hundreds of commands, by role and profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

from guard.corpus import BENEATH, CHECKS, FORBIDDEN, FOREIGN, OWN, READING, TELLING, WORKING, WRITING
from rookery.guard.decide import decide
from rookery.guard.model import ALLOW, ASK, DENY, Bounds, Call, Verdict
from rookery.roles.catalog import builtin_roles
from rookery.roles.model import NOTHING, PROFILES, RELAXED, STRICT, YOLO

T = TypeVar("T")
READERS = [role.name for role in builtin_roles().values() if role.writes == NOTHING]


def judge(bounds: Bounds, role: str, command: str, profile: str | None = None) -> Verdict:
    definition = builtin_roles()[role]
    return decide(definition, profile or definition.profile, bounds, Call("Bash", {"command": command}))


def check_all(commands: Iterable[T], check: Callable[[T], None]) -> None:
    """Check every command, and list all that fail: a thousand tests of their own would take longer than the guard."""
    failed = []
    for command in commands:
        try:
            check(command)
        except AssertionError as error:
            failed.append(f"{command!r}: {error}")
    assert not failed, "\n".join([f"{len(failed)} fail", *failed])


def test_the_corpus_is_large() -> None:
    assert len({*READING, *WORKING, *WRITING, *CHECKS, *(command for _, command in FORBIDDEN)}) >= 600


@pytest.mark.slow
def test_reading_is_allowed_to_every_role_in_every_profile(bounds: Bounds) -> None:
    def check(command: str) -> None:
        for role in builtin_roles():
            for profile in PROFILES:
                verdict = judge(bounds, role, command, profile)
                assert verdict.verdict == ALLOW, f"{role}, {profile}: {verdict}"

    check_all(READING, check)


def test_everyday_work_is_allowed_to_those_who_write(bounds: Bounds) -> None:
    def check(command: str) -> None:
        for role in ("builder", "merger"):
            verdict = judge(bounds, role, command)
            assert verdict.verdict == ALLOW, f"{role}: {verdict}"

    check_all(WORKING, check)


@pytest.mark.slow
def test_what_is_forbidden_is_denied_to_every_role_in_every_profile(bounds: Bounds) -> None:
    def check(case: tuple[str, str]) -> None:
        rule, command = case
        for role in builtin_roles():
            for profile in PROFILES:
                verdict = judge(bounds, role, command, profile)
                assert verdict.verdict == DENY, f"{role}, {profile}: {verdict}"
                assert verdict.reason
                assert verdict.hint
                assert verdict.rule
                assert not rule or role in READERS or verdict.rule == rule, verdict

    check_all(FORBIDDEN, check)


def test_those_who_read_do_not_write(bounds: Bounds) -> None:
    def check(command: str) -> None:
        for role in READERS:
            for profile in PROFILES:
                verdict = judge(bounds, role, command, profile)
                assert verdict.verdict == DENY, f"{role}, {profile}: {verdict}"
                assert verdict.hint
        assert judge(bounds, "builder", command).verdict == ALLOW

    check_all(WRITING, check)


def test_those_who_read_may_ask_build_tools(bounds: Bounds) -> None:
    def check(command: str) -> None:
        for role in READERS:
            assert judge(bounds, role, command, STRICT).verdict == ALLOW

    check_all(TELLING, check)


def test_checks_of_the_project_are_a_matter_of_role_and_profile(bounds: Bounds) -> None:
    def check(command: str) -> None:
        expected = {
            ("reviewer", STRICT): ASK,
            ("reviewer", RELAXED): ALLOW,
            ("reviewer", YOLO): ALLOW,
            ("lead", RELAXED): ALLOW,
            ("scout", STRICT): DENY,
            ("scout", RELAXED): ASK,
            ("scout", YOLO): ALLOW,
            ("coordinator", STRICT): DENY,
            ("builder", STRICT): ALLOW,
        }
        for (role, profile), verdict in expected.items():
            assert judge(bounds, role, command, profile).verdict == verdict, f"{role}, {profile}"

    check_all(CHECKS, check)


@pytest.mark.parametrize("name", ["complete", "cancel", "fail", "delete", "reopen"])
def test_a_foreign_task_is_not_closed(bounds: Bounds, name: str) -> None:
    for task in (FOREIGN, "01BX5ZZKBK", "$x", ""):
        assert judge(bounds, "builder", f"rook task {name} {task}").verdict == DENY
    assert judge(bounds, "builder", f"rook --json task {name} {FOREIGN}").rule == "foreign-task"
    assert judge(bounds, "builder", f"rook task {name} {bounds.task_id}").verdict == ALLOW
    assert judge(bounds, "lead", f"rook task {name} {FOREIGN}").rule == "foreign-task"
    assert judge(bounds, "lead", f"rook task {name} {BENEATH}").verdict == ALLOW
    assert judge(bounds, "coordinator", f"rook task {name} {FOREIGN}").verdict == ALLOW


def test_only_who_slings_stops(bounds: Bounds) -> None:
    assert judge(bounds, "builder", "rook stop other").rule == "rook"
    assert judge(bounds, "lead", "rook stop other").verdict == ALLOW


def test_a_lead_is_told_to_sling_a_builder(bounds: Bounds) -> None:
    for command in ("git commit -m x", "touch src/x", "make"):
        assert "rook sling" in judge(bounds, "lead", command).hint


@pytest.mark.parametrize(
    "words",
    [
        *("task list -C/other", "task list -C /other", "task list --directory=/other", "-C /other task list"),
        *("status -C$X", "status -qC$X", "status $A -C /other", "task list $A --directory=/x", "mail check $A -c a=b"),
        *("mail check -qc tasks.lease=1h", "mail check -ctasks.lease=1h", "-c=tasks.lease=1h mail check"),
    ],
)
def test_no_place_or_setting_is_named_however_it_is_written(bounds: Bounds, words: str) -> None:
    for role in builtin_roles():
        assert judge(bounds, role, f"rook {words}", YOLO).rule == "rook"


@pytest.mark.parametrize("words", ["epic delete x -h", "epic delete x --help", "-h epic delete x", "help epic", "epic"])
def test_help_is_shown_to_all_roles(bounds: Bounds, words: str) -> None:
    for role in builtin_roles():
        assert judge(bounds, role, f"rook {words}").verdict == ALLOW
    for hidden in ("x -- -h", "x --help=1", '"$x" --help', "--reason -h x", "x --reason=-h"):
        assert judge(bounds, "builder", f"rook epic cancel {hidden}").verdict == DENY


def test_words_are_read_as_the_command_line_reads_them(bounds: Bounds) -> None:
    allowed = (
        *(f"task update --title x {OWN}", f"task update {OWN} --title=--parent", f"task update -- {OWN}"),
        *(f"task create more --blocked-by {FOREIGN} --parent {OWN}", f"task update {OWN} --priority $n"),
        *(f'task complete {OWN} --result "$(git log -1)"', "mail send queen --subject what? --body $x", "mail list $x"),
        *(f"task update {OWN} --parent none --parent {OWN}", f"task unblock {OWN} --by {FOREIGN} {BENEATH}"),
    )
    for words in allowed:
        assert judge(bounds, "builder", f"rook {words}").verdict == ALLOW, words
    denied = (
        *(f"task update --title {OWN} {FOREIGN}", f"task update {OWN} --parent={FOREIGN}", f"task update {OWN} $x"),
        *(f"task update {OWN} --parent {OWN} --parent none", f"task update {OWN} --parent=$x", f"task update {OWN} *"),
        *(f"task unblock --by {OWN} -- {FOREIGN}", "task claim --agent=ada", "task claim --agent $x", "task claim $x"),
        *("task complete task_*", f"task create --blocked-by {OWN} {FOREIGN} -- more", "task create $x"),
    )
    for words in denied:
        assert judge(bounds, "builder", f"rook {words}").verdict == DENY, words


def test_a_command_that_cannot_be_read_is_denied_with_the_words_of_the_command_line(bounds: Bounds) -> None:
    verdict = judge(bounds, "builder", f"rook task update {OWN} --nonsense x")
    assert verdict.verdict == DENY
    assert "--nonsense" in verdict.reason
    assert "rook task update --help" in verdict.hint


def test_where_the_state_cannot_be_read_no_other_agents_work_is_changed(bounds: Bounds) -> None:
    blind = bounds.replace(check_own=None)
    assert judge(blind, "builder", f"rook task complete {OWN}").verdict == DENY
    assert judge(blind, "builder", "rook mail check").verdict == ALLOW
