"""A lock that a killed git left is removed once its holder is proved dead; one that a living git holds never is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import git
from process_tools import wait_until
from rookery.base.errors import InvalidState, ProgramFailed
from rookery.processes import proctable
from rookery.vcs.git import locks as git_locks
from rookery.vcs.git import processes as git_processes
from rookery.vcs.git.checkout import Git

pytestmark = pytest.mark.skipif(not proctable.has_proc(), reason="without /proc nothing can be proved")

LOCKS = (
    "index.lock",
    "HEAD.lock",
    "refs/heads/main.lock",
    "refs/rookery/merge/x.lock",
    "packed-refs.lock",
    "config.lock",
)


def make_old(path: Path, seconds: float = 60) -> Path:
    """A lock without a holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - seconds, time.time() - seconds))
    return path


class Waiting:
    """A real git that holds locks until the test lets it go on."""

    def __init__(self, folder: Path, words: list[str], flag: Path, env: dict[str, str] | None = None) -> None:
        self._go = Path(f"{flag}.go")
        self.child = subprocess.Popen(
            words, cwd=folder, env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(flag.exists, 20)

    def go_on(self) -> int:
        """Let it end by itself."""
        self._go.touch()
        return self.child.wait(20)

    def kill(self) -> None:
        """Kill it and nothing else."""
        self.child.kill()
        self.child.wait()
        self._go.touch()


def wait_script(place: Path, flag: Path) -> Path:
    """A program that says that it is there, and waits for a word, or for the end of the test's folder."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        f"#!/bin/sh\ntouch {flag}\nwhile [ -e {flag} ] && ! [ -e {flag}.go ]; do sleep 0.05; done\nexit 0\n"
    )
    place.chmod(0o755)
    return place


@pytest.fixture
def committing(repo: Path, tmp_path: Path) -> Iterator[Waiting]:
    """`git commit` whose editor is open: it holds index.lock, and has closed it."""
    flag = tmp_path / "editing"
    editor = wait_script(tmp_path / "editor", flag)
    (repo / "README.md").write_text("edited\n")
    held = Waiting(repo, ["git", "commit", "-a", "-m", "x", "-e"], flag, {"GIT_EDITOR": str(editor)})
    yield held
    held.kill()


@pytest.fixture
def moving(repo: Path, tmp_path: Path) -> Iterator[Waiting]:
    """`git update-ref` whose hook waits: it holds the lock of a branch."""
    flag = tmp_path / "moving"
    git(repo, "branch", "other")
    git(repo, "commit", "-q", "--allow-empty", "-m", "next")
    wait_script(repo / ".git/hooks/reference-transaction", flag)
    held = Waiting(repo, ["git", "update-ref", "refs/heads/other", "main"], flag)
    yield held
    held.kill()
    (repo / ".git/hooks/reference-transaction").unlink()


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_without_a_holder_is_removed(repo: Path, name: str) -> None:
    lock = make_old(repo / ".git" / name)
    assert str(lock) in git_locks.find(str(repo / ".git"))
    assert git_locks.remove_dead([str(lock)]) == {}
    assert not lock.exists()
    git(repo, "fsck")


@pytest.mark.slow
def test_a_commit_whose_editor_is_open_keeps_its_lock(repo: Path, committing: Waiting) -> None:
    lock = repo / ".git/index.lock"
    assert lock.exists()
    os.utime(lock, (time.time() - 900, time.time() - 900))
    before = lock.stat().st_ino
    (held,) = git_locks.remove_dead([str(lock)], patience=1).values()
    assert f"process {committing.child.pid} is alive" in held
    assert lock.stat().st_ino == before
    with pytest.raises(InvalidState, match=f"process {committing.child.pid} is alive"):
        Git(str(repo), 60).commit("mine")
    assert committing.go_on() == 0
    assert git(repo, "log", "-1", "--format=%s") == "x"


def test_a_git_from_elsewhere_is_known_by_its_words_and_environment(repo: Path, tmp_path: Path) -> None:
    for number, (words, env) in enumerate(
        [
            (["-C", str(repo)], {}),
            ([f"--git-dir={repo}/.git", f"--work-tree={repo}"], {}),
            (["--git-dir", "repo/.git", "--work-tree", "repo"], {}),
            ([], {"GIT_DIR": str(repo / ".git"), "GIT_WORK_TREE": str(repo)}),
        ]
    ):
        flag = tmp_path / f"editing{number}"
        editor = wait_script(tmp_path / f"editor{number}", flag)
        command = ["git", *words, "commit", "--allow-empty", "-m", "x", "-e"]
        held = Waiting(tmp_path, command, flag, {"GIT_EDITOR": str(editor), **env})
        gits = git_processes.at_work(str(repo / ".git"), os.geteuid())
        assert held.child.pid in [process.identity.pid for process in gits]
        held.kill()


def test_a_git_in_another_repository_does_not_matter(repo: Path, tmp_path: Path, committing: Waiting) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    assert git_processes.at_work(str(other / ".git"), os.geteuid()) == []
    assert git_locks.remove_dead([str(make_old(other / ".git/index.lock"))]) == {}


@pytest.mark.slow
def test_a_killed_commit_leaves_a_lock_that_does_not_stop_the_next(repo: Path, committing: Waiting) -> None:
    committing.kill()
    assert (repo / ".git/index.lock").exists()
    commit = Git(str(repo), 60).commit("after the kill")
    assert git(repo, "rev-parse", "HEAD") == commit
    assert git_locks.find(str(repo / ".git")) == []


@pytest.mark.slow
def test_a_killed_git_leaves_a_branch_that_can_be_moved(repo: Path, moving: Waiting) -> None:
    lock = repo / ".git/refs/heads/other.lock"
    assert lock.exists()
    merging = Git(str(repo), 60).merging()
    old, new = git(repo, "rev-parse", "other"), git(repo, "rev-parse", "main")
    with pytest.raises(ProgramFailed, match=f"process {moving.child.pid} is alive"):
        merging.move("other", new, old, "land")
    assert lock.exists()
    moving.kill()
    merging.move("other", new, old, "land")
    assert git(repo, "rev-parse", "other") == new
    assert git_locks.find(str(repo / ".git")) == []


def test_a_process_of_any_program_that_has_the_file_open_holds_it(repo: Path) -> None:
    lock = make_old(repo / ".git/index.lock")
    program = "import sys; file = open(sys.argv[1]); print(flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(lock)], cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    (held,) = git_locks.remove_dead([str(lock)], patience=0.3).values()
    assert f"process {child.pid}" in held
    child.communicate()
    assert git_locks.remove_dead([str(lock)]) == {}


def test_a_lock_that_was_just_made_is_waited_for(repo: Path) -> None:
    lock = make_old(repo / ".git/index.lock", seconds=0)
    (held,) = git_locks.remove_dead([str(lock)], patience=0.2).values()
    assert "just now" in held
    assert lock.exists()


def test_a_lock_that_changes_hands_is_left_alone(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = make_old(repo / ".git/index.lock")

    def take_over(_path: str, _found: os.stat_result) -> float:
        lock.unlink()
        lock.write_text("of another git\n")
        return 60.0

    monkeypatch.setattr(git_locks, "_age", take_over)
    (held,) = git_locks.remove_dead([str(lock)]).values()
    assert "another git has taken it" in held
    assert lock.read_text() == "of another git\n"


def test_a_lock_that_changes_hands_at_the_last_moment_is_put_back(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = make_old(repo / ".git/index.lock")
    rename = os.rename

    def take_over(source: str, target: str) -> None:
        lock.unlink()
        lock.write_text("of another git\n")
        rename(source, target)

    monkeypatch.setattr(os, "rename", take_over)
    assert git_locks.remove_dead([str(lock)])
    assert lock.read_text() == "of another git\n"
    assert git_locks.find(str(repo / ".git")) == [str(lock)]


def test_a_link_or_a_folder_in_the_place_of_a_lock_is_left_alone(repo: Path, tmp_path: Path) -> None:
    (repo / ".git/index.lock").symlink_to(tmp_path / "elsewhere")
    (repo / ".git/HEAD.lock").mkdir()
    (tmp_path / "elsewhere").write_text("mine\n")
    held = git_locks.remove_dead(git_locks.find(str(repo / ".git")))
    assert len(held) == 2
    assert (tmp_path / "elsewhere").read_text() == "mine\n"


def test_only_locks_that_git_names_and_that_lie_in_a_repository_are_looked_at(repo: Path, tmp_path: Path) -> None:
    lock = make_old(repo / ".git/index.lock")
    mine = make_old(tmp_path / "yarn.lock")
    message = f"fatal: Unable to create '{lock}': File exists.\nfatal: Unable to create '{mine}': File exists.\n"
    assert git_locks.named(message, str(repo)) == [str(lock)]
    make_old(repo / ".git/config.lock")
    message = "error: could not lock config file .git/config: File exists\n"
    assert git_locks.named(message, str(repo)) == [str(repo / ".git/config.lock")]


def test_packed_refs_that_were_being_written_stop_no_one(repo: Path) -> None:
    make_old(repo / ".git/packed-refs.lock")
    make_old(repo / ".git/packed-refs.new")
    git(repo, "branch", "gone")
    make_old(repo / ".git/packed-refs.lock")
    store = Git(str(repo), 60)._store
    for path in git_locks.find(str(repo / ".git")):
        assert git_locks.remove_dead([path]) == {}
    store.write("pack-refs", "--all")
    store.change_ref("refs/heads/gone", old=git(repo, "rev-parse", "gone"), new=None)
    assert git_locks.find(str(repo / ".git")) == []


def test_a_worktree_has_its_own_locks_and_those_of_all(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    git(repo, "worktree", "add", "-q", str(tmp_path / "two"), "-b", "two")
    mine = make_old(repo / ".git/worktrees/one/index.lock")
    theirs = make_old(repo / ".git/worktrees/two/index.lock")
    shared = make_old(repo / ".git/refs/heads/one.lock")
    assert set(git_locks.of_worktree(str(repo), str(tmp_path / "one"))) == {str(mine), str(shared)}
    (tmp_path / "one/a.txt").write_text("a\n")
    Git(str(tmp_path / "one"), 60).commit("in the worktree")
    assert not mine.exists()
    assert not shared.exists()
    assert theirs.exists()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_git_in_a_sandbox_is_seen_from_outside(repo: Path, tmp_path: Path) -> None:
    """Its process ids are those of another namespace, and it knows the repository by another path."""
    flag = tmp_path / "editing"
    wait_script(tmp_path / "editor", flag)
    (repo / "README.md").write_text("edited\n")
    walls = ["bwrap", "--bind", "/", "/", "--bind", str(repo), "/mnt", "--unshare-pid", "--proc", "/proc"]
    walls += ["--dev-bind", "/dev", "/dev", "--die-with-parent", "--chdir", "/mnt", "--"]
    words = [*walls, "git", "commit", "-a", "-m", "x", "-e"]
    tried = subprocess.run([*walls, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"bubblewrap cannot be used here: {tried.stderr.strip()}")
    held = Waiting(repo, words, flag, {"GIT_EDITOR": str(tmp_path / "editor")})
    lock = repo / ".git/index.lock"
    os.utime(lock, (time.time() - 900, time.time() - 900))
    (left,) = git_locks.remove_dead([str(lock)], patience=0.5).values()
    assert "is alive" in left
    held.kill()
    wait_until(lambda: not git_processes.at_work(str(repo / ".git"), os.geteuid()), 20)
    assert git_locks.remove_dead([str(lock)]) == {}


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_nothing_is_removed_from_within_a_sandbox(repo: Path) -> None:
    lock = make_old(repo / ".git/index.lock")
    program = f"from rookery.vcs.git.locks import remove_dead; print(*remove_dead([{str(lock)!r}]).values())"
    words = ["bwrap", "--bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--dev-bind", "/dev", "/dev", "--"]
    done = subprocess.run([*words, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode != 0 and "bwrap" in done.stderr:
        pytest.skip(f"bubblewrap cannot be used here: {done.stderr.strip()}")
    assert "sandbox" in done.stdout
    assert lock.exists()


def test_a_stopped_git_is_alive(repo: Path, committing: Waiting) -> None:
    committing.child.send_signal(signal.SIGSTOP)
    assert git_locks.remove_dead([str(repo / ".git/index.lock")], patience=0.3)
    committing.child.send_signal(signal.SIGCONT)
