"""Watch every agent's pane through one tmux client in control mode: screens at once, and events without polling.

Tmux tells such a client of output only in its own session. So the watcher has a session of its own with everybody's
window linked into it; that session goes when the watcher does.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rookery.base import call as calls
from rookery.base.draft import unique
from rookery.base.errors import ProgramFailed
from rookery.base.record import Record
from rookery.processes.child import start
from rookery.terminal.tmux import WATCHER, Tmux, screen_text, target

OUTPUT = "output"
DIED = "died"
CLOSED = "closed"
OPENED = "opened"

_TIMEOUT = 20.0
_KEEPER = ("tail", "-f", os.devnull)
_DEAD = "rook-dead"
_PANES = "list-panes -a -f '#{==:#{window_index}.#{pane_index},0.0}' -F '#{session_name} #{window_id} #{pane_id}'"


@dataclass(frozen=True, slots=True)
class Event(Record):
    """Something happened to an agent's pane: it is new, it printed, its program ended, or its session is gone."""

    kind: str
    name: str


class Watcher:
    """One client for all panes. Sessions that come are followed and those that go are let go, by themselves."""

    def __init__(self, tmux: Tmux) -> None:
        self.session = f"{WATCHER}{unique()}"
        self._nonce = os.urandom(8).hex()
        self._asked = 0
        self._followed: dict[str, tuple[str, str]] = {}  # session → window and pane
        self._changed = threading.Condition()
        self._inbox = _Inbox(self._nonce)
        words = (*tmux.command(), "-C", *tmux.setup_words())
        self._client = start(
            [*words, ";", "new-session", "-s", self.session, "--", *_KEEPER],
            env=tmux.environment(),
            cwd="/",
            talks=True,
        )
        self.identity = self._client.identity
        self._reader = threading.Thread(target=self._read, name="tmux-watch", daemon=True)
        self._reader.start()
        self._begin()

    def capture_all(self, names: Iterable[str]) -> dict[str, str]:
        """What each of these terminals shows; those that are gone are left out."""
        wanted = list(names)
        replies = self._ask([f"capture-pane -p -J -t {target(name)}" for name in wanted])
        return {name: screen_text(lines) for name, lines in zip(wanted, replies, strict=True) if lines is not None}

    def wait(self, timeout: float) -> list[Event]:
        """What has happened since the last call, or happens first; nothing if that takes longer than `timeout`.

        Many lines of output are one event. That a program ended is told within about a second.
        """
        deadline = time.monotonic() + timeout
        while True:
            with self._changed:
                panes = {pane: name for name, (_window, pane) in self._followed.items()}
                happened = self._inbox.take(panes)
                must_follow = self._inbox.sessions_changed
                self._inbox.sessions_changed = False
                if not must_follow and not happened:
                    self._check_open()
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return []
                    calls.check_interrupted()
                    self._changed.wait(calls.sliced(left))
                    continue
            if must_follow:
                happened += self._follow()
            if happened:
                return happened

    def events(self) -> Iterator[Event]:
        """Everything that happens, until the watcher is closed or the server ends."""
        while self.is_open:
            try:
                yield from self.wait(60)
            except ProgramFailed:
                return

    @property
    def is_open(self) -> bool:
        """False once the server or the client is gone."""
        return not self._inbox.has_ended

    def close(self) -> None:
        """Let go of everything; no agent notices."""
        if self.is_open:
            with suppress(ProgramFailed):  # it may have ended by itself just now
                self._client.send(f"kill-session -t ={self.session}\n")
        self._client.close_input()
        self._client.wait(_TIMEOUT)
        self._reader.join(_TIMEOUT)
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _begin(self) -> None:
        """Wait for the client's own session: what is asked before that is answered without one."""
        try:
            self._await(lambda: self._inbox.is_attached)
            subscription = f"refresh-client -B '{_DEAD}:%*:#{{pane_dead}}'"
            if None in self._ask([f"set-option -t ={self.session}: destroy-unattached on", subscription]):
                self._refuse()
            self._follow()
        except BaseException:
            self.close()
            raise

    def _follow(self) -> list[Event]:
        """Link new windows into our session, let go of those whose session is gone, and tell of both."""
        (lines,) = self._ask([_PANES])
        there: dict[str, tuple[str, str]] = {}
        for name, window, pane in (line.split() for line in lines or ()):
            if not name.startswith(WATCHER):
                there[name] = (window, pane)
        gone = {name: known for name, known in self._followed.items() if there.get(name) != known}
        new = {name: found for name, found in there.items() if self._followed.get(name) != found}
        # A window of ours alone has lost its session: with `-k` it ends, as it would have without us.
        self._ask(
            [
                *(f"unlink-window -k -t ={self.session}:{window}" for window, _pane in gone.values()),
                *(f"link-window -d -s ={name}:0 -t ={self.session}:" for name in new),
            ]
        )
        with self._changed:
            self._followed = there
        return [*(Event(CLOSED, name) for name in gone), *(Event(OPENED, name) for name in new)]

    def _ask(self, commands: list[str]) -> list[list[str] | None]:
        """Send commands, and wait for the answer to each: its lines, or None if it was refused."""
        if not commands:
            return []
        self._check_open()
        numbers = range(self._asked, self._asked + len(commands))
        self._asked += len(commands)
        self._inbox.awaited = numbers[-1]
        # A screen may show what looks like the end of an answer. Only we know what closes ours.
        pairs = zip(commands, numbers, strict=True)
        self._client.send("".join(f"{text}\ndisplay-message -p {self._nonce}-{at}\n" for text, at in pairs))
        self._await(lambda: numbers[-1] in self._inbox.replies)
        with self._changed:
            return [self._inbox.replies.pop(at) for at in numbers]

    def _await(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT
        with self._changed:
            while not holds() and self.is_open:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise ProgramFailed("tmux did not answer in time", code="program_timeout")
                calls.check_interrupted()
                self._changed.wait(calls.sliced(left))
            if not holds():
                self._check_open()

    def _refuse(self) -> None:
        raise ProgramFailed("this tmux cannot watch panes", hint="install tmux 3.2 or later")

    def _check_open(self) -> None:
        if not self.is_open:
            raise ProgramFailed(f"tmux has ended: {self._client.last_output}".rstrip(": "))

    def _read(self) -> None:
        """The reader's whole life: tmux drops a client that lets its output wait."""
        for line in self._client.lines():
            with self._changed:
                if self._inbox.add(line):
                    self._changed.notify_all()
        with self._changed:
            self._inbox.has_ended = True
            self._changed.notify_all()


class _Inbox:
    """What has come from tmux, line by line: answers between `%begin` and `%end`, and notices outside of them."""

    def __init__(self, nonce: str) -> None:
        self.replies: dict[int, list[str] | None] = {}
        self.awaited = 0
        """The last answer that somebody waits for; the ones before it wake nobody."""
        self.sessions_changed = False
        self.is_attached = False
        self.has_ended = False
        self._nonce = nonce
        self._end: tuple[str, str] | None = None
        self._block: list[str] = []
        self._answer: list[str] | None = None
        self._has_answer = False
        self._output: dict[str, None] = {}
        self._died: dict[str, None] = {}

    def take(self, panes: dict[str, str]) -> list[Event]:
        """The events so far, of the panes that are known; the others' wait until they are."""
        happened = []
        for kind, where in ((OUTPUT, self._output), (DIED, self._died)):
            for pane in [pane for pane in where if pane in panes]:
                del where[pane]
                happened.append(Event(kind, panes[pane]))
        return happened

    def add(self, line: str) -> bool:
        """Take one line; True if somebody may be waiting for it."""
        if self._end is not None:
            return self._add_to_block(line)
        notice, _, rest = line.partition(" ")
        if notice == "%begin":
            stamp, number, _flags = rest.split()
            self._end = (f"%end {stamp} {number} ", f"%error {stamp} {number} ")
            self._block = []
        elif notice == "%output":
            pane = rest.partition(" ")[0]
            is_new = pane not in self._output
            self._output[pane] = None
            return is_new
        elif notice == "%subscription-changed":
            return self._note_death(rest)
        elif notice == "%session-changed":
            self.is_attached = True
            return True
        elif notice in {"%sessions-changed", "%unlinked-window-close", "%window-close", "%session-closed"}:
            self.sessions_changed = True
            return True
        return False

    def _note_death(self, rest: str) -> bool:
        """`rook-dead $1 @2 3 %4 : 1`: the pane's program has ended."""
        words = rest.split()
        if words[0] != _DEAD or words[-1] != "1":
            return False
        self._died[words[4]] = None
        return True

    def _add_to_block(self, line: str) -> bool:
        if self._end is None or not line.startswith(self._end):
            self._block.append(line)
            return False
        is_error = line.startswith("%error")
        self._end = None
        head, _, number = self._block[0].partition("-") if self._block else ("", "", "")
        if head != self._nonce:
            # Whatever came first is the answer; more before our mark is only a screen that looks like one.
            if not self._has_answer:
                self._answer, self._has_answer = (None if is_error else self._block), True
            return False
        self.replies[int(number)] = self._answer
        self._answer, self._has_answer = None, False
        return int(number) == self.awaited
