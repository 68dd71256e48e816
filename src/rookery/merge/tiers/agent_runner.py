"""The process around an agent that resolves a conflict: it starts the program, listens to it, and writes a journal.

It outlives the merger that started it, and never opens the database. It is started as
`python … rookery.merge.tiers.agent_runner ROOT JOURNAL
ORDER`: the last two are open files, the journal with its lock and what to do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import IO, Any

from rookery.base.errors import ProgramFailed
from rookery.base.record import Record
from rookery.environment.masking import Mask, mask, secret_values
from rookery.merge.gates.job_runner import run_job
from rookery.processes.child import Child, ended_with_block, start
from rookery.runtimes.model import ERROR, RESULT, USAGE, TurnEvent
from rookery.runtimes.registry import open_runtime

_LAST_SECONDS = 10.0
_MOST_LINE = 1_000_000


@dataclass(frozen=True, slots=True)
class Order(Record):
    """Everything that the process has to know."""

    root: str
    owner: tuple[int, str]
    """The merger that waits for it."""
    runtime: str
    argv: list[str]
    stdin: str | None
    talks: bool
    """The program is listened to, and told when nothing more will be asked."""
    folder: str
    private: str
    """Where the program keeps its transcripts."""
    env: dict[str, str]
    mark: list[str]
    """What everything that runs there carries in its environment."""
    timeout: float
    log: str


def main() -> None:
    """Run one agent."""
    run_job(lambda data: work(Order(**data)))


def work(order: Order) -> dict[str, Any]:
    """Run the program to its end: what went wrong, if something did, and what it has used."""
    hidden = secret_values(order.env)
    used: list[dict[str, Any]] = []
    try:
        child = start(
            order.argv,
            cwd=order.folder,
            env=order.env,
            stdin=None if order.talks else order.stdin,
            talks=order.talks,
        )
    except ProgramFailed as error:
        return {"failure": mask(error.message, hidden), "usage": []}
    with ended_with_block(child, (order.mark[0], order.mark[1])):
        try:
            if order.talks:
                child.send(order.stdin or "")
            with open(order.log, "wb") as file:
                failure = _listen(order, child, file, Mask(hidden), used)
            status = child.wait(_LAST_SECONDS)
            last_words = child.last_output
        except ProgramFailed as error:  # it has ended before it was told anything
            failure, status, last_words = error.message, -1, ""
    if failure == "" and status != 0:
        failure = f"the agent exited with {status}: {last_words or 'no last words'}"
    return {
        "failure": mask(failure or "", hidden),
        "usage": used or open_runtime(order.runtime).usage_since(order.private, ""),
    }


def _listen(order: Order, child: Child, log: IO[bytes], hiding: Mask, used: list[dict[str, Any]]) -> str | None:
    """Read the program to its end: what went wrong, nothing, or None if it had a result and would not end.

    What it says that it has used is added to `used`.
    """
    runtime = open_runtime(order.runtime)
    deadline = time.monotonic() + order.timeout
    failure, rest, has_result = "", b"", False

    def time_left() -> float:
        return deadline - time.monotonic()

    for chunk in child.chunks(time_left):
        if time.monotonic() > deadline:
            return None if has_result else f"the agent did not end within {order.timeout:g} s (merge.agent_timeout)"
        log.write(hiding.take(chunk))
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[-_MOST_LINE:]
        for line in lines:
            for event in runtime.read_line(line.decode("utf-8", "replace")):
                failure = _failure(event) or failure
                if event.kind == USAGE:
                    used.append(event.data)
                if event.kind == RESULT and order.talks and not has_result:
                    has_result = True
                    child.close_input()
                    deadline = min(deadline, time.monotonic() + _LAST_SECONDS)
    log.write(hiding.end())
    return f"the agent failed: {failure}" if failure else ""


def _failure(event: TurnEvent) -> str:
    """What went wrong, if the event tells of that."""
    if event.kind == ERROR:
        return str(event.data.get("message", "an error"))
    if event.kind == RESULT and event.data.get("ok") is False:
        return str(event.data.get("text", "")) or "the turn failed"
    return ""


if __name__ == "__main__":
    main()
