"""The gits that are at work in a repository, as the system sees its processes; jj counts as one.

The answers serve as proof: a git that cannot be inspected counts as one that works here. Processes in sandboxes are
seen from outside, by the system's own links to their folders and files, whatever those are called inside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.processes import proctable
from rookery.processes.proctable import Identity
from rookery.vcs.folders import read_text
from rookery.vcs.git.pointers import common_folder, linked_worktrees

_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_PROGRAMS = ("git", "jj", "gix", "lazygit", "gitui")
_SHARED = (
    *("nfs", "cifs", "smb", "9p", "virtiofs", "fuse", "vboxsf"),
    *("ceph", "glusterfs", "lustre", "afs", "ocfs", "gfs"),
)


@dataclass(frozen=True, slots=True)
class Process(Record):
    """A running process."""

    identity: Identity
    words: tuple[str, ...] = ()

    @property
    def is_alive(self) -> bool:
        """True if it still runs."""
        row = proctable.read_one(self.identity.pid)
        return row is not None and row.identity == self.identity and not row.is_dead


def at_work(common: str, user: int) -> list[Process]:
    """The gits of a user, and of root, that may belong to a repository."""
    home = _identity_of(common)
    places = _places(common)
    return [process for process in _processes_of(user) if _is_git(process) and _may_belong(process, home, places)]


def with_open(file: os.stat_result) -> list[Process]:
    """Every process of a file's owner, or of root, that has it open, of whatever program."""
    return [process for process in _processes_of(file.st_uid) if _has_open(process.identity.pid, file)]


def _processes_of(user: int) -> Iterator[Process]:
    """The running processes of a user, and of root, each with its command line."""
    for pid, row in proctable.read_all().items():
        if row.user in (user, 0) and not row.is_dead:
            process = Process(row.identity)
            with suppress(OSError):
                process = Process(row.identity, tuple(proctable.arguments_of(pid)))
            yield process


def _has_open(pid: int, file: os.stat_result) -> bool:
    with suppress(OSError):
        for number in os.listdir(_proc(pid, "fd")):
            with suppress(OSError):
                if os.path.samestat(os.stat(_proc(pid, "fd", number)), file):
                    return True
    return False


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
    if _filesystem(about).startswith(_SHARED):
        return "other machines may share this filesystem, and their processes cannot be seen"
    return ""


def _is_git(process: Process) -> bool:
    pid = process.identity.pid
    names = [os.path.basename(word) for word in process.words[:1]]
    with suppress(OSError):
        names.append(os.path.basename(os.readlink(_proc(pid, "exe"))))
    with suppress(OSError):
        names.append(read_text(_proc(pid, "comm")).strip())
    return any(name.split("-")[0].split(" ")[0] in _PROGRAMS for name in names)


def _may_belong(process: Process, home: tuple[int, int], places: Sequence[str]) -> bool:
    """True unless a git is known to work in another repository, or in none."""
    pid = process.identity.pid
    try:
        cwd = os.readlink(_proc(pid, "cwd"))
        environ = proctable.environ_of(pid)
        if home in set(_repositories_above(pid)):
            return True
    except OSError:
        return proctable.read_one(pid) is not None  # it has ended, or cannot be inspected
    settings = [value for name, _, value in (entry.partition("=") for entry in environ) if name.startswith("GIT_")]
    for word in (*process.words[1:], *settings):
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
                target = read_text(pointer).removeprefix("gitdir:").strip()
                own = _proc(pid, "root") + target if os.path.isabs(target) else os.path.join(place, target)
                yield _identity_of(common_folder(own))
        place, before = os.path.join(place, ".."), now


def _places(common: str) -> list[str]:
    """The repository's folder and all its checkouts."""
    own = [common, os.path.dirname(common)] if os.path.basename(common) == ".git" else [common]
    return [os.path.realpath(folder) for folder in (*own, *linked_worktrees(common).values())]


def _sees_all_processes(file: os.stat_result) -> bool:
    """False in a sandbox; in a container true for a file on its own disk, on which no process outside works."""
    try:
        if os.readlink(_proc("self", "ns/pid")) == _FIRST_PID_NAMESPACE:
            return True
        with open(_proc(1, "comm"), encoding="utf-8") as comm:
            is_sandbox = comm.read().strip() == "bwrap"
    except OSError:
        return False
    return not is_sandbox and file.st_dev == os.stat("/").st_dev


def _mount_options() -> str:
    lines = read_text(_proc("self", "mounts")).split("\n")[:-1]
    return " ".join(line for line in lines if line.split(" ")[1] == proctable.PROC)


def _filesystem(file: os.stat_result) -> str:
    """The type of the filesystem that a file lies on, as the system calls it."""
    device = f"{os.major(file.st_dev)}:{os.minor(file.st_dev)}"
    lines = read_text(_proc("self", "mountinfo")).split("\n")[:-1]
    return next((line.partition(" - ")[2].split(" ")[0] for line in lines if line.split(" ")[2] == device), "")


def _proc(pid: int | str, *names: str) -> str:
    return os.path.join(proctable.PROC, str(pid), *names)


def _identity_of(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
