"""What the doctor asks of agents."""

from __future__ import annotations

import os

from rookery.agents import store
from rookery.agents.home import MARK, Home
from rookery.agents.recovery import recover
from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.base.proctree import end_tree, marked
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path, is_project
from rookery.db.database import Database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CATEGORY = "agents"


def check_agents(place: Place) -> Iterator[Finding]:
    """Nobody was left behind by a kill, and no process outlived its agent."""
    if place.root is None or not is_project(place.root):
        return
    try:
        db = Database.open(database_path(place.root))
        home = Home(place.root, db, load_config(place.root, read_environ(), {}).config)
    except RookError:
        return  # the database's and the configuration's own checks say so
    try:
        alive = store.sessions(db, alive=True)
        mended = recover(home)
        for each in mended:
            yield Finding(_CATEGORY, each.agent, OK, f"{each.found}: {each.done}")
        if not mended:
            yield Finding(_CATEGORY, "lives", OK, f"{len(alive)} agents are alive, none is left behind")
        yield from _orphans(home)
        yield from _strays(home)
    finally:
        db.close()


def _orphans(home: Home) -> Iterator[Finding]:
    for session in store.sessions(home.db):
        if session.is_alive or not marked(MARK, session.id):
            continue
        yield Finding(
            _CATEGORY,
            f"processes of {session.agent}",
            WARNING,
            "processes outlived the agent that started them",
            "run `rook doctor --fix`",
            lambda session_id=session.id: _end(home, session_id),  # type: ignore[misc]
        )


def _strays(home: Home) -> Iterator[Finding]:
    known = {session.agent for session in store.sessions(home.db)}
    folder = home.path("worktrees")
    strays = [name for name in os.listdir(folder) if name not in known] if os.path.isdir(folder) else []
    if strays:
        yield Finding(
            _CATEGORY,
            "worktrees",
            WARNING,
            f"no agent is known for {', '.join(sorted(strays))}",
            f"look into {folder} and remove what you do not need",
        )


def _end(home: Home, session_id: str) -> str:
    ended = end_tree(None, (MARK, session_id), home.config.agents.stop_grace)
    return f"ended {len(ended)} processes"


CHECKS = (check_agents,)
