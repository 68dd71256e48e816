"""Pushing the base: on request, never, or after every landing of a person; and never by an agent."""

from __future__ import annotations

import os
import pty
import select
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import git
from rookery.ops import index
from rookery.roles.catalog import builtin_roles
from rookery.roles.permissions import PERMISSIONS
from support import child_environ, rook_argv

from .team import Team

pytestmark = pytest.mark.slow


def hook(folder: Path, name: str, text: str) -> Path:
    path = folder / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_base_is_pushed_on_request_and_nothing_else(team: Team) -> None:
    yard, before = team.yard, team.upstream()
    git(yard.folder, "config", "push.followTags", "true")
    mine = yard.commit(own_txt="o\n")
    git(yard.folder, "tag", "-a", "v1", "-m", "one")
    yard.branch("side", side_txt="s\n")
    assert team.synced()["push"] is None
    assert team.upstream() == before
    pushed = team.synced("--push")["push"]
    assert (pushed["state"], pushed["commit"], pushed["commits"]) == ("pushed", mine, 1)
    assert git(team.bare, "for-each-ref", "--format=%(refname) %(objectname)") == f"refs/heads/main {mine}"
    assert [(event["commit"], event["before"]) for event in team.events("remote.pushed")] == [(mine, before)]
    assert team.synced("--push")["state"] == "equal"
    assert len(team.events("remote.pushed")) == 1
    assert team.events("remote.synced") == []


def test_a_branch_that_the_remote_does_not_have_is_made(team: Team) -> None:
    git(team.bare, "update-ref", "-d", "refs/heads/main")
    git(team.yard.folder, "update-ref", "-d", "refs/remotes/origin/main")
    assert team.synced()["state"] == "unpublished"
    assert team.synced("--push")["push"]["state"] == "pushed"
    assert team.upstream() == team.yard.main()
    # One that was there and is gone is not made again.
    git(team.bare, "update-ref", "-d", "refs/heads/main")
    synced = team.synced("--push", "-c", "remote.push=always", status=1)
    assert (synced["state"], synced["push"]["state"]) == ("gone", "left")
    assert git(team.bare, "for-each-ref") == ""


def test_a_remote_that_moves_meanwhile_refuses_the_push(team: Team) -> None:
    yard = team.yard
    mine = yard.commit(own_txt="o\n")
    (team.other / "b.txt").write_text("b\n")
    git(team.other, "add", "-A")
    git(team.other, "commit", "-qm", "Faster")
    own = hook(
        yard.folder / ".git", "pre-push", f"unset $(git rev-parse --local-env-vars)\ngit -C {team.other} push -q"
    )
    pushed = team.synced("--push", status=1)["push"]
    assert pushed["state"] == "failed"
    assert "rook sync" in pushed["reason"]
    assert git(team.bare, "log", "-1", "--format=%s", "main") == "Faster"
    own.unlink()
    assert team.synced("--merge", "--push")["push"]["state"] == "pushed"
    assert git(yard.folder, "rev-parse", "main^1") == mine
    assert team.upstream() == yard.main()


def test_what_was_pushed_is_undone_by_a_commit_on_top(team: Team) -> None:
    """Also where git keeps no record of the remote's branches: moved back, the next sync would bring it again."""
    yard = team.yard
    git(yard.folder, "config", "--unset-all", "remote.origin.fetch")
    git(yard.folder, "update-ref", "-d", "refs/remotes/origin/main")
    yard.branch("work", a_txt="a\n")
    yard.merge("--branch", "work")
    team.synced("--push")
    for words in (["--dry-run"], []):
        assert yard.merge("undo", "work", *words).data["landings"][0]["how"] == "reverted"
    assert team.synced("--push")["push"]["state"] == "pushed"
    assert git(team.bare, "ls-tree", "--name-only", "main").split() == ["README.md"]
    assert not (yard.folder / "a.txt").exists()


def test_what_lands_and_is_undone_while_it_is_pushed_is_neither_pushed_nor_comes_again(team: Team) -> None:
    """An undo of what is on its way adds a commit: moved back, the next sync would bring it again."""
    yard, argv = team.yard, shlex.join(map(os.fsdecode, rook_argv("merge")))
    yard.branch("work", a_txt="a\n")
    yard.branch("later", b_txt="b\n")
    yard.merge("--branch", "work")
    mine = yard.main()
    text = f"unset $(git rev-parse --local-env-vars)\n{argv} undo work >&2; {argv} --branch later >&2"
    own = hook(yard.folder / ".git", "pre-push", text)
    assert team.synced("--push")["push"]["commit"] == mine
    own.unlink()
    assert team.upstream() == mine
    assert git(yard.folder, "ls-tree", "--name-only", "main").split() == ["README.md", "b.txt"]
    assert team.synced()["state"] == "ahead"
    assert "Revert: work" in git(yard.folder, "log", "--format=%s", "--first-parent", f"{mine}..main").split("\n")
    assert team.events("remote.synced") == []


