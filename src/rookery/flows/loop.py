"""The loop: read the facts, decide, act, and look again. An event or a timer only means *look again*.

There is no other state than the tables, so that a loop may be killed anywhere and another one looks again. An action
that fails is tried again after a while, ever more slowly; after many failures a person is told, and it is left alone
until something new happens.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config import layout
from rookery.config.environ import HUMAN
from rookery.environment.service import acting_alone
from rookery.flows import identities, jobs, landings, leftovers, radar, sessions, store
from rookery.flows.model import MOST_FAILURES, Action, Failure, Flow, NeedsPerson, Plan, Timer, wait_after
from rookery.mail import service as mail
from rookery.ops.context import Context
from rookery.ops.location import can_run_agents
from rookery.processes import locks
from rookery.sessions import journal
from rookery.sessions.store import running_turns

FLOWS: dict[str, Flow] = {flow.NAME: flow for flow in (sessions, jobs, landings, leftovers, radar, identities)}
_MOST_ROUNDS = 20
_LONGEST_ERROR = 2000


class Unchanged(RookError):
    """An action had no effect. Decided again at once, it would be done for ever."""


@dataclass(frozen=True, slots=True)
class Look(Record):
    """What one look at the facts has led to."""

    facts: dict[str, Any]
    plan: Plan
    """Of all flows together; without what is not due yet."""
    failures: dict[Action, Failure]
    """What is still to be done, and has failed."""

    def is_quiet(self, now: float, within: float) -> bool:
        """True if no runner is at work and no timer is due within so many seconds."""
        return not self.plan.running and not any(each.at - now < within for each in self.plan.timers)


def look(ctx: Context) -> Look:
    """Read the facts of every flow and decide."""
    now = ctx.clock()
    if not can_run_agents(ctx.root, ctx.db):
        return Look(dict.fromkeys(FLOWS), Plan(), {})  # they are another place's
    facts = {name: flow.read(ctx) for name, flow in FLOWS.items()}
    plans = [flow.decide(facts[name], now) for name, flow in FLOWS.items()]
    wanted = [action for plan in plans for action in plan.actions]
    failed = store.failures(ctx.db)
    due = tuple(each for each in wanted if each.key not in failed or _is_due(each, failed[each.key], now))
    waiting = [(each, failed[each.key]) for each in wanted if each.key in failed and each not in due]
    return Look(
        facts,
        Plan(
            due,
            (
                *(each for plan in plans for each in plan.timers),
                *(
                    Timer(failure.next_at, f"try again: {each.name} {each.label or each.subject}")
                    for each, failure in waiting
                    if _is_to_be_tried(each, failure)
                ),
            ),
            tuple(each for plan in plans for each in plan.processes),
            sum(plan.running for plan in plans),
        ),
        {each: failed[each.key] for each in wanted if each.key in failed},
    )


def _is_due(action: Action, failure: Failure, now: float) -> bool:
    is_in_future = failure.next_at - now > wait_after(failure.count)  # the clock was set back
    return _is_to_be_tried(action, failure) and (now >= failure.next_at or is_in_future)


def _is_to_be_tried(action: Action, failure: Failure) -> bool:
    """False for what was given up, until something new has happened to it, such as mail."""
    return not failure.is_given_up or action.seen != failure.seen


def act(ctx: Context, action: Action, log: Callable[[str], None]) -> None:
    """Do it; a failure is written down, and decides when it is tried again."""
    try:
        _do(ctx, action)
    except Exception as error:
        words = error.message if isinstance(error, RookError) else f"{type(error).__name__}: {error}"
        log(f"cannot {action.name} {action.label or action.subject}: {one_line(words, 500)}")
        with suppress(RookError):  # a full disk
            _record_failure(ctx, action, words, needs_person=isinstance(error, NeedsPerson))
        return
    if action.key in store.failures(ctx.db):
        with ctx.db.write() as db:
            store.forget(db, action.key)


def _do(ctx: Context, action: Action) -> None:
    flow = FLOWS[action.flow]
    with acting_alone():
        flow.ACTIONS[action.name](ctx, action.subject)
    if action in flow.decide(flow.read(ctx), ctx.clock()).actions:
        raise Unchanged("it was done, and everything is as before")


def _record_failure(ctx: Context, action: Action, words: str, *, needs_person: bool) -> None:
    flow = FLOWS[action.flow]
    # What the failed action itself has changed is nothing new.
    now_seen = {each.key: each.seen for each in flow.decide(flow.read(ctx), ctx.clock()).actions}
    with ctx.db.write() as db:
        before = store.failures(db).get(action.key)
        count = MOST_FAILURES if needs_person else 1 if before is None else before.count + 1
        next_at = ctx.clock() + wait_after(count)
        failure = Failure(action.key, count, next_at, words[:_LONGEST_ERROR], ctx.now(), now_seen.get(action.key, ""))
        store.record(db, failure)
    if failure.is_given_up:
        told = "Only you can repair it" if needs_person else f"It failed {count} times, at last with"
        with ctx.db.write() as db:
            mail.send_from_system(
                db,
                HUMAN,
                one_line(f"given up: {action.name} {action.label or action.subject}", 200),
                f"{action.why}. {told}:\n{failure.error}\n`rook loop explain` shows it, `rook loop run` tries again.",
                type="escalation",
                payload={"severity": "error"},
                priority="high",
                now=ctx.now(),
            )


def run_once(ctx: Context, log: Callable[[str], None]) -> Look:
    """Look and act until there is nothing more to do; what is decided again right after it was done is left."""
    done: set[Action] = set()
    for _ in range(_MOST_ROUNDS):
        found = look(ctx)
        new = [each for each in found.plan.actions if each not in done]
        if not new:
            return found
        for action in new:
            act(ctx, action, log)
        done.update(new)
    return look(ctx)


def take_lock(root: str) -> int | None:
    """Become the process that runs the loop: the open lock file; None if another one does."""
    journal.make_folder(root)
    return locks.take(layout.path(root, layout.LOOP_LOCK))


def sweep_journals(ctx: Context) -> None:
    """Delete journals that no turn needs any more: their turns were settled by a process that was killed then."""
    needed = {turn.id for turn in running_turns(ctx.db)}
    for name in os.listdir(journal.make_folder(ctx.root)):
        turn_id = journal.turn_of(name)
        if turn_id is not None and turn_id not in needed and not journal.is_running(ctx.root, turn_id):
            journal.remove(ctx.root, turn_id)
