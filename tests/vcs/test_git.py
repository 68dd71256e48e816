"""What is git's own: worktrees, submodules, hooks, odd repositories and the user's settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rookery.base.errors import InvalidInput, InvalidState, NoRepository, ProgramFailed
from rookery.config.model import VcsConfig
from rookery.vcs.detect import open_vcs
from rookery.vcs.git.checkout import Git
from rookery.vcs.git.porcelain import parse_status
from rookery.vcs.git.repository import is_plain_name
from rookery.vcs.model import Change, NothingToCommit

from .repositories import TIMEOUT, GitRepository, run


def add_hook(repository: GitRepository, name: str, script: str) -> None:
    hook = repository.store / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def test_names_that_are_not_utf8_are_committed(git_repository: GitRepository) -> None:
    git_repository.write("bad\udcff\udcfe", "one\n")
    vcs = git_repository.vcs()
    assert [(d.path, d.added) for d in vcs.diff()] == [("bad\udcff\udcfe", 1)]
    assert "bad\udcff\udcfe" in git_repository.tree(vcs.commit("Bytes"))


def test_staged_and_unstaged_changes_are_told_apart(git_repository: GitRepository) -> None:
    for name in ("staged", "both", "loose", "old"):
        git_repository.write(name, f"{name}\n" * 9)
    vcs = git_repository.vcs()
    vcs.commit("More")
    git_repository.write("staged", "1\n")
    git_repository.write("both", "1\n")
    run(git_repository.path, "git", "mv", "old", "new")
    run(git_repository.path, "git", "add", "staged", "both")
    git_repository.write("both", "2\n")
    git_repository.write("loose", "1\n")
    assert set(vcs.status().changes) == {
        Change("staged", "modified", staged=True),
        Change("both", "modified", staged=True),
        Change("loose", "modified"),
        Change("new", "renamed", staged=True, old_path="old"),
    }


def test_a_file_staged_and_gone_again_is_deleted() -> None:
    text = f"1 AD N... 000000 100644 000000 {'0' * 40} {'1' * 40} a b\0"
    assert parse_status(text)[2] == [Change("a b", "deleted", staged=True)]


def test_a_detached_head_is_on_no_branch(git_repository: GitRepository) -> None:
    run(git_repository.path, "git", "switch", "-q", "--detach")
    vcs = git_repository.vcs()
    assert vcs.status().branch is None
    assert vcs.current_branch() is None
    assert vcs.checkouts() == {str(git_repository.path): ""}
    git_repository.write("a")
    commit = vcs.commit("Detached")
    assert vcs.current_commit() == commit
    assert vcs.branches()["main"] != commit


def test_a_branch_may_be_named_as_git_prints_no_branch(git_repository: GitRepository) -> None:
    vcs = git_repository.vcs()
    vcs.create_branch("(detached)", "main")
    vcs.switch("(detached)")
    assert vcs.status().branch == vcs.current_branch() == "(detached)"


def test_a_branch_goes_before_a_tag_of_the_same_name(git_repository: GitRepository) -> None:
    vcs = git_repository.vcs()
    run(git_repository.path, "git", "tag", "main")
    git_repository.write("a")
    commit = vcs.commit("On the branch")
    assert vcs.resolve("main") == commit
    assert vcs.current_branch() == "main"
    assert vcs.branches() == {"main": commit}


def test_the_remotes_default_is_the_default(git_repository: GitRepository, tmp_path: Path) -> None:
    git_repository.vcs().create_branch("develop", "main")
    git_repository.vcs().switch("develop")
    run(tmp_path, "git", "clone", "-q", str(git_repository.path), "clone")
    vcs = Git(str(tmp_path / "clone"), TIMEOUT)
    vcs.create_branch("main", "develop")
    assert vcs.default_branch() == "develop"


def test_a_checked_out_branch_is_not_deleted(git_repository: GitRepository, tmp_path: Path) -> None:
    vcs = git_repository.vcs()
    vcs.create_branch("work", "main")
    git_repository.add_checkout(tmp_path / "other", "work")
    with pytest.raises(InvalidState, match="other"):
        vcs.delete_branch("work", vcs.resolve("work"))
    assert "work" in vcs.branches()


def test_a_hook_that_refuses_is_quoted(git_repository: GitRepository) -> None:
    add_hook(git_repository, "pre-commit", "echo to stdout; echo the linter says no >&2; exit 3")
    git_repository.write("a")
    vcs = git_repository.vcs()
    before = vcs.current_commit()
    with pytest.raises(ProgramFailed, match=r"(?s)to stdout.*the linter says no"):
        vcs.commit("Refused")
    assert vcs.current_commit() == before
    add_hook(git_repository, "pre-commit", "exit 0")
    assert vcs.commit("Accepted") == vcs.current_commit()


def test_a_hook_that_kills_git_leaves_it_usable(git_repository: GitRepository) -> None:
    add_hook(git_repository, "pre-commit", "kill -9 $PPID")
    git_repository.write("a", "precious\n")
    vcs = git_repository.vcs()
    with pytest.raises(ProgramFailed):
        vcs.commit("Killed")
    (git_repository.store / "hooks" / "pre-commit").unlink()
    commit = vcs.commit("Go on")
    assert git_repository.content(commit, "a") == "precious"
    assert run(git_repository.path, "git", "fsck", "--no-dangling") == ""


@pytest.mark.slow
def test_a_lock_that_is_held_is_named(git_repository: GitRepository) -> None:
    git_repository.write("a")
    lock = git_repository.store / "index.lock"
    vcs = git_repository.vcs()
    with lock.open("w"):
        assert not vcs.status().is_clean
        assert [d.path for d in vcs.diff()] == ["a"]
        with pytest.raises(InvalidState, match=rf"index\.lock stays: process {os.getpid()} is alive"):
            vcs.commit("Locked")
    lock.unlink()
    vcs.commit("Free")


def test_an_environment_for_another_repository_changes_nothing(
    git_repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GitRepository(tmp_path / "other")
    untouched = other.begin()
    monkeypatch.setenv("GIT_DIR", str(other.store))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.store / "index"))
    git_repository.write("a")
    vcs = git_repository.vcs()
    commit = vcs.commit("Here")
    monkeypatch.undo()
    assert set(git_repository.tree(commit)) == {"README.md", "a"}
    assert run(other.path, "git", "rev-parse", "HEAD") == untouched
    assert run(other.path, "git", "status", "--porcelain") == ""


def test_without_a_user_the_commit_is_rookerys(git_repository: GitRepository) -> None:
    config = Path(os.environ["HOME"]) / ".gitconfig"
    config.write_text("[user]\n\tname = Only Name\n\tuseConfigOnly = true\n")
    git_repository.write("a")
    vcs = git_repository.vcs()
    vcs.commit("Half a user")
    assert vcs.log(1)[0].author == "Only Name <rookery@localhost>"
    config.unlink()
    git_repository.write("b")
    vcs.commit("No user")
    assert vcs.log(1)[0].author == "Rookery <rookery@localhost>"


def test_the_users_settings_do_not_change_what_is_read(git_repository: GitRepository) -> None:
    with (Path(os.environ["HOME"]) / ".gitconfig").open("a") as config:
        config.write(
            "[color]\n\tui = always\n[core]\n\tquotePath = true\n\tpager = false\n"
            "[status]\n\tshowUntrackedFiles = no\n\trelativePaths = true\n\trenames = false\n\tshort = true\n"
            "[diff]\n\tnoprefix = true\n\trenames = false\n\texternal = false\n\tautoRefreshIndex = false\n"
            "[log]\n\tshowSignature = true\n\tdate = relative\n[commit]\n\tcleanup = strip\n\tverbose = true\n"
            "[i18n]\n\tlogOutputEncoding = latin1\n[format]\n\tpretty = oneline\n"
        )
    vcs = git_repository.vcs()
    git_repository.write("old", "line\n" * 9)
    vcs.commit("# Grüße\n\nbody")
    (git_repository.path / "old").rename(git_repository.path / "ümlaut")
    os.utime(git_repository.path / "README.md", (1, 1))
    assert {(c.path, c.kind) for c in vcs.status().changes} == {("old", "deleted"), ("ümlaut", "untracked")}
    assert [(d.path, d.kind, d.old_path) for d in vcs.diff()] == [("ümlaut", "renamed", "old")]
    assert vcs.log(1)[0].message == "# Grüße\n\nbody"
    git_repository.write("README.md", "other\n")
    assert "\n--- a/README.md\n+++ b/README.md\n" in vcs.patch()


def test_a_change_within_the_time_of_the_index_is_seen(git_repository: GitRepository) -> None:
    """Same size, same second as the index: only the content tells."""
    vcs = git_repository.vcs()
    readme, index = git_repository.path / "README.md", git_repository.store / "index"
    os.utime(readme, (10**9, 10**9))
    run(git_repository.path, "git", "update-index", "--refresh")
    os.utime(index, (10**9, 10**9))
    before = readme.stat()
    readme.write_text("HELLO\n")
    os.utime(readme, (10**9, 10**9))
    assert readme.stat().st_size == before.st_size
    git_repository.write("untracked")
    assert [d.path for d in vcs.diff()] == ["README.md", "untracked"]


@pytest.mark.parametrize("name", ["rook/bee/task_01", "A", "0", "_", "a/-b", "a-", "0" * 40, "HEAD/a", "refs/a"])
def test_a_name_that_is_plain_is_one_for_git_too(git_repository: GitRepository, name: str) -> None:
    assert is_plain_name(name)
    assert run(git_repository.path, "git", "check-ref-format", "--branch", name).strip() == name


@pytest.mark.parametrize("name", ["", "-a", "HEAD", "/a", "a/", "a//b", "a.lock", ".a", "a..b", "@", "ä", "a b", "a\n"])
def test_what_may_be_no_name_is_left_to_git(name: str) -> None:
    assert not is_plain_name(name)


def test_the_branch_before_is_no_name(git_repository: GitRepository) -> None:
    vcs = git_repository.vcs()
    vcs.create_branch("work", "main")
    vcs.switch("work")
    with pytest.raises(InvalidInput):
        vcs.switch("@{-1}")
    assert vcs.current_branch() == "work"


@pytest.mark.parametrize("text", ["both\n", "theirs\n"])
def test_a_merge_that_is_resolved_is_concluded(git_repository: GitRepository, text: str) -> None:
    git_repository.make_conflict()
    git_repository.write("shared.txt", text)
    run(git_repository.path, "git", "add", "shared.txt")
    vcs = git_repository.vcs()
    commit = vcs.commit("Merge main")
    assert len(git_repository.git("rev-list", "--parents", "-1", commit).split()) == 3


def test_a_linked_worktree_leads_to_the_main_checkout(git_repository: GitRepository, tmp_path: Path) -> None:
    run(git_repository.path, "git", "worktree", "add", "-q", "-b", "work", str(tmp_path / "a b" / "linked"))
    nested = tmp_path / "a b" / "linked" / "deep"
    nested.mkdir()
    vcs = open_vcs(str(nested), VcsConfig())
    assert vcs.root == str(tmp_path / "a b" / "linked")
    assert vcs.main_root() == str(git_repository.path)
    vcs.merging().store.change_ref("refs/rookery/from/linked", old=None, new=vcs.resolve("work"))
    assert git_repository.vcs().saved_refs() == {"from/linked": vcs.resolve("work")}


def test_a_submodule_is_a_repository_of_its_own(git_repository: GitRepository, tmp_path: Path) -> None:
    outer = GitRepository(tmp_path / "outer")
    outer.begin()
    run(
        outer.path, "git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(git_repository.path), "sub"
    )
    outer_vcs, inner = outer.vcs(), open_vcs(str(outer.path / "sub"), VcsConfig())
    outer_vcs.commit("Add the submodule")
    assert inner.root == inner.main_root() == str(outer.path / "sub")
    assert list(inner.checkouts()) == [inner.root]
    (outer.path / "sub" / "new").write_text("x\n")
    assert [(c.path, c.kind) for c in outer_vcs.status().changes] == [("sub", "modified")]
    with pytest.raises(NothingToCommit):
        outer_vcs.commit("Nothing to take")
    moved = inner.commit("Inside")
    outer_vcs.commit("Move the submodule")
    assert outer.git("rev-parse", "HEAD:sub") == moved


def test_a_bare_repository_has_no_checkout(tmp_path: Path) -> None:
    run(tmp_path, "git", "init", "-q", "--bare", "bare.git")
    for folder in ("bare.git", "bare.git/hooks"):
        with pytest.raises(NoRepository, match="bare") as caught:
            open_vcs(str(tmp_path / folder), VcsConfig())
        assert "worktree add" in caught.value.hint


def test_a_broken_repository_does_not_lead_to_the_one_around_it(git_repository: GitRepository) -> None:
    inner = git_repository.path / "inner"
    (inner / ".git").mkdir(parents=True)
    vcs = open_vcs(str(inner), VcsConfig())
    assert vcs.root == str(inner)
    with pytest.raises(NoRepository):
        vcs.commit("Not in the outer one")


def test_a_repository_inside_does_not_break_a_diff(git_repository: GitRepository) -> None:
    run(git_repository.path, "git", "init", "-q", "nested")
    git_repository.write("a")
    assert [d.path for d in git_repository.vcs().diff()] == ["a"]


@pytest.mark.slow
def test_a_command_that_hangs_is_ended(git_repository: GitRepository) -> None:
    add_hook(git_repository, "pre-commit", "exec tail -f /dev/null")
    git_repository.write("a")
    with pytest.raises(ProgramFailed) as caught:
        Git(str(git_repository.path), 1.0).commit("Hang")
    assert caught.value.code == "program_timeout"
    (git_repository.store / "hooks" / "pre-commit").unlink()
    assert git_repository.vcs().commit("Go on")
