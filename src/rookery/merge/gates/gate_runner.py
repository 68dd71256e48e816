"""The process around one gate: it starts the command, keeps its output and its bounds, and writes a journal.

It outlives the merger that started it, and never opens the database. It is started as
`python … rookery.merge.gates.gate_runner ROOT JOURNAL ORDER`: the last two are open files, the journal with its lock
and the order.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from shutil import disk_usage
from typing import Any

from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.base.text import end_of_output
from rookery.environment.masking import Mask, secret_values
from rookery.merge.gates.job_runner import run_job
from rookery.merge.model import FAILED_GATE, MEMORY, OVERRAN, PASSED, TIMEOUT
from rookery.processes.child import Child, ended_with_block, start
from rookery.processes.limits import on_processors
from rookery.processes.proctable import SCRATCH
from rookery.processes.proctree import used_memory
from rookery.vcs.folders import tree_size

_MEGABYTE = 1_000_000
_TICK = 0.2
_TAIL = 16_000
_LAST_LINES = 40
# Both streams in one, no core files, and no single file beyond the bound (counted in blocks of 512 bytes).
_SHELL = ("/bin/sh", "-c", 'exec 2>&1; ulimit -c 0; ulimit -f "$1"; exec /bin/sh -c "$2"', "sh")


@dataclass(frozen=True, slots=True)
class Order(Record):
    """Everything that the process needs to know."""

    name: str
    run: str
    cage: list[str]
    folder: str
    env: dict[str, str]
    timeout: float
    disk: int
    """How many megabytes it may write."""
    output: int
    """How many megabytes of its output are kept."""
    memory: int
    """How many megabytes of memory it may use; 0 for any."""
    cpus: int
    """On how many processors it may run; 0 for all."""
    slot: int
    """The number of its slot: gates at the same time have different ones."""
    log: str


def main() -> None:
    """Run one gate."""
    run_job(lambda data: work(Order(**data)))


def work(order: Order) -> dict[str, Any]:
    """Run the gate to its end or to its bounds, and return how it ended."""
    output = _Output(order.log, order.output * _MEGABYTE, Mask(secret_values(order.env)))
    began = time.monotonic()
    blocks = order.disk * _MEGABYTE // 512
    try:
        with on_processors(order.cpus, order.slot):
            child = start([*order.cage, *_SHELL, str(blocks), order.run], cwd=order.folder, env=order.env)
    except RookError as error:
        output.add(error.message.encode())
        verdict, status = FAILED_GATE, None
    else:
        with ended_with_block(child, (SCRATCH, order.env[SCRATCH])):
            verdict, status = _follow(order, child, output)
    output.close()
    seconds = round(time.monotonic() - began, 3)
    return {"verdict": verdict, "status": status, "seconds": seconds, "last_lines": output.last_lines}


def _follow(order: Order, child: Child, output: _Output) -> tuple[str, int | None]:
    """Read the gate's output to its end, or until it overruns its time, its disk space or its memory."""
    folder, limit = os.path.dirname(order.folder), order.disk * _MEGABYTE
    free = disk_usage(folder).free
    looked = time.monotonic()
    deadline = looked + order.timeout
    for chunk in child.chunks(lambda: _TICK):
        output.add(chunk)
        if time.monotonic() - looked < _TICK:
            continue
        looked = time.monotonic()
        if looked > deadline:
            output.add(f"\n{order.name} did not end within {order.timeout:g} s\n".encode())
            return TIMEOUT, None
        # The free space is cheap to ask for. Other processes write too, so in the end the folder's own size counts.
        if free - disk_usage(folder).free >= limit and tree_size(folder) > limit:
            output.add(f"\n{order.name} wrote more than {order.disk} MB (merge.gate_disk)\n".encode())
            return OVERRAN, None
        if order.memory and _memory(order, child) > order.memory * _MEGABYTE:
            output.add(f"\n{order.name} used more than {order.memory} MB of memory (merge.memory)\n".encode())
            return MEMORY, None
    status = child.wait(_TICK)
    return (PASSED if status == 0 else FAILED_GATE), status


def _memory(order: Order, child: Child) -> int:
    return used_memory(child.identity, (SCRATCH, order.env[SCRATCH]), order.memory * _MEGABYTE)


class _Output:
    """The output of a gate, without credentials, kept in a file up to a bound."""

    def __init__(self, path: str, limit: int, mask: Mask) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by `close`
        self._left = limit
        self._tail = b""
        self._mask = mask

    def add(self, chunk: bytes) -> None:
        """Keep some more."""
        self._keep(self._mask.take(chunk))

    def _keep(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk)[-_TAIL:]
        if chunk and self._left > 0:
            kept = chunk[: self._left]
            self._left -= len(chunk)
            with suppress(OSError):  # a full disk: the verdict counts, and the last lines are in memory
                self._file.write(kept if self._left > 0 else kept + b"\n[the rest was not kept: merge.gate_output]\n")

    @property
    def last_lines(self) -> str:
        """The end of the output, for a message."""
        return end_of_output(self._tail.decode("utf-8", "replace"), _LAST_LINES)

    def close(self) -> None:
        """The gate has ended."""
        self._keep(self._mask.end())
        self._file.close()


if __name__ == "__main__":
    main()
