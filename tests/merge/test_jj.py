"""Landing in jj repositories works on their git store and touches no workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import git
from rookery.vcs.git.moves import Fenced, read_fence
from rookery.vcs.jj.workspace import Jj
from support import run_rook
from vcs.repositories import ColocatedRepository, JjRepository, find_jj

pytestmark = pytest.mark.slow


@pytest.fixture(params=[JjRepository, ColocatedRepository], ids=["jj", "colocated"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JjRepository:
    find_jj(monkeypatch)
    repository: JjRepository = request.param(tmp_path / "repo")
    repository.begin()
    assert run_rook(repository.path, "init", "--yes").status == 0
    return repository


def work(place: JjRepository, name: str, path: str, text: str) -> str:
    """A bookmark with one commit from main."""
    place.jj("new", "main")
    place.write(path, text)
    place.jj("commit", "-m", f"Work on {name}")
    place.jj("bookmark", "create", name, "-r", "@-")
    return place.jj("log", "--no-graph", "-r", "@-", "-T", "commit_id")


def test_a_bookmark_lands_and_the_workspace_stays(place: JjRepository) -> None:
    (place.path / ".rookery" / "config.local.yaml").write_text("gates:\n  - {name: g, run: test -e a.txt}\n")
    tip = work(place, "one", "a.txt", "a\n")
    place.jj("new", "main")
    place.write("mine.txt", "mine\n")
    ran = run_rook(place.path, "merge", "--branch", "one", "--json")
    (entry,) = ran.data["entries"]
    assert (entry["state"], entry["tip"]) == ("landed", tip)
    assert place.jj("log", "--no-graph", "-r", "main", "-T", "commit_id") == entry["commit"]
    assert place.jj("file", "list", "-r", "main").splitlines().count("a.txt") == 1
    assert (place.path / "mine.txt").read_text() == "mine\n"
    assert not (place.path / "a.txt").exists()
    assert place.jj("log", "--no-graph", "-r", "main", "-T", "conflict") == "false"


def test_conflicts_are_found_and_a_landing_is_undone(place: JjRepository) -> None:
    (place.path / ".rookery" / "config.local.yaml").write_text("merge:\n  tiers: []\n")
    before = place.jj("log", "--no-graph", "-r", "main", "-T", "commit_id")
    work(place, "one", "same.txt", "one\n")
    work(place, "two", "same.txt", "two\n")
    assert run_rook(place.path, "merge", "--branch", "one", "--json").status == 0
    two = run_rook(place.path, "merge", "--branch", "two", "--json")
    assert two.status == 1
    assert two.envelope["data"]["entries"][0]["files"] == ["same.txt"]
    (undone,) = run_rook(place.path, "merge", "undo", "one", "--json").data
    assert undone["how"] == "moved back"
    assert place.jj("log", "--no-graph", "-r", "main", "-T", "commit_id") == before


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "refs/heads/one.lock", "HEAD.lock", "index.lock"])
def test_a_lock_of_a_killed_git_stops_no_landing(place: JjRepository, name: str) -> None:
    work(place, "one", "a.txt", "a\n")
    place.jj("new", "main")
    lock = Path(place.jj("git", "root")) / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    os.utime(lock, (1, 1))
    ran = run_rook(place.path, "merge", "--branch", "one", "--json")
    assert ran.envelope["ok"], ran.envelope
    (entry,) = ran.data["entries"]
    assert place.jj("log", "--no-graph", "-r", "main", "-T", "commit_id") == entry["commit"]


def test_a_bookmark_lands_after_the_lease_was_taken_over_and_a_replaced_merger_moves_none(place: JjRepository) -> None:
    work(place, "one", "a.txt", "a\n")
    place.jj("new", "main")
    killed = run_rook(place.path, "merge", "--branch", "one", env={"ROOKERY_TEST_KILL": "lease checked"})
    assert killed.status < 0
    (entry,) = run_rook(place.path, "merge", "run", "--json").data["entries"]
    assert entry["state"] == "landed"
    base = place.jj("log", "--no-graph", "-r", "main", "-T", "commit_id")
    assert base == entry["commit"]
    merging = Jj(str(place.path), 60).merging()
    assert read_fence(merging.store, "main")
    with pytest.raises(Fenced):
        merging.move("main", entry["tip"], base, "x", fence="")
    assert merging.tip("main") == base


def test_a_person_resolves_a_conflict_with_git_beside_the_workspace(place: JjRepository) -> None:
    (place.path / ".rookery" / "config.local.yaml").write_text("merge:\n  tiers: []\n")
    work(place, "one", "same.txt", "one\n")
    tip = work(place, "two", "same.txt", "two\n")
    place.jj("new", "main")
    place.write("mine.txt", "mine\n")
    assert run_rook(place.path, "merge", "--branch", "one", "--json").status == 0
    assert run_rook(place.path, "merge", "--branch", "two", "--json").status == 1
    opened = run_rook(place.path, "merge", "resolve", "two", "--json")
    there = Path(opened.data["path"])
    assert "<<<<<<< ours" in (there / "same.txt").read_text()
    (there / "same.txt").write_text("one\ntwo\n")
    git(there, "add", "-A")
    git(there, "commit", "-q", "--no-edit")
    listed = run_rook(place.path, "worktree", "list", "--json").data
    assert [(row["agent"], row["worktree"]["is_broken"]) for row in listed] == [(there.name, False)]
    assert run_rook(place.path, "worktree", "clean", "--all", "--json").data[0]["verdict"] == "kept"
    ran = run_rook(place.path, "merge", "run", "--json")
    (entry,) = ran.data["entries"]
    assert (entry["state"], entry["tip"], entry["tier"]) == ("landed", tip, "human")
    assert place.jj("log", "--no-graph", "-r", "main", "-T", "commit_id") == entry["commit"]
    assert place.jj("file", "show", "-r", "main", "same.txt") == "one\ntwo"
    assert place.jj("log", "--no-graph", "-r", "main", "-T", "conflict") == "false"
    assert (place.path / "mine.txt").read_text() == "mine\n"
    assert not there.exists()
