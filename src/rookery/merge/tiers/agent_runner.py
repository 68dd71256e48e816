"""The process around an agent that resolves a conflict: it starts the program, reads its output, and writes a journal.

It outlives the merger that started it, and never opens the database. It is started as
`python … rookery.merge.tiers.agent_runner ROOT JOURNAL ORDER`: the last two are open files, the journal with its lock
and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rookery.base.errors import ProgramFailed
from rookery.base.record import Record
from rookery.environment.masking import Mask, mask, secret_values
from rookery.merge.gates.job_runner import run_job
from rookery.processes.child import ended_with_block, start
from rookery.processes.exits import how_it_ended
from rookery.processes.proctable import SCRATCH
from rookery.runtimes.model import RESULT
from rookery.runtimes.registry import open_runtime
from rookery.turns.collector import EventCollector

_LAST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Order(Record):
    """Everything that the process has to know."""

    runtime: str
    argv: list[str]
    stdin: str | None
    talks: bool
    """The program gets its prompt as a message, and its input is closed when it has given a result."""
    folder: str
    private: str
    """Where the program keeps its transcripts."""
    env: dict[str, str]
    timeout: float
    log: str


def main() -> None:
    """Run one agent."""
    run_job(lambda data: work(Order(**data)))


def work(order: Order) -> dict[str, Any]:
    """Run the program to its end: what went wrong, if something did, and what it has used."""
    secrets = secret_values(order.env)
    events = EventCollector(order.folder, write=lambda _entry: None, begin=lambda _conversation: None)
    try:
        failure = _run(order, events, Mask(secrets))
    except ProgramFailed as error:  # it did not start, or ended before it got the prompt
        failure = error.message
    usage = events.usage or open_runtime(order.runtime).usage_since(order.private, "")
    return {"failure": mask(failure, secrets), "usage": usage}


def _run(order: Order, events: EventCollector, hiding: Mask) -> str:
    """Run the program: what went wrong, if something did."""
    runtime = open_runtime(order.runtime)
    stdin = None if order.talks else order.stdin
    child = start(order.argv, cwd=order.folder, env=order.env, stdin=stdin, talks=order.talks)
    with ended_with_block(child, (SCRATCH, order.env[SCRATCH])), open(order.log, "wb") as log:
        if order.talks:
            child.send(order.stdin or "")
        try:
            for line in child.lines(order.timeout):
                log.write(hiding.take(f"{line}\n".encode()))
                for event in runtime.read_line(line):
                    events.add(event)
                    if event.kind == RESULT and order.talks:
                        child.close_input()
                        child.hasten(_LAST_SECONDS)
            status = child.wait(_LAST_SECONDS)
        except ProgramFailed:
            if not (order.talks and events.has_result):
                return f"the agent did not end within {order.timeout:g} s (merge.agent_timeout)"
            status = 0  # it has given its result, and only its process stayed
        log.write(hiding.end())
        if events.failure:
            return f"the agent failed: {events.failure}"
        return "" if status == 0 else f"the agent {how_it_ended(status, child.last_output)}"


if __name__ == "__main__":
    main()
