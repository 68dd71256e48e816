"""A large project, made by plain SQL: epics with tasks and subtasks in every state, blockers and learnings.

Every hundred tasks are one epic. A blocker is always in an earlier epic, or an earlier leaf of the same one, so that
nothing waits in a circle.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass

from rookery.base.clock import stamp
from rookery.base.ids import EVENT, LEARNING, TASK, new_id
from rookery.base.record import Record
from rookery.config.layout import FOLDER
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.tasks.store import index_words

_SEED = 20
_EPOCH = 1_750_000_000.0
_BLOCK = 100
_TASKS_A_BLOCK = 24
_PARENTS_A_BLOCK = 20
_VOCABULARY = 5_000
COMMON_WORD = "common"
"""A word that every third task holds."""


@dataclass(frozen=True, slots=True)
class Size(Record):
    """How large the project is and how often things are measured."""

    tasks: int
    edges: int
    learnings: int
    repeat: int
    starts: int
    """How many processes of each command are started."""
    seconds: float
    """How long the writers write at a time."""
    rounds: int
    """How often they do."""
    imported: int
    chain: int
    """How many blocked roots, or links of a chain, the hard cases have."""


FULL = Size(
    tasks=100_000,
    edges=200_000,
    learnings=20_000,
    repeat=200,
    starts=40,
    seconds=1.0,
    rounds=8,
    imported=10_000,
    chain=5_000,
)
QUICK = Size(
    tasks=2_000, edges=4_000, learnings=400, repeat=10, starts=3, seconds=0.3, rounds=2, imported=200, chain=200
)


@dataclass(frozen=True, slots=True)
class Row(Record):
    """A task of the project, while it is made."""

    id: str
    parent: str | None
    priority: int
    state: str
    archived: bool
    at: float


def build(root: str, size: Size) -> str:
    """Make the project in a new folder and return the folder."""
    db = create(root)
    draw = random.Random(_SEED)
    rows = list(_rows(size.tasks, draw))
    db.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
    with db.write():
        insert(db, rows, draw)
        db.execute_many("INSERT INTO task_blockers VALUES (?, ?)", _edges(rows, size.edges, draw))
        db.execute_many(
            "INSERT INTO learnings (id, task_id, content, created_at) VALUES (?, ?, ?, ?)",
            [
                (new_id(LEARNING), row.id, f"{_words(draw, 8)} is {_words(draw, 4)}", stamp(row.at))
                for row in draw.choices(rows, k=size.learnings)
            ],
        )
        index_words(db)
    db.connection.pragma("wal_checkpoint(TRUNCATE)")
    db.close()
    return root


def create(root: str) -> Database:
    """An empty project."""
    os.makedirs(os.path.join(root, FOLDER))
    return Database.create(database_path(root))


def insert(db: Database, rows: list[Row], draw: random.Random) -> None:
    """Put tasks into the tables, each with an event, as if they had been created."""
    db.execute_many(
        "INSERT INTO tasks (id, parent_id, title, description, context, priority, state, assignee, lease_until, "
        "attempts, created_at, updated_at, archived_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (_values(number, row, draw) for number, row in enumerate(rows)),
    )
    db.execute_many(
        "INSERT INTO events (id, at, type, actor, subject, data) VALUES (?, ?, 'task.created', 'human', ?, '{}')",
        ((new_id(EVENT), stamp(row.at), row.id) for row in rows),
    )


def word(number: int) -> str:
    """One word of the vocabulary."""
    return "".join("bdfglmnprst"[number // 11**place % 11] + "aeiou"[number // 5**place % 5] for place in range(4))


def _words(draw: random.Random, count: int) -> str:
    return " ".join(word(draw.randrange(_VOCABULARY)) for _ in range(count))


def _values(number: int, row: Row, draw: random.Random) -> tuple[object, ...]:
    held = row.state == "IN_PROGRESS"
    title = f"{_words(draw, 5)}{' ' + COMMON_WORD if number % 3 == 0 else ''}"
    return (
        row.id,
        row.parent,
        title,
        _words(draw, 20),
        _words(draw, 10) if row.parent is None else "",
        row.priority,
        row.state,
        f"agent-{number % 16}" if held else None,
        "2999-01-01T00:00:00.000Z" if held else None,
        1 if held else 0,
        stamp(row.at),
        stamp(row.at),
        stamp(row.at) if row.archived else None,
    )


def _rows(count: int, draw: random.Random) -> Iterator[Row]:
    block: list[Row] = []
    is_done = is_archived = False
    for number in range(count):
        place, at = number % _BLOCK, _EPOCH + number
        if place == 0:
            block, is_done = [], draw.random() < 0.4
            is_archived = is_done and draw.random() < 0.1
            parent, state = None, "PENDING"
        elif place <= _TASKS_A_BLOCK:
            # The first few tasks of each epic are done, with everything under them.
            parent, state = block[0].id, "COMPLETED" if place <= _TASKS_A_BLOCK // 3 else "PENDING"
        else:
            above = block[1 + place % _PARENTS_A_BLOCK]
            parent = above.id
            state = "COMPLETED" if above.state == "COMPLETED" else _state(draw)
        if is_done:
            state = "COMPLETED"
        row = Row(new_id(TASK, at=at), parent, draw.randint(1, 5), state, is_archived, at)
        block.append(row)
        yield row


def _state(draw: random.Random) -> str:
    states = ("COMPLETED", "PENDING", "IN_PROGRESS", "PENDING_REVIEW", "CANCELLED", "FAILED")
    return draw.choices(states, (45, 35, 10, 4, 4, 2))[0]


def _edges(rows: list[Row], count: int, draw: random.Random) -> Iterator[tuple[str, str]]:
    edges: set[tuple[int, int]] = set()
    first_leaf = _TASKS_A_BLOCK + 1
    while len(edges) < count:
        task = draw.randrange(first_leaf, len(rows))
        start = task - task % _BLOCK
        is_leaf = task - start > first_leaf
        if task % _BLOCK == 0 and draw.random() < 0.9:
            continue  # most epics wait for nothing
        if is_leaf and draw.random() < 0.5:
            blocker = draw.randrange(start + first_leaf, task)
        elif start:
            blocker = draw.randrange(start)
            if rows[blocker].state != "COMPLETED" and draw.random() < 0.5:
                continue
        else:
            continue
        if (task, blocker) not in edges:
            edges.add((task, blocker))
            yield rows[task].id, rows[blocker].id
