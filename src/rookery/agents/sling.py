"""`rook sling` as a saga: reserve, check out, provision, instruct, launch. Every step is recorded when it is done.

A failure undoes what was done and raises the real cause. After a kill in between, the loop undoes it, or carries on
if the agent has begun to work already.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rookery.agents import continuation
from rookery.agents.attempts import find_attempts
from rookery.agents.reservation import Request, reserve
from rookery.agents.siblings import find_siblings, tell_siblings
from rookery.base.draft import write_whole
from rookery.base.errors import ProgramFailed, RookError
from rookery.base.json import dumps
from rookery.config import layout, steps
from rookery.config.environ import HUMAN, marked_children
from rookery.config.loader import section
from rookery.environment.service import record_sling, sling_path
from rookery.ops.context import Context
from rookery.ops.location import check_can_run_agents
from rookery.processes.proctable import MARK, SLING
from rookery.processes.proctree import end_tree
from rookery.roles.catalog import find_role, read_role
from rookery.runtimes.model import HEADLESS, Command
from rookery.runtimes.registry import open_runtime
from rookery.sandbox.model import BUBBLEWRAP
from rookery.sandbox.probe import decide
from rookery.sandbox.wrap import wrap
from rookery.sessions import store
from rookery.sessions.credentials import agent_environ
from rookery.sessions.model import CHECKED_OUT, FAILED, INSTRUCTED, LAUNCHED, PROVISIONED, READY, Session
from rookery.tasks import service
from rookery.tasks.scope import store as scope_store
from rookery.turns import instructions
from rookery.turns.instructions import Sibling
from rookery.turns.launch import launch_of, start_terminal
from rookery.turns.settlement import end_session
from rookery.turns.stop import end_processes
from rookery.vcs.checks import problems_of_new_agents
from rookery.worktrees import provision, removal, reopening
from rookery.worktrees import service as worktrees
from rookery.worktrees.provision import Enclose


def sling(ctx: Context, request: Request) -> Session:
    """Start an agent on a task, or leave everything as it was."""
    check_can_run_agents(ctx.root, ctx.db)
    name = request.runtime or find_role(ctx.root, request.role).runtime or ctx.config.agents.runtime
    open_runtime(name).check_installed(section(ctx.config, name), sling_path(ctx.root, request.caller))
    settings = request.settings.replace(sandbox=decide(ctx))
    return carry_out(ctx, reserve(ctx, request.replace(settings=settings)), request.caller)


def carry_out(ctx: Context, session: Session, caller: str) -> Session:
    """Start the agent of a session that is reserved, or undo all of it and raise why."""
    steps.reached("reserved")
    try:
        if ctx.follow is not None:
            for problem in problems_of_new_agents(ctx.root):
                ctx.follow(f"warning: {problem}\n")
        if caller == HUMAN:
            record_sling(ctx.root, ctx.now())
        return _carry_out(ctx, session)
    except BaseException as error:
        reason = error.message if isinstance(error, RookError) else f"{type(error).__name__}: {error}"
        undo(ctx, session, reason)
        raise


def _carry_out(ctx: Context, session: Session) -> Session:
    """Do the steps that follow the reservation."""
    is_resumed = bool(session.settings.resumed_from)
    with marked_children(SLING, session.id):
        (reopening.reopen if is_resumed else worktrees.create)(ctx, session)
    session = _provision(ctx, _record(ctx, session, CHECKED_OUT))
    if is_resumed:
        session = continuation.bring_back(ctx, session)
    siblings = find_siblings(ctx, session)
    instruct(ctx, session, siblings)
    session = _record(ctx, session, INSTRUCTED, settings=session.settings)
    if session.mode == HEADLESS:
        # This very record queues the first turn: the loop starts it.
        return _record(ctx, session, READY, siblings, runner_pid=None, runner_start=None)
    session = _record(ctx, session, LAUNCHED)
    program = start_terminal(ctx, session)
    return _record(ctx, session, READY, siblings, runner_pid=program.pid, runner_start=program.text)


def undo(ctx: Context, session: Session, reason: str) -> None:
    """Undo a sling that did not succeed: processes, worktree, branch, ports, task. Work, if any, is kept.

    Safe to repeat; the loop and a command may both do it.
    """
    end_tree(None, (MARK, session.id), ctx.config.agents.stop_grace)
    with removal.alone(ctx.root):
        latest = store.latest(ctx.db, session.agent)
        if latest is None or latest.id != session.id or latest.outcome == FAILED:
            return  # another process has undone it, and the next agent may have its name
        with suppress(ProgramFailed):  # there may be no tmux, which is then the real cause
            end_processes(ctx, latest)
        leftover = worktrees.undo(ctx, latest)
        steps.reached("undone")
        end_session(ctx, session.id, FAILED, reason + (f" ({leftover})" if leftover else ""), tell_parent=False)


def _record(ctx: Context, session: Session, step: str, tell: Sequence[Sibling] = (), **changes: Any) -> Session:
    """Record that a step is done, and tell those who work beside the agent."""
    with ctx.db.write() as db:
        session = store.session(db, session.id)
        kind, at = f"agent.{step}", ctx.now()
        session = store.change_session(db, session, kind, actor=session.parent, at=at, step=step, **changes)
        if step == CHECKED_OUT and not session.settings.resumed_from:
            scope_store.forget(db, session.branch)
        tell_siblings(ctx, session, tell)
    steps.reached(step)
    return session


def _provision(ctx: Context, session: Session) -> Session:
    settings = ctx.config.provision
    ports = None
    if settings.ports:
        with ctx.db.write() as db:
            ports = store.lease_ports(db, session.id, settings.first_port, settings.ports, settings.last_port)
    if session.settings.resumed_from and not session.settings.is_new:
        provided = continuation.keep_provided(ctx, session, ports)
    else:
        provided = provision.provision(
            ctx.root,
            session.worktree,
            settings,
            vcs_config=ctx.config.vcs,
            session_folder=ctx.session_folder(session.id),
            ports=ports,
            enclose=_enclosing(ctx, session),
        )
    write_whole(os.path.join(ctx.session_folder(session.id), layout.SESSION_ENVIRONMENT), dumps(provided))
    return _record(ctx, session, PROVISIONED, settings=session.settings.replace(ports=ports))


def _enclosing(ctx: Context, session: Session) -> Enclose | None:
    """Puts a command that belongs to the agent into its sandbox; None if it has none."""
    if session.settings.sandbox != BUBBLEWRAP:
        return None

    def enclose(argv: tuple[str, ...], provided: dict[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        env = agent_environ(ctx, session, provided)
        return wrap(ctx, session, Command(argv, {}), env, provided, terminal=False), env

    return enclose


def instruct(ctx: Context, session: Session, siblings: Sequence[Sibling]) -> None:
    """Write the instructions where the runtime reads them, out of sight of commits."""
    role = read_role(ctx.root, session.role)
    view = None if session.task_id is None else service.get(ctx.db, session.task_id)
    spec = _read_spec(ctx, session)
    attempts = [] if session.task_id is None else find_attempts(ctx, session.task_id, without=session.id)
    text = instructions.compose(
        session, role, root=ctx.root, view=view, spec=spec, siblings=siblings, attempts=attempts
    )
    runtime = open_runtime(session.runtime)
    worktrees.write_instructions(ctx.config.vcs, session.worktree, runtime.INSTRUCTIONS, text)
    write_whole(os.path.join(ctx.session_folder(session.id), layout.SESSION_INSTRUCTIONS), text)
    runtime.prepare(launch_of(ctx, session))


def _read_spec(ctx: Context, session: Session) -> str | None:
    path = session.settings.spec or ctx.path(layout.SPECS, f"{session.task_id}.md")
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
