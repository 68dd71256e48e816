"""What agents do, call by call, in a file of its own: it is much, and a power cut may cost its last second."""

from __future__ import annotations

import apsw

from rookery.base.ids import EVENT, new_id
from rookery.base.json import dumps, loads
from rookery.base.record import Record
from rookery.db.database import Database, patience, storage_failed, take_kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
CREATE INDEX IF NOT EXISTS records_by_time ON records (at);
CREATE INDEX IF NOT EXISTS records_of_files ON records (agent, name) WHERE kind = 'file';
CREATE INDEX IF NOT EXISTS records_of_errors ON records (seq) WHERE is_error = 1;
"""
_VERSION = 2


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


def _create(connection: apsw.Connection) -> None:
    """Make the tables, or what an older Rookery left out; others may do the same at this moment."""
    bear = patience()
    tries = 0
    while True:
        try:
            connection.execute("PRAGMA journal_mode = wal")
            break
        except apsw.BusyError:  # SQLite asks no busy handler for this one
            if not bear(tries):
                raise
            tries += 1
    connection.execute(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT")


class Telemetry:
    """The records of one project."""

    def __init__(self, path: str) -> None:
        kept = take_kept(path)
        if kept is not None:
            self.db = Database(kept, path)
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
        self.db.execute(
            "INSERT INTO records (id, at, agent, session_id, turn_id, kind, name, is_error, millis, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                new_id(EVENT),
                at,
                agent,
                session_id,
                turn_id,
                kind,
                name,
                int(is_error),
                millis,
                dumps(data),
            ),
        )

    def read(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        agent: str | None = None,
        session_id: str | None = None,
        kinds: tuple[str, ...] = (),
        errors: bool = False,
        since: str | None = None,
        limit: int = -1,
        newest: bool = False,
    ) -> list[Entry]:
        """Records in the order in which they came; with `newest`, the last `limit` of them."""
        if since is not None:
            first = self.db.value("SELECT min(seq + 0) FROM records WHERE at >= ?", (since,))  # as in `store.read`
            if first is None:
                return []
            after = max(after, first - 1)
        where, values = ["seq > ?"], [after]  # type: tuple[list[str], list[object]]
        if before is not None:
            where.append("seq < ?")
            values.append(before)
        if since is not None:
            where.append("at >= ?")
            values.append(since)
        for column, value in (("agent", agent), ("session_id", session_id)):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(value)
        if kinds:
            where.append(f"kind IN ({', '.join('?' * len(kinds))})")
            values += kinds
        if errors:
            where.append("is_error = 1")
        rows = self.db.all(
            f"SELECT {', '.join(Entry.__fields__)} FROM records WHERE {' AND '.join(where)} "
            f"ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT ?",
            [*values, limit],
        )
        found = [
            Entry(
                **(dict(zip(Entry.__fields__, row, strict=True)) | {"is_error": bool(row[8]), "data": loads(row[10])})
            )
            for row in rows
        ]
        return found[::-1] if newest else found

    def read_offset(self, turn_id: str) -> int:
        """How much of the journal of a turn's runner has been taken over."""
        return int(self.db.value("SELECT offset FROM journals WHERE turn_id = ?", (turn_id,)) or 0)

    def write_offset(self, turn_id: str, offset: int) -> None:
        """So much has; in the same transaction as the records."""
        self.db.execute(
            "INSERT INTO journals (turn_id, offset) VALUES (?, ?) "
            "ON CONFLICT (turn_id) DO UPDATE SET offset = excluded.offset",
            (turn_id, offset),
        )

    def last_seq(self) -> int:
        """The number of the newest record."""
        return int(self.db.value("SELECT coalesce(max(seq), 0) FROM records"))

    def changed_files(self, agent: str) -> dict[str, int]:
        """How often the agent has changed each file."""
        return dict(
            self.db.all("SELECT name, count(*) FROM records WHERE agent = ? AND kind = 'file' GROUP BY name", (agent,))
        )

    def close(self) -> None:
        """Let go of the file."""
        self.db.close()
