"""What the doctor asks of agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.config import layout
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.processes.proctable import MARK, environ_of
from rookery.processes.proctree import Identity, end_tree, marked
from rookery.sessions import store

_CATEGORY = "agents"


@contextmanager
def open_for_checks(place: Place) -> Iterator[Context | None]:
    """The project, for checks; None where there is none, or where other checks say why it cannot be used."""
    if place.root is None or not is_project(place.root):
        yield None
        return
    try:
        db = Database.open(database_path(place.root))
    except RookError:
        yield None
        return
    try:
        try:
            ctx = Context.at(place.root, db)
        except RookError:
            yield None
            return
        yield ctx
    finally:
        db.close()


def check_agents(place: Place) -> Iterator[Finding]:
    """No process outlived its agent, and every worktree has one."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        yield Finding(_CATEGORY, "sessions", OK, f"{len(store.sessions(ctx.db, alive=True))} agents are alive")
        yield from _orphans(ctx)
        yield from _strays(ctx)


def _orphans(ctx: Context) -> Iterator[Finding]:
    for session in store.sessions(ctx.db):
        if session.is_alive or not _left_by(ctx, session.id):
            continue
        yield Finding(
            _CATEGORY,
            f"processes of {session.agent}",
            WARNING,
            "processes outlived the agent that started them",
            "run `rook doctor --fix`",
            lambda session_id=session.id: _end(ctx, session_id),  # type: ignore[misc]
        )


def _strays(ctx: Context) -> Iterator[Finding]:
    known = {session.agent for session in store.sessions(ctx.db)}
    folder = ctx.path(layout.WORKTREES)
    strays = [name for name in os.listdir(folder) if name not in known] if os.path.isdir(folder) else []
    if strays:
        yield Finding(
            _CATEGORY,
            "worktrees",
            WARNING,
            f"no agent is known for {', '.join(sorted(strays))}",
            f"look into {folder} and remove what you do not need",
        )


def _left_by(ctx: Context, session_id: str) -> list[Identity]:
    """Processes of a session in this very project: the sessions of a copy have the same ids as the original's."""
    return [each for each in marked(MARK, session_id) if _belongs_to(ctx, each)]


def _belongs_to(ctx: Context, process: Identity) -> bool:
    start = "ROOKERY_ROOT="
    try:
        roots = [each.removeprefix(start) for each in environ_of(process.pid) if each.startswith(start)]
        return not roots or os.path.samefile(layout.path(roots[0]), ctx.path())
    except OSError:
        return False


def _end(ctx: Context, session_id: str) -> str:
    found = _left_by(ctx, session_id)
    for process in found:
        end_tree(process, None, ctx.config.agents.stop_grace)
    return f"ended {len(found)} processes"


CHECKS = (check_agents,)
