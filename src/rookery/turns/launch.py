"""Starting an agent's program: what its runtime needs to know, and a terminal for an interactive one."""

from __future__ import annotations

import time
from collections.abc import Callable

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed, Refused
from rookery.config.loader import section
from rookery.environment.service import project_environ
from rookery.ops.context import Context
from rookery.processes.holder import HolderId, of
from rookery.processes.proctree import Identity, identify
from rookery.roles.catalog import read_role
from rookery.runtimes.model import Launch
from rookery.runtimes.registry import open_runtime
from rookery.sandbox.wrap import wrap
from rookery.sessions import store
from rookery.sessions.credentials import agent_environ, provided_environ
from rookery.sessions.model import Session
from rookery.terminal.tmux import Tmux
from rookery.turns.instructions import first_prompt
from rookery.turns.pane_program import adopting

_POLL_SECONDS = 0.03
_CHECK_AGAIN_SECONDS = 0.2
_PRESS_AGAIN_SECONDS = 0.3
_LAST_LINES = 15


def launch_of(ctx: Context, session: Session) -> Launch:
    """What the runtime needs to know about the session."""
    return Launch(
        agent=session.agent,
        role=session.role,
        worktree=session.worktree,
        folder=ctx.runtime_folder(session.id),
        model=session.model,
        runtime_session=session.runtime_session,
        settings=section(ctx.config, session.runtime),
        task_id=session.task_id,
        parent=session.parent,
        may_write=_may_write(ctx, session),
        environ=project_environ(ctx.root),
    )


def _may_write(ctx: Context, session: Session) -> bool:
    """False also while the role's file cannot be used: the agent goes on, and the guard denies its tools."""
    try:
        return read_role(ctx.root, session.role).can_write
    except Refused:
        return False


def start_terminal(ctx: Context, session: Session) -> HolderId:
    """Start an interactive agent in tmux, wait until it is ready, and give it its task; its program's process."""
    runtime = open_runtime(session.runtime)
    command = runtime.terminal_command(launch_of(ctx, session), first_prompt(session))
    tmux = Tmux(ctx.tmux_socket)
    name = session.terminal
    provided = provided_environ(ctx, session)
    env = agent_environ(ctx, session, provided) | command.env
    argv = wrap(ctx, session, command, env, provided, terminal=True)
    if argv == tuple(command.argv):  # in a sandbox, its own init takes in what is left behind
        argv = adopting(argv, session.worktree, env)
    tmux.new_session(name, session.worktree, argv, env)
    deadline = time.monotonic() + ctx.config.agents.boot_timeout
    if not command.has_prompt:
        _wait_until(ctx, session, deadline, lambda: runtime.is_ready(tmux.capture(name)), "was not ready")
        tmux.send_text(name, first_prompt(session))
    pressed = 0.0

    def has_begun() -> bool:
        """True once the program's hook has begun a turn. An Enter that comes too early is lost, so it is repeated."""
        nonlocal pressed
        if store.turns(ctx.db, session.id):
            return True
        if not command.has_prompt and time.monotonic() - pressed >= _PRESS_AGAIN_SECONDS:
            tmux.enter(name)
            pressed = time.monotonic()
        return False

    _wait_until(ctx, session, deadline, has_begun, "did not take its task")
    pane = tmux.list().get(name)
    process = None if pane is None else identify(pane.pid)
    return of(process or Identity(0, ""))  # one that has ended already counts as gone


def _wait_until(ctx: Context, session: Session, deadline: float, holds: Callable[[], bool], problem: str) -> None:
    """Wait for it while the program runs; raises ProgramFailed with the end of its screen."""
    tmux, name = Tmux(ctx.tmux_socket), session.terminal
    checked = 0.0
    while not holds():
        now = time.monotonic()
        if now - checked >= _CHECK_AGAIN_SECONDS:
            checked = now
            pane = tmux.list().get(name)
            if pane is None or pane.dead:
                status = None if pane is None else pane.exit_status
                raise ProgramFailed(f"{session.runtime} ended at once with status {status}:\n{_last_lines(tmux, name)}")
        if now > deadline:
            limit = ctx.config.agents.boot_timeout
            raise ProgramFailed(
                f"{session.runtime} {problem} within {limit:g} s:\n{_last_lines(tmux, name)}",
                hint="its hooks must be able to run; agents.boot_timeout says how long it may take",
            )
        calls.sleep(_POLL_SECONDS)


def _last_lines(tmux: Tmux, name: str) -> str:
    screen = tmux.capture_all([name]).get(name, "")
    return "\n".join(screen.rstrip().splitlines()[-_LAST_LINES:])
