"""Starting what drives an agent: a runner for a headless one, a terminal for an interactive one."""

from __future__ import annotations

import os
import time

from rookery.agents import store
from rookery.agents.home import agent_environ, provided_environ
from rookery.agents.overlay import first_prompt
from rookery.agents.roles import NOTHING, find_role
from rookery.agents.sandbox.wrap import wrap
from rookery.base.errors import ProgramFailed
from rookery.config.compiled import section
from rookery.runtimes.model import Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rookery.agents.home import Home
    from rookery.agents.model import Session
    from rookery.terminal.tmux import Tmux

_POLL_SECONDS = 0.05
_PRESS_AGAIN_SECONDS = 0.3
_LAST_LINES = 15


def launch_of(home: Home, session: Session) -> Launch:
    """What the runtime is told about the session."""
    return Launch(
        session_id=session.id,
        agent=session.agent,
        role=session.role,
        worktree=session.worktree,
        folder=home.runtime_folder(session.id),
        model=session.model,
        profile=session.profile,
        runtime_session=session.runtime_session,
        settings=settings_of(home, session.runtime)
        | {"instructions": os.path.join(home.folder(session.id), "instructions.md")}
        | ({"spec": session.settings.spec} if session.settings.spec else {}),
        task_id=session.task_id,
        parent=session.parent,
        may_write=find_role(session.role).writes != NOTHING,
    )


def settings_of(home: Home, runtime: str) -> dict[str, Any]:
    """What the configuration says for a runtime: the section of its name, if there is one."""
    return section(home.config, runtime)


def start_terminal(home: Home, session: Session) -> None:
    """Start an interactive agent in tmux, wait until it is ready, and give it its task."""
    from rookery.runtimes.index import open_runtime
    from rookery.terminal.tmux import Tmux

    runtime = open_runtime(session.runtime)
    command = runtime.terminal_command(launch_of(home, session))
    tmux = Tmux(home.tmux_socket)
    name = terminal_name(session)
    if not tmux.has(name):
        provided = provided_environ(home, session)
        env = agent_environ(home, session, provided) | command.env
        argv = wrap(home, session, command, env, provided, terminal=True)
        tmux.new_session(name, session.worktree, argv, env)
    deadline = time.monotonic() + home.config.agents.boot_timeout
    while True:
        screen = tmux.capture(name)
        pane = tmux.list().get(name)
        if pane is None or pane.dead:
            status = None if pane is None else pane.exit_status
            raise ProgramFailed(f"{session.runtime} ended at once with status {status}:\n{_last_lines(screen)}")
        if runtime.is_ready(screen):
            break
        if time.monotonic() > deadline:
            raise ProgramFailed(
                f"{session.runtime} was not ready within {home.config.agents.boot_timeout:g} s:\n{_last_lines(screen)}",
                hint="agents.boot_timeout says how long it may take",
            )
        time.sleep(_POLL_SECONDS)
    _give_task(home, session, tmux, deadline)


def _give_task(home: Home, session: Session, tmux: Tmux, deadline: float) -> None:
    """Type the first prompt, and press Enter until the program's hook has begun a turn: an early one may be lost."""
    name = terminal_name(session)
    tmux.send_text(name, first_prompt(session))
    pressed = 0.0
    while not store.turns(home.db, session.id):
        now = time.monotonic()
        if now > deadline:
            raise ProgramFailed(
                f"{session.runtime} did not take its task:\n{_last_lines(tmux.capture(name))}",
                hint="its hooks must be able to run; agents.boot_timeout says how long it may take",
            )
        if now - pressed >= _PRESS_AGAIN_SECONDS:
            tmux.enter(name)
            pressed = now
        time.sleep(_POLL_SECONDS)


def terminal_name(session: Session) -> str:
    """The agent's session in tmux."""
    return f"rook-{session.agent}"


def _last_lines(screen: str) -> str:
    return "\n".join(screen.rstrip().splitlines()[-_LAST_LINES:])
