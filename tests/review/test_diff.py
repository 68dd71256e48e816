"""What an agent's work changes: branch, worktree, landing; since a review or a turn. And where it lies."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from den import DONE, Den
from rookery.base.ids import handle
from support import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def paths(difference: dict[str, Any]) -> list[str]:
    return sorted(file["path"] for file in difference["files"])


def test_a_diff_shows_the_branch_and_what_is_not_committed_but_not_the_base(den: Den) -> None:
    steps = [
        {"edit": {"path": "one.txt", "text": "one\n"}},
        {"run": "printf 'a\\0b' > blob.bin"},
        {"commit": "One"},
        {"wait": "mail"},
        {"edit": {"path": "two with space.txt", "text": "two\n"}},
        {"wait": "mail"},
    ]
    task = den.task("Task", steps)
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "waiting")
    (den.folder / "base.txt").write_text("base\n")
    git(den.folder, "add", "-A")
    git(den.folder, "commit", "-qm", "Base moves")
    den.rook("mail", "send", "bee", "--subject", "Go on")
    tree = den.folder / ".rookery/worktrees/bee"
    den.wait_for("bee", "working", "waiting")
    wait_until((tree / "two with space.txt").exists, 30)
    den.wait_for("bee", "waiting")

    whole = den.rook.json("diff", "bee").data

    assert paths(whole) == ["blob.bin", "one.txt", "two with space.txt"]
    assert (whole["uncommitted"], whole["landed_on"]) == (1, None)
    assert "+two" in whole["patch"]
    assert next(file for file in whole["files"] if file["path"] == "blob.bin")["added"] is None
    assert paths(den.rook.json("diff", task, "--since", "turn 1").data) == ["two with space.txt"]
    assert den.rook.json("diff", task[-6:].lower(), "--stat").data["patch"] == ""
    shown = den.rook("diff", "bee").out.decode()
    assert "1 uncommitted file included" in shown
    assert "base.txt" not in shown
    assert den.rook("path", "bee").out.decode().strip() == str(tree)
    assert den.rook.json("edit", task, env={"EDITOR": "true"}).data["command"][-1] == str(tree)
    missing = den.rook("edit", "bee", env={"EDITOR": "nowhere-to-be-seen"})
    assert (missing.status, b"not installed" in missing.err) == (1, True)
    command = den.rook.json("edit", "bee", env={"EDITOR": "WORD=1 touch edited"}).data["command"]
    subprocess.run(command, check=True)
    (tree / "edited").unlink()
    none = den.rook("edit", "bee", env={"EDITOR": "", "VISUAL": "", "GIT_EDITOR": "", "TERM": "dumb"})
    assert (none.status, b"set EDITOR" in none.err) == (1, True)
    for since, problem in (("turn 9", b"no snapshot"), ("review", b"not handed in"), ("later", b"names no point")):
        refused = den.rook("diff", "bee", "--since", since)
        assert (refused.status, problem in refused.err) == (1, True), refused
    assert den.rook("diff", "wasp").status == 1
    den.rook("stop", "bee", "--clean")
    assert paths(den.rook.json("diff", "bee").data) == ["blob.bin", "one.txt"]
    gone = den.rook("path", "bee")
    assert (gone.status, b"rook resume bee" in gone.err) == (1, True)


def test_a_huge_diff_is_bounded_and_work_that_landed_is_its_landing(den: Den) -> None:
    steps = [{"run": "seq 5000 > long.txt; git mv -f README.md moved.md || true"}, {"commit": "Long"}, DONE]
    task = den.task("Task", steps)
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")
    bounded = den.rook.json("diff", "bee").data
    assert bounded["left_out"] > 1000
    assert "more lines" in den.rook("diff", "bee").out.decode()
    assert den.rook.json("diff", "bee", "--all").data["left_out"] == 0
    assert den.rook("merge", "--all").status == 0
    den.rook("worktree", "clean", "bee")
    git(den.folder, "branch", "-D", f"rook/bee/{handle(task)}") if git(
        den.folder, "branch", "--list", "rook/*"
    ) else None
    landed = den.rook.json("diff", task, "--stat").data
    assert landed["landed_on"] == "main"
    assert "long.txt" in paths(landed)


def test_what_others_changed_stays_out_also_if_a_line_looks_like_a_header(den: Den) -> None:
    odd = "git rebase -q main; printf 'odd\\rdiff --git a/x b/x\\n' > odd.txt"
    steps = [{"edit": {"path": "one.txt", "text": "one\n"}}, {"commit": "One"}, {"wait": "mail"}, {"run": odd}]
    den.sling(den.task("Task", [*steps, {"commit": "Odd"}, {"wait": "mail"}]), "--name", "bee")
    den.wait_for("bee", "waiting")
    (den.folder / "base.txt").write_text("base\n")
    git(den.folder, "add", "-A")
    git(den.folder, "commit", "-qm", "Base moves")
    den.rook("mail", "send", "bee", "--subject", "Go on")
    wait_until(lambda: "Odd" in git(den.folder, "log", "--format=%s", "--branches=rook/bee/*"), 30)
    den.wait_for("bee", "waiting")

    since = den.rook.json("diff", "bee", "--since", "turn 1").data

    assert paths(since) == ["odd.txt"]
    assert "base.txt" not in since["patch"]


def test_the_branch_of_a_person_is_where_it_is_checked_out(den: Den) -> None:
    task = den.task("Mine")
    assert den.rook("task", "start", task).status == 0
    assert b"git worktree add" in den.rook("path", task).err
    assert den.rook("task", "start", task, "--checkout").status == 0
    (den.folder / "mine.txt").write_text("mine\n")
    assert den.rook("path", task).out.decode().strip() == str(den.folder)
    shown = den.rook.json("diff", task).data
    assert (paths(shown), shown["uncommitted"]) == (["mine.txt"], 1)
    assert den.rook("task", "submit", task).status == 0
    assert b"rook review approve" in den.rook("review", "show", task).out
    git(den.folder, "switch", "-q", "main")
    assert den.rook("merge", "--branch", f"rook/human/{handle(task)}").status == 0
    assert b"rook review approve" not in den.rook("review", "show", task).out
