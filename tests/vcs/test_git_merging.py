"""Merging without a checkout, and bringing checkouts forward without touching the user's own files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import git
from rookery.base.errors import ProgramFailed
from rookery.processes.holder import HolderId
from rookery.processes.proctable import Identity
from rookery.vcs.git.checkout import Git
from rookery.vcs.git.forward import InTheWay
from rookery.vcs.git.merge_tree import Side
from rookery.vcs.git.merging import Merging
from rookery.vcs.git.repository import GitStore
from rookery.vcs.model import RefMoved


def put(repo: Path, **files: str | None) -> None:
    """Commit files; None deletes one. `__` in a name stands for a slash, `_` for a dot."""
    for name, text in files.items():
        path = repo / name.replace("__", "/").replace("_", ".")
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", " ".join(files))


def branch(repo: Path, name: str, **files: str | None) -> str:
    """A branch from main with one commit; the checkout stays on main."""
    git(repo, "switch", "-qc", name, "main")
    put(repo, **files)
    git(repo, "switch", "-q", "main")
    return git(repo, "rev-parse", name)


@pytest.fixture
def merging(repo: Path) -> Merging:
    return Git(str(repo), 60).merging()


def test_a_clean_merge_is_a_tree_with_both_sides(repo: Path, merging: Merging) -> None:
    branch(repo, "one", a_txt="a\n")
    branch(repo, "two", b_txt="b\r\nc\r\n")
    merge = merging.merge("one", "two")
    assert merge.is_clean
    assert sorted(merging.files(merge.tree)) == ["README.md", "a.txt", "b.txt"]
    side = merging.files(merge.tree)["b.txt"]
    assert merging.read_blobs([side.oid])[side.oid] == b"b\r\nc\r\n"


def test_conflicts_are_named_with_their_kind_and_sides(repo: Path, merging: Merging) -> None:
    put(repo, f_txt="1\n2\n3\n", gone_txt="x\n", moved_txt="a\nb\nc\nd\n")
    branch(repo, "one", f_txt="1\nours\n3\n", gone_txt="y\n", new_txt="o\n", moved_txt=None)
    branch(repo, "two", f_txt="1\ntheirs\n3\n", gone_txt=None, new_txt="t\n", moved_txt=None, other_txt="a\nb\nc\nd\n")
    merge = merging.merge("one", "two")
    kinds = {clash.path: clash.kind for clash in merge.conflicts}
    assert kinds["f.txt"] == "content"
    assert kinds["new.txt"] == "add/add"
    assert kinds["gone.txt"] == "modify/delete"
    conflict = next(clash for clash in merge.conflicts if clash.path == "f.txt")
    blobs = merging.read_blobs(side.oid for side in (conflict.base, conflict.ours, conflict.theirs) if side)
    assert list(blobs.values()) == [b"1\n2\n3\n", b"1\nours\n3\n", b"1\ntheirs\n3\n"]


def test_many_merges_by_one_git(repo: Path, merging: Merging) -> None:
    names = [f"b{number}" for number in range(4)]
    for name in names:
        branch(repo, name, README_md=f"{name}\n")
    branch(repo, "apart", z_txt="z\n")
    merges = merging.merge_many([("b0", "b1"), ("b0", "apart"), ("b2", "b2"), ("b3", "apart")])
    assert [merge.is_clean for merge in merges] == [False, True, True, True]


@pytest.mark.parametrize("text", ["a\n", "conflict\n"])
def test_what_was_foreseen_is_what_git_says_and_not_asked_again(
    repo: Path, merging: Merging, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch(repo, "one", a_txt="a\n")
    tip, other = branch(repo, "two", **({"b_txt": text} if text == "a\n" else {"a_txt": text})), "one"
    ours = git(repo, "rev-parse", other)
    expected = Git(str(repo), 60).merging().merge(ours, tip)
    merging.foresee(ours, tip)
    monkeypatch.setattr(GitStore, "run", None)
    assert merging.merge(ours, tip) == expected
    assert merging.store.contains(tip, ours) is False


def test_what_cannot_be_foreseen_is_asked_in_earnest(repo: Path, merging: Merging) -> None:
    git(repo, "switch", "-q", "--orphan", "apart")
    put(repo, other_txt="o\n")
    git(repo, "switch", "-q", "main")
    ours, theirs = git(repo, "rev-parse", "main"), git(repo, "rev-parse", "apart")
    merging.foresee(ours, theirs)
    assert [conflict.kind for conflict in merging.merge(ours, theirs).conflicts] == ["unrelated histories"]


def test_a_landing_knows_what_it_changes(repo: Path, merging: Merging, monkeypatch: pytest.MonkeyPatch) -> None:
    tip = branch(repo, "one", a_txt="a\n", b__c_txt="c\n")
    base = git(repo, "rev-parse", "main")
    landed = merging.commit_landing(merging.merge(base, tip).tree, [base, tip], "Land one\n")
    expected = Git(str(repo), 60).merging().changes(base, landed)
    monkeypatch.setattr(GitStore, "run", None)
    assert merging.changes(base, landed) == expected
    assert [change.path for change in expected] == ["a.txt", "b/c.txt"]


def test_unrelated_histories_are_a_conflict_and_spoil_no_other(repo: Path, merging: Merging) -> None:
    branch(repo, "one", a_txt="a\n")
    tree = git(repo, "rev-parse", "main^{tree}")
    alone = git(repo, "commit-tree", tree, "-m", "alone")
    merges = merging.merge_many([("main", "one"), ("main", alone)])
    assert merges[0].is_clean
    assert [conflict.kind for conflict in merges[1].conflicts] == ["unrelated histories"]


def test_a_base_can_be_chosen(repo: Path, merging: Merging) -> None:
    put(repo, a_txt="a\n")
    put(repo, b_txt="b\n")
    undone = merging.merge_trees("main", "main", "main~1")
    assert sorted(merging.files(undone.tree)) == ["README.md", "a.txt"]


def test_a_trial_leaves_nothing_behind(repo: Path, merging: Merging) -> None:
    branch(repo, "one", a_txt="a\n")
    branch(repo, "two", b_txt="b\n")
    before = git(repo, "count-objects", "-v")
    with merging.on_trial() as trial:
        assert trial.merge("one", "two").is_clean
    assert git(repo, "count-objects", "-v") == before
    assert merging.merge("one", "two").is_clean
    assert git(repo, "count-objects", "-v") != before


def test_files_of_a_tree_are_replaced_and_taken_out(repo: Path, merging: Merging) -> None:
    put(repo, a_txt="a\n", dir__b_txt="b\n")
    oid = merging.write_blob(b"new\r\n\0")
    tree = merging.replace_files(merging.tree("main"), {"a.txt": None, "dir/c d.txt": Side("100755", oid)})
    files = merging.files(tree)
    assert sorted(files) == ["README.md", "dir/b.txt", "dir/c d.txt"]
    assert files["dir/c d.txt"] == Side("100755", oid)
    assert merging.read_blobs([oid]) == {oid: b"new\r\n\0"}


def test_changed_paths_of_many_pairs(repo: Path, merging: Merging) -> None:
    one = branch(repo, "one", a_txt="a\n", dir__b_txt="b\n")
    two = branch(repo, "two", README_md="x\n")
    main = git(repo, "rev-parse", "main")
    assert merging.changed_paths([(main, one), (main, main), (main, two)]) == [
        ("a.txt", "dir/b.txt"),
        (),
        ("README.md",),
    ]


def test_versions_of_a_file_the_newest_first(repo: Path, merging: Merging) -> None:
    base = git(repo, "rev-parse", "main")
    put(repo, README_md="one\n")
    put(repo, README_md="two\n")
    blobs = merging.read_blobs(merging.versions(base, "main", "README.md"))
    assert list(blobs.values()) == [b"two\n", b"one\n"]


def test_a_branch_moves_only_from_where_it_was_seen(repo: Path, merging: Merging) -> None:
    one = branch(repo, "one", a_txt="a\n")
    main = git(repo, "rev-parse", "main")
    with pytest.raises(RefMoved):
        merging.move("main", one, one, "land")
    assert git(repo, "rev-parse", "main") == main
    merging.move("main", one, main, "land")
    assert git(repo, "rev-parse", "main") == one


def hook(repo: Path, text: str) -> None:
    path = repo / ".git" / "hooks" / "reference-transaction"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_hook_that_refuses_is_heard(repo: Path, merging: Merging) -> None:
    one = branch(repo, "one", a_txt="a\n")
    main = git(repo, "rev-parse", "main")
    hook(repo, "echo not today >&2; exit 1")
    with pytest.raises(ProgramFailed, match="not today"):
        merging.move("main", one, main, "land")
    assert git(repo, "rev-parse", "main") == main


def test_a_hook_that_hangs_is_ended_and_leaves_no_lock(repo: Path) -> None:
    one = branch(repo, "one", a_txt="a\n")
    main = git(repo, "rev-parse", "main")
    hook(repo, "sleep 1000")
    with pytest.raises(ProgramFailed, match="did not end"):
        Git(str(repo), 0.5).merging().move("main", one, main, "land")
    (repo / ".git" / "hooks" / "reference-transaction").unlink()
    assert git(repo, "rev-parse", "main") == main
    assert not list((repo / ".git").rglob("*.lock"))
    Git(str(repo), 60).merging().move("main", one, main, "land")


def forward(repo: Path, merging: Merging, new: str) -> None:
    """Bring main and its checkout to a commit, as a landing does."""
    old = git(repo, "rev-parse", "main")
    begun = merging.begin_forward("main", old, new)
    merging.move("main", new, old, "land")
    for move in begun:
        move.finish()


def test_a_checkout_follows_and_keeps_what_is_its_own(repo: Path, merging: Merging) -> None:
    put(repo, a_txt="a\n", b_txt="b\n", gone_txt="g\n")
    new = branch(repo, "one", a_txt="A\n", dir__new_txt="n\n", gone_txt=None)
    (repo / "b.txt").write_text("mine\n")
    (repo / "staged.txt").write_text("staged\n")
    git(repo, "add", "staged.txt")
    (repo / "loose.txt").write_text("loose\n")
    forward(repo, merging, new)
    assert (repo / "a.txt").read_text() == "A\n"
    assert (repo / "dir/new.txt").read_text() == "n\n"
    assert not (repo / "gone.txt").exists()
    assert git(repo, "status", "--porcelain").splitlines() == ["M b.txt", "A  staged.txt", "?? loose.txt"]
    assert (repo / "b.txt").read_text() == "mine\n"
    assert git(repo, "rev-parse", "HEAD") == new


def _edited(repo: Path) -> None:
    (repo / "a.txt").write_text("mine\n")


def _staged(repo: Path) -> None:
    (repo / "a.txt").write_text("mine\n")
    git(repo, "add", "a.txt")


def _edited_and_hidden_from_git(repo: Path) -> None:
    git(repo, "update-index", "--assume-unchanged", "a.txt")
    (repo / "a.txt").write_text("mine\n")


def _edited_and_out_of_the_sparse_checkout(repo: Path) -> None:
    git(repo, "update-index", "--skip-worktree", "a.txt")
    (repo / "a.txt").write_text("mine\n")


def _untracked(repo: Path) -> None:
    (repo / "new.txt").write_text("mine\n")


def _ignored(repo: Path) -> None:
    (repo / ".git" / "info" / "exclude").write_text("new.txt\ndir/\n")
    (repo / "new.txt").write_text("mine\n")


def _ignored_in_a_folder_that_becomes_a_file(repo: Path) -> None:
    (repo / ".git" / "info" / "exclude").write_text("*.o\n")
    (repo / "place").mkdir()
    (repo / "place" / "x.o").write_text("mine\n")


def _file_where_a_folder_comes(repo: Path) -> None:
    (repo / ".git" / "info" / "exclude").write_text("deep\n")
    (repo / "deep").write_text("mine\n")


@pytest.mark.parametrize(
    "make",
    [
        *(_edited, _staged, _edited_and_hidden_from_git, _edited_and_out_of_the_sparse_checkout),
        *(_untracked, _ignored, _ignored_in_a_folder_that_becomes_a_file, _file_where_a_folder_comes),
    ],
)
def test_what_is_in_the_way_stops_it_before_anything_is_touched(repo: Path, merging: Merging, make: object) -> None:
    put(repo, a_txt="a\n", other_txt="o\n")
    new = branch(repo, "one", a_txt="A\n", other_txt="O\n", new_txt="n\n", place="p\n", deep__er_txt="d\n")
    make(repo)  # type: ignore[operator]
    before = {path: path.read_bytes() for path in repo.rglob("*") if path.is_file() and ".git" not in path.parts}
    status = git(repo, "status", "--porcelain", "--ignored")
    with pytest.raises(InTheWay) as caught:
        forward(repo, merging, new)
    assert caught.value.paths
    after = {path: path.read_bytes() for path in repo.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert after == before
    assert git(repo, "status", "--porcelain", "--ignored") == status
    assert not (repo / ".git" / "index.lock").exists()


def test_one_file_in_the_way_among_very_many_that_change_is_named(repo: Path, merging: Merging) -> None:
    names = [f"{number}.txt" for number in range(500)]
    for text in ("old", "new"):
        for name in names:
            (repo / name).write_text(text)
        git(repo, "add", ".")
        git(repo, "commit", "-qm", text)
    old, new = git(repo, "rev-parse", "HEAD~"), git(repo, "rev-parse", "HEAD")
    git(repo, "reset", "-q", "--hard", old)
    (repo / "77.txt").write_text("mine")
    with pytest.raises(InTheWay) as caught:
        forward(repo, merging, new)
    assert caught.value.paths == ("77.txt",)
    assert [name for name in names if (repo / name).read_text() != "old"] == ["77.txt"]


def test_what_has_the_new_content_already_is_not_in_the_way(repo: Path, merging: Merging) -> None:
    put(repo, a_txt="a\n", b_txt="b\n")
    new = branch(repo, "one", a_txt="A\n", b_txt="B\n")
    (repo / "a.txt").write_text("A\n")
    git(repo, "add", "a.txt")
    os.utime(repo / "b.txt", (1, 1))  # only looks changed
    forward(repo, merging, new)
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "b.txt").read_text() == "B\n"


def test_names_that_look_like_patterns_stand_for_themselves_alone(repo: Path, merging: Merging) -> None:
    put(repo, a_txt="a\n", **{":(glob)*": "old\n", "[a]*": "old\n"})
    new = branch(repo, "one", **{":(glob)*": "new\n", "[a]*": "new\n"})
    (repo / "a.txt").write_text("mine\n")  # the patterns would find it
    forward(repo, merging, new)
    assert (repo / ":(glob)*").read_text() == (repo / "[a]*").read_text() == "new\n"
    assert git(repo, "status", "--porcelain") == "M a.txt"


def test_a_move_that_fails_gives_the_files_back(repo: Path, merging: Merging) -> None:
    put(repo, a_txt="a\n")
    new = branch(repo, "one", a_txt="A\n", new_txt="n\n")
    old = git(repo, "rev-parse", "main")
    begun = merging.begin_forward("main", old, new)
    assert (repo / "a.txt").read_text() == "A\n"
    with pytest.raises(subprocess.CalledProcessError):  # no commit can come in between
        git(repo, "commit", "--allow-empty", "-qm", "meanwhile")
    begun[0].undo()
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "a.txt").read_text() == "a\n"
    assert not (repo / "new.txt").exists()


@pytest.mark.parametrize("has_moved", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_what_a_kill_left_is_finished_or_undone(
    repo: Path, merging: Merging, has_moved: bool, half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(repo, a_txt="a\n", keep_txt="k\n", gone_txt="g\n", staged_txt="s\n")
    new = branch(repo, "one", a_txt="A long line\n", dir__new_txt="n\n", gone_txt=None)
    old = git(repo, "rev-parse", "main")
    (repo / "keep.txt").write_text("mine\n")
    (repo / "staged.txt").write_text("staged\n")
    git(repo, "add", "staged.txt")
    with monkeypatch.context() as patch:
        earlier = HolderId(Identity(os.getpid(), "earlier"))
        patch.setattr("rookery.processes.holder.myself", lambda: earlier)  # as if the process had another start
        merging.begin_forward("main", old, new)
    if half:  # killed while git wrote
        (repo / "a.txt").write_text("A lo")
        (repo / "dir/new.txt").unlink()
    if has_moved:
        merging.move("main", new, old, "land")
    assert merging.repair_checkouts("main")
    assert not merging.repair_checkouts("main")
    assert (repo / "a.txt").read_text() == ("A long line\n" if has_moved else "a\n")
    assert (repo / "gone.txt").exists() is not has_moved
    assert (repo / "dir/new.txt").exists() is has_moved
    assert git(repo, "status", "--porcelain").splitlines() == ["M keep.txt", "M  staged.txt"]
    assert (repo / "keep.txt").read_text() == "mine\n"
    assert not list((repo / ".git").glob("*.lock"))


def test_a_forward_at_work_is_not_repaired_by_others(repo: Path, merging: Merging) -> None:
    put(repo, a_txt="a\n")
    new = branch(repo, "one", a_txt="A\n")
    begun = merging.begin_forward("main", git(repo, "rev-parse", "main"), new)
    assert not merging.repair_checkouts("main")
    assert os.path.exists(begun[0].lock)
    begun[0].undo()


def test_advice_that_git_prints_for_people_spoils_no_merge(repo: Path, merging: Merging) -> None:
    def module(name: str, commit: str, at: str = "main") -> None:
        git(repo, "switch", "-qc", name, at)
        git(repo, "update-index", "--add", "--cacheinfo", f"160000,{commit},module")
        git(repo, "commit", "-qm", name)
        git(repo, "reset", "-q", "--hard")
        git(repo, "switch", "-q", "main")

    module("began", "1" * 40)
    module("one", "2" * 40, "began")
    module("two", "3" * 40, "began")
    branch(repo, "apart", z_txt="z\n")
    merges = merging.merge_many([("one", "two"), ("one", "apart"), ("two", "one")])
    assert [merge.is_clean for merge in merges] == [False, True, False]
    assert [conflict.path for conflict in merges[0].conflicts] == ["module"]
