"""What the doctor finds out about version control."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.processes import proctable
from rookery.vcs.checks import CHECKS, check_git, check_jj, check_locks, check_repository
from rookery.vcs.git import locks as git_locks

from .repositories import GitRepository, JjRepository


def place(folder: Path) -> Place:
    return Place(None, str(folder))


def program(folder: Path, name: str, says: str) -> None:
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)


def test_a_sound_repository(git_repository: GitRepository) -> None:
    findings = [finding for check in CHECKS for finding in check(place(git_repository.path))]
    assert [(finding.name, finding.status) for finding in findings] == [
        ("git", OK),
        ("repository", OK),
        ("identity", OK),
    ]


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (finding,) = check_git(place(tmp_path))
    assert finding.status == ERROR
    assert "install git" in finding.hint


@pytest.mark.parametrize(
    ("says", "status"), [("2.37.9", WARNING), ("2.38.0", OK), ("2.39.5 (Apple Git-154)", OK), ("3.0.rc1", OK)]
)
def test_gits_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, status: str) -> None:
    program(tmp_path / "bin", "git", f"git version {says}")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (finding,) = check_git(place(tmp_path))
    assert finding.status == status
    assert says in finding.message


def test_jj_is_asked_for_only_where_it_is_used(jj_repository: JjRepository, git_repository_elsewhere: Path) -> None:
    (finding,) = check_jj(place(jj_repository.path))
    assert finding.status == OK
    assert list(check_jj(place(git_repository_elsewhere))) == []


@pytest.fixture
def git_repository_elsewhere(tmp_path: Path) -> Path:
    return GitRepository(tmp_path / "elsewhere").path


def test_jj_that_is_missing_or_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repo" / ".jj").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    (finding,) = check_jj(place(tmp_path / "repo"))
    assert finding.status == ERROR
    program(tmp_path / "bin", "jj", "jj 0.21.0-abcdef")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/bin")
    (finding,) = check_jj(place(tmp_path / "repo"))
    assert finding.status == WARNING


def test_no_repository(tmp_path: Path) -> None:
    (finding,) = check_repository(place(tmp_path))
    assert finding.status == WARNING
    assert "git init" in finding.hint


def test_the_project_goes_before_the_folder(git_repository: GitRepository, tmp_path: Path) -> None:
    (finding,) = check_repository(Place(str(git_repository.path), str(tmp_path)))
    assert finding.status == OK


@pytest.fixture
def only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is seen but those of the test: another git that cannot be looked at may hold a lock."""
    read_all = proctable.read_all

    def read_own() -> dict[int, proctable.Row]:
        return {pid: row for pid, row in read_all().items() if os.getpid() in proctable.lineage(pid)}

    monkeypatch.setattr(proctable, "read_all", read_own)


@pytest.mark.usefixtures("only_ours")
def test_an_old_lock_is_named_and_a_fresh_one_is_not(git_repository: GitRepository, tmp_path: Path) -> None:
    git_repository.vcs().create_branch("work", "main")
    git_repository.add_checkout(tmp_path / "linked", "work")
    locks = [git_repository.store / "index.lock", git_repository.store / "worktrees" / "linked" / "index.lock"]
    for lock in locks:
        lock.touch()
    assert list(check_locks(place(git_repository.path))) == []
    for lock in locks:
        os.utime(lock, (time.time() - 700, time.time() - 700))
    findings: list[Finding] = list(check_locks(place(tmp_path / "linked")))
    assert [finding.status for finding in findings] == [WARNING, WARNING]
    assert all(str(lock) in finding.message for lock, finding in zip(locks, findings, strict=True))
    assert all("no git runs" in finding.message for finding in findings)
    for finding in findings:
        assert finding.repair is not None
        assert "removed" in finding.repair()
    assert not any(lock.exists() for lock in locks)


def test_where_processes_cannot_be_seen_a_lock_is_left_to_a_person(
    git_repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = git_repository.store / "refs" / "heads" / "main.lock"
    lock.touch()
    os.utime(lock, (time.time() - 700, time.time() - 700))
    monkeypatch.setattr(proctable, "PROC", str(tmp_path))  # as on a system without one
    (finding,) = check_locks(place(git_repository.path))
    assert "cannot be seen" in finding.message
    assert (finding.repair, finding.hint) == (None, f"if no git is running there: rm '{lock}'")
    assert list(git_locks.remove_dead([str(lock)])) == [str(lock)]
    assert lock.exists()
