"""What is git's own about worktrees: locks, settings of their own, submodules, and indexes in odd states."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rookery.base.errors import InvalidState, ProgramFailed
from rookery.vcs.git.checkout import Git

from .repositories import TIMEOUT, GitRepository, run


@pytest.fixture
def work(git_repository: GitRepository) -> Git:
    return add(git_repository, "work")


def add(repository: GitRepository, branch: str) -> Git:
    repository.write(".rookery/.gitignore", "*\n")
    repository.vcs().create_branch(branch, "main")
    folder = str(repository.path / ".rookery" / "worktrees" / branch)
    repository.vcs().add_checkout(folder, branch)
    return Git(folder, TIMEOUT)


def put(vcs: Git, name: str, text: str = "text\n") -> None:
    path = Path(vcs.root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git(vcs: Git, *args: str) -> str:
    return run(Path(vcs.root), "git", *args)


def test_a_lock_is_shown_and_respected(git_repository: GitRepository, work: Git) -> None:
    main = git_repository.vcs()
    assert main.lock_state(work.root) is None
    git(work, "worktree", "lock", work.root)
    assert main.lock_state(work.root) == ""
    with pytest.raises(InvalidState, match="is locked"):
        main.remove_checkout(work.root)
    git(work, "worktree", "unlock", work.root)
    git(work, "worktree", "lock", "--reason", "on a\nstick", work.root)
    assert main.lock_state(work.root) == "on a\nstick"
    with pytest.raises(InvalidState, match="on a\nstick"):
        main.remove_checkout(work.root)
    assert Path(work.root, "README.md").exists()


def test_a_branch_that_is_checked_out_elsewhere_is_refused(git_repository: GitRepository, tmp_path: Path) -> None:
    with pytest.raises(InvalidState, match="checked out elsewhere"):
        git_repository.vcs().add_checkout(str(tmp_path / "new"), "main")


def test_a_worktree_that_another_git_is_just_making_is_waited_for(
    git_repository: GitRepository, work: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads_back = git_repository.path / ".git/worktrees/work/commondir"
    written = leads_back.read_text()
    leads_back.write_text("")
    waits: list[float] = []

    def write_after_a_while(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            leads_back.write_text(written)

    monkeypatch.setattr("rookery.vcs.git.repository.sleep", write_after_a_while)
    other = add(git_repository, "other")

    assert other.current_branch() == "other"
    assert len(waits) == 3


def test_a_worktree_that_is_never_made_whole_is_reported(
    git_repository: GitRepository, work: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    (git_repository.path / ".git/worktrees/work/commondir").write_text("")
    monkeypatch.setattr("rookery.vcs.git.repository.sleep", lambda _seconds: None)
    with pytest.raises(ProgramFailed, match="work/commondir"):
        add(git_repository, "other")


def test_only_this_worktree_ignores_what_is_excluded(git_repository: GitRepository, work: Git) -> None:
    other = add(git_repository, "other")
    work.exclude(["/AGENTS.md"])
    for vcs in (work, other, Git(str(git_repository.path), TIMEOUT)):
        put(vcs, "AGENTS.md")
    assert git(work, "status", "--porcelain") == ""
    assert git(other, "status", "--porcelain") == "?? AGENTS.md"
    assert run(git_repository.path, "git", "status", "--porcelain") == "?? AGENTS.md"
    assert not (git_repository.store / "info" / "exclude").read_text().count("AGENTS")


@pytest.mark.parametrize("place", ["default", "configured"])
def test_what_the_user_ignores_everywhere_is_ignored_still(work: Git, place: str) -> None:
    home = Path(os.environ["HOME"])
    path = home / ".config" / "git" / "ignore" if place == "default" else home / "my ignores"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("*.swp")
    if place == "configured":
        git(work, "config", "--global", "core.excludesFile", "~/my ignores")
    put(work, "x.swp")
    for _ in range(2):
        work.exclude(["/AGENTS.md"])
        assert git(work, "status", "--porcelain") == ""
    assert work.excluded() == ["/AGENTS.md"]


@pytest.mark.parametrize("setting", ["core.bare", "core.worktree"])
def test_settings_of_the_main_checkout_stay_its_own(git_repository: GitRepository, work: Git, setting: str) -> None:
    value = {"core.bare": "true", "core.worktree": str(git_repository.path)}[setting]
    git(work, "config", f"--file={git_repository.store / 'config'}", setting, value)
    work.exclude(["/AGENTS.md"])
    put(work, "AGENTS.md")
    assert git(work, "status", "--porcelain") == ""
    assert git(work, "rev-parse", "--show-toplevel") == work.root
    assert git(work, "rev-parse", "--is-bare-repository") == "false"
    assert run(git_repository.path, "git", f"--git-dir={git_repository.store}", "config", setting) == value


def test_a_tracked_file_is_hidden_also_in_a_sparse_checkout(git_repository: GitRepository) -> None:
    git_repository.write("AGENTS.md", "theirs\n")
    git_repository.write("deep/file")
    git_repository.vcs().commit("More")
    work = add(git_repository, "work")
    git(work, "sparse-checkout", "set", "--no-cone", "/*", "!/deep")
    work.exclude(["/AGENTS.md"])
    put(work, "AGENTS.md", "ours\n")
    put(work, "new")
    assert git(work, "status", "--porcelain") == "?? new"
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert git_repository.content(commit, "AGENTS.md") == "theirs"
    assert {"new", "deep/file"} < set(git_repository.tree(commit))


def test_a_folder_pattern_leaves_tracked_files_in_it_alone(git_repository: GitRepository) -> None:
    git_repository.write(".claude/commands/x.md", "one\n")
    git_repository.vcs().commit("Commands")
    work = add(git_repository, "work")
    work.exclude(["/.claude/"])
    put(work, ".claude/CLAUDE.md")
    put(work, ".claude/commands/x.md", "two\n")
    assert git(work, "status", "--porcelain") == " M .claude/commands/x.md"


def test_the_main_checkout_is_not_given_ignores_of_its_own(git_repository: GitRepository) -> None:
    with pytest.raises(InvalidState, match="main checkout"):
        git_repository.vcs().exclude(["/AGENTS.md"])


def test_a_snapshot_needs_no_lock_and_runs_no_hook(git_repository: GitRepository, work: Git) -> None:
    for name in ("post-index-change", "pre-commit", "post-commit", "reference-transaction"):
        hook = git_repository.store / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch '{git_repository.store}/{name}.ran'\n")
        hook.chmod(0o755)
    put(work, "staged")
    git(work, "add", "staged")
    assert list(git_repository.store.glob("*.ran"))
    for ran in git_repository.store.glob("*.ran"):
        ran.unlink()
    index = git_repository.store / "worktrees" / "work" / "index"
    before = index.read_bytes()
    (index.parent / "index.lock").touch()
    put(work, "new")
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert {"staged", "new"} < set(git_repository.tree(commit))
    assert index.read_bytes() == before
    assert list(git_repository.store.glob("*.ran")) == []


@pytest.mark.parametrize("damage", [b"", b"DIRCgarbage", None])
def test_a_broken_index_does_not_keep_work_from_being_saved(
    git_repository: GitRepository, work: Git, damage: bytes | None
) -> None:
    index = git_repository.store / "worktrees" / "work" / "index"
    put(work, "new")
    if damage is None:
        index.unlink()
    else:
        index.write_bytes(damage)
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert set(git_repository.tree(commit)) == {"README.md", "new"}


def test_a_split_index_is_read_and_not_written(git_repository: GitRepository, work: Git) -> None:
    git(work, "update-index", "--split-index")
    put(work, "new")
    before = sorted((git_repository.store / "worktrees" / "work").iterdir())
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert set(git_repository.tree(commit)) == {"README.md", "new"}
    assert sorted((git_repository.store / "worktrees" / "work").iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_an_error(work: Git) -> None:
    put(work, "secret")
    Path(work.root, "secret").chmod(0)
    with pytest.raises(ProgramFailed):
        work.snapshot("snapshots/ann/1", "Turn 1")


def test_a_submodules_commit_is_part_of_a_snapshot(git_repository: GitRepository, tmp_path: Path) -> None:
    library = GitRepository(tmp_path / "library")
    first = library.begin()
    allow = ("-c", "protocol.file.allow=always")
    run(git_repository.path, "git", *allow, "submodule", "add", "-q", str(library.path), "lib")
    git_repository.vcs().commit("Add a submodule")
    work = add(git_repository, "work")
    git(work, *allow, "submodule", "update", "-q", "--init")
    assert work.inner_repositories() == ["lib"]
    assert work.contents().inner == ("lib",)
    put(work, "lib/new")
    inner = Git(str(Path(work.root, "lib")), TIMEOUT)
    assert inner.unpushed_commits() == 0
    second = inner.commit("Work")
    assert inner.unpushed_commits() == 1
    commit = work.snapshot("snapshots/ann/1", "Turn 1")
    assert commit is not None
    assert git(work, "rev-parse", f"{commit}:lib") == second != first
    git_repository.vcs().remove_checkout(work.root)
    assert not Path(work.root).exists()


def test_many_worktrees_can_be_given_settings_at_once(git_repository: GitRepository) -> None:
    from concurrent.futures import ThreadPoolExecutor

    worktrees = [add(git_repository, f"w{number}") for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda vcs: vcs.exclude(["/AGENTS.md"]), worktrees))
    for vcs in worktrees:
        put(vcs, "AGENTS.md")
        assert git(vcs, "status", "--porcelain") == ""
