"""Agents: turns that have to begin or to be settled, and what a kill or a reboot has left half done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rookery.agents import sling
from rookery.base.clock import has_passed, seconds_of
from rookery.base.record import Record
from rookery.environment.service import find_problem
from rookery.flows import store
from rookery.flows.model import Action, NeedsPerson, Plan, Timer, wait_after
from rookery.flows.store import Standing
from rookery.mail.model import SYSTEM
from rookery.merge import store as merges
from rookery.merge.landing.completion import complete_landed
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId
from rookery.processes.proctable import Identity
from rookery.runtimes.model import HEADLESS
from rookery.sessions import journal
from rookery.sessions import store as sessions
from rookery.sessions.model import BOOTING, CRASHED, ENDED, READY, TURN_LOST, TURN_RUNNING, WAITING
from rookery.turns import headless, interactive, opening, stop
from rookery.turns.settlement import end_session

NAME = "sessions"
_USE, _PROJECT = "use the environment", "project"
NONE, ALIVE, GONE, ELSEWHERE = "none", "alive", "gone", "elsewhere"


@dataclass(frozen=True, slots=True)
class Driver(Record):
    """A process that works on the agent: `rook sling`, `rook stop`, or the program in its terminal."""

    state: str = NONE
    process: Identity | None = None


@dataclass(frozen=True, slots=True)
class Facts(Record):
    """One session, as far as it matters here."""

    id: str
    agent: str
    mode: str
    state: str
    step: str
    updated: float
    driver: Driver
    stopper: Driver
    turn: str
    """The state of its last turn; empty before the first."""
    turn_ended: float
    is_run: bool
    """A runner is at work on that turn."""
    lost: int
    """How many turns in a row were cut off."""
    mail: int
    """The number of its newest message that no turn has seen; 0 if there is none."""
    nudged: int
    """The number of the last message that was announced in its terminal."""
    is_held: bool = False
    """It is paused, or a person works in its place: no turn begins."""
    problem: str = ""
    """Why no turn can begin: the project's environment cannot be used."""


def read(ctx: Context) -> list[Facts]:
    """Every session that is alive, or may have left processes."""
    with ctx.db.read() as db:
        standings = store.standings(db)
        cut_off = [standing.id for standing in standings if standing.turn_state == TURN_LOST]
        lost = {session_id: opening.count_lost(sessions.turns(db, session_id)) for session_id in cut_off}
    facts = [_facts(ctx, standing, lost.get(standing.id, 0)) for standing in standings]
    problem = find_problem(ctx.root) if any(map(_may_begin, facts)) else None
    return facts if problem is None else [session.replace(problem=problem.message) for session in facts]


def _may_begin(session: Facts) -> bool:
    """True if a turn may be about to begin."""
    is_idle = (
        session.mode == HEADLESS and session.state != ENDED and session.turn != TURN_RUNNING and not session.is_held
    )
    return is_idle and bool(session.mail or session.lost or session.state != WAITING)


def _facts(ctx: Context, standing: Standing, lost: int) -> Facts:
    is_running = standing.turn_state == TURN_RUNNING and standing.mode == HEADLESS
    return Facts(
        id=standing.id,
        agent=standing.agent,
        mode=standing.mode,
        state=standing.state,
        step=standing.step,
        updated=seconds_of(standing.updated_at),
        driver=_driver(_read_holder(standing.runner_pid, standing.runner_start)),
        stopper=_driver(stop.read_stopper(standing.reason)),
        turn=standing.turn_state or "",
        turn_ended=seconds_of(standing.turn_ended_at) if standing.turn_ended_at else 0.0,
        is_run=is_running and journal.is_held(ctx.root, standing.turn_id or ""),
        lost=lost,
        mail=standing.mail or 0,
        nudged=standing.nudged,
        is_held=standing.is_held,
    )


def _read_holder(pid: int | None, start: str | None) -> HolderId | None:
    return None if pid is None else holders.read(pid, start)


def _driver(holder: HolderId | None) -> Driver:
    if holder is None:
        return Driver()
    if holders.is_elsewhere(holder):
        return Driver(ELSEWHERE)
    return Driver(GONE if holders.is_gone(holder) else ALIVE, holder.identity)


def decide(facts: list[Facts], now: float) -> Plan:
    """What every session needs."""
    timers: list[Timer] = []
    # All agents wait for the same environment, and a person gets one message about that.
    actions = tuple(dict.fromkeys(action for session in facts for action in _decide(session, now, timers)))
    drivers = [driver for session in facts for driver in (session.driver, session.stopper)]
    return Plan(
        actions,
        tuple(timers),
        tuple(driver.process for driver in drivers if driver.state == ALIVE and driver.process is not None),
        sum(session.is_run for session in facts),
    )


