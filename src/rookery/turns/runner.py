"""The process around one turn of a headless agent: it starts the program, keeps its streams, and writes a journal.

It outlives whatever started it, and never opens the database: the loop reads the journal and settles the turn. If no
loop runs, because its process was killed, the runner starts one. `python … rookery.turns.runner ROOT JOURNAL ORDER`:
the last two are open files, the journal with its lock and what to do.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rookery.base.clock import stamp
from rookery.base.errors import ProgramFailed, RookError
from rookery.base.record import Record
from rookery.config import layout, steps
from rookery.config.environ import forget_runner, now
from rookery.processes import holder, limits, memory_file
from rookery.processes.child import start
from rookery.processes.proctable import MARK
from rookery.processes.proctree import end_tree, identify
from rookery.processes.subreaper import adopt_orphans, adopts_orphans, collect_orphans
from rookery.runtimes.model import ERROR, RESULT, SESSION, TurnEvent
from rookery.runtimes.registry import open_runtime
from rookery.sessions import journal, log
from rookery.turns.heard import Heard, Said
from rookery.turns.interrupt import Ear, stay_alive
from rookery.turns.loop_keeper import keep_loop, start_loop

if TYPE_CHECKING:
    from rookery.processes.child import Child

_LAST_SECONDS = 10
_LINGERING_SECONDS = 60
"""How long a program may take to end after it has given its result."""


@dataclass(frozen=True, slots=True)
class Order(Record):
    """Everything that a runner has to know."""

    root: str
    session_id: str
    turn_id: str
    agent: str
    runtime: str
    folder: str
    """The private folder of the session."""
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
        self._secrets = log.read_secrets(order.root, order.folder)
        self._runtime = open_runtime(order.runtime)
        self._heard = Heard(order.worktree, self._record, self._begin)

    def run(self) -> None:
        """Run the program to its end and write down how it ended."""
        me = holder.myself()
        self._journal.add(journal.RUNNER, at=self._now(), pid=me.pid, start=me.text)
        end = self._run_child()
        # Whatever the program left running belongs to the turn and ends with it.
        above = identify(os.getpid()) if adopts_orphans() else None
        end_tree(above, (MARK, self._order.session_id), self._order.grace)
        if adopts_orphans():
            collect_orphans()
        self._journal.add(journal.ENDED, at=self._now(), **end)
        self._journal.finish()
        steps.reached("turn ran")

    def _run_child(self) -> dict[str, Any]:
        order, heard = self._order, self._heard
        talks = order.interrupt is not None
        try:
            given = None if talks else order.stdin
            child = start(order.argv, cwd=order.worktree, env=order.env, stdin=given, talks=talks)
        except RookError as error:
            heard.take(TurnEvent(ERROR, {"message": error.message}))
            return self._end(-1, "", "")
        path = os.path.join(order.folder, layout.SESSION_INTERRUPT)
        try:
            with Ear(path, order.turn_id, child, order.interrupt) as ear:
                self._journal.add(
                    journal.CHILD, at=self._now(), pid=child.identity.pid, start=holder.of(child.identity).text
                )
                steps.reached("turn started")
                if talks:
                    self._tell(child)
                for line in child.lines(order.timeout):
                    self._hear(line, child, ear)
            status = child.wait(_LAST_SECONDS)
        except ProgramFailed:
            end_tree(child.identity, (MARK, order.session_id), order.grace)
            status = child.wait(_LAST_SECONDS)
            if heard.has_result:
                status = 0  # it had said everything, and only its process stayed
            else:
                words = f"the turn did not end within {order.timeout:g} s (agents.turn_timeout)"
                heard.take(TurnEvent(ERROR, {"message": words}))
        finally:
            heard.finish()
            last_words = child.last_output
            child.close()
        return self._end(-1 if status is None else status, last_words, ear.by)

    def _hear(self, line: str, child: Child, ear: Ear) -> None:
        for event in self._runtime.read_line(line):
            self._heard.take(event)
            if event.kind == SESSION:
                ear.begin()
            if event.kind == RESULT and self._order.interrupt is not None:
                child.close_input()
                child.hasten(_LINGERING_SECONDS)

    def _tell(self, child: Child) -> None:
        """Give the prompt to a program that is listened to; one that has ended already says why by itself."""
        with suppress(ProgramFailed):
            child.send(self._order.stdin or "")

    def _end(self, status: int, last_words: str, interrupted_by: str) -> dict[str, Any]:
        is_ok = status == 0 and not self._heard.failure
        return log.clean(
            {
                "status": status,
                "last_words": (self._heard.failure or last_words)[-4000:],
                "is_ok": is_ok,
                "interrupted_by": "" if is_ok else interrupted_by,
                "problem": self._heard.problem,
                "usage": self._heard.usage,
            },
            self._secrets,
        )

    def _begin(self, conversation: str) -> None:
        self._journal.add(journal.CONVERSATION, at=self._now(), id=conversation)

    def _record(self, said: Said) -> None:
        order, at = self._order, self._now()
        data = log.clean(said.data, self._secrets)
        record = said.as_dict() | {"data": data}
        self._journal.add(journal.RECORD, at=at, record=record)
        who = {"agent": order.agent, "session_id": order.session_id, "turn_id": order.turn_id}
        with suppress(OSError):  # the files are for people; a full disk must not cost the turn
            log.append(order.folder, {"at": at, **who, **record})

    def _now(self) -> str:
        return stamp(now())


def main() -> None:
    """Run one turn."""
    forget_runner()
    adopt_orphans()
    stay_alive()
    file = int(sys.argv[2])
    os.set_inheritable(file, False)
    order = Order(**memory_file.read(int(sys.argv[3])))
    os.umask(order.umask)
    limits.take(order.limits)
    keep_loop(order.root)
    Runner(order, journal.Writer(file)).run()
    with suppress(OSError):
        start_loop(order.root)


if __name__ == "__main__":
    main()
