"""What every backend promises of branches, checkouts and saved refs: one suite over git, jj, and jj beside git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rookery.base.errors import InvalidInput, InvalidState
from rookery.vcs.model import DirtyCheckout, RefMoved, UnknownRevision

from .repositories import Repository, start


def test_resolve_finds_branches_and_commits_only(repository: Repository) -> None:
    vcs = repository.vcs()
    commit = vcs.resolve("main")
    assert vcs.resolve(commit) == commit
    assert vcs.resolve(commit[:10]) == commit
    for name in ("nowhere", "", "-x", "--all", "--help", "main\nmain", "main nothing", "f" * 40, "main..main", "nul\0"):
        with pytest.raises(UnknownRevision):
            vcs.resolve(name)


def test_a_branch_is_made_where_asked_and_once(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    repository.write("a")
    second = vcs.commit("Add a")
    repository.write("b")
    before = vcs.status()
    vcs.create_branch("rook/ann/task", first)
    vcs.create_branch("rook/ann/task", first)
    assert vcs.branches("rook/") == {"rook/ann/task": first}
    assert vcs.branches() == {"main": second, "rook/ann/task": first}
    assert (vcs.branch_tip("main"), vcs.branch_tip("rook/ann/task")) == (second, first)
    assert [vcs.branch_tip(name) for name in ("rook/ann", "rook/", "", "mai", "../HEAD", "nul\0", "a\nb")] == [None] * 7
    assert vcs.status() == before
    with pytest.raises(RefMoved):
        vcs.create_branch("rook/ann/task", second)
    assert vcs.branches("rook/") == {"rook/ann/task": first}


@pytest.mark.parametrize("name", ["", "-x", "a b", "a..b", "HEAD", "@{-1}", "a.lock", "a\nb", "a:b", "/a", "nul\0"])
def test_a_bad_branch_name_is_refused(repository: Repository, name: str) -> None:
    vcs = repository.vcs()
    with pytest.raises(InvalidInput):
        vcs.create_branch(name, "main")
    with pytest.raises(InvalidInput):
        vcs.switch(name)
    with pytest.raises(InvalidInput):
        vcs.delete_branch(name, vcs.resolve("main"))


def test_a_branch_needs_a_commit_and_room(repository: Repository) -> None:
    vcs = repository.vcs()
    with pytest.raises(UnknownRevision):
        vcs.create_branch("a", "nowhere")
    with pytest.raises(InvalidState):
        vcs.create_branch("main/sub", "main")
    assert set(vcs.branches()) == {"main"}


def test_a_branch_is_deleted_only_where_it_was_last_seen(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    repository.write("a")
    second = vcs.commit("Add a")
    vcs.create_branch("work", second)
    with pytest.raises(RefMoved):
        vcs.delete_branch("work", first)
    assert "work" in vcs.branches()
    vcs.delete_branch("work", second)
    assert "work" not in vcs.branches()
    with pytest.raises(RefMoved):
        vcs.delete_branch("work", second)
    assert vcs.current_branch() == "main"


def test_switch_goes_to_a_branch_and_back(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    vcs.create_branch("work", "main")
    vcs.switch("work")
    assert vcs.current_branch() == "work"
    assert vcs.current_commit() == first
    repository.write("a")
    commit = vcs.commit("Add a")
    assert vcs.branches() == {"main": first, "work": commit}
    vcs.switch("main")
    assert vcs.current_branch() == "main"
    assert not (repository.path / "a").exists()
    vcs.switch("work")
    assert (repository.path / "a").exists()
    with pytest.raises(UnknownRevision):
        vcs.switch("nowhere")


@pytest.mark.parametrize("name", ["README.md", "untracked"])
def test_a_dirty_checkout_is_not_switched(repository: Repository, name: str) -> None:
    vcs = repository.vcs()
    vcs.create_branch("work", "main")
    repository.write(name, "precious\n")
    with pytest.raises(DirtyCheckout):
        vcs.switch("work")
    assert vcs.current_branch() == "main"
    assert (repository.path / name).read_text() == "precious\n"


@pytest.mark.slow
def test_the_default_branch_is_the_trunk(repository: Repository) -> None:
    vcs = repository.vcs()
    vcs.create_branch("work", "main")
    vcs.switch("work")
    assert vcs.default_branch() == "main"
    vcs.delete_branch("main", vcs.resolve("main"))
    assert vcs.default_branch() == "work"


def test_a_second_checkout_knows_the_first(repository: Repository, tmp_path: Path) -> None:
    main = repository.vcs()
    main.create_branch("work", "main")
    other = tmp_path / "other"
    repository.add_checkout(other, "work")
    vcs = repository.vcs(other)
    if repository.kind == "jj":
        vcs.switch("work")
    assert vcs.main_root() == str(repository.path)
    assert vcs.current_branch() == "work"
    assert main.checkouts() == vcs.checkouts() == {str(repository.path): "main", str(other): "work"}
    (other / "file").write_text("x\n")
    commit = vcs.commit("Work in the other checkout")
    assert main.branches()["work"] == commit
    assert main.status().is_clean
    assert main.current_branch() == "main"


def test_ancestors_are_contained(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    repository.write("a")
    second = vcs.commit("Add a")
    store = vcs.merging().store
    assert store.contains(first, second)
    assert store.contains(first, vcs.resolve("main"))
    assert store.contains(second, second)
    assert not store.contains(second, first)
    with pytest.raises(UnknownRevision):
        vcs.has_landed("nowhere", "main")


def test_a_saved_ref_outlives_its_branch(repository: Repository) -> None:
    vcs = repository.vcs()
    first = vcs.resolve("main")
    vcs.create_branch("work", "main")
    vcs.switch("work")
    repository.write("precious", "work\n")
    saved = vcs.commit("Precious")
    repository.write("worthless")
    lost = vcs.commit("Worthless")
    vcs.merging().store.change_ref("refs/rookery/rescue/work/1", old=None, new=saved)
    vcs.merging().store.change_ref("refs/rookery/rescue/work/1", old=None, new=saved)
    vcs.switch("main")
    vcs.delete_branch("work", lost)
    if repository.kind == "jj":
        subprocess.run(["jj", "--quiet", "abandon", saved, lost], cwd=repository.path, check=True)
    repository.collect_garbage()
    assert vcs.saved_refs() == vcs.saved_refs("rescue/") == {"rescue/work/1": saved}
    assert vcs.saved_refs("snapshots/") == {}
    assert repository.content(saved, "precious") == "work"
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("cat-file", "-e", lost)
    with pytest.raises(RefMoved):
        vcs.merging().store.change_ref("refs/rookery/rescue/work/1", old=None, new=first)
    assert vcs.saved_refs() == {"rescue/work/1": saved}


def test_two_processes_make_the_same_branch_once(repository: Repository) -> None:
    vcs = repository.vcs()
    commits = [vcs.resolve("main")]
    for number in range(3):
        repository.write("n", f"{number}\n")
        commits.append(vcs.commit(f"Commit {number}"))
    code = (
        "import sys; from rookery.vcs.detect import open_vcs; from rookery.config.model import VcsConfig\n"
        "from rookery.vcs.model import RefMoved\n"
        "print(flush=True); sys.stdin.readline()\n"
        "try: open_vcs('.', VcsConfig()).create_branch('race', sys.argv[1])\n"
        "except RefMoved: sys.exit(7)\n"
    )
    held, gate = os.pipe()
    children = [start(code, commit, cwd=repository.path, stdin=held, stdout=subprocess.PIPE) for commit in commits]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.close()
    os.close(held)
    os.close(gate)
    statuses = [child.wait(60) for child in children]
    assert sorted(statuses) == [0, 7, 7, 7]
    assert vcs.branches()["race"] == commits[statuses.index(0)]
