"""Agents: turns that are to begin or to be settled, and what a kill or a reboot has left half done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rookery.agents import sling
from rookery.base.clock import seconds_of
from rookery.base.record import Record
from rookery.environment.service import find_problem
from rookery.flows import store
from rookery.flows.model import Action, NeedsPerson, Plan, Timer, wait_after
from rookery.flows.store import Standing
from rookery.ops.context import Context
from rookery.processes import holder as holders
from rookery.processes.proctable import Identity
from rookery.runtimes.model import HEADLESS
from rookery.sessions import journal
from rookery.sessions import store as sessions
from rookery.sessions.model import BOOTING, CRASHED, ENDED, READY, STOPPING, TURN_LOST, TURN_RUNNING, WAITING
from rookery.turns import interactive, stop
from rookery.turns import service as turns
from rookery.turns.ending import end_session

NAME = "sessions"
_USE, _PROJECT = "use the environment", "project"
NONE, ALIVE, GONE, ELSEWHERE = "none", "alive", "gone", "elsewhere"


@dataclass(frozen=True, slots=True)
class Driver(Record):
    """A process that has the agent in hand: `rook sling`, `rook stop`, or the program in its terminal."""

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
    """Up to which message it was told, in its terminal, that it has mail."""
    problem: str = ""
    """Why no turn can begin: the project's environment cannot be used."""


def read(ctx: Context) -> list[Facts]:
    """Every session that is alive, or has processes to be ended."""
    with ctx.db.read() as db:
        standings = store.standings(db)
        lost = {
            each.id: turns.count_lost(sessions.turns(db, each.id)) for each in standings if each.turn_state == TURN_LOST
        }
    found = [_facts(ctx, each, lost.get(each.id, 0)) for each in standings]
    if not any(_may_begin(each) for each in found):
        return found
    problem = find_problem(ctx.root)
    return found if problem is None else [each.replace(problem=problem.message) for each in found]


def _may_begin(each: Facts) -> bool:
    """True if a turn may be about to begin."""
    is_idle = each.mode == HEADLESS and each.state != ENDED and each.turn != TURN_RUNNING
    return is_idle and bool(each.mail or each.lost or each.state != WAITING)


def _facts(ctx: Context, each: Standing, lost: int) -> Facts:
    is_running = each.turn_state == TURN_RUNNING and each.mode == HEADLESS
    return Facts(
        id=each.id,
        agent=each.agent,
        mode=each.mode,
        state=each.state,
        step=each.step,
        updated=seconds_of(each.updated_at),
        driver=_driver(each.runner_pid, each.runner_start),
        stopper=_stopper(each.reason),
        turn=each.turn_state or "",
        turn_ended=seconds_of(each.turn_ended_at) if each.turn_ended_at else 0.0,
        is_run=is_running and journal.is_held(ctx.root, each.turn_id or ""),
        lost=lost,
        mail=each.mail or 0,
        nudged=each.nudged,
    )


def _driver(pid: int | None, start: str | None) -> Driver:
    if pid is None:
        return Driver()
    holder = holders.read(pid, start)
    if holders.is_elsewhere(holder):
        return Driver(ELSEWHERE)
    return Driver(GONE if holders.is_gone(holder) else ALIVE, holder.identity)


def _stopper(reason: str | None) -> Driver:
    if reason is None or not reason.startswith(STOPPING + " "):
        return Driver()
    _, pid, start = reason.split(" ", 2)
    return _driver(int(pid), start)


def decide(facts: list[Facts], now: float) -> Plan:
    """What every session needs."""
    timers: list[Timer] = []
    # All agents wait for the same environment, and a person is told of that once.
    actions = tuple(dict.fromkeys(action for each in facts for action in _decide(each, now, timers)))
    watched = [driver.process for each in facts for driver in (each.driver, each.stopper) if driver.state == ALIVE]
    return Plan(
        actions,
        tuple(timers),
        tuple(process for process in watched if process is not None),
        sum(each.is_run for each in facts),
    )


