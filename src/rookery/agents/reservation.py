"""The first step of a sling: in one transaction, everything that can refuse it, and then the agent's row."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from rookery.agents.siblings import check_scope_free
from rookery.base import call as calls
from rookery.base.errors import InvalidInput, InvalidState
from rookery.base.ids import RUN, SESSION, new_id
from rookery.base.record import Record
from rookery.base.text import in_words, plural
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
    CapReached,
    NameTaken,
    NoSuchAgent,
    NotAllowedToSpawn,
    Run,
    Session,
    Settings,
    TaskTaken,
    check_new_name,
    is_stopping,
)
from rookery.tasks import lifecycle, listing_store, service
from rookery.tasks import store as tasks
from rookery.tasks.model import ACTIVE, NotReady, Task, next_state
from rookery.tasks.store import Author
from rookery.worktrees.place import folder_of_new, place_of_new


@dataclass(frozen=True, slots=True)
class Request(Record):
    """What a caller asks for when it slings an agent."""

    task: str | None
    """Names it; None for the next one that is ready."""
    role: str
    caller: str
    base_commit: str
    name: str | None = None
    runtime: str = ""
    model: str = ""
    mode: str = ""
    profile: str = ""
    parent: str | None = None
    run: str | None = None
    """The run to join; a new agent of an agent is always in its parent's run."""
    share: bool = False
    """Other agents may change the same files."""
    under: str | None = None
    """The next task is the next one under this, or this itself."""
    settings: Settings = field(default_factory=Settings)


def reserve(ctx: Context, request: Request) -> Session:
    """Reserve a session for a new agent, or raise why there is none. Exact, however many ask at once."""
    role = find_role(ctx.root, request.role)
    _check_narrowed(role, request)
    roles = list_roles(ctx.root)
    slings, can_write = {role.name: role.slings for role in roles}, {role.name: role.can_write for role in roles}
    files = () if request.share or not role.can_write else request.settings.files
    config, now, me = ctx.config.agents, ctx.now(), myself()
    session_id, folder = new_id(SESSION), folder_of_new(ctx)
    token = write_token(ctx, session_id)
    try:
        with ctx.db.write() as db:
            parent = find_parent(ctx, request, role, slings)
            task = find_task(ctx, request.task or _find_next(ctx, request.under, now), role, now)
            name = _find_name(db, request.name, role)
            run = _find_run(ctx, request, parent) or new_run(ctx, task, request.caller)
            check_caps(ctx, parent, run)
            check_scope_free(db, files, parent, can_write)
            branch, path = _find_branch(db, name, task), place_of_new(db, name, folder)
            is_new = _check_worktree(db, name, path, branch)
            umask, shell_limits = read_shell(None if request.caller == HUMAN else parent)
            session = Session(
                id=session_id,
                agent=name,
                role=role.name,
                task_id=task.id,
                run_id=run.id,
                parent=HUMAN if parent is None else parent.agent,
                depth=0 if parent is None else parent.depth + 1,
                runtime=request.runtime or role.runtime or config.runtime,
                model=request.model or role.model or config.model,
                mode=request.mode or config.mode,
                profile=request.profile or role.profile,
                worktree=path,
                branch=branch,
                base_commit=request.base_commit,
                settings=request.settings.replace(
                    is_new=is_new,
                    ends_with=role.ends_with,
                    umask=umask,
                    limits=shell_limits,
                    replaced=(task.branch, task.start_commit),
                ),
                token_hash=hash_token(token),
                runner_pid=me.pid,
                runner_start=me.text,
                created_at=now,
                updated_at=now,
                active_at=now,
            )
            store.insert_session(db, session, actor=request.caller, at=now)
            author = Author(name, now)
            held = lifecycle.begin(db, task, "start", author, assignee=name, lease_until=None)
            tasks.change(db, held, "task.branched", author, branch=branch, start_commit=request.base_commit)
            return session
    except BaseException:
        shutil.rmtree(ctx.session_folder(session_id))
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


def read_shell(caller: Session | None) -> tuple[int, dict[str, Any]]:
    """The umask and limits of the person's shell; those of the agent's own session if an agent slings."""
    if caller is not None:
        return caller.settings.umask, caller.settings.limits
    call = calls.current()
    return calls.current_umask(), limits.describe(os.getpid() if call is None else call.pid)


def find_parent(ctx: Context, request: Request, role: Role, slings: Mapping[str, tuple[str, ...]]) -> Session | None:
    """The agent that the new one answers to; None for a person."""
    name = request.parent or request.caller
    if request.caller not in (HUMAN, name):
        raise NotAllowedToSpawn(f"{request.caller} cannot sling for {name}", hint="leave --parent out")
    if name == HUMAN:
        return None
    parent = store.living(ctx.db, name)
    if parent is None:
        raise NoSuchAgent(f"no living agent {name} to be the parent", hint="`rook status` lists the living agents")
    if is_stopping(parent):  # after it has ended, no one would stop the new one
        raise NotAllowedToSpawn(f"{name} is being stopped", hint="leave --parent out, or name another agent")
    hint = f"ask {parent.parent} by mail for what you need"
    if role.name not in slings.get(parent.role, ()) or role.rights.get("agent.write") == ANY:
        raise NotAllowedToSpawn(f"a {parent.role} cannot sling a {role.name}", hint=hint)
    deepest = ctx.config.agents.max_depth
    if parent.depth + 1 > deepest:
        raise NotAllowedToSpawn(
            f"{name} is at depth {parent.depth}, and {deepest} is the deepest",
            hint=f"{hint} (config: agents.max_depth)",
        )
    return parent