def _decide(session: Facts, now: float, timers: list[Timer]) -> Iterator[Action]:
    driver, stopper = session.driver.state, session.stopper.state
    if session.state == ENDED:
        yield _action(session, "end processes", "it has ended, and its processes may not have")
    elif stopper != NONE:
        if stopper == GONE or (stopper == ELSEWHERE and has_passed(stop.LEASE, session.updated, now)):
            yield _action(session, "finish stop", "the command that stopped it was killed")
        elif stopper == ELSEWHERE:
            lease_ends = session.updated + stop.LEASE
            timers.append(Timer(lease_ends, f"finish stopping {session.agent}, which began on another host"))
    elif session.state == BOOTING and session.step != READY:
        if driver in (GONE, NONE):
            yield _action(session, "undo sling", "the command that slung it was killed")
    elif session.mode == HEADLESS and driver in (ALIVE, ELSEWHERE):
        return  # another process drives it, perhaps on another host
    elif session.mode == HEADLESS:
        yield from _decide_headless(session, now, timers)
    elif driver == GONE:
        yield _action(session, "end terminal", "the program in its terminal has ended")
    elif session.state == WAITING and session.mail > session.nudged and not session.is_held:
        yield _action(session, "speak", "it has mail")


def _decide_headless(session: Facts, now: float, timers: list[Timer]) -> Iterator[Action]:
    lost = session.lost
    if session.turn == TURN_RUNNING:
        if not session.is_run:
            yield _action(session, "settle turn", "its runner has ended")
    elif session.is_held:
        return
    elif lost >= headless.MOST_LOST:
        yield _action(session, "give up", f"{lost} turns in a row were cut off")
    elif lost:
        wait = 0.0 if lost == 1 else wait_after(lost - 1)
        if has_passed(wait, session.turn_ended, now):
            yield _start(session, "its last turn was cut off")
        else:
            due = session.turn_ended + wait
            timers.append(Timer(due, f"start another turn of {session.agent}, after {lost} that were cut off"))
    elif session.mail:
        yield _start(session, "it has mail")
    elif session.state != WAITING:
        yield _start(session, "it has been slung" if not session.turn else "nothing runs its turn")


def _start(session: Facts, why: str) -> Action:
    if session.problem:
        return Action(NAME, _USE, _PROJECT, "agents wait for a turn", "of the project", session.problem)
    return _action(session, "start turn", why)


def _action(session: Facts, name: str, why: str) -> Action:
    return Action(NAME, name, session.id, why, session.agent, repr(session.as_dict()))


def _undo_sling(ctx: Context, session_id: str) -> None:
    # The command may have finished between our read of the row and its end: only what is written after its end counts.
    session = sessions.session(ctx.db, session_id)
    is_left = session.state == BOOTING and session.step != READY
    if is_left and _driver(_read_holder(session.runner_pid, session.runner_start)).state in (GONE, NONE):
        sling.undo(ctx, session, "the command that slung it was killed")


def _give_up(ctx: Context, session_id: str) -> None:
    lost = opening.count_lost(sessions.turns(ctx.db, session_id))
    if lost >= headless.MOST_LOST:
        end_session(ctx, session_id, CRASHED, f"{lost} turns in a row were cut off")


def _settle_turn(ctx: Context, session_id: str) -> None:
    headless.finish_turn(ctx, session_id)
    _complete_landed(ctx, session_id)


def _end_terminal(ctx: Context, session_id: str) -> None:
    interactive.end_terminal(ctx, session_id)
    _complete_landed(ctx, session_id)


def _complete_landed(ctx: Context, session_id: str) -> None:
    """Complete a task that is handed in after its work has landed; after a kill the next `rook merge` does it."""
    session = sessions.session(ctx.db, session_id)
    if session.is_alive or session.task_id is None:
        return
    for landing in merges.select(ctx.db, states=(LANDED,), task_id=session.task_id, limit=1):
        complete_landed(Merger(ctx, SYSTEM), landing.base)


def _start_turn(ctx: Context, session_id: str) -> None:
    headless.start_turn(ctx, session_id)
    key = Action(NAME, _USE, _PROJECT, "").key
    if key in store.failures(ctx.db):  # it is repaired: at the next problem a person gets a message again
        with ctx.db.write() as db:
            store.forget(db, key)


def _use_environment(ctx: Context, _subject: str) -> None:
    problem = find_problem(ctx.root)
    if problem is not None:
        raise NeedsPerson(f"{problem.message}\n{problem.hint}")


ACTIONS = {
    "start turn": _start_turn,
    _USE: _use_environment,
    "settle turn": _settle_turn,
    "give up": _give_up,
    "undo sling": _undo_sling,
    "finish stop": stop.finish,
    "end terminal": _end_terminal,
    "speak": interactive.announce_mail,
    "end processes": stop.sweep,
}