def _decide(each: Facts, now: float, timers: list[Timer]) -> Iterator[Action]:
    if each.state == ENDED:
        yield _action(each, "end processes", "it has ended, and its processes may not have")
    elif each.stopper.state != NONE:
        lease_ends = each.updated + stop.LEASE
        if each.stopper.state == GONE or (each.stopper.state == ELSEWHERE and now >= lease_ends):
            yield _action(each, "finish stop", "the command that stopped it was killed")
        elif each.stopper.state == ELSEWHERE:
            timers.append(Timer(lease_ends, f"finish stopping {each.agent}, which began on another host"))
    elif each.state == BOOTING and each.step != READY:
        if each.driver.state in (GONE, NONE):
            yield _action(each, "undo sling", "the command that slung it was killed")
    elif each.mode == HEADLESS and each.driver.state in (ALIVE, ELSEWHERE):
        return  # the runner of an earlier Rookery has it
    elif each.mode == HEADLESS:
        yield from _decide_headless(each, now, timers)
    elif each.driver.state == GONE:
        yield _action(each, "end terminal", "the program in its terminal has ended")
    elif each.state == WAITING and each.mail > each.nudged:
        yield _action(each, "speak", "it has mail")


def _decide_headless(each: Facts, now: float, timers: list[Timer]) -> Iterator[Action]:
    if each.turn == TURN_RUNNING:
        if not each.is_run:
            yield _action(each, "settle turn", "its runner has ended")
    elif each.lost >= turns.MOST_LOST:
        yield _action(each, "give up", f"{each.lost} turns in a row were cut off")
    elif each.lost:
        due = each.turn_ended + (0.0 if each.lost == 1 else wait_after(each.lost - 1))
        if now >= due or due - now > wait_after(each.lost):  # the clock was set back
            yield _start(each, "its last turn was cut off")
        else:
            timers.append(Timer(due, f"start another turn of {each.agent}, after {each.lost} that were cut off"))
    elif each.mail:
        yield _start(each, "it has mail")
    elif each.state != WAITING:
        yield _start(each, "it has been slung" if not each.turn else "nothing runs its turn")


def _start(each: Facts, why: str) -> Action:
    if each.problem:
        return Action(NAME, _USE, _PROJECT, "agents wait for a turn", "of the project", each.problem)
    return _action(each, "start turn", why)


def _action(each: Facts, name: str, why: str) -> Action:
    return Action(NAME, name, each.id, why, each.agent, repr(each.as_dict()))


def _undo_sling(ctx: Context, session_id: str) -> None:
    # The command may have finished between our look and its end: only what is written after its end counts.
    session = sessions.session(ctx.db, session_id)
    is_left = session.state == BOOTING and session.step != READY
    if is_left and _driver(session.runner_pid, session.runner_start).state in (GONE, NONE):
        sling.undo(ctx, session, "the command that slung it was killed")


def _give_up(ctx: Context, session_id: str) -> None:
    lost = turns.count_lost(sessions.turns(ctx.db, session_id))
    if lost >= turns.MOST_LOST:
        end_session(ctx, session_id, CRASHED, f"{lost} turns in a row were cut off")


def _start_turn(ctx: Context, session_id: str) -> None:
    turns.start_turn(ctx, session_id)
    key = Action(NAME, _USE, _PROJECT, "").key
    if key in store.failures(ctx.db):  # it is repaired: of the next problem a person is told again
        with ctx.db.write() as db:
            store.forget(db, key)


def _use_environment(ctx: Context, _subject: str) -> None:
    problem = find_problem(ctx.root)
    if problem is not None:
        raise NeedsPerson(f"{problem.message}\n{problem.hint}")


ACTIONS = {
    "start turn": _start_turn,
    _USE: _use_environment,
    "settle turn": turns.settle_turn,
    "give up": _give_up,
    "undo sling": _undo_sling,
    "finish stop": stop.finish,
    "end terminal": interactive.end_terminal,
    "speak": interactive.speak,
    "end processes": stop.sweep,
}
