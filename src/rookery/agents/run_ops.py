"""Operations of runs and specifications."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidInput, InvalidState, NotFound
from rookery.base.record import Record
from rookery.base.text import check_text
from rookery.config import layout
from rookery.config.project import make_state_folders, root_of, to_stored
from rookery.events.store import publish
from rookery.ops.context import Context
from rookery.ops.operation import LONG_TEXT, NOTHING, PROCESS, RUNS, TASKS, Doc, Owns, Ref, op
from rookery.sessions import store
from rookery.sessions.model import Run
from rookery.status import service as status
from rookery.tasks import store as tasks

RunArg = Annotated[
    str | None, Ref(RUNS), Doc("The run's id, or the beginning of it; by default the one that is under way.")
]


@dataclass(frozen=True, slots=True)
class Spec(Record):
    """A task's specification."""

    task_id: str
    path: str
    text: str


@op("run list", needs="agent.read", view="runs.table")
def list_runs(ctx: Context) -> list[Run]:
    """List runs, the newest first."""
    return store.runs(ctx.db)


@op("run show", needs="agent.read", view="runs.report")
def show(ctx: Context, run: RunArg = None) -> status.RunReport:
    """Show a run: which agents were slung in it, how they ended, what it cost."""
    return status.run_report(ctx, status.find_run(ctx.db, run))


@op("run complete", needs="run.write", long=True, touches=PROCESS, owns=NOTHING, view="runs.one")
def complete(ctx: Context, run: RunArg = None) -> Run:
    """End a run; the next sling begins a new one."""
    with ctx.db.write() as db:
        row = status.find_run(ctx.db, run)
        if row.completed_at is not None:
            raise InvalidState(f"{row.id} is over already")
        alive = [session.agent for session in store.sessions(db, alive=True, run_id=row.id)]
        if alive:
            raise InvalidState(f"{', '.join(alive)} are still alive", hint="`rook stop` them, or wait")
        return store.complete_run(db, row, actor=ctx.actor, at=ctx.now())


@op("spec write", needs="spec.write", view="runs.spec")
def write_spec(
    ctx: Context,
    task: Annotated[str, Owns(TASKS), Doc("The task.")],
    *,
    body: Annotated[str, LONG_TEXT, Doc("The specification; Markdown.")],
) -> Spec:
    """Keep a task's specification, for the agent that is slung on it."""
    check_text("the specification", body)
    if not body.strip():
        raise InvalidInput("the specification is empty", hint="say what is wanted and how to see that it is done")
    task_id = tasks.resolve(ctx.db, task)
    path = ctx.path(layout.SPECS, f"{task_id}.md")
    make_state_folders(os.path.dirname(path))
    write_whole(path, body if body.endswith("\n") else body + "\n")
    with ctx.db.write() as db:
        data = {"path": to_stored(root_of(db.path), path), "size": len(body)}
        publish(db, "spec.written", task_id, data, actor=ctx.actor, at=ctx.now())
    return Spec(task_id, path, body)


@op("spec show", needs="agent.read", view="runs.spec")
def show_spec(ctx: Context, task: Annotated[str, Ref(TASKS), Doc("The task.")]) -> Spec:
    """Show a task's specification."""
    task_id = tasks.resolve(ctx.db, task)
    path = ctx.path(layout.SPECS, f"{task_id}.md")
    if not os.path.isfile(path):
        raise NotFound(f"no specification of {task_id}", hint=f"`rook spec write {task_id} --body -`")
    with open(path, encoding="utf-8") as file:
        return Spec(task_id, path, file.read())
