"""The tables of tasks, blockers and learnings. Every change publishes its event.

Only `take_step` changes a task's state, as the table of transitions allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rookery.base.errors import InvalidState
from rookery.base.ids import LEARNING, TASK, resolve_id
from rookery.base.record import Record
from rookery.base.text import in_words
from rookery.db.database import Database
from rookery.db.dialect import best_matches, ids_between, in_chunks, marks, match_rows, match_words
from rookery.events.store import publish
from rookery.tasks.model import EVENTS, Learning, Task, next_state
from rookery.vcs.ref_names import branch_names, task_ending

COLUMNS = tuple("commit_id" if name == "commit" else name for name in Task.field_names())
SELECT_COLUMNS = "SELECT " + ", ".join(f"t.{column}" for column in COLUMNS)
SELECT = f"{SELECT_COLUMNS} FROM tasks t"
_LEARNING_COLUMNS = ", ".join(Learning.field_names())
_INSERT = f"INSERT INTO tasks ({', '.join(COLUMNS)}) VALUES ({marks(len(COLUMNS))})"
_INDEX_EVERY = 256
_HANDLE = 6
"""The search index takes in what has changed at every so many events; until then a search looks at that itself."""


@dataclass(frozen=True, slots=True)
class Author(Record):
    """Who changes something, and when."""

    name: str
    now: str


def resolve(db: Database, text: str) -> str:
    """The task id that the text names, whole or by a part of it."""
    return resolve_id(TASK, text, ids_between(db, "tasks"), lambda one: get(db, one).title)


def resolve_learning(db: Database, text: str) -> str:
    """The learning id that the text names."""
    lookup = ids_between(db, "learnings")
    return resolve_id(LEARNING, text, lookup, lambda one: get_learning(db, one).content)


def find(db: Database, text: str) -> Task:
    """The task whose id the text is, whole or its beginning."""
    return get(db, resolve(db, text))


def get(db: Database, task_id: str) -> Task:
    """The task with that whole id, which the caller knows to exist."""
    task = existing(db, task_id)
    if task is None:
        raise LookupError(task_id)
    return task


def existing(db: Database, task_id: str | None) -> Task | None:
    """The task with that whole id; None if it is gone, or there is no id."""
    row = db.one(f"{SELECT} WHERE t.id = ?", (task_id,))
    return None if row is None else Task(*row)


def get_many(db: Database, ids: Iterable[str]) -> dict[str, Task]:
    """The tasks with those ids."""
    return {row[0]: Task(*row) for row in in_chunks(db, f"{SELECT} WHERE t.id IN (%s)", ids)}


def children(db: Database, parent_id: str | None) -> list[Task]:
    """A task's children, or the roots, in order."""
    return [Task(*row) for row in db.all(f"{SELECT} WHERE t.parent_id IS ? ORDER BY {ORDER}", (parent_id,))]


ORDER = "t.priority, t.created_at, t.id"


def ancestors(db: Database, task: Task) -> tuple[Task, ...]:
    """The task's parent and its parent's parent, nearest first: by one query, as no task is deeper."""
    if task.parent_id is None:
        return ()
    rows = db.all(f"{SELECT} WHERE t.id IN (?1, (SELECT parent_id FROM tasks WHERE id = ?1))", (task.parent_id,))
    return tuple(sorted((Task(*row) for row in rows), key=lambda above: above.id != task.parent_id))


def descendants(db: Database, task_id: str) -> list[Task]:
    """Everything under a task, parents before children."""
    # CROSS JOIN fixes the order: SQLite would else go through every task and look it up in `below`.
    rows = db.all(
        f"WITH RECURSIVE below (id, depth) AS (SELECT id, 1 FROM tasks WHERE parent_id = ? "
        f"UNION ALL SELECT c.id, b.depth + 1 FROM tasks c JOIN below b ON c.parent_id = b.id) "
        f"{SELECT_COLUMNS} FROM below CROSS JOIN tasks t WHERE t.id = below.id ORDER BY below.depth, {ORDER}",
        (task_id,),
    )
    return [Task(*row) for row in rows]


def has_unfinished_children(db: Database, task_id: str) -> bool:
    """True if some child is neither completed nor cancelled."""
    unfinished = "state NOT IN ('COMPLETED', 'CANCELLED') AND archived_at IS NULL"
    return bool(db.value(f"SELECT 1 FROM tasks WHERE parent_id = ? AND {unfinished} LIMIT 1", (task_id,)))


