"""Conflicts by hand in files that a side renamed: what each side is said to have done, and what counts as left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import git

from .test_by_hand import BASE, BOTH, BRANCH, MAIN, assert_closed, refused
from .yard import Yard

pytestmark = pytest.mark.slow


def moved(yard: Yard, branch: str, content: str, new: str = "", old: str = "old.txt") -> None:
    """A commit on a branch that changes a file and perhaps renames it."""
    git(yard.folder, "switch", "-q", branch)
    if new:
        git(yard.folder, "mv", old, new)
    (yard.folder / (new or old)).write_text(content)
    git(yard.folder, "add", "-A")
    git(yard.folder, "commit", "-qm", f"Of {branch}")
    git(yard.folder, "switch", "-q", "main")


def begin(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: []\n")
    yard.commit(old_txt=BASE)
    git(yard.folder, "branch", "bee")


def test_a_change_meets_a_rename(yard: Yard) -> None:
    begin(yard)
    moved(yard, "bee", BRANCH, "new.txt")
    moved(yard, "main", MAIN)
    assert yard.merge("--branch", "bee").status == 1
    ran = yard.merge("resolve", "bee")
    (file,) = ran.data["files"]
    assert (file["path"], file["kind"]) == ("new.txt", "content")
    names = ("did", "old_path", "new_path", "added", "deleted")
    assert [file["base"][name] for name in names] == ["changed", "old.txt", "old.txt", 1, 1]
    assert [file["branch"][name] for name in names] == ["renamed", "old.txt", "new.txt", 1, 1]
    assert [commit["subject"] for commit in file["base"]["commits"]] == ["Of main"]
    shown = yard.rook("merge", "resolve", "bee").out.decode()
    assert "main changed it, as old.txt (+1 -1)" in shown
    assert "bee renamed it from old.txt (+1 -1)" in shown
    place = Path(ran.data["path"])
    assert "bee renamed it from old.txt (+1 -1 lines)" in (place / "ROOK-CONFLICTS.md").read_text()
    (place / "new.txt").write_text(BOTH)
    git(place, "commit", "-qam", "Both")
    assert yard.merge("resolve", "bee", "--done").status == 0
    assert (yard.folder / "new.txt").read_text() == BOTH
    assert not (yard.folder / "old.txt").exists()


def test_a_deletion_meets_a_rename(yard: Yard) -> None:
    begin(yard)
    moved(yard, "bee", BASE, "new.txt")
    git(yard.folder, "rm", "-q", "old.txt")
    git(yard.folder, "commit", "-qm", "Delete")
    assert yard.merge("--branch", "bee").status == 1
    (file,) = yard.merge("resolve", "bee").data["files"]
    assert (file["path"], file["kind"]) == ("new.txt", "rename/delete")
    assert [file[side]["did"] for side in ("base", "branch")] == ["deleted", "renamed"]
    assert [file[side]["new_path"] for side in ("base", "branch")] == [None, "new.txt"]
    assert b"main deleted it, as old.txt\n" in yard.rook("merge", "resolve", "bee").out


def test_a_new_file_stands_where_the_other_side_renamed_one_to(yard: Yard) -> None:
    begin(yard)
    moved(yard, "bee", BASE, "new.txt")
    yard.commit(new_txt="of main\n")
    assert yard.merge("--branch", "bee").status == 1
    (file,) = yard.merge("resolve", "bee").data["files"]
    assert file["path"] == "new.txt"
    assert [file[side]["did"] for side in ("base", "branch")] == ["added", "renamed"]


def test_what_both_sides_renamed_and_one_name_lacks_is_left_out(yard: Yard) -> None:
    begin(yard)
    moved(yard, "bee", BRANCH, "by bee.txt")
    moved(yard, "main", MAIN, "by main.txt")
    assert yard.merge("--branch", "bee").status == 1
    place = Path(yard.merge("resolve", "bee").data["path"])
    git(place, "rm", "-q", "by main.txt", "old.txt")
    (place / "by bee.txt").write_text(BRANCH)
    git(place, "add", "-A")
    git(place, "commit", "-q", "--no-edit")
    message = refused(yard.merge("resolve", "bee", "--done"))
    assert "leaves out 1 change of one side or the other:\n  by bee.txt: two of main  (main put it in)" in message
    (place / "by bee.txt").write_text(BOTH)
    git(place, "commit", "-qam", "Both")
    assert yard.merge("resolve", "bee", "--done").status == 0
    assert (yard.folder / "by bee.txt").read_text() == BOTH


def test_a_file_that_both_sides_renamed_keeps_the_name_that_the_person_takes(yard: Yard) -> None:
    yard.settings("merge:\n  tiers: []\n")
    yard.commit(old_txt=BASE)
    git(yard.folder, "switch", "-qc", "bee")
    git(yard.folder, "mv", "old.txt", "by bee.txt")
    (yard.folder / "by bee.txt").write_text(BRANCH)
    git(yard.folder, "commit", "-qam", "Bee")
    git(yard.folder, "switch", "-q", "main")
    git(yard.folder, "mv", "old.txt", "by main.txt")
    git(yard.folder, "commit", "-qm", "Main")
    assert yard.merge("--branch", "bee").status == 1
    ran = yard.merge("resolve", "bee")
    assert {file["path"]: file["kind"] for file in ran.data["files"]} == dict.fromkeys(
        ("by bee.txt", "by main.txt", "old.txt"), "rename/rename"
    )
    for file in ran.data["files"]:
        for side, new in (("base", "by main.txt"), ("branch", "by bee.txt")):
            assert [file[side][name] for name in ("did", "old_path", "new_path")] == ["renamed", "old.txt", new]
            assert len(file[side]["commits"]) == 1
    place = Path(ran.data["path"])
    for file in ran.data["files"]:  # as the hint says
        assert "`git add` the name that stays, `git rm` each other" in file["how"]
    git(place, "add", "by bee.txt")
    git(place, "rm", "-q", "by main.txt", "old.txt")
    git(place, "commit", "-q", "--no-edit")
    ran = yard.merge("resolve", "bee", "--done")  # nothing of either side is left out
    assert ran.status == 0, ran
    assert (yard.folder / "by bee.txt").read_text() == BRANCH
    assert not (yard.folder / "by main.txt").exists()
    assert_closed(yard)
