"""Pausing an agent, taking its worktree over, and handing it back.

A hold is a field of the session's row, so it outlives every process: while it is set, no turn begins and no mail is
announced. Each step looks at what is there, so after a kill the same command goes on.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from rookery.base import call as calls
from rookery.base.errors import InvalidState
from rookery.base.file_scope import quote_name
from rookery.base.text import one_line
from rookery.config import steps
from rookery.mail import service as mail
from rookery.mail.model import Draft
from rookery.ops.context import Context
from rookery.runtimes.model import HEADLESS
from rookery.sessions import store
from rookery.sessions.model import BOOTING, PAUSED, READY, TAKEN_OVER, Hold, Session, is_stopping
from rookery.turns.interrupt_ops import interrupt
from rookery.vcs.ref_names import SAVED
from rookery.worktrees import service as worktrees
from rookery.worktrees import snapshots

_PATIENCE = 15.0
_PAUSE = 0.05
_MOST_COMMITS = 20
_MOST_FILES = 50


def pause(ctx: Context, name: str, *, now: bool = False) -> Session:
    """Let no turn of the agent begin; the running one goes on to its end, or with `now` is interrupted."""
    session = _hold(ctx, name, PAUSED, again=now)
    if now and store.running_turn(ctx.db, session.id) is not None:
        with suppress(InvalidState):  # it has ended meanwhile
            interrupt(ctx, name)
    return session


def take_over(ctx: Context, name: str) -> Session:
    """Let a person work in the agent's place: its turn is interrupted, and what the worktree holds now is recorded.

    A program in a terminal goes on: the person talks to it there.
    """
    session = _hold(ctx, name, TAKEN_OVER)
    steps.reached("held")
    if session.mode == HEADLESS:
        _end_turn(ctx, session)
    if session.hold is not None and session.hold.snapshot:
        return session
    commit, snapshot = _look(ctx, session)
    with ctx.db.write() as db:
        session = store.session(db, session.id)
        if not session.is_alive or session.hold is None:
            raise _changed_meanwhile(session)
        hold = session.hold.replace(commit=commit, snapshot=snapshot)
        return store.change_session(db, session, actor=ctx.actor, at=ctx.now(), hold=hold)


def hand_back(ctx: Context, name: str, message: str = "") -> tuple[Session, tuple[str, ...], tuple[str, ...]]:
    """Let the agent go on: it is told what changed meanwhile. The session, and the commits and files that changed.

    What the person has not committed stays as it is, for the agent to go on with.
    """
    session = store.find_living(ctx.db, name)
    hold = session.hold
    if hold is None:
        raise InvalidState(f"{name} is not paused", hint=f"`rook pause {name}` or `rook takeover {name}` does that")
    commits: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    if hold.kind == TAKEN_OVER and hold.snapshot:
        commits, files = _changes(ctx, session, hold)
    steps.reached("changes read")
    draft = Draft((name,), f"{ctx.actor} hands back to you", _describe(hold, commits, files, message))
    with ctx.db.write() as db:
        session = store.session(db, session.id)
        if not session.is_alive or session.hold is None or session.hold.at != hold.at:
            raise _changed_meanwhile(session)
        session = store.change_session(db, session, "agent.handed_back", actor=ctx.actor, at=ctx.now(), hold=None)
        mail.send(db, ctx.caller, draft, ctx.now())
    return session, commits, files


def _changed_meanwhile(session: Session) -> InvalidState:
    name = session.agent
    if session.is_alive:
        return InvalidState(f"{name} was handed back meanwhile", hint=f"`rook inspect {name}` shows what it does")
    problem = f"{name} has ended meanwhile: {session.outcome}"
    return InvalidState(problem, hint=f'`rook resume {name} "…"` starts it again')


def _hold(ctx: Context, name: str, kind: str, *, again: bool = True) -> Session:
    """Set the hold; one of the same caller that is there already becomes the stronger of both."""
    with ctx.db.write() as db:
        session, now = store.find_living(db, name), ctx.now()
        if session.state == BOOTING and session.step != READY:
            raise InvalidState(f"{name} is still being started", hint="try again in a moment")
        if is_stopping(session):
            raise InvalidState(f"{name} is being stopped", hint=f"`rook inspect {name}` shows it")
        held = session.hold
        if held is not None and held.by != ctx.actor:
            raise InvalidState(f"{held.by} has {held.kind} {name}", hint=f"`rook handback {name}` first")
        if held is not None and held.kind == kind and again:
            return session
        if held is not None and kind == PAUSED:
            raise InvalidState(f"{name} is {held.kind} already", hint=f"`rook handback {name}` lets it go on")
        event = "agent.paused" if kind == PAUSED else "agent.taken_over"
        return store.change_session(db, session, event, actor=ctx.actor, at=now, hold=Hold(ctx.actor, kind, now))


def _end_turn(ctx: Context, session: Session) -> None:
    """Interrupt the running turn and wait until it is settled; raises InvalidState if that takes too long."""
    if store.running_turn(ctx.db, session.id) is None:
        return
    with suppress(InvalidState):  # it has ended meanwhile
        interrupt(ctx, session.agent)
    deadline = time.monotonic() + _PATIENCE + ctx.config.agents.stop_grace
    while store.running_turn(ctx.db, session.id) is not None:
        if time.monotonic() > deadline:
            raise InvalidState(
                f"the turn of {session.agent} has not ended yet; no other one begins",
                hint=f"`rook takeover {session.agent}` waits for it again, `rook stop {session.agent}` ends it",
            )
        ctx.react()
        calls.sleep(_PAUSE)


def _look(ctx: Context, session: Session) -> tuple[str, str]:
    """The commit under the worktree, and one of all that lies in it."""
    if not os.path.isdir(session.worktree):
        hint = f"`rook stop {session.agent}`, then `rook resume {session.agent}` makes it again from its branch"
        raise InvalidState(f"the worktree of {session.agent} is gone", hint=hint)
    here = worktrees.check(session.worktree, ctx.config.vcs, branch=session.branch)
    name = snapshots.take(ctx, session, store.last_number(ctx.db, session.id) + 1)
    commit = here.current_commit() or session.base_commit
    return commit, here.merging().store.find_commit(SAVED + name) or commit


def _changes(ctx: Context, session: Session, hold: Hold) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The commits and files that changed in the worktree since it was taken over."""
    commit, snapshot = _look(ctx, session)
    here = worktrees.check(session.worktree, ctx.config.vcs, branch=session.branch)
    step = here.running_step()
    if step is not None:
        raise InvalidState(f"a {step} is under way in {session.worktree}", hint="finish or abort it first")
    messages = here.merging().own_messages([hold.commit], commit)
    commits = tuple(f"{message.commit[:12]} {one_line(message.subject, 100)}" for message in messages)
    return commits, tuple(file.path for file in here.changed_files(hold.snapshot, snapshot))


def _describe(hold: Hold, commits: tuple[str, ...], files: tuple[str, ...], message: str) -> str:
    verb = "worked in your worktree" if hold.kind == TAKEN_OVER else "paused you"
    parts = [message.strip(), f"{hold.by} {verb} since {hold.at}, and hands back to you. Go on with your task."]
    if hold.kind == TAKEN_OVER and not (commits or files):
        parts.append("Nothing in your worktree has changed meanwhile.")
    if commits:
        parts.append(_list("New commits on your branch:", commits, _MOST_COMMITS))
    if files:
        names = [quote_name(path) for path in files]
        parts.append(
            _list("Files that changed meanwhile (`git status` shows what is not committed):", names, _MOST_FILES)
        )
    return "\n\n".join(part for part in parts if part)


def _list(title: str, items: tuple[str, ...] | list[str], most: int) -> str:
    more = [f"- and {len(items) - most} more"] if len(items) > most else []
    return "\n".join([title, *(f"- {item}" for item in items[:most]), *more])