def every_task(db: Database) -> list[Task]:
    """All tasks, by id."""
    with db.rows(f"{SELECT} ORDER BY t.id") as rows:
        return [Task(*row) for row in rows]


def every_edge(db: Database) -> list[tuple[str, str]]:
    """All tasks that wait, each with one of its blockers."""
    return [(task_id, blocker_id) for task_id, blocker_id in db.all("SELECT task_id, blocker_id FROM task_blockers")]


def in_states(db: Database, *states: str) -> list[Task]:
    """The tasks in these states, in the order in which they were made."""
    rows = db.all(f"{SELECT} WHERE t.state IN ({marks(len(states))}) ORDER BY t.seq", states)
    return [Task(*row) for row in rows]


def count(db: Database) -> int:
    """How many tasks there are."""
    return int(db.value("SELECT count(*) FROM tasks"))


def child_ids(db: Database, ids: Iterable[str]) -> list[str]:
    """The children of these tasks."""
    return _linked(db, "SELECT id FROM tasks WHERE parent_id IN (%s)", ids)


def parent_ids(db: Database, ids: Iterable[str]) -> list[str]:
    """The parents of these tasks."""
    return _linked(db, "SELECT parent_id FROM tasks WHERE id IN (%s) AND parent_id IS NOT NULL", ids)


def blocker_ids(db: Database, ids: Iterable[str]) -> list[str]:
    """What these tasks wait for, finished or not."""
    return _linked(db, "SELECT blocker_id FROM task_blockers WHERE task_id IN (%s)", ids)


def blocked_ids(db: Database, ids: Iterable[str]) -> list[str]:
    """What waits for these tasks."""
    return _linked(db, "SELECT task_id FROM task_blockers WHERE blocker_id IN (%s)", ids)


def _linked(db: Database, sql: str, ids: Iterable[str]) -> list[str]:
    return [row[0] for row in in_chunks(db, sql, ids)]


def blockers(db: Database, ids: Iterable[str]) -> dict[str, dict[str, bool]]:
    """For each task: what blocks it, and whether that is not completed yet."""
    sql = (
        "SELECT b.task_id, b.blocker_id, t.state <> 'COMPLETED' FROM task_blockers b "
        "JOIN tasks t ON t.id = b.blocker_id WHERE b.task_id IN (%s) ORDER BY 1, 2"
    )
    blockers: dict[str, dict[str, bool]] = {}
    for task_id, blocker_id, is_open in in_chunks(db, sql, ids):
        blockers.setdefault(task_id, {})[blocker_id] = bool(is_open)
    return blockers


def blocked(db: Database, ids: Iterable[str]) -> dict[str, list[str]]:
    """For each task: what it blocks."""
    sql = "SELECT task_id, blocker_id FROM task_blockers WHERE blocker_id IN (%s) ORDER BY 2, 1"
    waiting: dict[str, list[str]] = {}
    for task_id, blocker_id in in_chunks(db, sql, ids):
        waiting.setdefault(blocker_id, []).append(task_id)
    return waiting


def open_blockers(db: Database, ids: Iterable[str]) -> dict[str, list[str]]:
    """For each task: the blockers that are not completed."""
    waits_for = {
        task_id: [blocker_id for blocker_id, is_open in known.items() if is_open]
        for task_id, known in blockers(db, ids).items()
    }
    return {task_id: open_ids for task_id, open_ids in waits_for.items() if open_ids}


def index_words(db: Database) -> None:
    """Bring the search index up to what tasks say now; within a transaction."""
    db.execute("DELETE FROM tasks_search WHERE rowid IN (SELECT seq FROM tasks_unindexed)")
    db.execute(
        "INSERT INTO tasks_search (rowid, title, description, context, result) "
        "SELECT t.seq, t.title, t.description, t.context, t.result "
        "FROM tasks_unindexed u JOIN tasks t ON t.seq = u.seq"
    )
    db.execute("DELETE FROM tasks_unindexed")


def search(db: Database, query: str, limit: int) -> list[Task]:
    """Tasks that hold every word of the query, the best first. A search changes nothing, the index included."""
    matched = match_words(query)
    unindexed = db.all(
        "SELECT u.seq, t.title, t.description, t.context, t.result "
        "FROM tasks_unindexed u LEFT JOIN tasks t ON t.seq = u.seq"
    )
    changed = {row[0] for row in unindexed}
    indexed = db.all(best_matches("tasks_search"), (matched, limit + len(changed)))
    scores = {seq: score for seq, score in indexed if seq not in changed}
    scores |= match_rows(("title", "description", "context", "result"), unindexed, matched, limit)
    best = sorted(scores, key=lambda seq: scores[seq])[:limit]
    columns = SELECT.removeprefix("SELECT ")
    rows = db.all(f"SELECT t.seq, {columns} WHERE t.seq IN ({marks(len(best))}) ORDER BY {ORDER}", best)
    return [Task(*row[1:]) for row in sorted(rows, key=lambda row: scores[row[0]])]


