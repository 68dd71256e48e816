"""What every backend promises of a checkout: one suite over git, jj, and jj beside git."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from rookery.base.errors import InvalidInput, Refused
from rookery.vcs.backend import Vcs
from rookery.vcs.model import Change, Conflicted, NothingToCommit

from .repositories import Repository, start

HOSTILE = [
    "new\nline",
    'quo"te',
    "-dash",
    "🐦.txt",
    " space ",
    "tab\t",
    "a\\b",
    "esc\x1b[1m",
    "d/e f/g",
    "x\ndiff --git y",
]


def kinds(vcs: Vcs) -> dict[str, str]:
    """Changed paths and what happened to them; new files are called differently by backends without an index."""
    return {c.path: "added" if c.kind == "untracked" else c.kind for c in vcs.status().changes}


def test_the_checkout_is_known(repository: Repository) -> None:
    vcs = repository.vcs()
    assert vcs.kind == repository.kind
    assert vcs.root == str(repository.path)
    assert vcs.main_root() == str(repository.path)


def test_status_of_a_clean_checkout(repository: Repository) -> None:
    status = repository.vcs().status()
    assert status.is_clean
    assert status.branch == "main"
    assert status.commit == repository.vcs().current_commit() == repository.vcs().resolve("main")


def test_everything_works_before_the_first_commit(empty: Repository) -> None:
    vcs = empty.vcs()
    assert vcs.status().commit is None
    assert vcs.status().is_clean
    assert vcs.current_commit() is None
    assert list(vcs.log()) == []
    assert list(vcs.diff()) == []
    assert vcs.branches() == {}
    assert vcs.saved_refs() == {}
    with pytest.raises(NothingToCommit):
        vcs.commit("Nothing")
    empty.write("a.txt", "1\n2\n")
    assert kinds(vcs) == {"a.txt": "added"}
    assert [(d.path, d.kind, d.added, d.deleted) for d in vcs.diff()] == [("a.txt", "added", 2, 0)]
    assert "+1\n+2\n" in vcs.patch()
    commit = vcs.commit("First")
    assert vcs.current_commit() == commit
    assert [entry.message for entry in vcs.log()] == ["First"]


def test_status_names_every_kind_of_change(repository: Repository) -> None:
    vcs = repository.vcs()
    for name in ("gone", "edit", "old-name", "script", "kind"):
        repository.write(name, f"{name}\n" * 20)
    vcs.commit("More files")
    (repository.path / "gone").unlink()
    repository.write("edit", "other\n")
    (repository.path / "old-name").rename(repository.path / "new-name")
    (repository.path / "script").chmod(0o755)
    (repository.path / "kind").unlink()
    (repository.path / "kind").symlink_to("edit")
    repository.write("fresh/file", b"\0\1")
    expected = {
        "gone": "deleted",
        "edit": "modified",
        "script": "modified",
        "kind": "type_changed",
        "fresh/file": "added",
    }
    # Git's status pairs a deleted with an untracked file only once both are staged.
    renamed = {"new-name": "renamed"} if repository.kind == "jj" else {"old-name": "deleted", "new-name": "added"}
    assert kinds(vcs) == expected | renamed
    assert {(d.path, d.kind, d.old_path) for d in vcs.diff()} == {
        *((path, kind, None) for path, kind in expected.items()),
        ("new-name", "renamed", "old-name"),
    }


def test_a_commit_takes_everything(repository: Repository) -> None:
    vcs = repository.vcs()
    repository.write("data.bin", bytes(range(256)))
    repository.write("run.sh", "#!/bin/sh\n")
    (repository.path / "run.sh").chmod(0o755)
    (repository.path / "link").symlink_to("nowhere")
    (repository.path / "README.md").unlink()
    commit = vcs.commit("Change a lot")
    assert repository.tree(commit) == {"data.bin": "100644", "run.sh": "100755", "link": "120000"}
    assert len(commit) == 40
    assert vcs.status().is_clean
    assert vcs.status().commit == commit


def test_the_branch_follows_the_commit(repository: Repository) -> None:
    vcs = repository.vcs()
    repository.write("a")
    commit = vcs.commit("Add a")
    assert vcs.branches() == {"main": commit}
    assert vcs.current_branch() == "main"


@pytest.mark.parametrize(
    "message", ["-m", "--help", "# not a comment\n\n#1", "quo\"te ' $HOME `x`", "🐦\n\nbody\nmore"]
)
def test_a_message_comes_back_as_it_was(repository: Repository, message: str) -> None:
    vcs = repository.vcs()
    repository.write("a")
    vcs.commit(message)
    assert vcs.log(1)[0].message == message


@pytest.mark.parametrize("message", ["", " \n", "nul\0", "half\udc80", "x" * 100_001])
def test_a_message_that_cannot_be_kept_is_refused(repository: Repository, message: str) -> None:
    repository.write("a")
    with pytest.raises(InvalidInput):
        repository.vcs().commit(message)
    assert kinds(repository.vcs()) == {"a": "added"}


def test_nothing_to_commit_is_reported(repository: Repository) -> None:
    with pytest.raises(NothingToCommit):
        repository.vcs().commit("Nothing")


def test_hostile_names_come_through(repository: Repository) -> None:
    vcs = repository.vcs()
    for name in HOSTILE:
        repository.write(name, "one\n")
    assert kinds(vcs) == dict.fromkeys(HOSTILE, "added")
    assert {(d.path, d.added) for d in vcs.diff()} == {(name, 1) for name in HOSTILE}
    commit = vcs.commit("Hostile names")
    assert set(HOSTILE) < set(repository.tree(commit))
    for name in HOSTILE:
        repository.write(name, "one\ntwo\n")
    assert kinds(vcs) == dict.fromkeys(HOSTILE, "modified")
    assert {(d.path, d.kind, d.added) for d in vcs.diff()} == {(name, "modified", 1) for name in HOSTILE}


def test_a_name_that_is_not_utf8_is_seen(repository: Repository) -> None:
    repository.write("bad\udcff", "x\n")
    assert Change("bad\udcff", "untracked") in repository.vcs().status().changes


def test_ignored_files_and_the_projects_own_state_stay_out(repository: Repository) -> None:
    vcs = repository.vcs()
    repository.write(".gitignore", "*.log\n")
    repository.write("debug.log")
    repository.write(".rookery/.gitignore", "*\n")
    repository.write(".rookery/rookery.db", b"\0")
    repository.write(".rookery/worktrees/a/file")
    assert kinds(vcs) == {".gitignore": "added"}
    assert [d.path for d in vcs.diff()] == [".gitignore"]
    assert set(repository.tree(vcs.commit("Ignore logs"))) == {"README.md", ".gitignore"}


def test_log_is_newest_first_and_stops_where_asked(repository: Repository) -> None:
    vcs = repository.vcs()
    commits = []
    for number in range(4):
        repository.write("n", f"{number}\n")
        commits.append(vcs.commit(f"Commit {number}"))
    log = vcs.log()
    assert [entry.message for entry in log] == ["Commit 3", "Commit 2", "Commit 1", "Commit 0", "Begin"]
    assert log[0].commit == commits[3]
    assert log[0].author == "Test <test@example.org>"
    assert log[0].at.startswith("20")
    assert log[0].at.endswith("Z")
    assert [entry.message for entry in vcs.log(2)] == ["Commit 3", "Commit 2"]


def test_diff_counts_lines_against_a_base(repository: Repository) -> None:
    vcs = repository.vcs()
    base = vcs.resolve("main")
    repository.write("README.md", "hello\nworld\n")
    vcs.commit("Say more")
    repository.write("README.md", "world\nagain\n")
    repository.write("data.bin", b"\0\1")
    assert {(d.path, d.kind, d.added, d.deleted) for d in vcs.diff(base)} == {
        ("README.md", "modified", 2, 1),
        ("data.bin", "added", None, None),
    }
    assert {(d.path, d.added, d.deleted) for d in vcs.diff()} == {("README.md", 1, 1), ("data.bin", None, None)}
    patch = vcs.patch(base)
    assert "diff --git a/README.md b/README.md" in patch
    assert "-hello" in patch
    assert "+again" in patch
    assert "data.bin" in patch


def test_diff_leaves_out_what_only_the_base_did(repository: Repository) -> None:
    vcs = repository.vcs()
    vcs.create_branch("work", "main")
    repository.write("theirs")
    vcs.commit("On main")
    vcs.switch("work")
    repository.write("ours")
    assert [d.path for d in vcs.diff("main")] == ["ours"]


def test_diff_changes_nothing(repository: Repository) -> None:
    vcs = repository.vcs()
    repository.write("a")
    before = vcs.status()
    vcs.diff()
    vcs.patch()
    assert vcs.status() == before


@pytest.mark.slow
def test_a_conflict_is_seen_and_not_committed(repository: Repository) -> None:
    repository.make_conflict()
    vcs = repository.vcs()
    assert kinds(vcs)["shared.txt"] == "conflicted"
    assert ("shared.txt", "conflicted") in {(d.path, d.kind) for d in vcs.diff()}
    assert "shared.txt" in vcs.patch()
    before = vcs.current_commit()
    with pytest.raises(Conflicted, match=r"shared\.txt"):
        vcs.commit("Too early")
    assert vcs.current_commit() == before
    assert kinds(vcs)["shared.txt"] == "conflicted"


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_in_the_middle_of_a_commit(repository: Repository, tmp_path: Path, step: int, when: str) -> None:
    """Rook and its child die, before or after one of the two steps that change something."""
    repository.write("a", "precious\n")
    program = repository.kind
    moment = {"git": ["add", "commit"], "jj": ["commit", "set"]}[program][step - 1]
    real = subprocess.run(["which", program], check=True, capture_output=True, text=True).stdout.strip()
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / program).write_text(
        f'#!/bin/sh\ncase " $* " in *" {moment} "*) [ {when} = after ] && {real} "$@"; kill -9 $PPID $$;; esac\n'
        f'exec {real} "$@"\n'
    )
    (trap / program).chmod(0o755)
    code = (
        "from rookery.vcs.detect import open_vcs; from rookery.config.model import VcsConfig\n"
        "open_vcs('.', VcsConfig()).commit('Interrupted')\n"
    )
    child = start(code, cwd=repository.path, path=f"{trap}{os.pathsep}{os.environ['PATH']}")
    assert child.wait(60) == -signal.SIGKILL
    vcs = repository.vcs()
    assert vcs.current_branch() == "main"
    repository.write("b")
    commit = vcs.commit("Go on")
    assert vcs.branches()["main"] == commit
    assert repository.content(commit, "a") == "precious"
    assert set(repository.tree(commit)) == {"README.md", "a", "b"}
    assert vcs.status().is_clean


def test_a_missing_folder_is_reported(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        repository.vcs(tmp_path / "gone").status()
