"""Ended jobs of mergers: waited for, their results kept, and what they leave deleted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rookery.base.errors import RookError
from rookery.config import steps
from rookery.config.project import from_stored
from rookery.merge import store
from rookery.merge.gates import jobs, scratch
from rookery.merge.gates.jobs import Taken
from rookery.merge.gates.together import Flow, Pause, together
from rookery.merge.merger import Merger
from rookery.merge.model import GateRun
from rookery.merge.tiers import spending
from rookery.sessions import journal


def take_ended(merger: Merger, name: str) -> Taken | None:
    """Wait for the end of our own job, and take it; None if another process has settled it."""
    return together(merger, [ended(merger, name, lambda: None, is_own=True)])[0]


def ended(merger: Merger, name: str, show: Callable[[], object], *, is_own: bool, log: str = "") -> Flow[Taken | None]:
    """Wait for the end of a job, and take it; None if another process has settled it.

    An interrupt ends the job if it is our own, or if the merger that started it is gone: no other process waits for it.
    """
    root = merger.ctx.root

    def is_over() -> bool:
        is_running = journal.is_running(root, name)
        show()
        return not is_running

    try:
        yield Pause(is_over, log)
    except BaseException:
        about = jobs.about(root, name)
        if is_own or not about or scratch.is_left(merger.ctx, about["place"]):
            jobs.end(root, name)
            with suppress(RookError):  # a full disk: the loop does it later
                settle_left(merger, name)
        raise
    return jobs.take(root, name)


def settle_left(merger: Merger, name: str) -> None:
    """Drop a job that no merger waits for. The result of a gate is kept, so that the next need not run it again."""
    taken = jobs.take(merger.ctx.root, name)
    if taken is None:
        return
    if taken.end is not None and "gate" in taken.about:
        remember(merger, taken.about["command"], run_of(taken))
    drop(merger, taken)


def remember(merger: Merger, command: str, run: GateRun) -> None:
    """Keep the result of a gate."""
    with merger.ctx.db.write() as db:
        store.add_gate_run(db, run, command, actor=merger.actor, at=merger.ctx.now())
    steps.reached("gate remembered")


def drop(merger: Merger, taken: Taken) -> None:
    """Delete a job once what an agent used is counted, with its scratch folder if the process that made it is gone.

    After a kill, the loop does it.
    """
    if taken.about:
        spending.count(merger, taken)
        scratch.drop_left(merger, taken.about["place"])
    taken.drop()


def run_of(taken: Taken) -> GateRun:
    """What a gate's job has reported."""
    about, end = taken.about, taken.end
    assert end is not None  # noqa: S101
    log = from_stored(taken.root, about["log"])
    result = {name: end[name] for name in ("verdict", "status", "seconds", "at", "last_lines")}
    return GateRun(name=about["gate"], tree=about["tree"], log=log, **result)