def insert(db: Database, task: Task, author: Author) -> None:
    """Add a task."""
    db.execute(_INSERT, task.as_tuple())
    _publish(db, "task.created", task.id, {"task": task.as_dict()}, author)
    _index_now_and_then(db)


def change(db: Database, task: Task, kind: str, author: Author, **changes: Any) -> Task:
    """Change something of a task, but not its state, if it is still in the state in which the caller saw it."""
    if "state" in changes:
        raise ValueError("a state changes by a step")
    return _update(db, task, kind, {"set": changes}, author)


def take_step(db: Database, task: Task, step: str, author: Author, **changes: Any) -> Task:
    """Take a task one step on, if it is still as the caller saw it and the table of transitions allows the step."""
    if "state" in changes:
        raise ValueError("the step says which state follows")
    changes = {"state": next_state(step, task), **changes}
    return _update(db, task, EVENTS[step], {"step": step, "set": changes}, author)


def _update(db: Database, task: Task, kind: str, data: dict[str, Any], author: Author) -> Task:
    changes = data["set"]
    changes["updated_at"] = author.now
    columns = ", ".join(f"{'commit_id' if name == 'commit' else name} = ?" for name in changes)
    db.execute(
        f"UPDATE tasks SET {columns} WHERE id = ? AND state = ? AND attempts = ?",
        (*changes.values(), task.id, task.state, task.attempts),
    )
    if db.changed != 1:
        raise InvalidState(f"{task.id} is no longer {in_words(task.state)}", hint=f"`rook task get {task.id}` shows it")
    _publish(db, kind, task.id, data, author)
    _index_now_and_then(db)
    return task.replace(**changes)


def _index_now_and_then(db: Database) -> None:
    """After an event was published: its number says when the search index is due."""
    if db.inserted % _INDEX_EVERY == 0:
        index_words(db)


def delete(db: Database, task_id: str, author: Author) -> list[str]:
    """Delete a task with everything under it; one event for each, children first."""
    deleted = [*(task.id for task in reversed(descendants(db, task_id))), task_id]
    for id_ in deleted:
        db.execute("DELETE FROM tasks WHERE id = ?", (id_,))
        _publish(db, "task.deleted", id_, {}, author)
    return deleted


def add_blocker(db: Database, task_id: str, blocker_id: str, author: Author) -> bool:
    """Let one task wait for another; False if it waits already."""
    sql = "INSERT INTO task_blockers (task_id, blocker_id) VALUES (?, ?) ON CONFLICT DO NOTHING"
    return _change_edge(db, sql, "task.blocked", task_id, blocker_id, author)


def remove_blocker(db: Database, task_id: str, blocker_id: str, author: Author) -> bool:
    """Let a task no longer wait for another; False if it did not."""
    sql = "DELETE FROM task_blockers WHERE task_id = ? AND blocker_id = ?"
    return _change_edge(db, sql, "task.unblocked", task_id, blocker_id, author)


def _change_edge(db: Database, sql: str, kind: str, task_id: str, blocker_id: str, author: Author) -> bool:
    db.execute(sql, (task_id, blocker_id))
    if not db.changed:
        return False
    _publish(db, kind, task_id, {"blocker_id": blocker_id}, author)
    return True


def insert_learning(db: Database, learning: Learning, author: Author) -> Learning:
    """Keep a learning once: the same words from the same source on the same task are the learning that is there."""
    row = db.one(
        f"SELECT {_LEARNING_COLUMNS} FROM learnings WHERE task_id = ? AND content = ? AND source_task_id IS ?",
        (learning.task_id, learning.content, learning.source_task_id),
    )
    if row is not None:
        return Learning(*row)
    db.execute(f"INSERT INTO learnings ({_LEARNING_COLUMNS}) VALUES (?, ?, ?, ?, ?)", learning.as_tuple())
    _publish(db, "learning.added", learning.id, {"learning": learning.as_dict()}, author)
    return learning


def delete_learning(db: Database, learning_id: str, author: Author) -> None:
    """Forget a learning where it is kept; copies that went up the tree stay."""
    db.execute("DELETE FROM learnings WHERE id = ?", (learning_id,))
    _publish(db, "learning.deleted", learning_id, {}, author)