def find_task(ctx: Context, wanted: str, role: Role, now: str, *, by: str = "") -> Task:
    """The task, if an agent of that role can begin it now; `by` may have held it before."""
    db = ctx.db
    task = tasks.find(db, wanted)
    for holder in store.sessions(db, alive=True, task_id=task.id):
        hint = f"`rook stop {holder.agent}` first, or choose another task"
        raise TaskTaken(f"{holder.agent} is at work on {task.id}", hint=hint)
    if task.state not in ACTIVE:
        next_state("start", task)  # raises what to do instead
    for above in tasks.ancestors(db, task):
        if above.state not in ACTIVE:
            raise InvalidState(
                f"{above.id} above it is {in_words(above.state)}", hint=f"`rook task reopen {above.id}` first"
            )
    lifecycle.check_unblocked(db, task)
    if task.is_held(now) and task.assignee != by:
        raise TaskTaken(f"{task.assignee} holds {task.id}", hint=f"`rook task release {task.id}` first")
    if tasks.has_unfinished_children(db, task.id) and not role.can_spawn:
        leaf = service.next_ready(db, now, task.id)
        hint = f"sling {leaf.task.id}, or a lead" if leaf else "sling a lead for it"
        raise InvalidInput(f"{task.id} has unfinished children; a {role.name} does one task", hint=hint)
    return task


def _find_next(ctx: Context, under: str | None, now: str) -> str:
    """The next ready task; raises NotReady if there is none."""
    task = listing_store.next_ready(ctx.db, now, None if under is None else tasks.find(ctx.db, under))
    if task is None:
        where = "" if under is None else f" under {under}"
        raise NotReady(f"no task is ready{where}", hint="`rook task list --open` shows what they wait for")
    return task.id


def _find_name(db: Database, wanted: str | None, role: Role) -> str:
    """The name that the caller wants, if it is free; else the role's name and a number that was never used."""
    if not wanted:
        taken = set(store.agent_names(db))
        return next(name for number in count(1) if (name := f"{role.name}-{number}") not in taken)
    alive = store.living(db, check_new_name(wanted))
    if alive is not None:
        raise NameTaken(f"{wanted} is alive, at work on {alive.task_id}", hint="choose another --name")
    return wanted


def _check_worktree(db: Database, name: str, path: str, branch: str) -> bool:
    """True if the agent's worktree has yet to be made; raises NameTaken if an earlier agent's work is in its place."""
    earlier = store.latest(db, name)
    if not os.path.lexists(path):
        return True
    if earlier is not None and earlier.branch != branch:
        raise NameTaken(
            f"the worktree of an earlier {name} is still there, on {earlier.branch}",
            hint=f"choose another --name, or `rook worktree clean {name}`: that saves what is in it and removes it",
        )
    return False


def _find_branch(db: Database, agent: str, task: Task) -> str:
    """The branch for the agent's work on the task: never one of its work on another task, deleted ones included."""
    return tasks.branch_for(
        db, agent, task, lambda name: any(past.task_id != task.id for past in store.sessions(db, branch=name))
    )


def _find_run(ctx: Context, request: Request, parent: Session | None) -> Run | None:
    """The run that the new agent joins: its parent's, or the one that a person names; None if it begins its own."""
    wanted = None if request.run is None else store.find_run(ctx.db, request.run)
    run = wanted if parent is None else store.run(ctx.db, parent.run_id)
    if run is None:
        return None
    if parent is not None and wanted is not None and wanted.id != run.id:
        raise InvalidInput(
            f"{parent.agent} is in {run.id}, and an agent is in the run of the one that it answers to",
            hint="leave --run out",
        )
    if run.completed_at is not None:
        hint = "leave --run out: that begins a run; `rook run list` shows which are open"
        raise InvalidState(f"{run.id} is completed", hint=hint)
    return run


def new_run(ctx: Context, task: Task, caller: str) -> Run:
    run = Run(new_id(RUN), task.title, caller, ctx.now(), None)
    store.insert_run(ctx.db, run)
    return run


def check_caps(ctx: Context, parent: Session | None, run: Run, *, is_resumed: bool = False) -> None:
    """Raise CapReached if there are as many agents as may be. One that is resumed is no further one of its run."""
    config, db = ctx.config.agents, ctx.db
    alive, in_run = store.count(db, alive=True), _count_slung(store.sessions(db, run_id=run.id))
    hint = "wait until one has finished, or raise agents.max_concurrent"
    _check_cap(alive, config.max_concurrent, f"the project has {plural(alive, 'living agent')}", hint)
    hint = "raise agents.max_per_run, or sling without --run: that begins a run"
    if not is_resumed:
        _check_cap(in_run, config.max_per_run, f"{run.id} has slung {plural(in_run, 'agent')}", hint)
    if parent is None:
        return
    living = store.count(db, alive=True, parent=parent.agent)
    hint = "wait until one has finished (config: agents.max_per_lead)"
    _check_cap(living, config.max_per_lead, f"{parent.agent} has {plural(living, 'living agent')}", hint)
    budget = parent.settings.max_agents
    if budget is not None and not is_resumed and _count_slung(store.children(db, parent)) >= budget:
        message = f"{parent.agent} may sling {plural(budget, 'agent')} in all, and has"
        raise CapReached(message, hint="use the agents that it has")


def _count_slung(sessions: Iterable[Session]) -> int:
    """How many of some sessions are those of new agents, and not of agents that were resumed."""
    return sum(not session.settings.resumed_from for session in sessions)


def _check_cap(number: int, most: int, state: str, hint: str) -> None:
    if number >= most:
        raise CapReached(f"{state}, and {most} is the most", hint=hint)
