"""A sling that is killed inside `git worktree add`: whatever command comes next, its half of a worktree is no work.

It goes, or becomes whole. No snapshot and no rescue says that the files which git had not written yet were deleted.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from conftest import git
from den import DONE, Den
from support import child_environ, rook_argv, wait_until

pytestmark = pytest.mark.slow

# What a filter of git does while `git worktree add` writes the files: it runs under two gits and the command.
_PARENTS = "add=$(cut -d' ' -f4 /proc/$PPID/stat); rook=$(cut -d' ' -f4 /proc/$add/stat); "
_KILLED = {
    "all": "kill -9 $rook $add $PPID; cat",
    "git goes on": "kill -9 $rook; sleep 1000; cat",
}
_NEXT = {
    "clean": [["worktree", "clean", "bee"], ["loop", "run"]],
    "clean all": [["worktree", "clean", "--all"]],
    "stop and clean": [["stop", "bee"], ["worktree", "clean", "bee"]],
    "clean, dry": [["stop", "bee"], ["worktree", "clean", "bee", "--dry-run"], ["worktree", "clean", "bee"]],
    "stop with cleaning": [["stop", "bee", "--clean"]],
    "doctor": [["doctor"], ["doctor", "--fix"]],
    "list": [["worktree", "list"], ["stop", "bee"], ["worktree", "list"], ["worktree", "clean", "--all"]],
    "sling": [["sling", "{task}", "--name", "bee"]],
    "stop and sling": [["stop", "bee"], ["sling", "{task}", "--name", "bee"]],
}


@pytest.fixture
def den(repo: Path) -> Den:
    den = Den(repo)
    for name in ("a.txt", "m.trap", "z.txt"):
        (repo / name).write_text(f"{name}\n")
    (repo / ".gitattributes").write_text("*.trap filter=trap\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "More")
    return den


def kill_sling(den: Den, task: str, how: str) -> None:
    """A sling that is killed in the middle of the checkout, before any loop looks at it."""
    git(den.folder, "config", "filter.trap.smudge", _PARENTS + _KILLED[how])
    argv = rook_argv("sling", task, "--name", "bee")
    env = child_environ({"ROOKERY_DAEMON": "off"})
    done = subprocess.run(argv, cwd=den.folder, env=env, check=False)
    assert done.returncode == -signal.SIGKILL
    git(den.folder, "config", "filter.trap.smudge", "cat")
    assert (den.folder / ".rookery/worktrees/bee/.git").exists()


def assert_nothing_deleted(den: Den) -> None:
    """No commit that Rookery keeps deletes a file; what is there of the worktree is whole."""
    for ref in git(den.folder, "for-each-ref", "--format=%(refname)", "refs/rookery", "refs/heads/rook").split():
        assert git(den.folder, "diff", "--name-status", "--diff-filter=D", "main", ref) == "", ref
    place = den.folder / ".rookery/worktrees/bee"
    if place.exists():
        assert git(place, "status", "--porcelain") == ""


@pytest.mark.sweep
@pytest.mark.parametrize("how", _KILLED)
@pytest.mark.parametrize("following", _NEXT)
def test_whatever_comes_next_no_file_counts_as_deleted(den: Den, following: str, how: str) -> None:
    task = den.task("Task", [{"edit": {"path": "work.txt", "text": "work\n"}}, {"commit": "Work"}, DONE])
    kill_sling(den, task, how)
    for words in _NEXT[following]:
        den.rook(*(word.format(task=task) for word in words))
    if "sling" in following:
        den.wait_for("bee", "completed")
    wait_until(lambda: not den.rook.json("worktree", "list").data or den.agent("bee")["outcome"] is not None)
    assert_nothing_deleted(den)
    if "sling" not in following:
        assert not (den.folder / ".rookery/worktrees/bee").exists()
        assert git(den.folder, "worktree", "list").count("\n") == 0
        den.sling(task, "--name", "bee")
        den.wait_for("bee", "completed")
    assert git(den.folder, "show", f"{den.agent('bee')['branch']}:work.txt") == "work"
    den.assert_no_process()


@pytest.mark.sweep
@pytest.mark.parametrize("step", ["put aside", "registration removed", "stop discarded", "stop snapshotted"])
def test_killed_in_the_undo_it_is_undone_by_the_next(den: Den, step: str) -> None:
    task = den.task("Task", [{"edit": {"path": "work.txt", "text": "work\n"}}, {"commit": "Work"}, DONE])
    kill_sling(den, task, "all")
    den.killed_alone(step, "stop", "bee")
    den.rook("stop", "bee")
    den.rook("worktree", "clean", "bee")
    assert_nothing_deleted(den)
    assert list((den.folder / ".rookery/worktrees").iterdir()) == []
    assert git(den.folder, "worktree", "list").count("\n") == 0
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")


def test_a_persons_file_in_it_is_saved(den: Den) -> None:
    kill_sling(den, den.task("Task", [DONE]), "all")
    (den.folder / ".rookery/worktrees/bee/mine.txt").write_text("mine\n")
    den.rook("stop", "bee")
    cleaned = den.rook.json("worktree", "clean", "bee").data[0]
    assert cleaned["verdict"] == "removed"
    assert git(den.folder, "show", f"{cleaned['rescue']}:mine.txt") == "mine"
    assert_nothing_deleted(den)


def test_a_worktree_that_a_killed_restoring_left_goes(den: Den) -> None:
    """Its agent has ended long ago, so nothing but the cleaning looks at it."""
    edit = {"edit": {"path": "work.txt", "text": "work\n"}}
    den.sling(den.task("Task", [edit, {"commit": "Work"}, DONE]), "--name", "bee")
    den.wait_for("bee", "completed")
    assert den.rook.json("worktree", "clean", "bee").data[0]["verdict"] == "removed"
    git(den.folder, "config", "filter.trap.smudge", _PARENTS + _KILLED["all"])
    argv = rook_argv("worktree", "restore", "bee", "--turn", "1")
    done = subprocess.run(argv, cwd=den.folder, env=child_environ({"ROOKERY_DAEMON": "off"}), check=False)
    assert done.returncode == -signal.SIGKILL
    git(den.folder, "config", "filter.trap.smudge", "cat")
    assert (den.folder / ".rookery/worktrees/bee/.git").exists()
    den.rook("worktree", "clean", "bee")
    assert not (den.folder / ".rookery/worktrees/bee").exists()
    assert_nothing_deleted(den)
