"""The journal of a runner: what a program did and how it ended, one JSON object a line, in a file of its own.

It is how a runner reports: a runner never opens the database, so that a new version of Rookery, with another schema,
never shares it with old code. Every line carries the journal's version, and readers skip kinds that they do not know.

The file's lock says whether the runner is alive. It is taken before the turn's row exists and handed to the runner with
the open file, so a turn always has one or the other. The journals of jobs are in the same folder: gates, and agents
that resolve a conflict (`merge/gates/jobs.py`).
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
from rookery.processes import holder as holders
from rookery.processes import locks
from rookery.processes.proctable import Identity

VERSION = 1
RUNNER, CHILD, RECORD, CONVERSATION, ENDED = "runner", "child", "record", "conversation", "ended"
"""The runner's process; the program's process; one thing that it did; its name for the conversation; how it ended."""
_SUFFIX = ".journal"
_PAUSE = 0.2
_MOST_PENDING = 8 * 1024 * 1024
_CHUNK = 1 << 20


def folder_of(root: str) -> str:
    """The folder of the journals."""
    return layout.path(root, layout.JOURNALS)


def path_of(root: str, owner: str) -> str:
    """The journal of a turn or a job."""
    return os.path.join(folder_of(root), owner + _SUFFIX)


def owners_of(names: list[str]) -> list[str]:
    """The turns and jobs whose journals have these file names; other files are left out."""
    return [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]


def is_turn(owner: str) -> bool:
    """True for a turn, False for a job."""
    return owner.startswith(TURN)


def owners(root: str) -> list[str]:
    """The turns and jobs that have a journal."""
    try:
        return owners_of(sorted(os.listdir(folder_of(root))))
    except FileNotFoundError:
        return []


def jobs(root: str) -> list[str]:
    """The jobs that have a journal."""
    return [owner for owner in owners(root) if not is_turn(owner)]


def running_turns(root: str) -> list[str]:
    """The turns whose runners are at work."""
    return [owner for owner in owners(root) if is_turn(owner) and is_running(root, owner)]


def make_folder(root: str) -> str:
    """The folder of the journals, made if it is missing; the folder of a project that is gone is not made again."""
    folder = folder_of(root)
    make_state_folder(os.path.dirname(folder))
    make_state_folder(folder)
    return folder


def create(root: str, owner: str) -> int:
    """Make a journal: the open file, locked."""
    make_folder(root)
    file = locks.open_file(path_of(root, owner), os.O_APPEND | os.O_EXCL)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def take(root: str, owner: str) -> int | None:
    """A journal, open and locked, made empty if it is missing; None if a runner holds it."""
    make_folder(root)
    return locks.take(path_of(root, owner), os.O_APPEND)


def remove(root: str, owner: str) -> None:
    """Delete a journal whose turn or job is settled."""
    with suppress(FileNotFoundError):
        os.unlink(path_of(root, owner))


def is_running(root: str, owner: str) -> bool:
    """True while a runner holds the journal, or one is being started."""
    return locks.is_locked(path_of(root, owner))


def is_held(root: str, owner: str) -> bool:
    """True while a runner may be at work: also one on another host, whose locks may be invisible here."""
    if is_running(root, owner):
        return True
    entries = {entry["kind"]: entry for entry in read(root, owner)[0]}
    runner = entries.get(RUNNER)
    return runner is not None and ENDED not in entries and holders.is_elsewhere(_holder(runner))


def find_runner(root: str, owner: str) -> Identity | None:
    """The runner's process; None if it has ended, has not begun to write, or cannot be seen from here."""
    runner = find(root, owner, RUNNER) if is_running(root, owner) else None
    return None if runner is None else holders.process_of(_holder(runner))


def _holder(runner: dict[str, Any]) -> holders.HolderId:
    return holders.read(runner["pid"], runner["start"])


def read(root: str, owner: str, offset: int = 0, most: int = -1) -> tuple[list[dict[str, Any]], int]:
    """The whole lines from an offset on, and the offset after them; the last line ends after `most` bytes."""
    try:
        with open(path_of(root, owner), "rb") as file:
            file.seek(offset)
            data = file.read(most) + file.readline()
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return list(_entries(whole)), offset + len(whole)


def find(root: str, owner: str, kind: str) -> dict[str, Any] | None:
    """The first line of a kind."""
    return next((entry for entry in read(root, owner)[0] if entry["kind"] == kind), None)


def _entries(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        with suppress(ValueError):  # a power failure cut the line off, and another line follows it
            entry = loads(line.decode("utf-8", "replace"))
            if isinstance(entry, dict) and entry.get("v") == VERSION and "kind" in entry:
                yield entry


class Writer:
    """Writes a journal. What a full disk does not take stays in memory and is written when there is room again."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._pending = b""

    def add(self, kind: str, **data: Any) -> None:
        """Write a line; if too much is pending, wait for room, so that the program waits too."""
        self._pending += dumps({"v": VERSION, "kind": kind, **data}).encode("utf-8", "backslashreplace") + b"\n"
        self._write(_MOST_PENDING)

    def finish(self) -> None:
        """Write everything to the disk, however long that takes."""
        self._write(0)
        with suppress(OSError):
            os.fsync(self._file)

    def _write(self, most_pending: int) -> None:
        while True:
            with suppress(OSError):
                while self._pending:
                    self._pending = self._pending[os.write(self._file, self._pending[:_CHUNK]) :]
            if len(self._pending) <= most_pending:
                return
            time.sleep(_PAUSE)
