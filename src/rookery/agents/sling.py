"""`rook sling` as a saga: reserve, check out, provision, instruct, launch. Each step is recorded when it is done.

A failure undoes what was done and tells the real cause. A kill in between is found by the loop, which undoes it, or
carries on where the agent's life has begun already.
"""

from __future__ import annotations

import os
from typing import Any

from rookery.agents.reserve import Request, reserve
from rookery.base.draft import write_whole
from rookery.base.errors import RookError
from rookery.base.json import dumps
from rookery.config import steps
from rookery.config.compiled import section
from rookery.config.environ import HUMAN, MarkedChildren
from rookery.environment.service import record_sling, sling_path
from rookery.ops.location import check_can_run_agents
from rookery.processes.proctable import SLING
from rookery.processes.proctree import end_tree
from rookery.roles.model import find_role, read_prompt
from rookery.runtimes.model import HEADLESS, Command
from rookery.runtimes.registry import open_runtime
from rookery.sandbox.model import BUBBLEWRAP
from rookery.sandbox.probe import decide
from rookery.sandbox.wrap import wrap
from rookery.sessions import store
from rookery.sessions.home import MARK, Home, agent_environ
from rookery.sessions.model import CHECKED_OUT, FAILED, INSTRUCTED, LAUNCHED, PROVISIONED, READY, RESERVED, Session
from rookery.tasks import service
from rookery.turns import overlay
from rookery.turns.ending import end_session
from rookery.turns.launch import launch_of, start_terminal
from rookery.worktrees import provision
from rookery.worktrees import service as worktrees
from rookery.worktrees.provision import Enclose


def sling(home: Home, request: Request) -> Session:
    """Bring an agent to life on a task, or leave everything as it was."""
    check_can_run_agents(home.root, home.db)
    name = request.runtime or home.config.agents.runtime
    open_runtime(name).check_installed(section(home.config, name), sling_path(home.root, request.caller))
    settings = request.settings.replace(sandbox=decide(home))
    session = reserve(home, request.replace(settings=settings))
    steps.reached("reserved")
    try:
        if request.caller == HUMAN:
            record_sling(home.root, home.now())
        return carry_out(home, session)
    except BaseException as error:
        reason = error.message if isinstance(error, RookError) else f"{type(error).__name__}: {error}"
        undo(home, store.session(home.db, session.id), reason)
        raise


def carry_out(home: Home, session: Session) -> Session:
    """Do the steps that are left."""
    if session.step == RESERVED:
        _check_out(home, session)
        session = _done(home, session, CHECKED_OUT)
    if session.step == CHECKED_OUT:
        session = _provision(home, session)
    if session.step == PROVISIONED:
        instruct(home, session)
        session = _done(home, session, INSTRUCTED)
    if session.step == INSTRUCTED:
        session = _launch(home, session)
    return session


def undo(home: Home, session: Session, reason: str) -> None:
    """Take back a sling that did not succeed: processes, worktree, branch, ports, task. Work, if any, is kept."""
    end_tree(None, (MARK, session.id), home.config.agents.stop_grace)
    end_tree(None, (SLING, session.id), 0)  # a git that outlives a killed sling would go on with the worktree
    kept = worktrees.undo(
        home.root,
        home.config.vcs,
        agent=session.agent,
        branch=session.branch,
        base_commit=session.base_commit,
        session_folder=home.folder(session.id),
        is_new=session.step == RESERVED and session.settings.is_new,
    )
    steps.reached("undone")
    end_session(home, session.id, FAILED, reason + (f" ({kept})" if kept else ""), tell_parent=False)


def _done(home: Home, session: Session, step: str, **changes: Any) -> Session:
    with home.db.write() as db:
        session = store.change_session(
            db,
            store.session(db, session.id),
            f"agent.{step}",
            actor=session.parent,
            at=home.now(),
            step=step,
            **changes,
        )
    steps.reached(step)
    return session


def _check_out(home: Home, session: Session) -> None:
    with MarkedChildren(SLING, session.id):
        worktrees.create(
            home.root, home.config.vcs, agent=session.agent, branch=session.branch, base_commit=session.base_commit
        )


def _provision(home: Home, session: Session) -> Session:
    settings = home.config.provision
    ports = None
    if settings.ports:
        with home.db.write() as db:
            ports = store.lease_ports(db, session.id, settings.first_port, settings.ports, settings.last_port)
    provided = provision.provision(
        home.root,
        session.worktree,
        settings,
        vcs_config=home.config.vcs,
        session_folder=home.folder(session.id),
        ports=ports,
        enclose=_enclosing(home, session),
    )
    _write_private(home, session, "environment.json", dumps(provided))
    return _done(home, session, PROVISIONED, settings=session.settings.replace(ports=ports))


def _enclosing(home: Home, session: Session) -> Enclose | None:
    """What puts a command that belongs to the agent into its sandbox, if it has one."""
    if session.settings.sandbox != BUBBLEWRAP:
        return None

    def enclose(argv: tuple[str, ...], provided: dict[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        env = agent_environ(home, session, provided)
        return wrap(home, session, Command(argv, {}), env, provided, terminal=False), env

    return enclose


def instruct(home: Home, session: Session) -> None:
    """Write the instructions where the runtime reads them, out of sight of commits."""
    role = find_role(session.role)
    view = None if session.task_id is None else service.get(home.db, session.task_id)
    text = overlay.compose(
        session, role, read_prompt(role, home.root), root=home.root, view=view, spec=_read_spec(home, session)
    )
    runtime = open_runtime(session.runtime)
    worktrees.write_instructions(home.config.vcs, session.worktree, runtime.INSTRUCTIONS, text)
    _write_private(home, session, "instructions.md", text)
    runtime.prepare(launch_of(home, session))


def _launch(home: Home, session: Session) -> Session:
    if session.mode == HEADLESS:
        # This very record queues the first turn: the loop starts it.
        return _done(home, session, READY, runner_pid=None, runner_start=None)
    session = _done(home, session, LAUNCHED)
    program = start_terminal(home, session)
    return _done(home, session, READY, runner_pid=program.pid, runner_start=program.text)


def _read_spec(home: Home, session: Session) -> str | None:
    path = session.settings.spec or home.path("specs", f"{session.task_id}.md")
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write_private(home: Home, session: Session, name: str, text: str) -> None:
    path = os.path.join(home.folder(session.id), name)
    write_whole(path, text)
