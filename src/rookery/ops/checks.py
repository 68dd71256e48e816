"""How the checks of every feature open a project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

from rookery.base.check import Place
from rookery.base.errors import RookError
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.ops.context import Context


@contextmanager
def open_for_checks(place: Place) -> Iterator[Context | None]:
    """The project, for checks; None if there is none, or if other checks say why it cannot be used."""
    ctx: Context | None = None
    with ExitStack() as stack:
        if place.root is not None and is_project(place.root):
            with suppress(RookError):
                db = stack.enter_context(closing(Database.open(database_path(place.root))))
                ctx = Context.at(place.root, db)
        yield ctx