def get_learning(db: Database, learning_id: str) -> Learning:
    """The learning with that whole id, which the caller knows to exist."""
    row = db.one(f"SELECT {_LEARNING_COLUMNS} FROM learnings WHERE id = ?", (learning_id,))
    if row is None:
        raise LookupError(learning_id)
    return Learning(*row)


def learnings(db: Database, ids: Iterable[str]) -> dict[str, list[Learning]]:
    """Each task's own learnings, oldest first."""
    sql = f"SELECT {_LEARNING_COLUMNS} FROM learnings WHERE task_id IN (%s) ORDER BY created_at, id"
    learnings: dict[str, list[Learning]] = {}
    for row in in_chunks(db, sql, ids):
        learnings.setdefault(row[1], []).append(Learning(*row))
    return learnings


def every_learning(db: Database) -> list[Learning]:
    """All learnings, by id."""
    with db.rows(f"SELECT {_LEARNING_COLUMNS} FROM learnings ORDER BY id") as rows:
        return [Learning(*row) for row in rows]


def recent_learnings(db: Database, limit: int) -> list[Learning]:
    """The newest learnings."""
    rows = db.all(f"SELECT {_LEARNING_COLUMNS} FROM learnings ORDER BY seq DESC LIMIT ?", (limit,))
    return [Learning(*row) for row in rows]


def search_learnings(db: Database, query: str, limit: int) -> list[Learning]:
    """Learnings that hold every word of the query, the best first."""
    matched = match_words(query)
    columns = ", ".join(f"l.{name}" for name in Learning.field_names())
    rows = db.all(
        f"SELECT {columns} FROM learnings l JOIN ({best_matches('learnings_search')}) hit ON hit.seq = l.seq "
        f"ORDER BY hit.score, l.id",
        (matched, limit),
    )
    return [Learning(*row) for row in rows]


def of_branch(db: Database, branch: str) -> list[Task]:
    """The tasks whose current attempt has a branch, the newest first; usually one."""
    return [Task(*row) for row in db.all(f"{SELECT} WHERE t.branch = ? ORDER BY t.seq DESC", (branch,))]


def branch_for(db: Database, agent: str, task: Task, is_taken: Callable[[str], bool] = lambda _branch: False) -> str:
    """The branch for an agent's work on a task, which no other task has, or could have by its handle."""
    names = branch_names(agent, task.id)
    if task.branch in names:
        return task.branch
    for name in names:
        sql = "SELECT count(*) FROM tasks WHERE id <> ? AND (id LIKE ? OR branch = ?)"
        if not db.value(sql, (task.id, f"%{task_ending(name)}", name)) and not is_taken(name):
            return name
    return names[-1]


def named_in(db: Database, branches: Iterable[str]) -> dict[str, list[Task]]:
    """The tasks that agents' branches are named after, by branch; one, but for a handle that two tasks share."""
    endings = {branch: task_ending(branch) for branch in branches}
    sql = f"{SELECT} WHERE substr(t.id, -{_HANDLE}) IN (%s)"
    tasks = [Task(*row) for row in in_chunks(db, sql, {ending[-_HANDLE:] for ending in endings.values()})]
    return {
        branch: [task for task in tasks if task.id.endswith(ending) and len(ending) >= _HANDLE]
        for branch, ending in endings.items()
    }


def completed_with(db: Database, commits: Iterable[str]) -> list[Task]:
    """The completed tasks whose work is one of some commits."""
    sql = f"{SELECT} WHERE t.state = 'COMPLETED' AND t.commit_id IN (%s)"
    return [Task(*row) for row in in_chunks(db, sql, commits)]


def held_by(db: Database, name: str) -> list[Task]:
    """The tasks that an agent or a person is at work on, or is asked to rebase."""
    states = ("IN_PROGRESS", "NEEDS_REBASE")
    rows = db.all(f"{SELECT} WHERE t.assignee = ? AND t.state IN ({marks(2)}) ORDER BY t.seq", (name, *states))
    return [Task(*row) for row in rows]


def start_of_branch(db: Database, branch: str) -> str | None:
    """The commit that the branch of a task was made at."""
    sql = "SELECT start_commit FROM tasks WHERE branch = ? AND start_commit IS NOT NULL LIMIT 1"
    commit: str | None = db.value(sql, (branch,))
    return commit


def _publish(db: Database, kind: str, subject: str, data: dict[str, Any], author: Author) -> None:
    publish(db, kind, subject, data, actor=author.name, at=author.now)
