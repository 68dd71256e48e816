"""What the doctor asks of the project's folder. What it asks of the settings is in `ops.config_checks`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rookery.base.check import ERROR, OK, WARNING, Check, Finding, Place
from rookery.base.draft import write_whole
from rookery.base.errors import NotInitialised
from rookery.config import layout
from rookery.config.environ import read_environ
from rookery.config.project import find_repository, is_project
from rookery.config.template import GITIGNORE

_CATEGORY = "config"


def check_project(place: Place) -> Iterator[Finding]:
    """There is a project, whole enough to be found."""
    if place.root is not None:
        yield Finding(_CATEGORY, "project", OK, f"the project is at {place.root}")
        return
    if place.refused is not None:
        return  # the doctor reports it
    named = read_environ().root
    if named is not None and not is_project(named):
        message = f"ROOKERY_ROOT is {named}, and there is no project there"
        yield Finding(_CATEGORY, "project", ERROR, message, "unset it, or run `rook init` there")
        return
    started = layout.path(find_repository(place.cwd) or place.cwd)
    if os.path.lexists(started):
        message = f"{started} is there, but holds no database"
        yield Finding(_CATEGORY, "project", ERROR, message, "run `rook init`; it keeps what is there")
        return
    message = f"no Rookery project in {place.cwd} or above it"
    yield Finding(_CATEGORY, "project", WARNING, message, NotInitialised.default_hint)


def check_gitignore(place: Place) -> Iterator[Finding]:
    """The state ignores itself, so that no `git add -A` takes the database along."""
    if place.root is None:
        return
    path = layout.path(place.root, layout.IGNORE)
    if os.path.isfile(path) and os.path.getsize(path):
        yield Finding(_CATEGORY, "gitignore", OK, "the project's state is kept out of version control")
        return

    def write() -> str:
        write_whole(path, GITIGNORE)
        return f"wrote {path}"

    message = f"{path} is missing, so that the database can be committed"
    yield Finding(_CATEGORY, "gitignore", WARNING, message, "`rook doctor --fix` writes it", write)


CHECKS: tuple[Check, ...] = (check_project, check_gitignore)
