"""The first step of a sling: in one transaction, everything that can refuse it, and then a place for the agent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rookery.base import call as calls
from rookery.base.errors import InvalidInput, InvalidState
from rookery.base.ids import RUN, SESSION, new_id
from rookery.base.record import Record
from rookery.base.token import hash_token
from rookery.config.environ import HUMAN
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.processes import limits
from rookery.processes.holder import myself
from rookery.roles.catalog import find_role, list_roles
from rookery.roles.model import PROFILES, Role
from rookery.roles.permissions import ANY
from rookery.roles.tools import has_tool, why_no_tool
from rookery.sessions import store
from rookery.sessions.credentials import write_token
from rookery.sessions.model import (
    BOOTING,
    RESERVED,
    CapReached,
    NameTaken,
    NoSuchAgent,
    NotAllowedToSpawn,
    Run,
    Session,
    Settings,
    TaskTaken,
    check_new_name,
)
from rookery.tasks import lifecycle, service
from rookery.tasks import store as tasks
from rookery.tasks.model import ACTIVE, Task
from rookery.tasks.store import Author
from rookery.vcs.ref_names import branch_name
from rookery.worktrees.service import path_of


@dataclass(frozen=True, slots=True)
class Request(Record):
    """What a caller asks for when it slings an agent."""

    task: str
    role: str
    caller: str
    base_commit: str
    name: str | None = None
    runtime: str = ""
    model: str = ""
    mode: str = ""
    profile: str = ""
    parent: str | None = None
    settings: Settings = field(default_factory=Settings)


def reserve(ctx: Context, request: Request) -> Session:
    """Take a place for a new agent, or raise why there is none. Exact, however many ask at once."""
    role = find_role(ctx.root, request.role)
    _check_narrowed(role, request)
    slings = {each.name: each.slings for each in list_roles(ctx.root)}
    config, now, me = ctx.config.agents, ctx.now(), myself()
    session_id = new_id(SESSION)
    token = write_token(ctx, session_id)
    try:
        with ctx.db.write() as db:
            parent, depth = _parent(ctx, request, role, slings)
            task = _task(ctx, request.task, role, now)
            name = check_new_name(request.name) if request.name else _free_name(ctx, role)
            _check_free(ctx, name, task)
            run = store.open_run(db) or _new_run(ctx, task, request.caller)
            _check_caps(ctx, request, parent, run)
            branch, path = branch_name(name, task.id), path_of(ctx.root, name)
            session = Session(
                id=session_id,
                agent=name,
                role=role.name,
                task_id=task.id,
                run_id=run.id,
                parent=parent,
                depth=depth,
                runtime=request.runtime or role.runtime or config.runtime,
                model=request.model or role.model or config.model,
                mode=request.mode or config.mode,
                profile=request.profile or role.profile,
                state=BOOTING,
                outcome=None,
                reason=None,
                step=RESERVED,
                worktree=path,
                branch=branch,
                base_commit=request.base_commit,
                settings=request.settings.replace(
                    is_new=not os.path.lexists(path), ends_with=role.ends_with, **_shell(db, request)
                ),
                token_hash=hash_token(token),
                runner_pid=me.pid,
                runner_start=me.text,
                runtime_session=None,
                created_at=now,
                updated_at=now,
                active_at=now,
                ended_at=None,
            )
            store.insert_session(db, session, actor=request.caller, at=now)
            author = Author(name, now)
            held = lifecycle.begin(db, task, "start", author, assignee=name, lease_until=None)
            tasks.change(db, held, "task.branched", author, branch=branch, start_commit=request.base_commit)
            return session
    except BaseException:
        _forget_token(ctx, session_id)
        raise


def _check_narrowed(role: Role, request: Request) -> None:
    """Raise InvalidInput if the caller asks for more than the role has: a sling narrows a role, and never widens it."""
    for tool in request.settings.tools:
        problem = why_no_tool(tool) or ("" if has_tool(role.tools, tool) else f"a {role.name} has no {tool}")
        if problem:
            raise InvalidInput(problem, hint=f"`rook guard explain {role.name}` shows what it has")
    if request.profile and PROFILES.index(request.profile) > PROFILES.index(role.profile):
        raise InvalidInput(
            f"a {role.name} is {role.profile}, and {request.profile} is looser",
            hint="leave --profile out, or add a role in .rookery/roles/ that has it",
        )


def _shell(db: Database, request: Request) -> dict[str, Any]:
    """The umask and limits of the person's shell; those of the agent's own session if an agent slings."""
    caller = None if request.caller == HUMAN else store.living(db, request.caller)
    if caller is not None:
        return {"umask": caller.settings.umask, "limits": caller.settings.limits}
    call = calls.current()
    return {
        "umask": calls.current_umask(),
        "limits": limits.describe(os.getpid() if call is None else call.pid),
    }


def _parent(ctx: Context, request: Request, role: Role, slings: Mapping[str, tuple[str, ...]]) -> tuple[str, int]:
    """Who the agent answers to, and how deep it is."""
    name = request.parent or request.caller
    if request.caller not in (HUMAN, name):
        raise NotAllowedToSpawn(f"{request.caller} cannot sling for {name}", hint="leave --parent out")
    if name == HUMAN:
        return HUMAN, 0
    above = store.living(ctx.db, name)
    if above is None:
        raise NoSuchAgent(f"no living agent {name} to be the parent", hint="`rook status` shows who is there")
    if role.name not in slings.get(above.role, ()) or role.rights.get("agent.write") == ANY:
        raise NotAllowedToSpawn(
            f"a {above.role} cannot sling a {role.name}", hint=f"ask {above.parent} by mail for what you need"
        )
    if above.depth + 1 > ctx.config.agents.max_depth:
        raise NotAllowedToSpawn(
            f"{name} is at depth {above.depth}, and {ctx.config.agents.max_depth} is the deepest",
            hint=f"ask {above.parent} by mail for what you need (config: agents.max_depth)",
        )
    return name, above.depth + 1


def _task(ctx: Context, wanted: str, role: Role, now: str) -> Task:
    db = ctx.db
    task = tasks.find(db, wanted)
    for holder in store.sessions(db, alive=True, task_id=task.id):
        hint = f"`rook stop {holder.agent}` first, or choose another task"
        raise TaskTaken(f"{holder.agent} is at work on {task.id}", hint=hint)
    if task.state not in ACTIVE:
        raise InvalidState(f"{task.id} is {task.state}", hint=f"`rook task reopen {task.id}` first")
    for above in tasks.ancestors(db, task):
        if above.state not in ACTIVE:
            raise InvalidState(f"{above.id} above it is {above.state}", hint=f"`rook task reopen {above.id}` first")
    lifecycle.check_unblocked(db, task)
    if task.is_held(now):
        raise TaskTaken(f"{task.assignee} holds {task.id}", hint=f"`rook task release {task.id}` first")
    if tasks.has_unfinished_children(db, task.id) and not role.can_spawn:
        leaf = service.next_ready(db, now, task.id)
        hint = f"sling {leaf.task.id}, or a lead" if leaf else "sling a lead for it"
        raise InvalidInput(f"{task.id} has unfinished children; a {role.name} does one task", hint=hint)
    return task


def _free_name(ctx: Context, role: Role) -> str:
    taken = set(store.agent_names(ctx.db))
    number = 1
    while f"{role.name}-{number}" in taken:
        number += 1
    return f"{role.name}-{number}"


def _check_free(ctx: Context, name: str, task: Task) -> None:
    alive = store.living(ctx.db, name)
    if alive is not None:
        raise NameTaken(f"{name} is alive, at work on {alive.task_id}", hint="choose another --name")


def _new_run(ctx: Context, task: Task, caller: str) -> Run:
    run = Run(new_id(RUN), task.title, caller, ctx.now(), None)
    store.insert_run(ctx.db, run)
    return run


def _check_caps(ctx: Context, request: Request, parent: str, run: Run) -> None:
    config, db = ctx.config.agents, ctx.db
    alive = store.count(db, alive=True)
    if alive >= config.max_concurrent:
        raise CapReached(
            f"{alive} agents are alive, and {config.max_concurrent} is the most",
            hint="wait until one has finished, or raise agents.max_concurrent",
        )
    in_run = store.count(db, run_id=run.id)
    if in_run >= config.max_per_run:
        raise CapReached(
            f"this run has slung {in_run} agents, and {config.max_per_run} is the most",
            hint="`rook run complete` ends it, or raise agents.max_per_run",
        )
    if parent == HUMAN:
        return
    children = store.count(db, alive=True, parent=parent)
    if children >= config.max_per_lead:
        raise CapReached(
            f"{parent} has {children} living agents, and {config.max_per_lead} is the most",
            hint="wait until one has finished (config: agents.max_per_lead)",
        )
    above = store.living(db, parent)
    budget = None if above is None else above.settings.max_agents
    slung = len([each for each in store.sessions(db, parent=parent) if above and each.created_at >= above.created_at])
    if budget is not None and slung >= budget:
        raise CapReached(f"{parent} may sling {budget} agents in all, and has", hint="do with those that are there")


def _forget_token(ctx: Context, session_id: str) -> None:
    folder = ctx.session_folder(session_id)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
