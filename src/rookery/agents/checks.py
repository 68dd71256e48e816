"""What the doctor asks of agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import FOLDER, database_path, is_project
from rookery.db.database import Database
from rookery.processes.proctable import environ_of
from rookery.processes.proctree import Identity, end_tree, marked
from rookery.sessions import store
from rookery.sessions.home import MARK, Home

_CATEGORY = "agents"


@contextmanager
def open_for_checks(place: Place) -> Iterator[Home | None]:
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
            home = Home(place.root, db, load_config(place.root, read_environ(), {}).config)
        except RookError:
            yield None
            return
        yield home
    finally:
        db.close()


def check_agents(place: Place) -> Iterator[Finding]:
    """No process outlived its agent, and every worktree has one."""
    with open_for_checks(place) as home:
        if home is None:
            return
        yield Finding(_CATEGORY, "sessions", OK, f"{len(store.sessions(home.db, alive=True))} agents are alive")
        yield from _orphans(home)
        yield from _strays(home)


def _orphans(home: Home) -> Iterator[Finding]:
    for session in store.sessions(home.db):
        if session.is_alive or not _left_by(home, session.id):
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


def _left_by(home: Home, session_id: str) -> list[Identity]:
    """Processes of a session in this very project: the sessions of a copy have the same ids as the original's."""
    return [each for each in marked(MARK, session_id) if _belongs_to(home, each)]


def _belongs_to(home: Home, process: Identity) -> bool:
    start = "ROOKERY_ROOT="
    try:
        roots = [each.removeprefix(start) for each in environ_of(process.pid) if each.startswith(start)]
        return not roots or os.path.samefile(os.path.join(roots[0], FOLDER), home.path())
    except OSError:
        return False


def _end(home: Home, session_id: str) -> str:
    found = _left_by(home, session_id)
    for process in found:
        end_tree(process, None, home.config.agents.stop_grace)
    return f"ended {len(found)} processes"


CHECKS = (check_agents,)
