"""A checkout whose files git fails to write gets every file back, whatever its name and kind."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import git
from rookery.processes import proctable
from rookery.vcs.git.checkout import Git
from rookery.vcs.git.forward import CannotWrite, HalfWritten
from rookery.vcs.git.merging import Merging

NAMES = (
    b"plain",
    b"new\nline",
    b'"quoted"',
    b"\xff\xfe",
    b" space ",
    b"-dash",
    b"back\\slash",
    "\u00e9".encode(),
    b"*",
)


@pytest.fixture
def merging(repo: Path) -> Merging:
    return Git(str(repo), 60).merging()


def content(repo: Path) -> dict[bytes, bytes]:
    """Every file and link, and every folder."""
    contents = {}
    for place, folders, names in os.walk(os.fsencode(repo)):
        folders[:] = [name for name in folders if name != b".git"]
        for name in [*names, *folders]:
            path = os.path.join(place, name)
            is_plain = os.path.isfile(path) and not os.path.islink(path)
            contents[path] = (
                Path(os.fsdecode(path)).read_bytes() if is_plain else b"" if os.path.isdir(path) else b"link"
            )
    return contents


def commit(repo: Path, message: str) -> str:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", message)
    return git(repo, "rev-parse", "HEAD")


def change_everything(repo: Path) -> tuple[str, str]:
    """Two commits that differ in files of all names and kinds; the checkout is at the first."""
    top = os.fsencode(repo)
    for name in NAMES:
        with open(os.path.join(top, name), "wb") as file:
            file.write(b"old " + name)
    (repo / "link").symlink_to("plain")
    (repo / "becomes-link").write_text("file\n")
    (repo / "tool").write_text("tool\n")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},gone-module")
    (repo / "gone-module").mkdir()
    old = commit(repo, "old")
    for name in NAMES:
        with open(os.path.join(top, name), "wb") as file:
            file.write(b"new " + name)
        os.makedirs(os.path.join(top, b"dir", name + b"d"))
        with open(os.path.join(top, b"dir", name + b"d", name), "wb") as file:
            file.write(b"added " + name)
    for link in ("link", "becomes-link"):
        (repo / link).unlink()
        (repo / link).symlink_to("elsewhere")
    (repo / "tool").chmod(0o755)
    (repo / "gone-module").rmdir()
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    (repo / "module").mkdir()
    (repo / "zz.txt").write_text("last\n")
    new = commit(repo, "new")
    git(repo, "reset", "-q", "--hard", old)
    (repo / "gone-module").mkdir(exist_ok=True)
    return old, new


def fail_at_the_last_file(repo: Path) -> None:
    """Git writes everything but one file."""
    git(repo, "config", "filter.break.smudge", "false")
    git(repo, "config", "filter.break.clean", "cat")
    git(repo, "config", "filter.break.required", "true")
    (repo / ".git/info/attributes").write_text("zz.txt filter=break\n")


def test_files_of_every_name_and_kind_come_back(repo: Path, merging: Merging) -> None:
    old, new = change_everything(repo)
    before, status = content(repo), git(repo, "status", "--porcelain")
    times = os.lstat(repo / "plain").st_mtime_ns
    fail_at_the_last_file(repo)
    with pytest.raises(CannotWrite, match=r"zz\.txt: smudge filter break failed"):
        merging.begin_forward("main", old, new)
    assert content(repo) == before
    assert os.lstat(repo / "plain").st_mtime_ns == times
    assert git(repo, "status", "--porcelain") == status
    assert not list((repo / ".git").glob("*.lock"))
    assert not list((repo / ".git").glob("rookery-forward*"))
    (repo / ".git/info/attributes").unlink()
    (begun,) = merging.begin_forward("main", old, new)
    merging.move("main", new, old, "land")
    begun.finish()
    assert git(repo, "status", "--porcelain") == ""


def test_without_hard_links_there_are_copies(repo: Path, merging: Merging, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = change_everything(repo)
    before = content(repo)
    fail_at_the_last_file(repo)

    def refuse(*_paths: str, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(CannotWrite):
        merging.begin_forward("main", old, new)
    assert content(repo) == before
    assert not list((repo / ".git").glob("*.lock"))


def test_line_ends_of_the_users_choice_come_back(repo: Path, merging: Merging) -> None:
    """What git takes for unchanged need not be what it would write."""
    git(repo, "config", "core.autocrlf", "true")
    (repo / "a.txt").write_bytes(b"one\ntwo\n")
    old = commit(repo, "old")
    (repo / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    (repo / "zz.txt").write_text("last\n")
    new = commit(repo, "new")
    git(repo, "reset", "-q", "--hard", old)
    (repo / "a.txt").write_bytes(b"one\ntwo\n")
    git(repo, "add", "a.txt")
    fail_at_the_last_file(repo)
    with pytest.raises(CannotWrite):
        merging.begin_forward("main", old, new)
    assert (repo / "a.txt").read_bytes() == b"one\ntwo\n"


def test_an_index_that_cannot_follow_does_so_with_the_next_call(
    repo: Path, merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = change_everything(repo)
    (begun,) = merging.begin_forward("main", old, new)
    merging.move("main", new, old, "land")
    with monkeypatch.context() as patch:

        def fail(_source: str, target: str) -> None:
            raise OSError(30, "Read-only file system", target)

        patch.setattr(os, "replace", fail)
        with pytest.raises(HalfWritten, match=r"index could not follow.*Read-only file system"):
            begun.finish()
    assert os.path.exists(begun.lock)
    assert merging.repair_checkouts("main")
    assert git(repo, "status", "--porcelain") == ""
    assert not list((repo / ".git").glob("*.lock"))


def test_a_lock_that_another_git_took_after_a_kill_is_left_alone(
    repo: Path, merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = change_everything(repo)
    with monkeypatch.context() as patch:
        patch.setattr(proctable, "read_one", lambda _pid: None)  # as if the process had another start
        (begun,) = merging.begin_forward("main", old, new)
    os.unlink(begun.lock)
    Path(begun.lock).write_text("of another git\n")
    files = content(repo)
    assert merging.repair_checkouts("main")
    assert Path(begun.lock).read_text() == "of another git\n"
    assert content(repo) == files


def test_one_at_a_time_repairs_what_is_left_of_a_claim(
    repo: Path, merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = change_everything(repo)
    with monkeypatch.context() as patch:
        patch.setattr(proctable, "read_one", lambda _pid: None)  # as if the process had another start
        (begun,) = merging.begin_forward("main", old, new)
    with ThreadPoolExecutor(1) as threads:
        with begun.alone():
            repairing = threads.submit(merging.repair_checkouts, "main")
            with pytest.raises(TimeoutError):
                repairing.result(0.3)
            begun.undo()  # another process was first
        assert not repairing.result(20)
    assert git(repo, "status", "--porcelain") == ""
