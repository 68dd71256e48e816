"""What differs between databases. SQLite only, for now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import apsw

from rookery.db.database import Database, Row

_RANKED = 2_000
_CHUNK = 500
_TOKENIZE = "tokenize = 'unicode61 remove_diacritics 2'"
"""As in the migrations."""

OBJECTS = (
    "SELECT type, name, CASE WHEN type IN ('trigger', 'view') THEN sql END FROM sqlite_schema "
    "WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
)
"""Every table, index and trigger that a database has."""


def match_words(query: str) -> str:
    """A full-text query for what a person typed: every word must occur, the last one may be unfinished.

    Each word is quoted, so that nothing in it is taken as query syntax.
    """
    words = [word.replace('"', '""') for word in query.split()]
    return " ".join(f'"{word}"' for word in words) + ("*" if words else "")


def best_matches(index: str) -> str:
    """A query for `seq` and `score` of the best matches, the best with the lowest score; takes the words and a limit.

    Ranking reads every match. A word that stands in a third of 100,000 tasks would cost 30 ms, so only the newest
    matches are ranked.
    """
    return (
        f"SELECT seq, score FROM (SELECT rowid AS seq, bm25({index}) AS score FROM {index} WHERE {index} MATCH ? "
        f"ORDER BY rowid DESC LIMIT {_RANKED}) ORDER BY score LIMIT ?"
    )


def match_rows(columns: Sequence[str], rows: Sequence[Row], words: str, limit: int) -> dict[int, float]:
    """`seq` and score of the best matches among rows that no index holds: each is its seq and its columns."""
    if not rows:
        return {}
    with closing(apsw.Connection(":memory:")) as memory:
        memory.execute(f"CREATE VIRTUAL TABLE words USING fts5 ({', '.join(columns)}, {_TOKENIZE})")
        memory.executemany(f"INSERT INTO words (rowid, {', '.join(columns)}) VALUES ({marks(len(columns) + 1)})", rows)
        matches: list[Any] = memory.execute(best_matches("words"), (words, limit)).fetchall()
        return dict(matches)


def marks(count: int) -> str:
    """`?, ?, ?` for a list of values."""
    return ", ".join("?" * count)


def conditions(wanted: Mapping[str, object]) -> tuple[list[str], list[object]]:
    """Conditions such as `seq > ?`, and their values: None leaves one out."""
    chosen = {condition: value for condition, value in wanted.items() if value is not None}
    return list(chosen), list(chosen.values())


def equals(columns: Mapping[str, object]) -> tuple[list[str], list[object]]:
    """Conditions, and their values, for the columns that are wanted: None leaves a column out."""
    return conditions({f"{name} = ?": value for name, value in columns.items()})


def ids_between(db: Database, table: str) -> Callable[[str, str, str], list[str]]:
    """How `base.ids.resolve_id` looks up the ids of a table: up to two between the bounds, with an ending."""
    sql = f"SELECT id FROM {table} WHERE id >= ? AND id < ? AND id LIKE ? LIMIT 2"
    return lambda low, high, ending: [row[0] for row in db.all(sql, (low, high, f"%{ending}"))]


def in_chunks(db: Database, sql: str, ids: Iterable[str]) -> list[Row]:
    """The rows of a query over many ids; `%s` in it stands for the list."""
    values = list(ids)
    chunks = [values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK)]
    return [row for chunk in chunks for row in db.all(sql % marks(len(chunk)), chunk)]
