"""Operations of runs and specifications."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidInput, InvalidState, NotFound
from rookery.base.page import Page
from rookery.base.record import Record
from rookery.base.text import check_text, one_line
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
    str | None,
    Ref(RUNS),
    Doc("The run's id, or its beginning or end; by default the newest active one, else the newest."),
]
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Spec(Record):
    """A task's specification."""

    PRINTS = "task_id"
    task_id: str
    path: str
    text: str


@op("run list", needs="agent.read", view="runs.table")
def list_runs(
    ctx: Context,
    *,
    limit: Annotated[int, Doc("How many at most (50; 0 for all).")] = 50,
    cursor: Annotated[str | None, Ref(RUNS), Doc("The last run of the page before: go on after it.")] = None,
) -> Page[Run]:
    """List runs, the newest first. A run is under way while one of its agents is alive."""
    if limit < 0:
        raise InvalidInput("the limit is negative", hint="0 lists all")
    runs = store.runs(ctx.db, limit=limit, cursor=cursor)
    shown = runs[: limit or None]
    return Page(shown, shown[-1].id if len(shown) < len(runs) else None)


@op("run show", needs="agent.read", view="runs.report")
def show(ctx: Context, run: RunArg = None) -> status.RunReport:
    """Show a run: which agents were slung in it, how they ended, what it cost."""
    return status.run_report(ctx, status.find_run(ctx.db, run))


@op("run complete", needs="run.write", long=True, touches=PROCESS, owns=NOTHING, view="runs.one")
def complete(
    ctx: Context,
    run: Annotated[
        str | None, Ref(RUNS), Doc("The run's id, or its beginning or end; by default the only one that is open.")
    ] = None,
) -> Run:
    """Complete a run: its goal is reached, and no agent can join it any more."""
    with ctx.db.write() as db:
        row = _find_open(ctx) if run is None else store.find_run(db, run)
        if row.completed_at is not None:
            raise InvalidState(f"{row.id} is completed already", hint="`rook run list` shows which are not")
        alive = [session.agent for session in store.sessions(db, alive=True, run_id=row.id)]
        if alive:
            raise InvalidState(f"still alive: {', '.join(alive)}", hint="`rook stop` them, or wait")
        return store.complete_run(db, row, actor=ctx.actor, at=ctx.now())


def _find_open(ctx: Context) -> Run:
    """The only run that is not completed."""
    runs = store.uncompleted_runs(ctx.db)
    if not runs:
        raise NotFound("no run is open", hint="`rook run list` shows them")
    if len(runs) > 1:
        shown = "; ".join(f"{run.id} ({one_line(run.title, 50)})" for run in runs[:_SHOWN])
        more = f"; and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
        raise InvalidInput(f"{len(runs)} runs are open: {shown}{more}", hint=f"`rook run complete {runs[0].id}`")
    return runs[0]


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
