"""What the doctor asks of the project's place: it was neither copied nor moved, and git finds every worktree here."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.location.settle import settle
from rookery.ops import location
from rookery.ops.location import COPIED, HERE, SHARED
from rookery.vcs.git import relocate as git_relocate

_CATEGORY = "location"


def check_location(place: Place) -> Iterator[Finding]:
    """The state lies where it was made, and the worktrees and the repository lead to each other."""
    if place.root is None or not is_project(place.root):
        return
    try:
        db = Database.open(database_path(place.root))
    except RookError:
        return  # the database's own checks say so
    try:
        found = location.look(place.root, db)
    finally:
        db.close()
    root = os.path.realpath(place.root)
    if found.verdict == HERE or found.before is None:
        yield Finding(_CATEGORY, "place", OK, root)
        yield from _worktrees(root)
        return
    before = found.before
    if found.verdict == SHARED:
        message = f"the project is in use as {before.path} on {before.host}; its agents run there"
        yield Finding(_CATEGORY, "place", WARNING, message, "it is repaired for this place when nothing runs there")
        return
    what = "was copied from" if found.verdict == COPIED else "was moved from"
    consequence = "agents will be stopped here" if found.verdict == COPIED else "worktrees are to be repaired"
    message = f"the project {what} {before.path}: its {consequence}"
    yield Finding(
        _CATEGORY, "place", WARNING, message, "any command does it, or `rook doctor --fix`", lambda: _settle(root)
    )


def _worktrees(root: str) -> Iterator[Finding]:
    stale = git_relocate.stale(root)
    if stale:
        names = ", ".join(os.path.basename(each) for each in stale)
        yield Finding(
            _CATEGORY,
            "worktrees",
            WARNING,
            f"git does not find these worktrees at their place: {names}",
            "run `rook doctor --fix`",
            lambda: f"repaired {git_relocate.reclaim(root)} worktrees",
        )


def _settle(root: str) -> str:
    db = Database.open(database_path(root))
    try:
        return settle(root, db).describe() or "wrote down the new place"
    finally:
        db.close()


CHECKS = (check_location,)
