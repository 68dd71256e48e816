"""The doctor's checks of the database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import apsw

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import StorageFailed
from rookery.base.text import plural
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.db.migrate import SCHEMA_VERSION

_CATEGORY = "database"


def check_database(place: Place) -> Iterator[Finding]:
    """The file opens, is whole, is at the right schema and logs ahead."""
    if place.root is None or not os.path.exists(database_path(place.root)):
        return
    try:
        db = Database.open(database_path(place.root))
    except StorageFailed as error:
        yield Finding(_CATEGORY, "opens", ERROR, error.message, error.hint)
        return
    with closing(db):
        yield _integrity(db)
        yield Finding(_CATEGORY, "schema", OK, f"version {SCHEMA_VERSION}")
        mode = db.value("PRAGMA journal_mode")
        if mode == "wal":
            yield Finding(_CATEGORY, "journal", OK, "write-ahead log")
        else:
            yield Finding(
                _CATEGORY,
                "journal",
                WARNING,
                f"journal mode is {mode}; readers and writers wait for each other",
                "run `rook doctor --fix`",
                lambda path=db.path: _use_wal(path),  # type: ignore[misc]
            )
        yield _search_index(db)


def _integrity(db: Database) -> Finding:
    try:
        problems = [str(row[0]) for row in db.all("PRAGMA integrity_check(5)") if row[0] != "ok"]
        orphans = db.all("PRAGMA foreign_key_check")
    except StorageFailed as error:
        return Finding(_CATEGORY, "integrity", ERROR, error.message, error.hint)
    problems += [f"{plural(len(orphans), 'broken reference')} between rows"] * bool(orphans)
    if problems:
        return Finding(
            _CATEGORY, "integrity", ERROR, "; ".join(problems), "restore a backup from .rookery/backups, or an export"
        )
    return Finding(_CATEGORY, "integrity", OK, "whole")


def _search_index(db: Database) -> Finding:
    for index in ("tasks_search", "learnings_search"):
        try:
            with db.write():
                db.connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
        except apsw.Error:
            return Finding(
                _CATEGORY,
                "search",
                WARNING,
                f"{index} does not agree with its table",
                "run `rook doctor --fix`",
                lambda path=db.path: _rebuild_search(path),  # type: ignore[misc]
            )
    return Finding(_CATEGORY, "search", OK, "index agrees with the tables")


def _use_wal(path: str) -> str:
    with closing(Database.open(path)) as db:
        db.execute("PRAGMA journal_mode = wal")
    return "switched to the write-ahead log"


def _rebuild_search(path: str) -> str:
    with closing(Database.open(path)) as db, db.write():
        db.execute("INSERT INTO tasks_search (tasks_search) VALUES ('delete-all')")
        db.execute("INSERT OR IGNORE INTO tasks_unindexed SELECT seq FROM tasks")
        db.execute("INSERT INTO learnings_search (learnings_search) VALUES ('rebuild')")
    return "rebuilt the search index"


CHECKS = (check_database,)
