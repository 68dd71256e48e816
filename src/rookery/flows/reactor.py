"""Runs the loop: sleeps until the outbox moves, a runner writes, a process ends or a timer is due, and checks again.

It polls nothing. Every process reports its commits (`db/commits.py`), and a runner's journal grows or is closed: both
are reasons to check. No sleep is longer than a minute, because clocks are set and machines are suspended.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from rookery.base import call as calls
from rookery.config import layout
from rookery.config.presence import Presence, report_removed
from rookery.db.commits import LOG_SUFFIX, SUFFIX
from rookery.flows import loop
from rookery.flows.loop import Assessment
from rookery.flows.model import Action
from rookery.ops.context import Context
from rookery.processes.inotify import CLOSED, CREATED, DELETED, MODIFIED, TOUCHED, Watch, watch_folders
from rookery.processes.process import open_pidfd
from rookery.processes.proctable import MARK, Identity
from rookery.processes.proctree import end_tree
from rookery.processes.threads import Threads
from rookery.sessions import journal
from rookery.sessions import store as sessions
from rookery.turns.headless import read_journal

_MOST_ACTIONS = 8
_LONGEST_SLEEP = 60.0
_COMMITS, _LOG = "rookery.db" + SUFFIX, "rookery.db" + LOG_SUFFIX
_PATIENCE = 1.0
_WITHOUT_WATCH = 1.0
_RETRY = 10.0
_REST = 4.0
"""After a check it rests so many times as long as the check took."""


class Reactor:
    """One project's loop, in this process."""

    def __init__(
        self,
        root: str,
        open_project: Callable[[], AbstractContextManager[Context]],
        log: Callable[[str], None],
        presence: Presence,
        on_gone: Callable[[], None] = lambda: None,
    ) -> None:
        self._root = root
        self._presence = presence
        self._on_gone = on_gone
        """Called once the project was deleted, and nothing of it runs any more."""
        self._open_project = open_project
        self._log = log
        self._threads = Threads(_MOST_ACTIONS)
        self._watch: Watch | None = None
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Wakes the thread that sleeps."""
        self._pidfds: dict[Identity, int] = {}
        self._busy: set[str] = set()
        self._state = threading.Condition()
        self.is_over = False
        self._rest_until = 0.0
        self._latest = 0.0
        """When to check again though nothing has happened."""
        self.last: Assessment | None = None

    def open(self) -> None:
        """Begin to watch: nothing that happens from now on is missed."""
        state, journals = layout.path(self._root), journal.make_folder(self._root)
        self._watch = watch_folders({state: MODIFIED | CREATED | TOUCHED | DELETED, journals: MODIFIED | CLOSED})
        if self._watch is None:
            self._log("the loop cannot watch files, so it checks every second: are too many files being watched?")

    def run(self, is_done: Callable[[Assessment], bool] = lambda _assessment: False) -> None:
        """Check and act until `stop`, or until it is done and nothing is under way."""
        if self._presence.is_gone():
            self.give_up()
            return
        with self._open_project() as ctx:
            loop.sweep_journals(ctx)
        self._read_journals(journal.owners(self._root))
        must_check = True
        while not self.is_over:
            if self._presence.is_gone():
                self.give_up()
                return
            if must_check and not self._presence.is_in_doubt:
                self._latest = time.monotonic() + self._check()
                if self.last is not None and not self._busy and is_done(self.last):
                    return
            must_check = self._sleep() or (must_check and self._presence.is_in_doubt)

    def give_up(self) -> None:
        """End, and end the agents of a project that was deleted: they cannot be stopped from elsewhere."""
        self.is_over = True
        if self._presence.is_gone():
            report_removed(self._root, "its loop ends, and ends its agents")
        for session in self.last.facts["sessions"] or () if self.last is not None else ():
            end_tree(None, (MARK, session.id), 0)
        self._on_gone()

    def _poke(self) -> None:
        """Let it check again. May be called from any thread."""
        with suppress(OSError):  # it was closed
            os.eventfd_write(self._bell, 1)

    @property
    def is_needed(self) -> bool:
        """True while a runner is at work or a timer is set."""
        return self.last is not None and (self.last.plan.running > 0 or bool(self.last.plan.timers))

    def stop(self) -> None:
        """Begin nothing more."""
        with self._state:
            self.is_over = True
            self._state.notify_all()
        self._poke()

    def rest(self, seconds: float) -> None:
        """Do nothing for so long, or until `stop`."""
        with self._state:
            self._state.wait_for(lambda: self.is_over, seconds)

    def wait(self, seconds: float) -> None:
        """Wait at most so long for what is under way."""
        with self._state:
            self._state.wait_for(lambda: not self._busy, seconds)

    def close(self) -> None:
        """Close all files."""
        if self._watch is not None:
            self._watch.close()
        for file in (self._bell, *self._pidfds.values()):
            os.close(file)

    def _check(self) -> float:
        """Assess, begin the actions, and return for how many seconds to sleep at most."""
        begun = time.monotonic()
        if begun < self._rest_until:  # among many writers it takes a part of a processor, not a whole one
            with self._state:
                self._state.wait(self._rest_until - begun)
            begun = time.monotonic()
        try:
            with self._open_project() as ctx:
                self.last = loop.assess(ctx)
                now = ctx.clock()
        except Exception as error:  # a full disk, a project that is just being removed: the next try may succeed
            self._complain("read the project", error)
            if not self._presence.is_gone() and not os.path.isdir(layout.path(self._root)):
                self.is_over = True  # it was moved: a loop at its new place goes on, once this one lets it
            return _RETRY
        plan = self.last.plan
        self._rest_until = time.monotonic() + _REST * (time.monotonic() - begun)
        self._watch_processes(set(plan.processes))
        for action in plan.actions:
            self._begin(action)
        return max(0.0, min([_LONGEST_SLEEP, *(timer.at - now for timer in plan.timers)]))

    def _begin(self, action: Action) -> None:
        """Have a thread do it, unless one works on the same subject: the loop checks again when that has ended."""
        with self._state:
            if action.subject in self._busy or self.is_over:
                return
            self._busy.add(action.subject)
        try:
            self._threads.run(lambda: self._do(action))
        except RuntimeError as error:  # no thread can be started
            self._end(action)
            self._complain(action.name, error)

    def _do(self, action: Action) -> None:
        try:
            with self._open_project() as ctx:
                loop.act(ctx, action, self._log)
        except Exception as error:
            self._complain(action.name, error)
        finally:
            self._end(action)

    def _end(self, action: Action) -> None:
        with self._state:
            self._busy.discard(action.subject)
            self._state.notify_all()
        self._poke()

    def _watch_processes(self, wanted: set[Identity]) -> None:
        for gone in self._pidfds.keys() - wanted:
            os.close(self._pidfds.pop(gone))
        for process in wanted - self._pidfds.keys():
            file = open_pidfd(process.pid)
            if file is not None:  # else it has ended: the next check sees that
                self._pidfds[process] = file

    def _sleep(self) -> bool:
        """Wait for something to happen; True if that is a reason to check."""
        left = max(0.0, self._latest - time.monotonic())
        if self._presence.is_in_doubt:
            left = min(left, _PATIENCE)
        seconds = left if self._watch is not None else min(left, _WITHOUT_WATCH)
        files = (self._bell, *self._pidfds.values())
        ready = calls.wait(files if self._watch is None else (*files, self._watch.fileno()), seconds)
        if self._bell in ready:
            os.eventfd_read(self._bell)
        for process in [process for process, file in self._pidfds.items() if file in ready]:
            os.close(self._pidfds.pop(process))  # it has ended, and would wake us again at once
        if self._presence.is_gone() or self._presence.is_in_doubt:
            if self._watch is not None:
                self._watch.read()
            return True
        if self._watch is None:
            self._read_journals(journal.owners(self._root))
        if self._watch is None or not ready:
            return True
        must_check = bool(ready - {self._watch.fileno()})
        changed = self._watch.read()
        if changed is None:
            return True
        names = {name for _, name in changed}
        must_check |= self._read_journals(journal.owners_of(sorted(names)))
        if _LOG in names:  # a commit is being written; if it is not reported soon, its writer was killed
            self._latest = min(self._latest, time.monotonic() + _PATIENCE)
        return must_check or _COMMITS in names

    def _read_journals(self, owners: list[str]) -> bool:
        """Keep what the runners of turns and jobs have written; True if one of them has ended."""
        for owner in filter(journal.is_turn, owners):
            self._read_journal(owner)
        return not all(journal.is_running(self._root, owner) for owner in owners)

    def _read_journal(self, turn_id: str) -> None:
        try:
            with self._open_project() as ctx:
                turn = sessions.find_turn(ctx.db, turn_id)
                if turn is not None:
                    read_journal(ctx, turn.session_id, turn_id)
        except Exception as error:  # a full disk: it is read again with the next line, or at the turn's end
            self._complain(f"read the journal of {turn_id}", error)

    def _complain(self, what: str, error: Exception) -> None:
        self._log(f"cannot {what}: {type(error).__name__}: {error}")
