"""The gits that are at work in a repository, as the system sees its processes; jj counts as one.

It is about proof: a git that cannot be looked at counts as one that works here. Processes in sandboxes are seen from
outside, by the system's own links to their folders and files, whatever those are called within.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.processes import proctable
from rookery.processes.proctable import Identity

_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_PROGRAMS = ("git", "jj", "gix", "lazygit", "gitui")
_SHARED = (
    *("nfs", "cifs", "smb", "9p", "virtiofs", "fuse", "vboxsf"),
    *("ceph", "glusterfs", "lustre", "afs", "ocfs", "gfs"),
)
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Process(Record):
    """A running process."""

    identity: Identity
    words: str

    @property
    def is_alive(self) -> bool:
        """True if it still runs."""
        row = proctable.read_one(self.identity.pid)
        return row is not None and row.identity == self.identity and not row.is_dead


def at_work(common: str, user: int) -> list[Process]:
    """The gits of a user, and of root, that may belong to a repository."""
    home = _identity_of(common)
    places = _places(common)
    found = []
    for pid, row in proctable.read_all().items():
        if row.user not in (user, 0) or row.is_dead:
            continue
        words = _words(pid)
        if _is_git(pid, words) and _may_belong(pid, words, home, places):
            found.append(Process(row.identity, " ".join(words)[:_SHOWN]))
    return found


def with_open(file: os.stat_result) -> list[Process]:
    """Every process of a file's owner, or of root, that has it open, of whatever program."""
    found = []
    for pid, row in proctable.read_all().items():
        if row.user not in (file.st_uid, 0) or row.is_dead:
            continue
        with suppress(OSError):
            for number in os.listdir(_proc(pid, "fd")):
                with suppress(OSError):
                    if os.path.samestat(os.stat(_proc(pid, "fd", number)), file):
                        found.append(Process(row.identity, " ".join(_words(pid))[:_SHOWN]))
                        break
    return found


def blind_spot(path: str) -> str:
    """Why processes that have to do with a file might not be seen; empty if all are."""
    about, me = os.lstat(path), os.geteuid()
    if not proctable.has_proc():
        return "running processes cannot be seen here"
    if about.st_uid != me and me != 0:
        return "another user made it, whose processes cannot be seen"
    if me != 0 and "hidepid=" in _mount_options():
        return "/proc hides processes here"
    if not _sees_all_processes(about):
        return "this is a sandbox or a container, from which not every process can be seen"
    if _filesystem(path).startswith(_SHARED):
        return "other machines may share this filesystem, and their processes cannot be seen"
    return ""


def common_folder(own: str) -> str:
    """The folder that a repository's worktrees share, by that of one of them."""
    try:
        with open(os.path.join(own, "commondir"), encoding="utf-8", errors="surrogateescape") as file:
            return os.path.normpath(os.path.join(own, file.read().strip()))
    except FileNotFoundError:
        return own


def follow(pointer: str, folder: str, root: str) -> str:
    """Where a `.git` file leads."""
    with open(pointer, encoding="utf-8", errors="surrogateescape") as file:
        target = file.read().removeprefix("gitdir:").strip()
    return root + target if os.path.isabs(target) else os.path.join(folder, target)


def linked_worktrees(common: str) -> dict[str, str]:
    """The folder that git keeps for each linked worktree, and where its files are."""
    top = os.path.join(common, "worktrees")
    found = {}
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
        own = os.path.join(top, name)
        with suppress(OSError), open(os.path.join(own, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
            found[own] = os.path.dirname(os.path.join(own, file.read().strip()))
    return found


def _is_git(pid: int, words: Sequence[str]) -> bool:
    names = [os.path.basename(words[0])] if words else []
    with suppress(OSError):
        names.append(os.path.basename(os.readlink(_proc(pid, "exe"))))
    with suppress(OSError), open(_proc(pid, "comm"), encoding="utf-8", errors="replace") as file:
        names.append(file.read().strip())
    return any(name.split("-")[0].split(" ")[0] in _PROGRAMS for name in names)


def _may_belong(pid: int, words: Sequence[str], home: tuple[int, int], places: Sequence[str]) -> bool:
    """True unless a git is known to work in another repository, or in none."""
    try:
        cwd = os.readlink(_proc(pid, "cwd"))
        environ = proctable.environ_of(pid)
        if home in set(_repositories_above(pid)):
            return True
    except OSError:
        return proctable.read_one(pid) is not None  # it has ended, or cannot be looked at
    given = [value for name, _, value in (each.partition("=") for each in environ) if name.startswith("GIT_")]
    for word in (*words[1:], *given):
        for part in (word, word.partition("=")[2], word[2:] if word.startswith("-C") else ""):
            full = os.path.realpath(os.path.join(cwd, part)) if part else ""
            if any(full == place or full.startswith(place + os.sep) for place in places):
                return True
    return False


def _repositories_above(pid: int) -> Iterator[tuple[int, int]]:
    """The folders above that of a process, itself included, and the repositories that they lead to.

    By the system's own links, which hold in a sandbox too, where paths may have another meaning.
    """
    place, before = _proc(pid, "cwd"), None
    while (now := _identity_of(place)) != before:
        yield now
        pointer = os.path.join(place, ".git")
        with suppress(FileNotFoundError, NotADirectoryError, ProcessLookupError):
            if os.path.isdir(pointer):
                yield _identity_of(pointer)
            elif os.path.isfile(pointer):
                yield _identity_of(common_folder(follow(pointer, place, _proc(pid, "root"))))
        place, before = os.path.join(place, ".."), now


def _places(common: str) -> list[str]:
    """The repository's folder and all its checkouts."""
    found = [common, os.path.dirname(common)] if os.path.basename(common) == ".git" else [common]
    return [os.path.realpath(each) for each in (*found, *linked_worktrees(common).values())]


def _sees_all_processes(found: os.stat_result) -> bool:
    """False in a sandbox; in a container true for what lies on its own disk, which no one outside works in."""
    try:
        if os.readlink(os.path.join(proctable.PROC, "self/ns/pid")) == _FIRST_PID_NAMESPACE:
            return True
        with open(os.path.join(proctable.PROC, "1/comm"), encoding="utf-8") as file:
            is_sandbox = file.read().strip() == "bwrap"
    except OSError:
        return False
    return not is_sandbox and found.st_dev == os.stat("/").st_dev


def _mount_options() -> str:
    with open(os.path.join(proctable.PROC, "self/mounts"), encoding="utf-8", errors="surrogateescape") as file:
        return " ".join(line for line in file if line.split(" ")[1] == proctable.PROC)


def _filesystem(path: str) -> str:
    """The type of the filesystem that a file lies on, as the system calls it."""
    wanted = f"{os.major(os.lstat(path).st_dev)}:{os.minor(os.lstat(path).st_dev)}"
    with open(os.path.join(proctable.PROC, "self/mountinfo"), encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            if line.split(" ")[2] == wanted:
                return line.partition(" - ")[2].split(" ")[0]
    return ""


def _words(pid: int) -> list[str]:
    try:
        return proctable.words_of(pid)
    except OSError:
        return []


def _proc(pid: int, *names: str) -> str:
    return os.path.join(proctable.PROC, str(pid), *names)


def _identity_of(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
