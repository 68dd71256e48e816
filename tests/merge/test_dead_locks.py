"""Locks of killed gits keep nothing from landing and no agent from committing; those of living ones are respected."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from conftest import git
from rookery.processes import proctable
from support import wait_until

from .yard import DONE, Yard

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not proctable.has_proc(), reason="without /proc nothing can be proved"),
]

EVERY_LOCK = ("index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock")


def make_old(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - 60, time.time() - 60))
    return path


def commit_and_wait(folder: Path, tmp_path: Path) -> subprocess.Popen[bytes]:
    """A real `git commit` whose hook waits for a word, with the index locked."""
    begun, go = tmp_path / "begun", tmp_path / "go"
    hook = folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {begun}\nwhile [ -e {begun} ] && ! [ -e {go} ]; do sleep 0.05; done\n")
    hook.chmod(0o755)
    (folder / "mine.txt").write_text("mine\n")
    git(folder, "add", "mine.txt")
    child = subprocess.Popen(["git", "commit", "-qam", "Mine"], cwd=folder, stderr=subprocess.DEVNULL)
    wait_until(begun.exists, 20)
    assert (folder / ".git/index.lock").exists()
    return child


def test_a_landing_waits_for_a_living_git_and_says_which(yard: Yard, tmp_path: Path) -> None:
    yard.branch("one", a_txt="a\n")
    child = commit_and_wait(yard.folder, tmp_path)
    before = yard.main()
    assert yard.merge("--branch", "one").status == 1
    entry = yard.entry("one")
    assert entry["state"] == "waiting"
    assert "another git is at work" in entry["reason"]
    assert f"process {child.pid} is alive" in entry["reason"]
    assert (yard.folder / ".git/index.lock").exists()
    assert yard.main() == before
    (tmp_path / "go").touch()
    assert child.wait(20) == 0
    assert yard.merge("run").status == 0
    assert git(yard.folder, "log", "--format=%s", "main").count("Mine") == 1
    yard.assert_tidy()


def test_a_commit_that_was_killed_lets_the_next_landing_through(yard: Yard, tmp_path: Path) -> None:
    yard.branch("one", a_txt="a\n")
    child = commit_and_wait(yard.folder, tmp_path)
    child.kill()
    child.wait()
    (tmp_path / "go").touch()
    assert (yard.folder / ".git/index.lock").exists()
    assert yard.merge("--branch", "one").status == 0
    assert (yard.folder / "a.txt").read_text() == "a\n"
    assert git(yard.folder, "status", "--porcelain") == "A  mine.txt"
    yard.assert_tidy()


@pytest.mark.parametrize("name", EVERY_LOCK)
def test_a_lock_without_a_holder_keeps_nothing_from_landing_or_coming_back(yard: Yard, name: str) -> None:
    yard.branch("one", a_txt="a\n")
    make_old(yard.folder / ".git" / name)
    assert yard.merge("--branch", "one").status == 0
    assert yard.show("a.txt") == "a"
    make_old(yard.folder / ".git" / name)
    assert yard.merge("undo", "one").status == 0
    assert not (yard.folder / "a.txt").exists()
    assert git(yard.folder, "status", "--porcelain") == ""


def test_what_is_kept_for_a_landing_is_not_stopped_either(yard: Yard) -> None:
    yard.branch("one", a_txt="a\n")
    yard.rook("merge", "enqueue", "one")
    lock = make_old(yard.folder / ".git/refs/rookery/merge" / f"{yard.entry('one')['id']}.lock")
    assert yard.merge("run").status == 0
    assert not lock.exists()


def test_the_next_turn_of_an_agent_finds_no_lock_of_the_last(yard: Yard) -> None:
    """Its git is killed with the turn; the agent's own commit in the next turn works."""
    script = [
        {"edit": {"path": "README.md", "text": "work\n"}},
        {"child": "GIT_EDITOR='sleep 1000 #' git commit -a -m x -e"},
        {"run": 'until [ -e "$(git rev-parse --git-dir)/index.lock" ]; do sleep 0.05; done'},
        {"wait": "mail"},
        {"commit": "Work"},
        DONE,
    ]
    yard.sling("bee", script)
    yard.wait_for("bee", "waiting", "crashed")
    assert not (yard.folder / ".git/worktrees/bee/index.lock").exists()
    assert yard.rook("mail", "send", "bee", "--subject", "Go on", "--body", "please").status == 0
    yard.wait_for("bee", "completed", "crashed")
    assert yard.agent("bee")["outcome"] == "completed"
    assert yard.show("README.md", yard.agent("bee")["branch"]) == "work"


def test_the_doctor_names_a_dead_lock_and_removes_it(yard: Yard) -> None:
    """It waits while a git runs that it cannot inspect and that may hold the lock; one of another test ends soon."""
    locks = [make_old(yard.folder / ".git" / name) for name in (*EVERY_LOCK, "config.lock")]

    def named() -> list[str]:
        checks = yard.rook.json("doctor", "--category", "vcs").data["checks"]
        return sorted(check["message"].split(" ")[0] for check in checks if check["name"] == "lock")

    def are_removed() -> bool:
        assert yard.rook("doctor", "--fix", "--category", "vcs").status == 0
        return not any(lock.exists() for lock in locks)

    wait_until(lambda: named() == sorted(map(str, locks)))
    wait_until(are_removed)
