"""Jobs of a merger: gates, and agents that resolve a conflict. Every job has a runner, which outlives the merger.

A job's name derives from its work. So a merger that comes after one that was killed finds the job under way, waits for
it and takes its result; if none comes, the loop settles it. The runner never opens the database: it reports in a
journal (`sessions/journal.py`). The process that locks the journal after the runner settles the job.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.base import call as calls
from rookery.base.record import Record
from rookery.config import layout
from rookery.environment.service import own_environ
from rookery.processes import holder as holders
from rookery.processes import locks, memory_file
from rookery.processes.inotify import CLOSED, MODIFIED, watch_folders
from rookery.processes.proctable import RUNNER
from rookery.processes.proctree import end_tree
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached
from rookery.sessions import journal

ABOUT = "job"
"""The first line of a job's journal: what it is, and the scratch folder (`place`) that it works in."""
_SOON, _SHORT = 0.01, 0.05
_LOOK_AGAIN = 0.2
"""How often to look where the system does not report changed files."""


@dataclass(frozen=True, slots=True)
class Taken(Record):
    """A job whose runner has ended, locked: no other process settles it."""

    root: str
    name: str
    file: int
    about: dict[str, Any]
    end: dict[str, Any] | None
    """How it ended; None if its runner was killed."""

    def drop(self) -> None:
        """Delete the journal of a settled job."""
        journal.remove(self.root, self.name)
        os.close(self.file)

    def leave(self) -> None:
        """Let another process settle it."""
        os.close(self.file)


def digest(*parts: object) -> str:
    """A short name for some values together, such as all that the work of a job depends on."""
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def start(
    root: str, name: str, module: str, order: dict[str, Any], about: dict[str, Any], *, keep: Sequence[int] = ()
) -> bool:
    """Start a job's runner, which keeps some open files until it ends; False if the job exists already."""
    try:
        file = journal.create(root, name)
    except FileExistsError:
        return False
    me = holders.myself()
    handle = memory_file.write({"owner": [me.pid, me.text], "order": order})
    try:
        journal.Writer(file).add(ABOUT, **about)
        start_detached(
            [*module_command(module), root, str(file), str(handle)],
            cwd=root,
            env=own_environ(root) | {RUNNER: "job"},
            output=layout.path(root, layout.JOBS_LOG),
            keep=[file, handle, *keep],
        )
    except BaseException:
        journal.remove(root, name)
        raise
    finally:
        os.close(handle)
        os.close(file)
    return True


def wait(root: str, is_over: Callable[[], bool], *, every: float, logs: Collection[str] = ()) -> None:
    """Wait until something is over.

    That is asked when a runner has ended or a file in one of the folders has grown, and at least every so many seconds.
    """
    journals = journal.make_folder(root)
    watch = watch_folders({journals: CLOSED} | dict.fromkeys(logs, MODIFIED))
    pause = every if watch is not None else min(every, _LOOK_AGAIN)
    try:
        while not is_over():
            calls.check_interrupted()
            if watch is None:
                calls.sleep(pause)
            elif not calls.wait([watch.fileno()], pause):
                pause = min(2 * pause, every)
            elif any(folder == journals for folder, _ in watch.read() or ()):
                pause = _SOON  # inotify reports that a file was closed just before its lock is free
            else:
                calls.sleep(_SHORT)  # a gate may print very much
    finally:
        if watch is not None:
            watch.close()


def take(root: str, name: str) -> Taken | None:
    """A job that has ended; None if it runs, if another process settles it, or if that is done."""
    try:
        file = os.open(journal.path_of(root, name), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    if not locks.hold(file) or os.fstat(file).st_nlink == 0:  # without a link: settled just now
        os.close(file)
        return None
    known = about(root, name)
    return Taken(root, name, file, known, journal.find(root, name, journal.ENDED) if known else None)


def end(root: str, name: str) -> None:
    """End a job's runner, so that it reports nothing. What it has started carries the mark of its scratch folder."""
    runner = journal.find_runner(root, name)
    if runner is not None:
        end_tree(runner, None, 0)


def is_there(root: str, name: str) -> bool:
    """True if the job runs, or has ended and is not settled."""
    return os.path.exists(journal.path_of(root, name))


def about(root: str, name: str) -> dict[str, Any]:
    """What is known of a job; nothing if it was killed before it began, or if its folder has no plain name."""
    entry = journal.find(root, name, ABOUT) or {}
    place = entry.get("place")
    is_plain = isinstance(place, str) and os.path.basename(place) == place not in ("", os.curdir, os.pardir)
    return entry if is_plain else {}


def places(root: str) -> set[str]:
    """The scratch folders that jobs need."""
    return {known["place"] for name in journal.jobs(root) if (known := about(root, name))}