def test_a_base_that_went_back_before_the_push_is_not_pushed(team: Team) -> None:
    """As by an undo while a person thinks about the question."""
    yard, before = team.yard, team.upstream()
    yard.commit(own_txt="o\n")

    def answer(shown: str) -> str | None:
        if "[y/N]" not in shown:
            return None
        git(yard.folder, "reset", "-q", "--hard", before)
        return "y"

    assert "Not pushed: main has moved meanwhile" in in_terminal(yard.folder, "sync", answer=answer)
    assert team.upstream() == before
    assert team.synced()["state"] == "equal"


def test_hooks_here_and_there_may_refuse_it(team: Team) -> None:
    before = team.upstream()
    team.yard.commit(own_txt="o\n")
    own = hook(team.yard.folder / ".git", "pre-push", "echo not on fridays >&2; exit 1")
    assert "not on fridays" in team.synced("--push", status=1)["push"]["reason"]
    own.unlink()
    hook(team.bare, "update", r"printf 'not \033[2Jon\r sundays\n\nnor ever\n' >&2; exit 1")
    reason = team.synced("--push", status=1)["push"]["reason"]
    assert reason.startswith("origin refused the push: [remote rejected] (hook declined)\n")
    assert "\nsundays\nnor ever\n" in reason
    shown = team.yard.rook("sync", "--push").out
    assert b"nor ever" in shown
    assert b"\033" not in shown
    assert team.upstream() == before
    assert team.events("remote.pushed") == []


def test_never(team: Team) -> None:
    before = team.upstream()
    team.yard.commit(own_txt="o\n")
    team.yard.settings("remote:\n  push: never\n")
    error = team.sync("--push").error
    assert "remote.push" in error["message"]
    assert team.upstream() == before
    assert team.synced()["push"] is None


def test_always_pushes_after_a_landing_and_with_a_sync(team: Team, own_settings: Path) -> None:
    yard = team.yard
    own_settings.write_text("remote:\n  push: always\n")
    yard.branch("work", a_txt="a\n")
    pushed = yard.merge("--branch", "work").data["push"]
    assert (pushed["state"], pushed["upstream"]) == ("pushed", "origin/main")
    assert team.upstream() == yard.main()
    mine = yard.commit(own_txt="o\n")
    assert team.synced()["push"]["state"] == "pushed"
    assert team.upstream() == mine
    # A landing on another branch than the project's base is not pushed.
    git(yard.folder, "branch", "next")
    yard.branch("more", more_txt="m\n")
    assert yard.merge("--branch", "more", "--into", "next").data["push"] is None
    assert git(team.bare, "branch", "--list", "next") == ""


def test_a_push_that_fails_fails_no_landing_and_is_tried_again(team: Team, own_settings: Path) -> None:
    yard = team.yard
    own_settings.write_text("remote:\n  push: always\n")
    away = team.bare.with_name("away")
    os.rename(team.bare, away)
    yard.branch("one", a_txt="a\n")
    ran = yard.rook("merge", "--branch", "one")
    assert ran.status == 0
    assert b"Not pushed: git could not fetch from origin" in ran.out
    assert yard.show("a.txt") == "a"
    os.rename(away, team.bare)
    yard.branch("two", b_txt="b\n")
    assert yard.merge("--branch", "two").data["push"]["state"] == "pushed"
    assert team.upstream() == yard.main()
    # A diverged upstream is left to a person.
    git(team.other, "pull", "-q")
    theirs = team.push_theirs(c_txt="c\n")
    yard.branch("three", d_txt="d\n")
    pushed = yard.merge("--branch", "three").data["push"]
    assert (pushed["state"], "diverged" in pushed["reason"]) == ("left", True)
    assert team.upstream() == theirs


