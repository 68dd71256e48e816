"""The journal of a runner: what a program did and how it ended, one JSON object a line, in a file of its own.

It is how a runner reports: it never opens the database, so that a new version of Rookery, with another schema, never
meets old code there. Every line carries the journal's version, and readers leave out kinds that they do not know.

The file's lock says whether the runner lives. It is taken before the turn's row exists and handed to the runner with
the open file, so there is no moment at which a turn has neither. Beside those of turns lie the journals of jobs: gates
and agents that resolve a conflict (`merge/gates/jobs.py`).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from rookery.base.ids import TURN
from rookery.base.json import dumps, loads
from rookery.config import layout
from rookery.config.project import make_state_folder
from rookery.processes import locks
from rookery.processes.holder import is_elsewhere
from rookery.processes.holder import read as holder_of

VERSION = 1
RUNNER, CHILD, RECORD, CONVERSATION, ENDED = "runner", "child", "record", "conversation", "ended"
"""Who keeps the journal; the program's process; one thing that it did; how it names the conversation; how it ended."""
_SUFFIX = ".journal"
_PAUSE = 0.2
_MOST_PENDING = 8 * 1024 * 1024
_CHUNK = 1 << 20


def folder_of(root: str) -> str:
    """Where the journals of running turns are."""
    return layout.path(root, layout.JOURNALS)


def path_of(root: str, turn_id: str) -> str:
    """The journal of a turn."""
    return os.path.join(folder_of(root), turn_id + _SUFFIX)


def turn_of(name: str) -> str | None:
    """The turn whose journal has that file name; None for another file."""
    found = owner_of(name)
    return found if found is not None and found.startswith(TURN) else None


def owner_of(name: str) -> str | None:
    """The turn or the job whose journal has that file name; None for another file."""
    return name.removesuffix(_SUFFIX) if name.endswith(_SUFFIX) else None


def jobs(root: str) -> list[str]:
    """The jobs that have a journal."""
    try:
        names = os.listdir(folder_of(root))
    except FileNotFoundError:
        return []
    found = filter(None, map(owner_of, names))
    return sorted(each for each in found if not each.startswith(TURN))


def running_turns(root: str) -> list[str]:
    """The turns whose runners are at work."""
    try:
        names = os.listdir(folder_of(root))
    except FileNotFoundError:
        return []
    return [each for each in filter(None, map(turn_of, names)) if is_running(root, each)]


def make_folder(root: str) -> str:
    """The folder of the journals, made if it is not there; a project that has gone is not made again."""
    folder = folder_of(root)
    for each in (os.path.dirname(folder), folder):
        make_state_folder(each)
    return folder


def create(root: str, turn_id: str) -> int:
    """Make a turn's journal: the open file, locked."""
    make_folder(root)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(path_of(root, turn_id), flags, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def take(root: str, turn_id: str) -> int | None:
    """The journal of a turn, open and locked, empty if it is not there; None if a runner keeps it."""
    make_folder(root)
    return locks.take(path_of(root, turn_id), os.O_APPEND)


def remove(root: str, turn_id: str) -> None:
    """Delete the journal of a turn that is settled."""
    with suppress(FileNotFoundError):
        os.unlink(path_of(root, turn_id))


def is_running(root: str, turn_id: str) -> bool:
    """True while a runner keeps the turn's journal, or one is being started."""
    return locks.is_locked(path_of(root, turn_id))


def is_held(root: str, turn_id: str) -> bool:
    """True while a runner may be at work: also if it is on another host, whose locks may not be seen here."""
    if is_running(root, turn_id):
        return True
    entries = {each["kind"]: each for each in read(root, turn_id)[0]}
    runner = entries.get(RUNNER)
    return runner is not None and ENDED not in entries and is_elsewhere(holder_of(runner["pid"], runner["start"]))


def read(root: str, turn_id: str, offset: int = 0, most: int = -1) -> tuple[list[dict[str, Any]], int]:
    """The whole lines from an offset on, and the offset after them; the last line ends after `most` bytes."""
    try:
        with open(path_of(root, turn_id), "rb") as file:
            file.seek(offset)
            data = file.read(most) + file.readline()
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return list(_entries(whole)), offset + len(whole)


def find(root: str, turn_id: str, kind: str) -> dict[str, Any] | None:
    """The first line of a kind; of the journal's beginning and end there is one each."""
    return next((each for each in read(root, turn_id)[0] if each["kind"] == kind), None)


def _entries(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        with suppress(ValueError):  # cut off by a power failure, and written on
            entry = loads(line.decode("utf-8", "replace"))
            if isinstance(entry, dict) and entry.get("v") == VERSION and "kind" in entry:
                yield entry


class Writer:
    """Writes a journal. What a full disk does not take is kept in memory and written when there is room again."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._pending = b""

    def add(self, kind: str, **data: Any) -> None:
        """Write a line."""
        self._pending += dumps({"v": VERSION, "kind": kind, **data}).encode("utf-8", "backslashreplace") + b"\n"
        self._write()
        while len(self._pending) > _MOST_PENDING:  # let the program wait for room, too
            time.sleep(_PAUSE)
            self._write()

    def finish(self) -> None:
        """Have everything on the disk, however long that takes."""
        while self._pending:
            self._write()
            if self._pending:
                time.sleep(_PAUSE)
        with suppress(OSError):
            os.fsync(self._file)

    def _write(self) -> None:
        with suppress(OSError):
            while self._pending:
                self._pending = self._pending[os.write(self._file, self._pending[:_CHUNK]) :]
