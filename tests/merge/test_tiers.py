"""The tiers: what the rules settle, what an agent may answer, and everything that an answer is turned down for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import git
from rookery.base.text import as_utf8
from rookery.merge import queue, service, store
from rookery.merge.model import Entry
from rookery.sessions import journal
from support import child_environ, rook_argv, wait_until

from . import standin
from .yard import Yard

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    standin.install(monkeypatch)


@pytest.fixture
def land(yard: Yard) -> Iterator[Callable[..., Entry]]:
    """Land a branch within this process, so that the stand-in is used."""
    desks = []

    def carry_out(branch: str) -> Entry:
        merger = yard.merger()
        desks.append(merger)
        (entry,) = service.enqueue(merger, [branch], "main")
        queue.work(merger, "main", {entry.id})
        return store.get(merger.ctx.db, entry.id)

    yield carry_out
    for merger in desks:
        merger.ctx.db.close()


def script(yard: Yard, steps: list[Any]) -> None:
    """What the agent that resolves conflicts does: its role's text holds the script."""
    roles = yard.folder / ".rookery" / "roles"
    roles.mkdir(exist_ok=True)
    (roles / "resolver.md").write_text(f"You resolve conflicts.\n\n```rook-script\n{yaml.safe_dump(steps)}```\n")


def clash(yard: Yard, path: str = "a.txt", ours: str = "1\nours\n3\n", theirs: str = "1\ntheirs\n3\n") -> None:
    name = path.replace("/", "__").replace(".", "_")
    yard.commit(**{name: "1\n2\n3\n"})
    yard.branch("work", **{name: theirs})
    yard.commit(**{name: ours})


def outcomes(yard: Yard, entry: Entry) -> list[tuple[str, str, str]]:
    merger = yard.merger()
    try:
        return [(outcome.path, outcome.tier, outcome.outcome) for outcome in store.outcomes(merger.ctx.db, entry.id)]
    finally:
        merger.ctx.db.close()


