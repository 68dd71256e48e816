"""What the doctor asks of the project's place: it was neither copied nor moved, and git finds every worktree here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.text import plural
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.location.settle import settle
from rookery.ops import location
from rookery.ops.checks import open_for_checks
from rookery.ops.location import COPIED, HERE, SHARED
from rookery.vcs.git import relocate as git_relocate

_CATEGORY = "location"


def check_location(place: Place) -> Iterator[Finding]:
    """The state is where it was made, and the worktrees and the repository lead to each other."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        seen = location.compare(ctx.root, ctx.db)
    root, before = os.path.realpath(ctx.root), seen.before
    if seen.verdict == HERE or before is None:
        yield Finding(_CATEGORY, "place", OK, root)
        yield from _worktrees(root)
    elif seen.verdict == SHARED:
        message = f"the project is in use as {before.path} on {before.host}; its agents run there"
        yield Finding(_CATEGORY, "place", WARNING, message, "it is repaired for this place when nothing runs there")
    else:
        effect = "agents will be stopped here" if seen.verdict == COPIED else "worktrees will be repaired"
        message = f"the project was {seen.verdict} from {before.path}: its {effect}"
        hint = "any command does it, or `rook doctor --fix`"
        yield Finding(_CATEGORY, "place", WARNING, message, hint, partial(_settle, root))


def _worktrees(root: str) -> Iterator[Finding]:
    stale = git_relocate.stale(root)
    if stale:
        message = f"git does not find these worktrees at their place: {', '.join(map(os.path.basename, stale))}"
        repair = partial(_reclaim, root)
        yield Finding(_CATEGORY, "worktrees", WARNING, message, "run `rook doctor --fix`", repair)


def _reclaim(root: str) -> str:
    return f"repaired {plural(git_relocate.reclaim(root), 'worktree')}"


def _settle(root: str) -> str:
    with closing(Database.open(database_path(root))) as db:
        return settle(root, db) or "recorded the new place"


CHECKS = (check_location,)
