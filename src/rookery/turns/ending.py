"""The end of an agent's life: its outcome, its task, its mail, and the news for its parent, in one transaction."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from rookery.base.errors import NoRepository, ProgramFailed, Refused, StorageFailed
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config import steps
from rookery.costs import store as costs
from rookery.mail import service as mail
from rookery.mail import store as messages
from rookery.ops.context import Context
from rookery.roles.catalog import read_role
from rookery.roles.model import Role
from rookery.sessions import journal, store
from rookery.sessions.model import COMPLETED, ENDED, TURN_LOST, Session
from rookery.status.identity import renew_identity
from rookery.tasks import lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.model import IN_PROGRESS
from rookery.tasks.store import Author
from rookery.turns.usage import read_spent
from rookery.worktrees import service as worktrees


@dataclass(frozen=True, slots=True)
class Work(Record):
    """What an agent leaves: the commit that holds it, and the role that it did it in."""

    commit: str | None
    role: Role | None
    """None if the role's file cannot be used: then its task is open again, and its branch is kept."""


def end_session(ctx: Context, session_id: str, outcome: str, reason: str, *, tell_parent: bool = True) -> Session:
    """End a life once; whoever comes second finds it ended."""
    found = store.session(ctx.db, session_id)
    turn = store.running_turn(ctx.db, session_id)
    work, spent = find_work(ctx, found), read_spent(ctx, found, turn)
    with ctx.db.write() as db:
        session = store.session(db, session_id)
        if session.state == ENDED:
            return session
        now = ctx.now()
        running = store.running_turn(db, session.id)
        if running is not None:
            store.change_turn(db, running, state=TURN_LOST, ended_at=now)
            costs.add_usage(db, running.id, spent)
            mail.redeliver(db, running.id, now)
        ended = settle_end(ctx, session, outcome, reason, work, tell_parent=tell_parent)
    if turn is not None:
        journal.remove(ctx.root, turn.id)
    finish_end(ctx, ended)
    return ended


def settle_end(
    ctx: Context,
    session: Session,
    outcome: str,
    reason: str,
    work: Work,
    *,
    tell_parent: bool = True,
    is_swept: bool = True,
) -> Session:
    """Within the caller's transaction: the life is over; `work` is what `find_work` found before.

    If not `is_swept`, the loop ends the processes that are left. `finish_end` follows after the transaction.
    """
    db, now = ctx.db, ctx.now()
    ended = store.change_session(
        db,
        session,
        "agent.ended",
        actor=session.agent,
        at=now,
        move="end",
        outcome=outcome,
        reason=reason,
        ended_at=now,
        swept_at=now if is_swept else None,
        runner_pid=None,
        runner_start=None,
    )
    _settle_task(ctx, ended, work, Author(session.agent, now))
    if tell_parent and outcome != COMPLETED:
        mail.send_from_system(
            db,
            session.parent,
            one_line(f"{session.agent} {outcome}: {reason}", 200),
            f"{session.agent}, a {session.role}, has ended ({outcome}): {reason}\n"
            f"Its branch is {session.branch}; nothing that it made is lost.",
            type="worker_died",
            payload={"agent": session.agent, "task_id": session.task_id or "", "reason": reason[:2000]},
            priority="high",
            now=now,
        )
    store.note_identity(db, session.agent, session.id)
    return ended


def finish_end(ctx: Context, session: Session) -> None:
    """After the transaction that ended a session: bring the agent's identity file up to date.

    What cannot be written now is left to the loop, which tries again and tells a person in the end.
    """
    steps.reached("session ended")
    with suppress(OSError, StorageFailed):
        renew_identity(ctx, session.agent)


def _settle_task(ctx: Context, session: Session, work: Work, author: Author) -> None:
    """What becomes of the task that the agent held, if it did not say so itself."""
    db = ctx.db
    task = tasks.existing(db, session.task_id)
    if task is None or task.state != IN_PROGRESS or task.assignee != session.agent:
        return
    role = work.role
    open_children = tasks.has_unfinished_children(db, task.id)
    if session.outcome != COMPLETED or role is None or (role.can_spawn and open_children):
        lifecycle.release(db, task.id, author, agent=session.agent)
    elif not role.can_write:
        report = messages.last_body(db, session.agent, session.id)
        try:
            lifecycle.complete(db, task.id, author, agent=session.agent, result=report)
        except Refused:  # it was blocked meanwhile: others may take it up again when it no longer is
            lifecycle.release(db, task.id, author, agent=session.agent)
    else:
        lifecycle.submit(db, task, author, commit=work.commit)


def find_work(ctx: Context, session: Session) -> Work:
    """What decides about the agent's task at its end; the end itself must not depend on it."""
    commit, role = None, None
    with suppress(NoRepository, ProgramFailed):
        commit = worktrees.open_repository(ctx.root, ctx.config.vcs).branch_tip(session.branch)
    with suppress(Refused):
        role = read_role(ctx.root, session.role)
    return Work(commit, role)
