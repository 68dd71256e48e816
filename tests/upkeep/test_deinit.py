"""`rook deinit`: the state goes, and no work with it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from conftest import Rook, git
from places import Place, make_place
from rookery.db.copies import read_schema
from rookery.db.migrate import SCHEMA_VERSION

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place("git", tmp_path, monkeypatch)


@pytest.fixture
def rook(place: Place) -> Rook:
    return Rook(place.root)


def state(place: Place) -> Path:
    return place.root / ".rookery"


def test_it_removes_all_and_saves_what_is_not_committed(place: Place, rook: Rook, tmp_path: Path) -> None:
    place.add("ann").put("new", "unsaved\n")
    rook("hooks", "install")
    before = git(place.root, "status", "--short")
    bob = place.add("bob")
    git(bob.path, "commit", "-q", "--allow-empty", "-m", "Landed")
    git(place.root, "merge", "-q", "--ff-only", bob.branch)
    plan = rook.json("deinit", "--dry-run").data
    assert (plan["worktrees"], plan["hooks"], plan["is_done"]) == (["ann", "bob"], True, False)
    assert state(place).is_dir()
    refused = rook("deinit")
    assert (refused.status, "rook deinit --yes" in refused.err.decode()) == (2, True)
    removed = rook.json("deinit", "--yes", "--keep-backup", str(tmp_path / "kept.db")).data
    assert removed["is_done"]
    left = git(place.root, "for-each-ref", "--format=%(refname:short)", "refs/heads/rook").splitlines()
    assert bob.branch not in left
    assert removed["branches"] == left
    assert not state(place).exists()
    assert not (place.root / ".claude").exists()
    assert read_schema(str(tmp_path / "kept.db")) == SCHEMA_VERSION
    [rescue] = git(place.root, "for-each-ref", "--format=%(refname)", "refs/rookery/rescue").splitlines()
    assert git(place.root, "show", f"{rescue}:new") == "unsaved"
    assert git(place.root, "worktree", "list").count("\n") == 0
    assert before == "?? .claude/"
    assert rook("deinit", "--yes").status == 1


def test_not_while_an_agent_is_alive_unless_it_is_forced(place: Place, rook: Rook) -> None:
    place.add("ann", state="waiting")
    ran = rook("deinit", "--yes")
    assert (ran.status, "`rook stop ann`" in ran.err.decode()) == (1, True)
    assert state(place).is_dir()
    assert rook("deinit", "--yes", "--force").status == 0
    assert not state(place).exists()


def test_not_while_work_has_not_landed_and_never_with_its_branch(place: Place, rook: Rook) -> None:
    ann = place.add("ann")
    ann.put("work")
    git(ann.path, "add", ".")
    git(ann.path, "commit", "-qm", "Work")
    ran = rook("deinit", "--yes")
    assert (ran.status, ann.branch in ran.err.decode()) == (1, True)
    assert rook("deinit", "--yes", "--force").status == 0
    assert git(place.root, "show", f"{ann.branch}:work") == "text"


def test_a_worktree_that_has_to_stay_keeps_the_project(place: Place, rook: Rook) -> None:
    ann = place.add("ann")
    git(place.root, "worktree", "lock", str(ann.path))
    ran = rook("deinit", "--yes", "--force")
    assert (ran.status, "it is locked" in ran.err.decode()) == (1, True)
    assert ann.path.is_dir()
    assert rook("status").status == 0


def test_a_conflict_that_a_person_resolves_is_given_up_and_saved(place: Place, rook: Rook) -> None:
    git(place.root, "switch", "-q", "-c", "side")
    (place.root / "README.md").write_text("theirs\n")
    git(place.root, "commit", "-qam", "Theirs")
    git(place.root, "switch", "-q", "main")
    (place.root / "README.md").write_text("ours\n")
    git(place.root, "commit", "-qam", "Ours")
    assert rook("-c", "merge.tiers=mechanical", "merge", "--branch", "side").status == 1
    path = Path(rook.json("merge", "resolve", "side").data["path"])
    (path / "README.md").write_text("both\n")
    assert rook("deinit", "--yes", "--force").status == 0
    assert not state(place).exists()
    refs = git(place.root, "for-each-ref", "--format=%(refname)", "refs/rookery/rescue").splitlines()
    assert any(git(place.root, "show", f"{ref}:README.md") == "both" for ref in refs)


@pytest.mark.parametrize("name", [".rookery/kept.db", ".rookery/worktrees/ann/kept.db"])
def test_the_kept_backup_is_never_put_where_all_is_removed(place: Place, rook: Rook, name: str) -> None:
    place.add("ann")
    refused = rook("deinit", "--yes", "--keep-backup", name)
    assert (refused.status, "is in what is removed" in refused.err.decode()) == (1, True)
    assert (state(place) / "rookery.db").exists()


def test_committed_files_stay(place: Place, rook: Rook) -> None:
    (state(place) / "config.yaml").write_text("project: {base: main}\n")
    git(place.root, "add", "-f", ".rookery/config.yaml")
    git(place.root, "commit", "-qm", "Share settings")
    assert rook.json("deinit", "--yes").data["kept_files"] == [".rookery/config.yaml"]
    assert [path.name for path in state(place).iterdir()] == ["config.yaml"]
    assert git(place.root, "status", "--short") == ""


@pytest.mark.parametrize("step", ["hooks removed", "database removed", "removed"])
def test_a_killed_removal_is_finished_by_the_next(place: Place, rook: Rook, step: str) -> None:
    place.add("ann")
    assert rook("deinit", "--yes", env={"ROOKERY_TEST_KILL": step}).status == -signal.SIGKILL
    assert state(place).exists()
    ran = rook("deinit", "--yes")
    assert ran.status == 0, ran
    assert not state(place).exists()
    assert git(place.root, "branch", "--list") == "* main"