@pytest.mark.parametrize(
    ("own", "projects", "in_force"),
    [
        ("", "always", "ask"),
        ("always", "", "always"),
        ("always", "always", "always"),
        ("always", "never", "never"),
        ("always", "ask", "ask"),
        ("never", "ask", "never"),
        ("never", "always", "never"),
    ],
)
def test_a_repository_cannot_loosen_what_the_user_says(
    team: Team, own_settings: Path, own: str, projects: str, in_force: str
) -> None:
    if own:
        own_settings.write_text(f"remote:\n  push: {own}\n")
    if projects:
        (team.yard.folder / ".rookery" / "config.yaml").write_text(f"remote:\n  push: {projects}\n")
    before = team.upstream()
    mine = team.yard.commit(own_txt="o\n")
    team.synced()
    assert team.upstream() == (mine if in_force == "always" else before)
    assert (team.sync("--push").status == 0) is (in_force != "never")
    assert team.upstream() == (before if in_force == "never" else mine)


def test_a_landing_by_an_agent_is_not_pushed(team: Team, own_settings: Path) -> None:
    yard = team.yard
    own_settings.write_text("remote:\n  push: always\n")
    before = team.upstream()
    yard.branch("work", a_txt="a\n")
    steps = [{"run": "rook merge --branch work"}, {"until": {"mail_type": "dispatch"}}]
    yard.sling("lander", steps, "--role", "coordinator")
    yard.wait_for("lander", "waiting")
    assert yard.states() == {"work": "landed"}, [
        path.read_text() for path in yard.folder.glob(".rookery/sessions/*/events.ndjson")
    ]
    assert team.upstream() == before
    yard.rook("stop", "lander")
    assert team.synced()["push"]["state"] == "pushed"
    assert team.upstream() == yard.main()


def test_agents_neither_sync_nor_push(team: Team) -> None:
    operation = next(op for op in index.load_group("sync") if op.name == "sync")
    assert PERMISSIONS[operation.needs] == ()  # no role of a project can have it either
    assert not any(operation.needs in role.rights for role in builtin_roles().values())
    for role in builtin_roles():
        for command in ("rook sync", "rook sync --push", "git push", "git push origin HEAD", "git -C . push -f"):
            words = ("guard", "test", role, "Bash", f'{{"command": "{command}"}}')
            assert team.yard.rook.json(*words).data["verdict"] == "deny", (role, command)


@pytest.mark.parametrize(("answer", "is_pushed"), [("y", True), ("", False), ("n", False)])
def test_a_person_at_a_terminal_is_asked(team: Team, answer: str, is_pushed: bool) -> None:
    before = team.upstream()
    mine = team.yard.commit(own_txt="o\n")
    shown = in_terminal(team.yard.folder, "sync", answer=lambda text: answer if "[y/N]" in text else None)
    assert "  Change own_txt\r\nPush 1 commit of main to origin/main? [y/N]" in shown
    assert team.upstream() == (mine if is_pushed else before)


@pytest.mark.parametrize(("answer", "is_pushed"), [("y", True), ("", False)])
def test_a_person_who_lands_at_a_terminal_is_asked(team: Team, answer: str, is_pushed: bool) -> None:
    yard, before = team.yard, team.upstream()
    yard.branch("work", a_txt="a\n")
    words = ("merge", "--branch", "work")
    shown = in_terminal(yard.folder, *words, answer=lambda text: answer if "[y/N]" in text else None)
    assert "work landed on main. Push 2 commits of it to origin/main? [y/N]" in shown
    assert yard.show("a.txt") == "a"
    assert team.upstream() == (yard.main() if is_pushed else before)


def test_no_one_is_asked_where_nothing_is_to_be_pushed(team: Team) -> None:
    yard = team.yard
    git(yard.folder, "remote", "remove", "origin")
    yard.branch("work", a_txt="a\n")
    assert "[y/N]" not in in_terminal(yard.folder, "merge", "--branch", "work", answer=lambda _text: None)
    assert yard.show("a.txt") == "a"


def in_terminal(folder: Path, *words: str, answer: Callable[[str], str | None]) -> str:
    """What `rook` shows in a terminal of its own, in which one line is typed once `answer` gives it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        argv = rook_argv(*words)
        os.execvpe(argv[0], argv, child_environ({"ROOKERY_DAEMON": "off", "COLUMNS": "80"}))
    seen, has_answered = "", False
    while select.select([terminal], [], [], 60)[0]:
        try:
            seen += os.read(terminal, 4096).decode()
        except OSError:
            break
        typed = None if has_answered else answer(seen)
        if typed is not None:
            has_answered = True
            os.write(terminal, f"{typed}\n".encode())
    os.close(terminal)
    os.waitpid(pid, 0)
    return seen
