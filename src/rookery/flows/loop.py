"""The loop: read the facts, decide, act, and check again. An event or a timer only means *check again*.

It has no state but the tables, so that a loop may be killed anywhere, and another one checks again. It tries an action
that fails again after a while, more and more slowly; after many failures it tells a person, and leaves the action alone
until something new happens.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rookery.base.clock import has_passed
from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config import layout
from rookery.config.environ import HUMAN
from rookery.environment.service import acting_alone
from rookery.flows import daily, deadlines, identities, jobs, landings, leftovers, radar, sessions, store
from rookery.flows.model import Action, Failure, Flow, NeedsPerson, Plan, Timer, wait_after
from rookery.inbox.model import MOST_FAILURES
from rookery.mail import service as mail
from rookery.ops.context import Context
from rookery.ops.location import can_run_agents
from rookery.processes import locks
from rookery.sessions import journal
from rookery.sessions.store import running_turns

FLOWS: dict[str, Flow] = {
    flow.NAME: flow for flow in (deadlines, sessions, jobs, landings, leftovers, radar, identities, daily)
}
_MOST_ROUNDS = 20
_LONGEST_ERROR = 2000


class Unchanged(RookError):
    """An action had no effect. Decided again at once, it would be done for ever."""


@dataclass(frozen=True, slots=True)
class Assessment(Record):
    """The facts at one time, and what was decided from them."""

    facts: dict[str, Any]
    plan: Plan
    """Of all flows together, without actions that are not due yet."""
    failures: dict[Action, Failure]
    """Actions that are still wanted, and have failed."""

    def is_quiet(self, now: float, within: float) -> bool:
        """True if no runner is at work and no timer is due within so many seconds."""
        return not self.plan.running and not any(timer.at - now < within for timer in self.plan.timers)


def assess(ctx: Context) -> Assessment:
    """Read the facts of every flow and decide."""
    now = ctx.clock()
    if not can_run_agents(ctx.root, ctx.db):
        return Assessment(dict.fromkeys(FLOWS), Plan(), {})  # the agents belong to another place
    facts = {name: flow.read(ctx) for name, flow in FLOWS.items()}
    plans = [flow.decide(facts[name], now) for name, flow in FLOWS.items()]
    known = store.failures(ctx.db)
    actions: list[Action] = []
    timers = [timer for plan in plans for timer in plan.timers]
    failures: dict[Action, Failure] = {}
    for action in (action for plan in plans for action in plan.actions):
        failure = known.get(action.key)
        if failure is None:
            actions.append(action)
            continue
        failures[action] = failure
        if failure.is_given_up and action.seen == failure.seen:
            continue  # until something new has happened to it, such as mail
        wait = wait_after(failure.count)
        if has_passed(wait, failure.next_at - wait, now):
            actions.append(action)
        else:
            timers.append(Timer(failure.next_at, f"try again: {action.title}"))
    processes = tuple(process for plan in plans for process in plan.processes)
    plan = Plan(tuple(actions), tuple(timers), processes, sum(plan.running for plan in plans))
    return Assessment(facts, plan, failures)


def act(ctx: Context, action: Action, log: Callable[[str], None]) -> None:
    """Do it; a failure is recorded, and decides when it is tried again."""
    try:
        _do(ctx, action)
    except Exception as error:
        reason = error.message if isinstance(error, RookError) else f"{type(error).__name__}: {error}"
        log(f"cannot {action.title}: {one_line(reason, 500)}")
        with suppress(RookError):  # a full disk
            _record_failure(ctx, action, reason, needs_person=isinstance(error, NeedsPerson))
        return
    if action.key in store.failures(ctx.db):
        with ctx.db.write() as db:
            store.forget(db, action.key)


def _do(ctx: Context, action: Action) -> None:
    with acting_alone():
        FLOWS[action.flow].ACTIONS[action.name](ctx, action.subject)
    if action in _decide_again(ctx, action):
        raise Unchanged("it ran, and nothing changed")


def _decide_again(ctx: Context, action: Action) -> tuple[Action, ...]:
    """What the action's flow decides now."""
    flow = FLOWS[action.flow]
    return flow.decide(flow.read(ctx), ctx.clock()).actions


def _record_failure(ctx: Context, action: Action, reason: str, *, needs_person: bool) -> None:
    # What the failed action itself has changed is nothing new.
    seen = next((again.seen for again in _decide_again(ctx, action) if again.key == action.key), "")
    with ctx.db.write() as db:
        before = store.failures(db).get(action.key)
        count = MOST_FAILURES if needs_person else 1 if before is None else before.count + 1
        next_at = ctx.clock() + wait_after(count)
        failure = Failure(action.key, count, next_at, reason[:_LONGEST_ERROR], ctx.now(), seen)
        store.record(db, failure)
    if failure.is_given_up:
        problem = "Only you can repair it" if needs_person else f"It failed {count} times, at last with"
        hint = "`rook loop explain` shows it, `rook loop run` tries again."
        with ctx.db.write() as db:
            mail.send_from_system(
                db,
                HUMAN,
                one_line(f"given up: {action.title}", 200),
                f"{action.why}. {problem}:\n{failure.error}\n{hint}",
                type="escalation",
                payload={"severity": "error"},
                priority="high",
                now=ctx.now(),
            )


def run_once(ctx: Context, log: Callable[[str], None]) -> Assessment:
    """Assess and act until there is nothing more to do; an action that is decided again after it was done is left."""
    done: set[Action] = set()
    for _ in range(_MOST_ROUNDS):
        assessment = assess(ctx)
        new = [action for action in assessment.plan.actions if action not in done]
        if not new:
            _forget_given_up(ctx, assessment)
            return assessment
        for action in new:
            act(ctx, action, log)
        done.update(new)
    return assess(ctx)


def _forget_given_up(ctx: Context, assessment: Assessment) -> None:
    """Take out of the inbox what was given up and is not wanted any more; a failure with tries left keeps its count."""
    if None in assessment.facts.values():
        return
    wanted = {action.key for action in assessment.failures}
    with suppress(RookError):  # a full disk
        for failure in store.failures(ctx.db).values():
            if failure.is_given_up and failure.key not in wanted:
                with ctx.db.write() as db:
                    store.forget(db, failure.key)


def take_lock(root: str) -> int | None:
    """Become the process that runs the loop: the open lock file; None if another process runs it."""
    journal.make_folder(root)
    return locks.take(layout.path(root, layout.LOOP_LOCK))


def sweep_journals(ctx: Context) -> None:
    """Delete journals that no turn needs any more: the process that settled their turns was killed right then."""
    needed = {turn.id for turn in running_turns(ctx.db)}
    for owner in filter(journal.is_turn, journal.owners(ctx.root)):
        if owner not in needed and not journal.is_running(ctx.root, owner):
            journal.remove(ctx.root, owner)
