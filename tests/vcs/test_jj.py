"""What is jj's own: bookmarks without a current one, workspaces, files it will not take, and git beside it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from rookery.base.errors import InvalidState
from rookery.config.model import VcsConfig
from rookery.vcs.detect import open_vcs
from rookery.vcs.jj.workspace import Jj
from rookery.vcs.model import Change, Conflicted, NothingToCommit

from .repositories import ColocatedRepository, JjRepository, run, start

pytestmark = pytest.mark.slow


def test_what_is_on_disk_counts_without_a_jj_command_before(jj_repository: JjRepository) -> None:
    jj_repository.write("a", "1\n")
    assert jj_repository.vcs().status().changes == (Change("a", "added"),)
    jj_repository.write("a", "1\n2\n")
    assert [(d.path, d.added) for d in jj_repository.vcs().diff()] == [("a", 2)]


def test_a_bookmark_on_the_working_copy_itself_is_current(jj_repository: JjRepository) -> None:
    jj_repository.jj("bookmark", "create", "own", "-r", "@")
    vcs = jj_repository.vcs()
    assert vcs.current_branch() == "own"
    jj_repository.write("a")
    commit = vcs.commit("Own")
    assert vcs.branches()["own"] == commit
    assert vcs.branches()["main"] != commit
    assert vcs.current_branch() == "own"


def test_without_a_near_bookmark_the_commit_is_on_none(jj_repository: JjRepository) -> None:
    before = jj_repository.vcs().resolve("main")
    jj_repository.write("a")
    jj_repository.jj("commit", "-m", "By hand")
    vcs = jj_repository.vcs()
    assert vcs.current_branch() is None
    jj_repository.write("b")
    commit = vcs.commit("On no bookmark")
    assert vcs.branches() == {"main": before}
    assert vcs.current_commit() == commit


def test_another_branch_at_the_same_commit_does_not_take_the_trunks_place(jj_repository: JjRepository) -> None:
    vcs = jj_repository.vcs()
    vcs.create_branch("agent", "main")
    assert vcs.current_branch() == "main"
    jj_repository.jj("bookmark", "delete", "main")
    assert vcs.current_branch() == "agent"


def test_a_conflicted_bookmark_is_reported(jj_repository: JjRepository) -> None:
    vcs = jj_repository.vcs()
    vcs.create_branch("side", "main")
    jj_repository.write("a")
    first = vcs.commit("A")
    vcs.switch("side")
    jj_repository.write("b")
    second = vcs.commit("B")
    vcs.switch("main")
    start = jj_repository.jj("op", "log", "--no-graph", "-n1", "-T", "id.short()")
    jj_repository.jj("bookmark", "create", "twice", "-r", first)
    jj_repository.jj("--at-op", start, "bookmark", "create", "twice", "-r", second)
    with pytest.raises(Conflicted, match="twice"):
        vcs.branches()
    assert set(vcs.branches("main")) == {"main"}
    for step in (vcs.resolve, vcs.switch):
        with pytest.raises(Conflicted, match="twice"):
            step("twice")
    with pytest.raises(Conflicted, match="twice"):
        vcs.delete_branch("twice", first)
    with pytest.raises(Conflicted, match="twice"):
        vcs.create_branch("twice", first)
    assert vcs.current_branch() == "main"
    jj_repository.jj("new", first)
    jj_repository.jj("bookmark", "delete", "main")
    jj_repository.write("c")
    with pytest.raises(Conflicted, match="twice"):
        vcs.commit("On a conflicted bookmark")


def test_a_bookmark_moved_here_and_deleted_there_is_conflicted(jj_repository: JjRepository) -> None:
    vcs = jj_repository.vcs()
    vcs.create_branch("work", "main")
    jj_repository.write("a")
    commit = vcs.commit("A")
    start = jj_repository.jj("op", "log", "--no-graph", "-n1", "-T", "id.short()")
    jj_repository.jj("bookmark", "set", "work", "-r", commit)
    jj_repository.jj("--at-op", start, "bookmark", "delete", "work")
    with pytest.raises(Conflicted, match="work"):
        vcs.resolve("work")


def test_a_file_that_jj_does_not_take_is_not_lost_silently(jj_repository: JjRepository) -> None:
    jj_repository.write("large.bin", bytes(2_000_000))
    jj_repository.write("a")
    vcs = jj_repository.vcs()
    assert Change("large.bin", "untracked") in vcs.status().changes
    assert ("large.bin", "untracked") in {(d.path, d.kind) for d in vcs.diff()}
    with pytest.raises(InvalidState, match=r"large\.bin"):
        vcs.commit("All but one")
    jj_repository.write(".gitignore", "*.bin\n")
    assert set(jj_repository.tree(vcs.commit("All"))) == {"README.md", "a", ".gitignore"}


def test_a_user_who_tracks_by_hand_sees_untracked_files_and_commits_them(jj_repository: JjRepository) -> None:
    jj_repository.jj("config", "set", "--repo", "snapshot.auto-track", "none()")
    jj_repository.write("new")
    vcs = jj_repository.vcs()
    assert vcs.status().changes == (Change("new", "untracked"),)
    assert "new" in jj_repository.tree(vcs.commit("Take it"))


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the list of locks is Linux's own")
def test_only_one_of_us_moves_bookmarks_at_a_time(jj_repository: JjRepository) -> None:
    """jj itself lets two processes make one bookmark at two places."""
    vcs = jj_repository.vcs()
    code = (
        "from rookery.vcs.detect import open_vcs; from rookery.config.model import VcsConfig\n"
        "open_vcs('.', VcsConfig()).create_branch('waits', 'main')\n"
    )
    with open(jj_repository.path / ".jj" / "repo" / "rookery.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        child = start(code, cwd=jj_repository.path)
        deadline = time.monotonic() + 60
        while not is_waiting_for_a_lock(child.pid) and child.poll() is None:
            assert time.monotonic() < deadline
        assert child.poll() is None
        assert "waits" not in vcs.branches()
    assert child.wait(60) == 0
    assert "waits" in vcs.branches()


def is_waiting_for_a_lock(pid: int) -> bool:
    return any("->" in line and f" {pid} " in line for line in Path("/proc/locks").read_text().splitlines())


def test_a_workspace_inside_the_first_is_no_change_of_it(jj_repository: JjRepository) -> None:
    inner = jj_repository.path / "agents" / "ann"
    inner.parent.mkdir()
    jj_repository.add_checkout(inner, "main")
    (inner / "file").write_text("x\n")
    assert jj_repository.vcs().status().is_clean
    assert open_vcs(str(inner), VcsConfig()).main_root() == str(jj_repository.path)


def test_saved_refs_are_shared_between_workspaces(jj_repository: JjRepository, tmp_path: Path) -> None:
    jj_repository.add_checkout(tmp_path / "other", "main")
    other = jj_repository.vcs(tmp_path / "other")
    (tmp_path / "other" / "a").write_text("x\n")
    commit = other.commit("From the other")
    other.merging().store.change_ref("refs/rookery/from/other", old=None, new=commit)
    assert jj_repository.vcs().saved_refs() == {"from/other": commit}


def test_without_a_user_the_commit_is_as_git_knows_him_or_rookerys(jj_repository: JjRepository) -> None:
    home = Path(os.environ["HOME"])
    (home / ".config" / "jj" / "config.toml").write_text("")
    (home / ".gitconfig").write_text('[user]\n\tname = "Git \\"User\\""\n\temail = git@example.org\n')
    vcs = jj_repository.vcs()
    for name in ("a", "b"):
        jj_repository.write(name)
        vcs.commit("Without a user of jj")
    assert vcs.log(1)[0].author == 'Git "User" <git@example.org>'
    (home / ".gitconfig").unlink()
    for name in ("c", "d"):
        jj_repository.write(name)
        vcs.commit("Without any user")
    assert vcs.log(1)[0].author == "Rookery <rookery@localhost>"


def test_a_merge_without_changes_of_its_own_can_be_committed(jj_repository: JjRepository) -> None:
    vcs = jj_repository.vcs()
    vcs.create_branch("work", "main")
    for branch in ("main", "work"):
        vcs.switch(branch)
        jj_repository.write(branch)
        vcs.commit(f"On {branch}")
    jj_repository.jj("new", "main", "work")
    commit = vcs.commit("Merge")
    assert set(jj_repository.tree(commit)) == {"README.md", "main", "work"}
    with pytest.raises(NothingToCommit):
        vcs.commit("Again")


def test_of_two_branches_that_are_merged_the_first_is_current(jj_repository: JjRepository) -> None:
    vcs = jj_repository.vcs()
    for branch in ("b", "a"):
        vcs.create_branch(branch, "main")
        vcs.switch(branch)
        jj_repository.write(branch)
        vcs.commit(f"On {branch}")
    (jj_repository.path / ".jj" / "rookery-branch").unlink()
    jj_repository.jj("new", "b", "a")
    assert vcs.current_branch() == "b"
    assert vcs.checkouts() == {str(jj_repository.path): "b"}


def test_a_stale_workspace_says_what_to_do(jj_repository: JjRepository, tmp_path: Path) -> None:
    jj_repository.add_checkout(tmp_path / "other", "main")
    other = jj_repository.vcs(tmp_path / "other")
    assert other.status().is_clean
    jj_repository.jj("edit", "main")
    jj_repository.write("README.md", "rewritten\n")
    jj_repository.jj("util", "snapshot")
    with pytest.raises(InvalidState) as caught:
        other.status()
    assert "update-stale" in caught.value.hint


def test_a_commit_that_git_made_in_the_store_can_be_kept(jj_repository: JjRepository) -> None:
    vcs = jj_repository.vcs()
    tree = jj_repository.git("rev-parse", vcs.resolve("main") + "^{tree}")
    commit = jj_repository.git("-c", "user.name=X", "-c", "user.email=x@y", "commit-tree", "-m", "By git", tree)
    vcs.merging().store.change_ref("refs/rookery/snapshots/1", old=None, new=commit)
    assert vcs.saved_refs() == {"snapshots/1": commit}
    assert not vcs.has_landed(commit, "main")


def test_git_beside_jj_sees_the_branches(colocated: ColocatedRepository) -> None:
    vcs = open_vcs(str(colocated.path), VcsConfig())
    assert isinstance(vcs, Jj)
    colocated.write("a")
    commit = vcs.commit("Add a")
    vcs.create_branch("work", commit)
    assert run(colocated.path, "git", "rev-parse", "main", "work").split() == [commit, commit]
    vcs.delete_branch("work", commit)
    assert run(colocated.path, "git", "branch", "--list", "work") == ""


def test_a_branch_that_git_made_beside_jj_is_seen(colocated: ColocatedRepository) -> None:
    run(colocated.path, "git", "branch", "by-git", "main")
    vcs = colocated.vcs()
    assert vcs.resolve("by-git") == vcs.resolve("main")
    assert set(vcs.branches()) == {"by-git", "main"}


def test_a_remotes_default_and_its_branches_stay(jj_repository: JjRepository) -> None:
    vcs = jj_repository.vcs()
    main = vcs.resolve("main")
    # What `jj git clone` leaves behind; it wants a newer git than every machine has.
    jj_repository.jj("git", "remote", "add", "origin", "nowhere")
    jj_repository.git("update-ref", "refs/remotes/origin/develop", main)
    jj_repository.jj("git", "import")
    jj_repository.jj("bookmark", "track", "develop", "--remote=origin")
    jj_repository.jj("config", "set", "--repo", 'revset-aliases."trunk()"', "develop@origin")
    assert vcs.branches() == {"develop": main, "main": main}
    assert vcs.default_branch() == "develop"
    vcs.delete_branch("develop", main)
    assert vcs.branches() == {"main": main}
    assert vcs.default_branch() == "main"
    assert vcs.resolve("develop@origin") == main
    # Nothing is left to be deleted at the remote by the next push.
    assert "deleted" not in jj_repository.jj("bookmark", "list", "--all")


def test_a_revset_for_one_commit_is_a_revision(jj_repository: JjRepository) -> None:
    vcs = jj_repository.vcs()
    assert vcs.resolve("@-") == vcs.resolve("main")
    assert jj_repository.vcs().diff("@-") == []
