"""Lock files that a git left behind when it was killed: found, proved to be without a holder, and removed.

Git's locks do not say which process took them. What proves that a holder is dead:

- The holder has the lock file open, or has closed it and has yet to rename it: `git commit` does so while the editor
  is open. So no process of the lock's owner has the file open, by device and inode, and no git or jj that may belong to
  this repository has run since before we saw it. A git that cannot be inspected counts as one that belongs here.
- Only a process that was alive when we first saw the lock can hold it. So we check the gits of that time again and
  again until all have ended or time is up; those that came later do not matter. No clock decides this. On top of that
  the lock must be some seconds old by the clock of its filesystem, with the same inode, time and size all the while.
- All of this needs to see every process that could hold it. Nothing is proved without `/proc`, where `/proc` hides
  processes, within a sandbox, in a container whose repository comes from outside, and on a filesystem that other
  machines share. A program that writes a repository by itself and is neither git nor jj is known only by the open file.

Removal must not hit the lock of a git that has just taken one of the same name. While the dead lock is there no git can
take it, so another process must have removed the dead one first. Ours do it one at a time, under a lock of the kernel.
Against a person who types `rm` in that very moment the file is moved aside, compared once more, and put back by its own
name if it is another one.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rookery.base import call as calls
from rookery.base.draft import draft_name
from rookery.vcs.git import processes as git_processes
from rookery.vcs.git.pointers import common_folder, linked_worktrees, registrations, store_folder
from rookery.vcs.git.processes import Process

LOCK = ".lock"
CLAIM, NOTE = "rookery-forward", "note"
"""The folder beside an index that says what Rookery is doing to the checkout, and the note that its lock repeats."""
MIN_AGE = 2.0
_PATIENCE = 4.0
_PAUSE = 0.1
_SHOWN = 80
_NAMED = (
    re.compile(r"'([^'\n]+\.(?:lock|new))'"),
    re.compile(r"unable to create file (\S[^\n]*packed-refs\.new)"),
)
_CONFIG = re.compile(r"could not lock config file ([^\n]+): ")

# What blocks git at the top of the repository's folder, and in that of a linked worktree.
_TOP = ("index", "HEAD", "ORIG_HEAD", "packed-refs", "config", "config.worktree", "shallow")
_UNFINISHED = "packed-refs.new"
"""Written under `packed-refs.lock`, and git does not replace one that is there."""


def find(common: str) -> list[str]:
    """Every lock of a repository, by the folder that all its worktrees share."""
    paths = [os.path.join(common, _UNFINISHED)]
    for folder in (common, *registrations(common)):
        paths += [os.path.join(folder, f"{name}{LOCK}") for name in _TOP]
        for place, _, names in os.walk(os.path.join(folder, "refs")):
            paths += sorted(os.path.join(place, name) for name in names if name.endswith(LOCK))
    return [path for path in paths if os.path.lexists(path)]


def of_worktree(root: str, folder: str) -> list[str]:
    """The locks that keep a git from committing in a linked worktree: its own, and those of its repository's refs.

    By what the main checkout knows of it: what lies in the worktree itself may lead anywhere.
    """
    common = store_folder(root)
    if common is None:
        return []
    mine = os.path.realpath(folder)
    others = [own + os.sep for own, checkout in linked_worktrees(common).items() if os.path.realpath(checkout) != mine]
    return [path for path in find(common) if not path.startswith(tuple(others))]


def named(output: str, folder: str) -> list[str]:
    """The lock files that git names in its error and that are there."""
    paths = [path for pattern in _NAMED for path in pattern.findall(output)]
    paths += [f"{path}{LOCK}" for path in _CONFIG.findall(output)]
    full = dict.fromkeys(os.path.join(folder, path) for path in paths)
    return [path for path in full if os.path.lexists(path) and _repository(path) is not None]


def is_of_ours(path: str) -> bool:
    """True if Rookery took a lock on an index for a change that is not settled yet."""
    note = os.path.join(os.path.dirname(path), CLAIM, NOTE)
    try:
        return os.path.basename(path) == f"index{LOCK}" and Path(note).read_bytes() == Path(path).read_bytes()
    except OSError:
        return False


def remove_dead(paths: Sequence[str], *, patience: float = _PATIENCE) -> dict[str, str]:
    """Remove the locks whose holders are proved dead, waiting a moment for those that just end.

    Returns the others, and why each stays.
    """
    held = {}
    for path in paths:
        try:
            reason = _remove_if_dead(path, time.monotonic() + patience)
        except OSError as error:
            reason = f"it cannot be removed: {error.strerror}"
        if reason:
            held[path] = reason
    return held


def why_held(path: str) -> str:
    """Why a lock could not be removed now, without waiting; empty if it is gone or its holder may be dead."""
    status, common = _lstat(path), _repository(path)
    if status is None or common is None:
        return ""
    reason = _cannot_prove(path, status)
    if reason:
        return reason
    holders = git_processes.with_open(status) or git_processes.at_work(common, status.st_uid)
    return _describe(holders) if holders else ""


def _remove_if_dead(path: str, deadline: float) -> str:
    """Remove a lock; returns the reason if it stays, and nothing if it is gone."""
    first, common = _lstat(path), _repository(path)
    if first is None or common is None:
        return ""
    reason = _cannot_prove(path, first)
    if reason:
        return reason
    suspects = git_processes.at_work(common, first.st_uid)
    while True:
        now = _lstat(path)
        if now is None:
            return ""
        if _mark(now) != _mark(first):
            return "another git has taken it meanwhile"
        holders = git_processes.with_open(first) or [process for process in suspects if process.is_alive]
        if not holders and _age(path, first) >= MIN_AGE:
            return "" if _move_away(path, first, common) else "another git has taken it meanwhile"
        if time.monotonic() > deadline:
            return _describe(holders) if holders else "it was made just now"
        calls.sleep(_PAUSE)


def _move_away(path: str, expected: os.stat_result, common: str) -> bool:
    """Remove the file that was examined, and no other of its name."""
    turn = os.open(os.path.join(common, "rookery-locks"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        calls.lock(turn)
        now = _lstat(path)
        if now is None:
            return True
        if _mark(now) != _mark(expected):
            return False
        # Git takes no file for a ref whose name ends so.
        aside = f"{draft_name(path)}{LOCK}"
        os.rename(path, aside)
        is_it = _mark(os.lstat(aside)) == _mark(expected)
        if not is_it:
            with suppress(FileExistsError):
                os.link(aside, path)
        os.unlink(aside)
        return is_it
    finally:
        os.close(turn)


def _cannot_prove(path: str, status: os.stat_result) -> str:
    """Why processes could prove nothing about a lock; empty if they could."""
    if not stat.S_ISREG(status.st_mode):
        return "it is no lock file of git's"
    if is_of_ours(path):
        return "Rookery has taken it to change the checkout; `rook merge run` finishes what was interrupted"
    blind = git_processes.blind_spot(path)
    return f"{blind}, so nothing proves that its git is dead" if blind else ""


def _describe(holders: Sequence[Process]) -> str:
    first = holders[0]
    command = " ".join(first.words)[:_SHOWN] or "git"
    return f"process {first.identity.pid} is alive and may hold it: {command}"


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _age(path: str, status: os.stat_result) -> float:
    """How old a file is, by the clock of its filesystem; by ours where no file can be written to read that clock."""
    try:
        with tempfile.TemporaryFile(dir=os.path.dirname(path)) as file:
            return os.fstat(file.fileno()).st_mtime - status.st_mtime
    except OSError:
        return time.time() - status.st_mtime


def _repository(lock: str) -> str | None:
    """The repository that a lock belongs to, by the folder that all its worktrees share."""
    folder = os.path.dirname(lock)
    while folder != os.path.dirname(folder):
        if all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs")):
            return folder
        if os.path.isfile(os.path.join(folder, "commondir")):
            return common_folder(folder)
        folder = os.path.dirname(folder)
    return None
