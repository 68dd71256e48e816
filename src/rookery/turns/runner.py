"""The process around one turn of a headless agent: it starts the program, reads its output, and writes a journal.

It outlives the process that started it, and never opens the database: the loop reads the journal and settles the turn.
If no loop runs, because its process was killed, the runner starts one. `python … rookery.turns.runner ROOT JOURNAL
ORDER`: the last two are open files, the journal with its lock and the order.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rookery.base.clock import stamp
from rookery.base.errors import ProgramFailed, RookError
from rookery.base.record import Record
from rookery.config import layout, steps
from rookery.config.environ import forget_runner, now
from rookery.config.presence import Presence, report_removed, watch
from rookery.processes import holder, limits, memory_file
from rookery.processes.child import Child, start
from rookery.processes.proctable import MARK
from rookery.processes.proctree import end_tree, identify
from rookery.processes.subreaper import adopt_orphans, adopts_orphans, collect_orphans
from rookery.runtimes.model import ERROR, RESULT, SESSION, TurnEvent
from rookery.runtimes.registry import open_runtime
from rookery.sessions import journal, log
from rookery.sessions.log import LogEntry
from rookery.sessions.model import TURN_DONE, TURN_FAILED, TURN_INTERRUPTED, TurnEnd
from rookery.turns.collector import EventCollector
from rookery.turns.interrupt import InterruptListener, ignore_interrupts
from rookery.turns.loop_supervisor import start_loop, supervise_loop

_LAST_SECONDS = 10
_LINGERING_SECONDS = 60
"""How long a program may take to end after it has given its result."""
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Order(Record):
    """Everything that a runner has to know."""

    root: str
    session_id: str
    turn_id: str
    agent: str
    runtime: str
    worktree: str
    argv: list[str]
    env: dict[str, str]
    stdin: str | None
    interrupt: str | None
    timeout: float
    grace: float
    umask: int
    limits: dict[str, Any]


class Runner:
    """One turn."""

    def __init__(self, order: Order, writer: journal.Writer) -> None:
        self._order = order
        self._journal = writer
        self._folder = layout.session_path(order.root, order.session_id)
        self._secrets = log.read_secrets(order.root, self._folder)
        self._runtime = open_runtime(order.runtime)
        self._events = EventCollector(order.worktree, self._record, self._begin)

    def run(self) -> None:
        """Run the program to its end and write how it ended."""
        me = holder.myself()
        self._add(journal.RUNNER, pid=me.pid, start=me.text)
        end = self._run_child()
        # Whatever the program left running belongs to the turn and ends with it.
        above = identify(os.getpid()) if adopts_orphans() else None
        end_tree(above, (MARK, self._order.session_id), self._order.grace)
        if adopts_orphans():
            collect_orphans()
        # The state is ours: a secret may be the same word.
        self._add(journal.ENDED, **log.clean(end.as_dict(), self._secrets) | {"state": end.state})
        self._journal.finish()
        steps.reached("turn ran")

    def _run_child(self) -> TurnEnd:
        order, events = self._order, self._events
        talks = order.interrupt is not None
        try:
            child = start(
                order.argv, cwd=order.worktree, env=order.env, stdin=None if talks else order.stdin, talks=talks
            )
        except RookError as error:
            events.add(TurnEvent(ERROR, {"message": error.message}))
            return self._end(-1, "", "")
        path = os.path.join(self._folder, layout.SESSION_INTERRUPT)
        listener = InterruptListener(path, order.turn_id, child, order.interrupt)
        try:
            self._add(journal.CHILD, pid=child.identity.pid, start=holder.of(child.identity).text)
            steps.reached("turn started")
            if talks:
                with suppress(ProgramFailed):  # one that has ended already says why by itself
                    child.send(order.stdin or "")
            for line in child.lines(order.timeout):
                self._read_line(line, child, listener)
            ignore_interrupts()
            status = child.wait(_LAST_SECONDS)
        except ProgramFailed:
            ignore_interrupts()
            end_tree(child.identity, (MARK, order.session_id), order.grace)
            status = child.wait(_LAST_SECONDS)
            if events.has_result:
                status = 0  # it has given its result, and only its process stayed
            else:
                message = f"the turn did not end within {order.timeout:g} s (agents.turn_timeout)"
                events.add(TurnEvent(ERROR, {"message": message}))
        finally:
            events.finish()
            last_words = child.last_output
            child.close()
        return self._end(-1 if status is None else status, last_words, listener.by)

    def _read_line(self, line: str, child: Child, listener: InterruptListener) -> None:
        for event in self._runtime.read_line(line):
            self._events.add(event)
            if event.kind == SESSION:
                listener.begin()
            if event.kind == RESULT and self._order.interrupt is not None:
                child.close_input()
                child.hasten(_LINGERING_SECONDS)

    def _end(self, status: int, last_words: str, by: str) -> TurnEnd:
        events = self._events
        if status == 0 and not events.failure:
            return TurnEnd(TURN_DONE, status, last_words[-_LONGEST:], problem=events.problem, usage=events.usage)
        if by:
            return TurnEnd(TURN_INTERRUPTED, status, f"interrupted by {by}", by, usage=events.usage)
        last_words = (events.failure or last_words)[-_LONGEST:]
        return TurnEnd(TURN_FAILED, status, last_words, problem=events.problem, usage=events.usage)

    def _begin(self, conversation: str) -> None:
        self._add(journal.CONVERSATION, id=conversation)

    def _record(self, entry: LogEntry) -> None:
        order, at = self._order, stamp(now())
        record = entry.as_dict() | {"data": log.clean(entry.data, self._secrets)}
        self._journal.add(journal.RECORD, at=at, record=record)
        owner = {"agent": order.agent, "session_id": order.session_id, "turn_id": order.turn_id}
        with suppress(OSError):  # the files are for people; a full disk must not cost the turn
            log.append(self._folder, {"at": at, **owner, **record})

    def _add(self, kind: str, **data: Any) -> None:
        self._journal.add(kind, at=stamp(now()), **data)


def main() -> None:
    """Run one turn."""
    forget_runner()
    adopt_orphans()
    ignore_interrupts()
    file = int(sys.argv[2])
    os.set_inheritable(file, False)
    words = memory_file.read(int(sys.argv[3]))  # from a daemon that may be of another version
    order = Order(**{name: words[name] for name in Order.field_names()})
    os.umask(order.umask)
    limits.take(order.limits)
    try:
        presence = Presence(order.root)
    except OSError:
        return  # the project was deleted before the program has started
    watch(presence, lambda: _end_without_project(order))
    supervise_loop(order.root, presence)
    Runner(order, journal.Writer(file)).run()
    with suppress(RookError, OSError):
        if not presence.is_gone():
            start_loop(order.root)


def _end_without_project(order: Order) -> None:
    """End the program and this process: its project was deleted, so nothing can come of the turn."""
    report_removed(order.root, f"the turn of {order.agent} ends")
    above = identify(os.getpid()) if adopts_orphans() else None
    end_tree(above, (MARK, order.session_id), 0)
    os._exit(1)


if __name__ == "__main__":
    main()
