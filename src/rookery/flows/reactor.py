"""Runs the loop: sleeps until the outbox moves, a runner writes, a process ends or a timer is due, and looks again.

Nothing is polled. Every process tells of its commits (`db/commits.py`), and a runner's journal grows or is closed: both
are reasons to look. No sleep is longer than a minute, because clocks are set and machines are suspended.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from rookery.config import layout
from rookery.db.commits import LOG_SUFFIX, SUFFIX
from rookery.flows import loop
from rookery.flows.loop import Look
from rookery.flows.model import Action
from rookery.ops.context import Context
from rookery.processes.inotify import CLOSED, CREATED, MODIFIED, TOUCHED, Watch, watch_folders
from rookery.processes.proctable import Identity
from rookery.sessions import journal
from rookery.sessions import store as sessions
from rookery.turns.service import read_journal

_LONGEST_SLEEP = 60.0
_COMMITS, _LOG = "rookery.db" + SUFFIX, "rookery.db" + LOG_SUFFIX
_PATIENCE = 1.0
_UNTOLD = 1.0
_RETRY = 10.0
_REST = 4.0
"""After a look it rests so many times as long as the look took."""


class Reactor:
    """One project's loop, in this process."""

    def __init__(
        self,
        root: str,
        open_project: Callable[[], AbstractContextManager[Context]],
        start: Callable[[Callable[[], None]], None],
        log: Callable[[str], None],
    ) -> None:
        self._root = root
        self._open_project = open_project
        self._start = start
        """Has a thread do something."""
        self._log = log
        self._watch: Watch | None = None
        self._events = select.epoll()
        self._poke_read, self._poke_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._pidfds: dict[Identity, int] = {}
        self._busy: set[str] = set()
        self._state = threading.Condition()
        self.is_over = False
        self._rest_until = 0.0
        self._latest = 0.0
        """When to look again though nothing has happened."""
        self.last: Look | None = None
        """What the last look has led to."""

    def open(self) -> None:
        """Begin to listen: what happens from here on is seen."""
        state, journals = layout.path(self._root), journal.make_folder(self._root)
        self._watch = watch_folders({state: MODIFIED | CREATED | TOUCHED, journals: MODIFIED | CLOSED})
        if self._watch is None:
            self._log("nothing tells the loop of changes, so it looks every second: are too many files being watched?")
        else:
            self._events.register(self._watch.fileno(), select.EPOLLIN)
        self._events.register(self._poke_read, select.EPOLLIN)

    def run(self, is_done: Callable[[Look], bool] = lambda _look: False) -> None:
        """Look and act until `stop`, or until a look says that it is done and nothing is under way."""
        with self._open_project() as ctx:
            loop.sweep_journals(ctx)
        self._read_journals(set(os.listdir(journal.folder_of(self._root))))
        must_look = True
        while not self.is_over:
            if must_look:
                self._latest = time.monotonic() + self._look()
                if self.last is not None and not self._busy and is_done(self.last):
                    return
            must_look = self._sleep()

    def poke(self) -> None:
        """Let it look again. May be called from any thread."""
        with suppress(BlockingIOError, OSError):
            os.write(self._poke_write, b"x")

    def stop(self) -> None:
        """Begin nothing more."""
        with self._state:
            self.is_over = True
            self._state.notify_all()
        self.poke()

    def rest(self, seconds: float) -> None:
        """Do nothing for so long, or until `stop`."""
        with self._state:
            self._state.wait_for(lambda: self.is_over, seconds)

    def wait(self, seconds: float) -> None:
        """Wait at most so long for what is under way."""
        with self._state:
            self._state.wait_for(lambda: not self._busy, seconds)

    def close(self) -> None:
        """Let go of what is open."""
        if self._watch is not None:
            self._watch.close()
        self._events.close()
        for each in (self._poke_read, self._poke_write, *self._pidfds.values()):
            os.close(each)

    def _look(self) -> float:
        """Look, begin what is to be done, and say for how many seconds to sleep at most."""
        begun = time.monotonic()
        if begun < self._rest_until:  # among many writers it takes a part of a processor, not a whole one
            with self._state:
                self._state.wait(self._rest_until - begun)
            begun = time.monotonic()
        try:
            with self._open_project() as ctx:
                found = loop.look(ctx)
                now = ctx.clock()
        except Exception as error:  # a full disk, a project that is just being removed: the next look may succeed
            self._log(f"the loop cannot look: {type(error).__name__}: {error}")
            self.is_over |= not os.path.isdir(layout.path(self._root))
            return _RETRY
        self.last = found
        self._rest_until = time.monotonic() + _REST * (time.monotonic() - begun)
        self._watch_processes(set(found.plan.processes))
        for action in found.plan.actions:
            self._begin(action)
        return max(0.0, min([_LONGEST_SLEEP, *(each.at - now for each in found.plan.timers)]))

    def _begin(self, action: Action) -> None:
        """Have a thread do it, unless one is at work on the same subject: there is a look when that has ended."""
        with self._state:
            if action.subject in self._busy or self.is_over:
                return
            self._busy.add(action.subject)
        try:
            self._start(lambda: self._do(action))
        except RuntimeError as error:  # no thread can be started
            self._end(action)
            self._log(f"cannot {action.name}: {error}")

    def _do(self, action: Action) -> None:
        try:
            with self._open_project() as ctx:
                loop.act(ctx, action, self._log)
        except Exception as error:
            self._log(f"cannot {action.name}: {type(error).__name__}: {error}")
        finally:
            self._end(action)

    def _end(self, action: Action) -> None:
        with self._state:
            self._busy.discard(action.subject)
            self._state.notify_all()
        self.poke()

    def _watch_processes(self, wanted: set[Identity]) -> None:
        for gone in self._pidfds.keys() - wanted:
            file = self._pidfds.pop(gone)
            self._events.unregister(file)
            os.close(file)
        for process in wanted - self._pidfds.keys():
            with suppress(OSError):  # it has ended: the next look sees that
                file = os.pidfd_open(process.pid)
                self._pidfds[process] = file
                self._events.register(file, select.EPOLLIN | select.EPOLLONESHOT)

    def _sleep(self) -> bool:
        """Wait for something to happen; True if that is a reason to look."""
        left = max(0.0, self._latest - time.monotonic())
        ready = {number for number, _ in self._events.poll(left if self._watch is not None else min(left, _UNTOLD))}
        if self._watch is None:
            self._read_journals(set(os.listdir(journal.folder_of(self._root))))
        if not ready:
            return True
        must_look = self._watch is None or bool(ready - {self._watch.fileno()})
        if self._poke_read in ready:
            with suppress(BlockingIOError):
                os.read(self._poke_read, 4096)
        changed = None if self._watch is None else self._watch.read()
        if changed is None:
            return True
        journals = {name for folder, name in changed if folder.endswith("journals")}
        if journals:
            must_look |= self._read_journals(journals)
        names = {name for _, name in changed}
        if _LOG in names:  # what is being written; if it is not told that it counts, its writer was killed
            self._latest = min(self._latest, time.monotonic() + _PATIENCE)
        return must_look or _COMMITS in names

    def _read_journals(self, names: set[str]) -> bool:
        """Take over what runners have written; True if one of them has ended."""
        has_ended = False
        for name in names:
            turn_id = journal.turn_of(name)
            if turn_id is not None:
                self._read_journal(turn_id)
            owner = journal.owner_of(name)
            has_ended |= owner is not None and not journal.is_running(self._root, owner)
        return has_ended

    def _read_journal(self, turn_id: str) -> None:
        try:
            with self._open_project() as ctx:
                turn = sessions.find_turn(ctx.db, turn_id)
                if turn is not None:
                    read_journal(ctx, turn.session_id, turn_id)
        except Exception as error:  # a full disk: it is read again with the next line, or at the turn's end
            self._log(f"cannot read the journal of {turn_id}: {type(error).__name__}: {error}")
