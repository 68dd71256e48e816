"""`rook resume`: an agent that has ended gets its branch, worktree and conversation back, in a new session.

It is the saga of a sling with another reservation. The earlier session stays as it is, so a failure leaves everything
as it was; messages that ended it do not end the new one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from rookery.agents.reservation import Request, check_caps, find_parent, find_task, new_run, read_shell
from rookery.agents.siblings import check_scope_free
from rookery.agents.sling import carry_out
from rookery.base.errors import InvalidState
from rookery.base.ids import SESSION, handle, new_id
from rookery.base.record import Record
from rookery.base.text import in_words, one_line
from rookery.base.token import hash_token
from rookery.config.environ import HUMAN
from rookery.config.loader import section
from rookery.db.database import Database
from rookery.environment.service import sling_path
from rookery.ops.context import Context
from rookery.ops.location import check_can_run_agents
from rookery.processes.holder import myself
from rookery.roles.catalog import find_role, list_roles
from rookery.roles.model import Role
from rookery.runtimes.registry import open_runtime
from rookery.sandbox.probe import decide
from rookery.sessions import store
from rookery.sessions.credentials import write_token
from rookery.sessions.model import BOOTING, CRASHED, READY, RESERVED, STOPPED, NoSuchAgent, Run, Session, last_by
from rookery.tasks import lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.model import (
    APPROVED,
    AWAITING_HUMAN_REVIEW,
    CANCELLED,
    COMPLETED,
    FAILED,
    NEEDS_REBASE,
    PENDING_REVIEW,
    Task,
)
from rookery.tasks.store import Author
from rookery.turns.stop import sweep
from rookery.worktrees.reopening import check_branch

_OVER = (COMPLETED, CANCELLED, FAILED)
_IN_REVIEW = (PENDING_REVIEW, APPROVED, AWAITING_HUMAN_REVIEW)
_REASON_WIDTH = 300


@dataclass(frozen=True, slots=True)
class Resumption(Record):
    """What a caller asks for when it resumes an agent. What it leaves out is as in the earlier session."""

    agent: str
    caller: str
    text: str = ""
    """What the agent is asked; without it, to go on."""
    why: str = ""
    """Why it is resumed, in Rookery's own words; instead of `text`."""
    model: str = ""
    mode: str = ""
    share: bool = False
    """Other agents may change the same files."""


def resume(ctx: Context, request: Resumption, before: Callable[[Database], object] = lambda _db: None) -> Session:
    """Start an agent again that has ended, or leave everything as it was.

    `before` is called in the transaction that reserves the session: what it changes is kept with that, or not at all.
    """
    check_can_run_agents(ctx.root, ctx.db)
    earlier = find_ended(ctx.db, request.agent)
    settings = section(ctx.config, earlier.runtime)
    open_runtime(earlier.runtime).check_installed(settings, sling_path(ctx.root, request.caller))
    task = tasks.existing(ctx.db, earlier.task_id)
    if task is not None and task.state in _OVER:
        raise InvalidState(
            f"{request.agent} has nothing to go on with: {handle(task.id)} is {in_words(task.state)}",
            hint=_begin_again(task, request.agent),
        )
    check_branch(ctx, earlier)
    sweep(ctx, earlier.id)
    return carry_out(ctx, _reserve(ctx, request, earlier, decide(ctx), before), request.caller)


def _begin_again(task: Task, agent: str) -> str:
    """How an agent whose task is over gets work again."""
    reopen = f"`rook task reopen {handle(task.id)}`"
    if task.state == COMPLETED:
        new = f'`rook sling "…" --name {agent}` gives it a new task'
        return f"{new}; {reopen}, then `rook sling {handle(task.id)} --name {agent}` does this one again"
    return f"{reopen}, then `rook resume {agent}`"


def find_ended(db: Database, name: str) -> Session:
    """The last session of an agent that can be resumed; raises why there is none."""
    session = store.latest(db, name)
    if session is None:
        raise NoSuchAgent(f"no agent {name}", hint="`rook status --all` lists all agents, also those that have ended")
    if session.hold is not None:
        raise InvalidState(f"{name} is {session.hold.kind}", hint=f"`rook handback {name}` lets it go on")
    if session.is_alive:
        hint = f"`rook mail send {name} --subject … --body …` reaches it, `rook stop {name}` ends it"
        raise InvalidState(f"{name} has not ended: it is {session.state}", hint=hint)
    if session.step != READY:
        again = f"`rook sling {session.task_id} --name {name}` starts it"
        raise InvalidState(f"{name} never began to work: {one_line(session.reason or '', 200)}", hint=again)
    return session


