"""Settles how a turn or a whole session ended, in one transaction: rows, costs, mail, the agent's task, its parent.

However a turn ends (its runner reports, its program's hook says so, a person stops or interrupts it, a kill cuts it
off), it is settled here, once: what comes second finds it settled. `TurnEnd` says how it ended. What needs git or files
is read before the transaction.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rookery.base.errors import Refused, StorageFailed
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config import steps
from rookery.costs import store as costs
from rookery.costs.prices import price
from rookery.events.store import publish
from rookery.mail import service as mail
from rookery.mail import store as messages
from rookery.mail.last_word import last_word
from rookery.ops.context import Context
from rookery.processes.exits import how_it_ended
from rookery.roles.catalog import read_role
from rookery.roles.model import Role
from rookery.runtimes.model import HEADLESS
from rookery.runtimes.registry import open_runtime
from rookery.sessions import journal, store
from rookery.sessions.model import (
    COMPLETED,
    CRASHED,
    ENDED,
    FAILED,
    TURN_DONE,
    TURN_FAILED,
    TURN_INTERRUPTED,
    TURN_LOST,
    TURN_RUNNING,
    Session,
    Turn,
    TurnEnd,
)
from rookery.status.identity import renew_identity
from rookery.tasks import landed, lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.model import IN_PROGRESS, NEEDS_REBASE
from rookery.tasks.store import Author
from rookery.worktrees import service as worktrees
from rookery.worktrees import snapshots


@dataclass(frozen=True, slots=True)
class Work(Record):
    """What decides about the agent's task at its end."""

    commit: str | None
    """The tip of its branch."""
    role: Role | None
    """None if the role's file cannot be used: then its task is open again, and its branch is kept."""
    has_unlanded: bool | None = False
    """An agent that should only read has made commits all the same; None if git does not say so."""
    cleared: frozenset[str] = frozenset()
    """The tasks above with a branch that may be completed with this one."""


def settle_turn(ctx: Context, session: Session, turn: Turn, end: TurnEnd, *, can_end_session: bool = True) -> bool:
    """Settle a running turn, and its session if that is over; else the agent waits. False if that was done already.

    The session is over if the agent has sent its last message, or if the turn failed. A turn that was cut off ends no
    session, and neither does one where `can_end_session` is False: the agent waits for its next turn.
    """
    can_end_session &= end.state != TURN_LOST
    work = _read_work(ctx, session) if can_end_session else Work(None, None)
    with ctx.db.write() as db:
        session, turn = store.session(db, session.id), store.turn(db, turn.id)
        if not session.is_alive or turn.state != TURN_RUNNING:
            return False
        close_turn(ctx, session, turn, end)
        last_message = last_word(db, session) if can_end_session else None
        if last_message is not None:
            # In a terminal the program still runs, and called us: the loop ends it.
            is_swept = session.mode == HEADLESS
            _end(ctx, session, COMPLETED, f"said {last_message.type}", work, is_swept=is_swept)
        elif end.state == TURN_FAILED:
            _end(ctx, session, CRASHED, how_it_ended(end.exit_status, end.last_words or ""), work)
        else:
            store.change_session(db, session, "agent.waiting", at=ctx.now(), move="wait")
            return True
    _finish_end(ctx, session)
    return True


def close_turn(ctx: Context, session: Session, turn: Turn, end: TurnEnd) -> None:
    """Within the caller's transaction: the turn's row, costs, mail and event. The session stays as it is."""
    db, now = ctx.db, ctx.now()
    changes = {name: getattr(end, name) for name in ("state", "exit_status", "last_words", "snapshot")}
    store.change_turn(db, turn, ended_at=now, **changes)
    costs.add_usage(db, turn.id, end.usage)
    is_read = end.state in (TURN_DONE, TURN_INTERRUPTED)  # an interrupted conversation holds it too, and goes on
    messages.settle_turn(db, turn.id, read=is_read, now=now)
    if not session.is_alive:
        return  # the event of its session's end says it all
    data: dict[str, Any] = {"turn_id": turn.id, "number": turn.number}
    if end.state == TURN_LOST:
        publish(db, "turn.lost", session.agent, data, actor=session.agent, at=now)
        return
    data["ok"] = end.state == TURN_DONE
    details = {name: getattr(end, name) for name in ("exit_status", "interrupted_by", "problem")}
    data |= {name: value for name, value in details.items() if value not in (None, "", {})}
    publish(db, "turn.ended", session.agent, data, actor=session.agent, at=now)


def end_session(
    ctx: Context, session_id: str, outcome: str, reason: str, *, tell_parent: bool = True, is_swept: bool = True
) -> Session:
    """End a session once, with the turn that it may be in; a second caller gets the ended session.

    `is_swept`: no process is left; else the loop ends them.
    """
    session, turn = store.session(ctx.db, session_id), store.running_turn(ctx.db, session_id)
    work, usage = _read_work(ctx, session), [] if turn is None else read_usage(ctx, session, turn.id)
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        if session.state == ENDED:
            return session
        running = store.running_turn(db, session_id)
        session = _end(ctx, session, outcome, reason, work, tell_parent=tell_parent, is_swept=is_swept)
        if running is not None:
            close_turn(ctx, session, running, TurnEnd(TURN_LOST, usage=usage))
    if turn is not None:
        journal.remove(ctx.root, turn.id)
    _finish_end(ctx, session)
    return session


