"""What agents do, call by call. It is much, so it has a file of its own, and a power cut may lose the last second."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from typing import Any, Unpack

import apsw

from rookery.base.ids import EVENT, new_id
from rookery.base.json import dumps, loads
from rookery.base.record import Record
from rookery.db.database import Database, reuse_connection
from rookery.db.dialect import conditions, marks
from rookery.db.sqlite import patience, storage_failed
from rookery.events.store import KEEP_TIME, TIMES_EVERY, Bounds, condition, select

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL,
    at         TEXT NOT NULL,
    agent      TEXT NOT NULL,
    session_id TEXT NOT NULL,
    turn_id    TEXT,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    is_error   INTEGER NOT NULL,
    millis     INTEGER,
    data       TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS records_by_session ON records (session_id, seq);
CREATE TABLE IF NOT EXISTS journals (
    turn_id TEXT PRIMARY KEY,
    offset  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_agent ON records (agent, seq);
CREATE INDEX IF NOT EXISTS records_of_errors ON records (seq) WHERE is_error = 1;
CREATE INDEX IF NOT EXISTS records_of_errors_by_agent ON records (agent, seq) WHERE is_error = 1;
CREATE INDEX IF NOT EXISTS records_of_file_changes ON records (agent, seq) WHERE kind = 'file';
CREATE INDEX IF NOT EXISTS records_of_usage ON records (turn_id, seq) WHERE kind = 'usage';
CREATE INDEX IF NOT EXISTS records_of_denials ON records (session_id, json_extract(data, '$.id')) WHERE kind = 'denied';
DROP INDEX IF EXISTS records_by_time;
DROP INDEX IF EXISTS records_of_files;
CREATE TABLE IF NOT EXISTS record_times (
    latest TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (latest, seq)
) WITHOUT ROWID;
INSERT INTO record_times (latest, seq)
    SELECT max(latest) OVER (ORDER BY last), last
    FROM (SELECT max(at) AS latest, max(seq) AS last FROM records GROUP BY seq / 100)
    WHERE NOT EXISTS (SELECT 1 FROM record_times);
"""
"""`record_times` is to records what `event_times` is to events (`db/migrations/0010_events.sql`)."""
_VERSION = 3
LEVELS = {
    "error": "is_error = 1 AND kind <> 'denied'",
    "warn": "(is_error = 1 OR kind IN ('denied', 'limit', 'note'))",
    "info": "(is_error = 1 OR kind IN ('denied', 'limit', 'note', 'text', 'tool', 'file', 'result'))",
    "debug": "1 = 1",
}
"""Which records are of at least that weight."""
_RECENT_CHANGES = 1_000


@dataclass(frozen=True, slots=True)
class Entry(Record):
    """One thing that an agent did or said. `name` is the tool of a tool call, the path of a file change."""

    seq: int
    id: str
    at: str
    agent: str
    session_id: str
    turn_id: str | None
    kind: str
    name: str
    is_error: bool
    millis: int | None
    data: dict[str, Any]


_COLUMNS = Entry.field_names()[1:]
_INSERT = f"INSERT INTO records ({', '.join(_COLUMNS)}) VALUES ({marks(len(_COLUMNS))})"