def _reserve(
    ctx: Context, request: Resumption, earlier: Session, sandbox: str, before: Callable[[Database], object]
) -> Session:
    """Reserve the new session, or raise why it cannot be resumed. Exact, however many ask at once."""
    role = find_role(ctx.root, earlier.role)
    roles = list_roles(ctx.root)
    slings, can_write = {role.name: role.slings for role in roles}, {role.name: role.can_write for role in roles}
    files = () if request.share or not role.can_write else earlier.settings.files
    now, me, session_id = ctx.now(), myself(), new_id(SESSION)
    token = write_token(ctx, session_id)
    try:
        with ctx.db.write() as db:
            _check_same(earlier, find_ended(db, request.agent))
            before(db)
            parent = _find_parent(ctx, request, earlier, role, slings)
            run = _find_run(ctx, request, earlier)
            check_caps(ctx, parent, run, is_resumed=True)
            check_scope_free(db, files, parent, can_write)
            replaced = tasks.existing(db, earlier.task_id)
            task = _begin(ctx, earlier, role, now)
            umask, shell_limits = read_shell(None if request.caller == HUMAN else store.living(db, request.caller))
            settings = earlier.settings.replace(
                sandbox=sandbox,
                ports=None,
                umask=umask,
                limits=shell_limits,
                is_new=not os.path.lexists(earlier.worktree),
                ends_with=role.ends_with,
                resumed_from=earlier.id,
                prompt=_prompt(db, earlier, task, request),
                restored="",
                replaced=None if replaced is None else (replaced.branch, replaced.start_commit),
            )
            session = earlier.replace(
                id=session_id,
                task_id=None if task is None else task.id,  # it may be deleted
                run_id=run.id,
                parent=HUMAN if parent is None else parent.agent,
                depth=0 if parent is None else parent.depth + 1,
                model=request.model or earlier.model,
                mode=request.mode or earlier.mode,
                state=BOOTING,
                outcome=None,
                reason=None,
                step=RESERVED,
                settings=settings,
                token_hash=hash_token(token),
                runner_pid=me.pid,
                runner_start=me.text,
                created_at=now,
                updated_at=now,
                active_at=now,
                ended_at=None,
                swept_at=None,
                nudged=0,
                hold=None,
            )
            store.insert_session(db, session, actor=request.caller, at=now)
            return session
    except BaseException:
        shutil.rmtree(ctx.session_folder(session_id))
        raise


def _check_same(earlier: Session, latest: Session) -> None:
    if latest.id != earlier.id:
        raise InvalidState(f"{latest.agent} was resumed just now", hint="`rook status` shows what it does")


def _find_parent(
    ctx: Context, request: Resumption, earlier: Session, role: Role, slings: dict[str, tuple[str, ...]]
) -> Session | None:
    """The agent that it answers to: as before, or the caller if that one has ended."""
    has_parent = store.living(ctx.db, earlier.parent) is not None
    asked = Request(
        task=earlier.task_id or "",
        role=earlier.role,
        caller=HUMAN if has_parent else request.caller,
        base_commit=earlier.base_commit,
        parent=earlier.parent if has_parent else None,
    )
    return find_parent(ctx, asked, role, slings)


def _find_run(ctx: Context, request: Resumption, earlier: Session) -> Run:
    """The run that it was in; a new one if that is completed."""
    run = store.run(ctx.db, earlier.run_id)
    task = tasks.existing(ctx.db, earlier.task_id)
    return run if run.completed_at is None or task is None else new_run(ctx, task, request.caller)


def _begin(ctx: Context, earlier: Session, role: Role, now: str) -> Task | None:
    """Begin the agent's task again, on its branch; raises why that cannot be."""
    db = ctx.db
    task = tasks.existing(db, earlier.task_id)
    if task is None:
        return None
    if task.state in _IN_REVIEW:
        hint = f'`rook review request-changes {handle(task.id)} "…"` says what to change, and resumes it'
        if task.branch != earlier.branch:
            keep = f"`rook compare {handle(task.id)} --keep {earlier.agent}`"
            if task.state == APPROVED:
                keep = f"`rook task fail {handle(task.id)}`, `rook task reopen {handle(task.id)}`, then {keep}"
            hint = f"with {task.branch}; {keep} hands in {earlier.branch} instead"
        raise InvalidState(f"{handle(task.id)} is {in_words(task.state)}", hint=hint)
    if task.state == NEEDS_REBASE and task.branch == earlier.branch:
        return task
    task = find_task(ctx, task.id, role, now, by=earlier.agent)
    author = Author(earlier.agent, now)
    task = lifecycle.begin(db, task, "start", author, assignee=earlier.agent, lease_until=None)
    return tasks.change(db, task, "task.branched", author, branch=earlier.branch, start_commit=earlier.base_commit)


def _prompt(db: Database, earlier: Session, task: Task | None, request: Resumption) -> str:
    """The first prompt: how the earlier session ended, and what is asked now."""
    what = f"task {task.id}" if task is not None else "what you are asked by mail"
    ended = f"{earlier.outcome}: {one_line(earlier.reason or '', _REASON_WIDTH)}".rstrip(": ")
    begun = "Your branch and this conversation are as you left them."
    if earlier.runtime_session is None:
        begun = "You have no earlier conversation; your branch is as you left it."
    goes_on = request.why or f"Look at where things are, and go on with {what}."
    lines = [
        f"You are {earlier.agent}, a {earlier.role}, and you are resumed. Your last session ended ({ended}). {begun} "
        "Your instructions tell how you work and report. What you said then does not end this session: when you are "
        "done, hand over again.",
        f"{request.caller} asks:\n\n{request.text.strip()}" if request.text.strip() else goes_on,
    ]
    workers = [
        f"- {worker.agent}, branch {worker.branch}, {worker.outcome}: {one_line(worker.reason or '', _REASON_WIDTH)}"
        for worker in find_unfinished(db, earlier)
    ]
    if workers:
        head = "Your agents that ended before they were done; `rook resume NAME` starts one again:"
        lines.append("\n".join([head, *workers]))
    return "\n\n".join(lines)


def find_unfinished(db: Database, lead: Session) -> list[Session]:
    """The agents that answered to one in its run, ended before they were done, and have work to go on with."""
    below = store.sessions(db, parent=lead.agent, run_id=lead.run_id)
    ended = [one for one in last_by("agent", below).values() if one.outcome in (STOPPED, CRASHED) and one.step == READY]
    known = tasks.get_many(db, {one.task_id for one in ended if one.task_id})
    open_tasks = {task.id for task in known.values() if not task.is_finished}
    return [one for one in ended if one.task_id in open_tasks and _is_latest(db, one)]


def _is_latest(db: Database, session: Session) -> bool:
    latest = store.latest(db, session.agent)
    return latest is not None and latest.id == session.id
