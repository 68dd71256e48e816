"""Several things at once in one thread: each goes on until it has to wait for a job, and again when that is over.

What waits is a generator, which yields what it waits for. If one of them raises, or the caller is interrupted, all are
closed: each ends its own jobs and deletes its scratch folder.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rookery.base.record import Record
from rookery.merge.gates import jobs
from rookery.merge.merger import Merger

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pause(Record):
    """Until when something waits."""

    is_over: Callable[[], bool]
    """Called often: it may also show what has happened meanwhile."""
    log: str = ""
    """A folder; when a file in it grows, `is_over` is called."""


Flow = Generator[Pause, None, T]


def together(merger: Merger, flows: Sequence[Flow[T]]) -> list[T]:
    """Carry out all of them; their results, in the same order."""
    results: dict[int, T] = {}
    pauses: dict[int, Pause] = {}

    def go_on(number: int) -> None:
        try:
            pauses[number] = next(flows[number])
        except StopIteration as end:
            pauses.pop(number, None)
            results[number] = end.value

    def is_one_over() -> bool:
        merger.beat()
        return any([pause.is_over() for pause in pauses.values()])  # noqa: C419 - all of them, to show their output

    try:
        for number in range(len(flows)):
            go_on(number)
        while pauses:
            logs = {pause.log for pause in pauses.values() if pause.log}
            jobs.wait(merger.ctx.root, is_one_over, every=merger.ctx.config.merge.lease / 8, logs=logs)
            for number, pause in list(pauses.items()):
                if pause.is_over():
                    go_on(number)
    finally:
        for flow in flows:
            flow.close()
    return [results[number] for number in range(len(flows))]