def _create(connection: apsw.Connection) -> None:
    """Make the tables, or what an older Rookery left out; others may do the same at this moment."""
    wait_more = patience()
    for tries in count():
        try:
            connection.execute("PRAGMA journal_mode = wal")
            break
        except apsw.BusyError:  # SQLite asks no busy handler for this one
            if not wait_more(tries):
                raise
    connection.execute(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT")


class Telemetry:
    """The records of one project."""

    def __init__(self, path: str) -> None:
        pooled = reuse_connection(path)
        if pooled is not None:
            self.db = Database(pooled, path)
            return
        try:
            connection = apsw.Connection(path)
            connection.set_busy_handler(patience())
            if connection.pragma("user_version") < _VERSION:
                _create(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
        except apsw.Error as error:
            raise storage_failed(error, path) from error
        self.db = Database(connection, path)

    def add(
        self,
        *,
        at: str,
        agent: str,
        session_id: str,
        turn_id: str | None,
        kind: str,
        name: str = "",
        is_error: bool = False,
        millis: int | None = None,
        data: dict[str, Any],
    ) -> None:
        """Keep a record; it is redacted already."""
        row = (new_id(EVENT), at, agent, session_id, turn_id, kind, name, is_error, millis, dumps(data))
        with self.db.write() as db:
            db.execute(_INSERT, row)
            if db.inserted % TIMES_EVERY == 0:
                db.execute(KEEP_TIME.format(table="records", times="record_times"))

    def read(
        self,
        agent: str | None = None,
        session_id: str | None = None,
        level: str | None = None,
        **bounds: Unpack[Bounds],
    ) -> list[Entry]:
        """Records in the order in which they came, those of a level and above."""
        where, values = condition(self.db, "record_times", {"agent": agent, "session_id": session_id}, bounds)
        part = ([*where, LEVELS[level or "debug"]], values)
        rows = select(self.db, f"SELECT {', '.join(Entry.field_names())} FROM records", [part], bounds)
        return [Entry(*row).replace(is_error=bool(row[8]), data=loads(row[10])) for row in rows]

    def usage(self, turn_id: str) -> list[dict[str, Any]]:
        """What a turn's program reported of its usage, in order."""
        sql = "SELECT data FROM records WHERE turn_id = ? AND kind = 'usage' ORDER BY seq"
        return [loads(row[0]) for row in self.db.all(sql, (turn_id,))]

    def is_denied(self, session_id: str, call_id: str) -> bool:
        """True if there is a record that this call of a tool was denied."""
        sql = "SELECT 1 FROM records WHERE session_id = ? AND json_extract(data, '$.id') = ? AND kind = 'denied'"
        return self.db.value(sql, (session_id, call_id)) is not None

    def read_offset(self, turn_id: str) -> int:
        """How much of the journal of a turn's runner has been taken over."""
        return int(self.db.value("SELECT offset FROM journals WHERE turn_id = ?", (turn_id,)) or 0)

    def write_offset(self, turn_id: str, offset: int) -> None:
        """Record how far the journal was read, in the transaction of its records."""
        self.db.execute(
            "INSERT INTO journals (turn_id, offset) VALUES (?, ?) "
            "ON CONFLICT (turn_id) DO UPDATE SET offset = excluded.offset",
            (turn_id, offset),
        )

    def measure(self, before: str | None, busy: Collection[str]) -> tuple[int, int]:
        """How many records `delete` would delete, and the length of their texts."""
        where, values = _old(before, busy)
        row = self.db.one(f"SELECT count(*), coalesce(sum(length(data) + 200), 0) FROM records WHERE {where}", values)
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def delete(self, before: str | None, busy: Collection[str], most: int = -1) -> int:
        """Delete records from before a time, the oldest first, but none of sessions that are busy."""
        where, values = _old(before, busy)
        sql = f"DELETE FROM records WHERE seq IN (SELECT seq FROM records WHERE {where} ORDER BY seq LIMIT ?)"
        with self.db.write() as db:
            db.execute(sql, (*values, most))
            return db.changed

    def shrink(self) -> None:
        """Give the room of deleted records back to the disk, where that is much."""
        free, pages = (int(self.db.value(f"PRAGMA {name}")) for name in ("freelist_count", "page_count"))
        if free > pages // 2:
            self.db.execute("VACUUM")

    def last_seq(self) -> int:
        """The number of the newest record."""
        return int(self.db.value("SELECT coalesce(max(seq), 0) FROM records"))

    def changed_files(self, agent: str) -> dict[str, int]:
        """How often the agent has changed each file, of its last thousand changes."""
        return dict(
            self.db.all(
                "SELECT name, count(*) FROM (SELECT name FROM records WHERE agent = ? AND kind = 'file' "
                "ORDER BY seq DESC LIMIT ?) GROUP BY name",
                (agent, _RECENT_CHANGES),
            )
        )

    def close(self) -> None:
        """Close the file."""
        self.db.close()


def _old(before: str | None, busy: Collection[str]) -> tuple[str, list[object]]:
    where, values = conditions({"at < ?": before})
    return " AND ".join([*where, f"session_id NOT IN ({marks(len(busy))})"]), [*values, *busy]