def _end(
    ctx: Context,
    session: Session,
    outcome: str,
    reason: str,
    work: Work,
    *,
    tell_parent: bool = True,
    is_swept: bool = True,
) -> Session:
    """Within a transaction: the session is over. `is_swept`: no process is left; else the loop ends them."""
    db, now = ctx.db, ctx.now()
    ended = store.change_session(
        db,
        session,
        "agent.ended",
        at=now,
        move="end",
        outcome=outcome,
        reason=reason,
        ended_at=now,
        swept_at=now if is_swept else None,
        runner_pid=None,
        runner_start=None,
        hold=None,
    )
    _settle_task(ctx, ended, work, Author(session.agent, now))
    if tell_parent and outcome != COMPLETED:
        mail.send_from_system(
            db,
            session.parent,
            one_line(f"{session.agent} {outcome}: {reason}", 200),
            f"{session.agent}, a {session.role}, has ended ({outcome}): {reason}\n"
            f"Its branch is {session.branch}; none of its work is lost.",
            type="worker_died",
            payload={"agent": session.agent, "task_id": session.task_id or "", "reason": reason[:2000]},
            priority="high",
            now=now,
        )
    store.note_identity(db, session.agent, session.id)
    return ended


def _finish_end(ctx: Context, session: Session) -> None:
    """After the transaction that ended a session: bring the agent's identity file up to date.

    If it cannot be written now, the loop tries again, and in the end tells a person.
    """
    steps.reached("session ended")
    with suppress(OSError, StorageFailed):
        renew_identity(ctx, session.agent)


def _settle_task(ctx: Context, session: Session, work: Work, author: Author) -> None:
    """Release, complete or submit the task that the agent held, if it did not do so itself."""
    db, role = ctx.db, work.role
    task = tasks.existing(db, session.task_id)
    if task is None or task.assignee != session.agent:
        return
    if task.state == NEEDS_REBASE and session.outcome == COMPLETED and task.branch == session.branch:
        lifecycle.submit(db, task, author, commit=work.commit)
    if task.state != IN_PROGRESS:
        return
    open_children = tasks.has_unfinished_children(db, task.id)
    is_unclear = work.has_unlanded is None or (role is not None and role.can_spawn and open_children)
    if session.outcome != COMPLETED or role is None or is_unclear:
        released = lifecycle.release(db, task.id, author).task
        if session.outcome == FAILED and session.settings.replaced is not None:
            # No work came of this attempt, so the one before it is again what may land.
            branch, start_commit = session.settings.replaced
            tasks.change(db, released, "task.branched", author, branch=branch, start_commit=start_commit)
    elif role.can_write or work.has_unlanded:
        lifecycle.submit(db, task, author, commit=work.commit)
    else:
        report = messages.last_body(db, session.agent, session.id)
        try:
            lifecycle.complete(db, task.id, author, result=report, cleared=work.cleared)
        except Refused:  # it was blocked meanwhile: another agent may do it when it no longer is
            lifecycle.release(db, task.id, author)


def _read_work(ctx: Context, session: Session) -> Work:
    """What decides about the task; the end itself must not depend on it, so failures count as nothing."""
    commit, role = None, None
    with suppress(Refused):
        commit = worktrees.open_repository(ctx).branch_tip(session.branch)
    with suppress(Refused):
        role = read_role(ctx.root, session.role)
    task = tasks.existing(ctx.db, session.task_id)
    if role is None or role.can_write or task is None:
        return Work(commit, role)
    has_unlanded = None
    with suppress(Refused):
        has_unlanded = bool(landed.look_at_commits(ctx, task).unlanded)
    return Work(commit, role, has_unlanded, landed.cleared_above(ctx, task))


def read_usage(ctx: Context, session: Session, counted_as: str) -> list[dict[str, Any]]:
    """What a turn used by its program's transcripts, priced; nothing where the program keeps none.

    Call it before every settlement, also if the turn has reported its usage itself: the next one is counted from there.
    `counted_as` is the turn, or the session: for what a program in a terminal wrote after its last turn was settled.
    """

    def is_settled(turn_id: str) -> bool:
        turn = store.find_turn(ctx.db, turn_id)
        return turn is not None and turn.session_id == session.id and turn.state != TURN_RUNNING

    used = open_runtime(session.runtime).usage_of_turn(ctx.runtime_folder(session.id), counted_as, is_settled)
    return [price(entry, session.model, ctx.config) for entry in used]


def take_snapshot(ctx: Context, session: Session, turn: Turn | None = None) -> str | None:
    """Keep the worktree as it is at the end of a turn, or after the last one; nothing if the worktree is gone."""
    if not os.path.isdir(session.worktree):
        return None
    number = store.last_number(ctx.db, session.id) + 1 if turn is None else turn.number
    return snapshots.take(ctx, session, number)