def test_what_the_rules_prove_lands(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n", "grep -q theirs a.list")
    clash(yard, "a.list")
    entry = land("work")
    assert (entry.state, entry.tier) == ("landed", "mechanical")
    assert yard.show("a.list") == "1\nours\n3\ntheirs"
    assert "Conflicts-Resolved: mechanical" in git(yard.folder, "log", "-1", "--format=%B")
    assert outcomes(yard, entry) == [("a.list", "mechanical", "resolved")]
    (sides,) = standin.seen
    assert (sides.base, sides.ours_mode) == (b"1\n2\n3\n", "100644")
    explained = yard.rook("merge", "explain", entry.id).out.decode()
    assert "a list keeps the lines of both" in explained


def test_the_resolver_gets_the_versions_in_between(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    yard.commit(a_list="1\n")
    git(yard.folder, "switch", "-qc", "work")
    yard.commit(a_list="1\nt1\n")
    yard.commit(a_list="1\nt2\n")
    git(yard.folder, "switch", "-q", "main")
    yard.commit(a_list="1\no1\n")
    yard.commit(a_list="1\no2\n")
    land("work")
    (sides,) = standin.seen
    assert (sides.ours_history, sides.theirs_history) == ((b"1\no1\n",), (b"1\nt1\n",))


def test_a_result_that_loses_a_line_goes_up_a_tier(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    clash(yard, "a.bad")
    before = yard.main()
    entry = land("work")
    assert (entry.state, entry.kind, entry.files) == ("failed", "conflict", ("a.bad",))
    assert yard.main() == before
    assert outcomes(yard, entry) == [("a.bad", "mechanical", "declined"), ("a.bad", "human", "declined")]


def test_a_lock_file_is_generated_again_by_its_program(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    yard.commit(x_lock="a\n", x_toml="a\n-\n-\n-\n")
    yard.branch("work", x_lock="a\nc\n", x_toml="a\n-\n-\n-\nc\n")
    yard.commit(x_lock="a\nb\n", x_toml="b\na\n-\n-\n-\n")
    entry = land("work")
    assert (entry.state, entry.tier) == ("landed", "mechanical")
    assert yard.show("x.lock") == "-\n-\n-\na\nb\nc"
    yard.assert_tidy()


def test_an_agent_resolves_and_the_gates_agree(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [agent]\n", "grep ours a.txt && grep theirs a.txt")
    clash(yard)
    script(yard, [{"run": "printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    entry = land("work")
    assert (entry.state, entry.tier) == ("landed", "agent"), entry.reason
    assert yard.show("a.txt") == "1\nours\ntheirs\n3"
    assert sorted(git(yard.folder, "ls-tree", "--name-only", "main").splitlines()) == ["README.md", "a.txt"]
    assert git(yard.folder, "status", "--porcelain") == ""
    yard.assert_tidy()


def test_an_agent_is_asked_about_a_file_whose_name_is_not_utf8(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [agent]\n")
    name = os.fsdecode(b"caf\xe9")
    clash(yard, name)
    script(yard, [{"run": "printf '1\\nours\\ntheirs\\n3\\n' > $(printf 'caf\\351')"}])
    entry = land("work")
    assert (entry.state, entry.tier) == ("landed", "agent"), entry.reason
    assert (yard.folder / name).read_text() == "1\nours\ntheirs\n3\n"
    assert (as_utf8(name), "agent", "resolved") in outcomes(yard, entry)


def test_an_agent_may_commit_what_it_made(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [agent]\n")
    clash(yard)
    commit = "git add -A && git commit -qm Resolved && git checkout -qb elsewhere"
    script(yard, [{"run": f"printf '1\\nours\\ntheirs\\n3\\n' > a.txt; {commit}"}, {"commit": "Again"}])
    entry = land("work")
    assert entry.state == "landed", entry.reason
    assert yard.show("a.txt") == "1\nours\ntheirs\n3"
    assert git(yard.folder, "branch", "--list", "elsewhere") == ""


def test_rules_and_an_agent_share_the_work(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.commit(a_list="1\n", b_txt="1\n")
    yard.branch("work", a_list="1\nt\n", b_txt="t\n")
    yard.commit(a_list="1\no\n", b_txt="o\n")
    script(yard, [{"run": "cat a.list > seen; printf 'o\\nt\\n' > b.txt; rm seen"}])
    entry = land("work")
    assert (entry.state, entry.tier) == ("landed", "agent"), entry.reason
    assert (yard.show("a.list"), yard.show("b.txt")) == ("1\no\nt", "o\nt")
    assert outcomes(yard, entry) == [
        ("a.list", "mechanical", "resolved"),
        ("b.txt", "mechanical", "declined"),
        ("b.txt", "agent", "resolved"),
    ]


_NAMED = json.dumps({"summary": "ours is newer", "lost": [{"path": "a.txt", "line": "theirs", "why": "outdated"}]})


def test_a_line_that_is_left_out_with_a_reason_is_let_go(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [agent]\n")
    clash(yard)
    answer = {"edit": {"path": "rook-resolution.json", "text": _NAMED}}
    script(yard, [{"run": "printf '1\\nours\\n3\\n' > a.txt"}, answer])
    entry = land("work")
    assert entry.state == "landed", entry.reason
    assert yard.show("a.txt") == "1\nours\n3"
    assert "rook-resolution.json" not in git(yard.folder, "ls-tree", "--name-only", "main")
    assert "outdated" in yard.rook("merge", "explain", entry.id).out.decode()


BAD_ANSWERS: dict[str, tuple[list[Any], str]] = {
    "nothing done": ([{"say": "I will not."}], "conflict markers"),
    "a line lost": ([{"run": "printf '1\\nours\\n3\\n' > a.txt"}], "without a reason"),
    "an empty reason": (
        [
            {"run": "printf '1\\nours\\n3\\n' > a.txt"},
            {"edit": {"path": "rook-resolution.json", "text": _NAMED.replace("outdated", " ")}},
        ],
        "without a reason",
    ),
    "no JSON": (
        [
            {"run": "printf '1\\nours\\n3\\n' > a.txt"},
            {"edit": {"path": "rook-resolution.json", "text": "["}},
        ],
        "without a reason",
    ),
    "the file deleted": ([{"run": "rm a.txt"}], "without a reason"),
    "another file emptied": (
        [{"run": "printf '1\\nours\\ntheirs\\n3\\n' > a.txt; : > README.md"}],
        "",
    ),
    "it crashes": ([{"crash": 3}], "exited with status 3"),
    "it says that it failed": ([{"fail": "too hard"}], "too hard"),
    "it hangs": ([{"child": "sleep 1000"}, {"hang": True}], "did not end"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_an_answer_that_proves_nothing_is_turned_down(yard: Yard, land: Callable[..., Entry], name: str) -> None:
    steps, reason = BAD_ANSWERS[name]
    yard.settings("merge:\n  tiers: [agent]\n  agent_timeout: 3s\n", "test -s README.md")
    clash(yard)
    script(yard, steps)
    before = yard.main()
    entry = land("work")
    assert (entry.state, entry.kind, entry.tier) == ("failed", "conflict", "human")
    assert yard.main() == before
    merger = yard.merger()
    whys = " ".join(outcome.why for outcome in store.outcomes(merger.ctx.db, entry.id))
    merger.ctx.db.close()
    assert reason in whys
    assert "<<<<" not in git(yard.folder, "grep", "-c", "", "main")
    yard.assert_tidy()


def test_an_answer_that_does_not_parse_is_turned_down(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [agent]\n")
    clash(yard, "a.py")
    script(yard, [{"run": "printf '1\\nours\\ntheirs\\nsyntax error\\n3\\n' > a.py"}])
    assert land("work").state == "failed"


def test_what_the_gates_turn_down_goes_up_a_tier(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [mechanical, agent]\n  retries: 0\n", "test $(wc -l < a.list) -ne 4")
    clash(yard, "a.list")  # the rules give four lines
    script(yard, [{"run": "printf '1\\nours\\ntheirs\\nmore\\n3\\n' > a.list"}])
    entry = land("work")
    assert (entry.state, entry.tier) == ("landed", "agent"), entry.reason
    assert outcomes(yard, entry) == [("a.list", "mechanical", "refused"), ("a.list", "agent", "resolved")]


def test_reimagine_does_the_change_again_on_a_fresh_base(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [reimagine]\n")
    clash(yard)
    script(yard, [{"run": "! grep -q '<<<' a.txt && printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    entry = land("work")
    assert (entry.state, entry.tier) == ("landed", "reimagine"), entry.reason
    assert yard.show("a.txt") == "1\nours\ntheirs\n3"
    assert yard.contains("work")


def test_reimagine_that_forgets_a_file_is_turned_down(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [reimagine]\n")
    yard.commit(a_txt="1\n2\n3\n")
    yard.branch("work", a_txt="1\ntheirs\n3\n", more_txt="more\n")
    yard.commit(a_txt="1\nours\n3\n")
    script(yard, [{"run": "printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    entry = land("work")
    assert entry.state == "failed"
    assert ("more.txt", "reimagine", "declined") in outcomes(yard, entry)


def test_the_prompt_shows_both_sides_and_what_was_done_before(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [agent]\n")
    clash(yard)
    script(yard, [{"run": "printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    assert land("work").state == "landed"
    git(yard.folder, "switch", "-qc", "again", "main")
    yard.commit(a_txt="1\nours\nagain\n3\n")
    git(yard.folder, "switch", "-q", "main")
    yard.commit(a_txt="1\nours\nmain\n3\n")
    from rookery.merge.landing.candidate import build
    from rookery.merge.tiers import agent
    from rookery.merge.tiers.case import Case

    merger = yard.merger()
    entry = service.draft(merger, "again", "main")
    case = build(merger, entry, yard.main())
    assert isinstance(case, Case)
    prompt = agent._prompt(merger, case)
    merger.ctx.db.close()
    assert "- a.txt (content)" in prompt
    assert "+again" in prompt
    assert "+main" in prompt
    assert "agent resolved" in prompt
    assert "rook-resolution.json" in prompt


@pytest.mark.parametrize("tiers", ["[]", "[mechanical]"])
def test_a_tier_that_is_turned_off_is_not_tried(yard: Yard, land: Callable[..., Entry], tiers: str) -> None:
    yard.settings(f"merge:\n  tiers: {tiers}\n")
    clash(yard)
    script(yard, [{"run": "printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    assert land("work").state == "failed"


def test_the_agent_cannot_use_rook(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [agent]\n")
    clash(yard)
    create = {"rook": ["task", "create", "Not mine"]}
    script(yard, [create, {"run": "printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    land("work")
    assert yard.rook.json("task", "list").data == []


def test_kinds_that_no_rule_may_touch_are_left_to_people(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [mechanical]\n")
    yard.commit(a_list="1\n")
    yard.branch("work", a_list=None)
    yard.commit(a_list="1\n2\n")
    entry = land("work")
    assert (entry.state, entry.files) == ("failed", ("a.list",))
    assert "modify/delete" in str(entry.reason)


def spent(yard: Yard, by: str) -> dict[str, tuple[int, int, int]]:
    """What each used: prompts, tokens in and tokens out."""
    costs = yard.rook.json("costs", "--by", by).data
    return {row["name"]: (row["turns"], row["input"], row["output"]) for row in costs["rows"]}


@pytest.mark.parametrize("tier", ["agent", "reimagine"])
def test_what_a_tier_used_is_among_the_costs(yard: Yard, land: Callable[..., Entry], tier: str) -> None:
    yard.settings(f"merge:\n  tiers: [{tier}]\n  model: scripted\n")
    yard.commit(a_txt="1\n2\n3\n")
    task = yard.finished("bee", [{"edit": {"path": "a.txt", "replace": ["2", "theirs"]}}, {"commit": "Theirs"}])
    yard.commit(a_txt="1\nours\n3\n")
    spend = [{"spend": {"input": 1000, "output": 10}}, {"spend": {"input": 200, "output": 3}}]
    script(yard, [*spend, {"run": "printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    entry = land("bee")
    assert (entry.state, entry.tier) == ("landed", tier), entry.reason
    used = (1, 1200, 13)
    assert spent(yard, "agent")["merger"] == used
    assert spent(yard, "role")["merger"] == used
    assert spent(yard, "turn")[f"merger {tier} of {entry.id}"] == used
    run = str(entry.run_id)
    assert (spent(yard, "task"), spent(yard, "epic"), spent(yard, "run")) == ({task: used}, {task: used}, {run: used})
    (alone,) = yard.rook.json("costs", "--agent", "merger", "--run", run).data["rows"]
    assert alone["dollars"] == pytest.approx((1200 * 3 + 13 * 15) / 1_000_000)
    shown = yard.rook.json("run", "show", run).data
    assert shown["dollars"] == pytest.approx(yard.rook.json("costs", "--run", run).data["total"]["dollars"])


def test_what_was_spent_in_vain_counts_too(yard: Yard, land: Callable[..., Entry]) -> None:
    yard.settings("merge:\n  tiers: [agent]\n  agent_timeout: 3s\n")
    clash(yard)
    script(yard, [{"spend": {"input": 500, "output": 5}}, {"hang": True}])
    entry = land("work")
    assert entry.state == "failed"
    assert spent(yard, "task") == {"none": (1, 500, 5)}
    assert spent(yard, "run") == {"none": (1, 500, 5)}
    assert "merger" in yard.rook("costs").out.decode()


_SAID = {
    "type": "assistant",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "message": {"id": "m1", "model": "scripted", "usage": {"input_tokens": 900, "output_tokens": 9}},
}


@pytest.mark.parametrize("step", ["at work", "spent"])
def test_what_was_spent_for_a_killed_merger_counts_once(yard: Yard, tmp_path: Path, step: str) -> None:
    """The program of a killed merger writes its usage into transcripts; the process that cleans up reads them."""
    begun = tmp_path / "begun"
    yard.settings("merge:\n  tiers: [agent]\n")
    clash(yard)
    transcripts = "../private/claude/projects/x"
    tell = f"mkdir -p {transcripts}; printf '%s\\n' '{json.dumps(_SAID)}' > {transcripts}/y.jsonl"
    script(yard, [{"run": f"{tell}; touch {begun}"}, *([{"hang": True}] if step == "at work" else [])])
    yard.rook("merge", "enqueue", "work")
    if step == "spent":
        yard.killed("spent", "merge", "run")
    else:
        child = subprocess.Popen(
            rook_argv("merge", "run"), cwd=yard.folder, env=child_environ(), stderr=subprocess.DEVNULL
        )
        wait_until(begun.exists, 60)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        (job,) = journal.jobs(str(yard.folder))
        entry = journal.find(str(yard.folder), job, journal.RUNNER)
        assert entry is not None
        os.kill(entry["pid"], signal.SIGKILL)
        wait_until(lambda: not journal.is_running(str(yard.folder), job))
    if step == "spent":
        assert yard.merge("run").status == 1  # the next merger takes the answer, which is none
    else:
        assert yard.rook("loop", "run").status == 0
    assert spent(yard, "agent") == {"merger": (1, 900, 9)}
    assert not list((yard.folder / ".rookery" / "merges").glob("*.json"))
    yard.assert_tidy()


@pytest.mark.parametrize("has_ended", [False, True])
def test_the_answer_of_an_agent_whose_merger_was_killed_is_used(yard: Yard, tmp_path: Path, has_ended: bool) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    yard.settings("merge:\n  tiers: [agent]\n", "true")
    clash(yard)
    wait = f"echo run >> {begun}; until [ -e {go} ]; do sleep 0.02; done"
    spend = {"spend": {"input": 1000, "output": 10}}
    script(yard, [spend, {"run": f"{wait}; printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    yard.rook("merge", "enqueue", "work")
    words = rook_argv("merge", "run")
    with subprocess.Popen(words, cwd=yard.folder, env=child_environ(), stderr=subprocess.DEVNULL) as merger:
        wait_until(begun.exists, 60)
        merger.kill()
    (job,) = journal.jobs(str(yard.folder))
    if has_ended:
        go.write_text("go")
        wait_until(lambda: not journal.is_running(str(yard.folder), job))
    assert yard.rook("loop", "run").status == 0
    wait_until(lambda: yard.states() == {"work": "queued"})
    assert journal.jobs(str(yard.folder)) == [job]  # it was paid for, and is still to land
    with subprocess.Popen(words, cwd=yard.folder, env=child_environ(), stderr=subprocess.DEVNULL) as merger:
        if not has_ended:
            wait_until(lambda: yard.states() == {"work": "testing"}, 60)
            go.write_text("go")
    assert yard.entry("work")["tier"] == "agent"
    assert yard.show("a.txt") == "1\nours\ntheirs\n3"
    assert begun.read_text() == "run\n"
    assert spent(yard, "agent") == {"merger": (1, 1000, 10)}
    yard.assert_tidy()
    assert journal.jobs(str(yard.folder)) == []


def test_an_answer_that_is_not_wanted_any_more_goes(yard: Yard, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    yard.settings("merge:\n  tiers: [agent]\n", "true")
    clash(yard)
    script(yard, [{"spend": {"input": 1000, "output": 10}}, {"run": f"touch {begun}"}])
    yard.rook("merge", "enqueue", "work")
    yard.killed("agent started", "merge", "run")
    (job,) = journal.jobs(str(yard.folder))
    wait_until(lambda: not journal.is_running(str(yard.folder), job), 60)
    assert begun.exists()
    wait_until(lambda: yard.states() == {"work": "queued"})
    assert yard.merge("cancel", yard.entry("work")["id"]).status == 0
    wait_until(lambda: not journal.jobs(str(yard.folder)))
    assert spent(yard, "agent") == {"merger": (1, 1000, 10)}
    yard.assert_tidy()
