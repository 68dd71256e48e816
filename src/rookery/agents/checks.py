"""What the doctor asks of agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.text import plural
from rookery.config import layout
from rookery.ops.checks import open_for_checks
from rookery.ops.context import Context
from rookery.processes.proctable import MARK, environ_of, read_all, session_of
from rookery.processes.proctree import Identity, end_tree, marked
from rookery.sessions import store

_CATEGORY = "agents"


def check_agents(place: Place) -> Iterator[Finding]:
    """No process outlived its agent, and every worktree has an agent."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        yield Finding(_CATEGORY, "sessions", OK, plural(len(store.sessions(ctx.db, alive=True)), "living agent"))
        yield from _orphans(ctx)
        yield from _strays(ctx)


def _orphans(ctx: Context) -> Iterator[Finding]:
    running = {session_of(pid) for pid in read_all()}  # once, and not for every session that ever was
    for session in store.sessions(ctx.db):
        if not session.is_alive and session.id in running and _left_by(ctx, session.id):
            yield Finding(
                _CATEGORY,
                f"processes of {session.agent}",
                WARNING,
                "processes have outlived the agent that started them",
                "run `rook doctor --fix`",
                partial(_end, ctx, session.id),
            )


def _strays(ctx: Context) -> Iterator[Finding]:
    known = {session.agent for session in store.sessions(ctx.db)}
    folder = ctx.path(layout.WORKTREES)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    strays = [name for name in names if name not in known and not name.startswith(layout.RESOLUTION)]
    if strays:
        message = f"no agent is known for {', '.join(sorted(strays))}"
        hint = f"see what is in {folder}, and remove what you do not need"
        yield Finding(_CATEGORY, "worktrees", WARNING, message, hint)


def _left_by(ctx: Context, session_id: str) -> list[Identity]:
    """Processes of a session in this very project: the sessions of a copy have the same ids as the original's."""
    return [process for process in marked(MARK, session_id) if _belongs_to(ctx, process)]


def _belongs_to(ctx: Context, process: Identity) -> bool:
    start = "ROOKERY_ROOT="
    try:
        roots = [text.removeprefix(start) for text in environ_of(process.pid) if text.startswith(start)]
        return not roots or os.path.samefile(layout.path(roots[0]), ctx.path())
    except OSError:
        return False


def _end(ctx: Context, session_id: str) -> str:
    processes = _left_by(ctx, session_id)
    for process in processes:
        end_tree(process, None, ctx.config.agents.stop_grace)
    return f"ended {plural(len(processes), 'process', 'processes')}"


CHECKS = (check_agents,)
