"""A task is completed exactly when its work is on the base, once; and what was begun comes to an end."""

from __future__ import annotations

import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dev.soak.checks.commits import registered
from dev.soak.checks.model import Violation

COMPLETED = "COMPLETED"


def check_tasks(repo: Path, db: sqlite3.Connection, keys: dict[str, str], base: str) -> Iterator[Violation]:
    """Completed means landed, both ways round. `keys` gives the part that a task was to bring."""
    parts = Counter(registered(repo, base))
    states = dict(db.execute("SELECT id, state FROM tasks"))
    for task, key in sorted(keys.items(), key=lambda item: item[1]):
        state, count = states.get(task), parts[key]
        if state is None:
            yield Violation("tasks", f"task {task} ({key}) is gone")
        elif state == COMPLETED and count != 1:
            yield Violation("tasks", f"task {task} ({key}) is completed, and its line is on {base} {count} times")
        elif state != COMPLETED and count:
            yield Violation("tasks", f"task {task} ({key}) is {state}, and its line is on {base} {count} times")
        if state == COMPLETED:
            yield from _check_landing(repo, db, task, key, base)


def _check_landing(repo: Path, db: sqlite3.Connection, task: str, key: str, base: str) -> Iterator[Violation]:
    rows = db.execute("SELECT id, candidate FROM merges WHERE task_id = ? AND state = 'landed'", (task,)).fetchall()
    if not rows:
        yield Violation("tasks", f"task {task} ({key}) is completed, and no entry of the queue has landed for it")
    for merge, commit in rows:
        if commit is None or not _is_ancestor(repo, commit, base):
            yield Violation("tasks", f"{merge} of task {task} ({key}) has landed as {commit}, which is not on {base}")


def _is_ancestor(repo: Path, commit: str, base: str) -> bool:
    argv = ["git", "merge-base", "--is-ancestor", commit, base]
    return subprocess.run(argv, cwd=repo, capture_output=True, check=False).returncode == 0


def check_finished(db: sqlite3.Connection, keys: dict[str, str]) -> Iterator[Violation]:
    """When all is quiet, no agent is left, and every task that was begun has landed."""
    alive = db.execute("SELECT agent, id, state, step, reason FROM sessions WHERE state <> 'ended' ORDER BY seq")
    for agent, session, state, step, reason in alive:
        yield Violation("finished", f"{agent} ({session}) is still {state}, step {step}, reason {reason}")
    query = "SELECT id, state, branch, attempts FROM tasks WHERE attempts > 0 AND state <> ? ORDER BY seq"
    for task, state, branch, attempts in db.execute(query, (COMPLETED,)):
        if task in keys:
            entry = db.execute(
                "SELECT id, state, reason FROM merges WHERE task_id = ? ORDER BY seq DESC LIMIT 1", (task,)
            ).fetchone()
            text = f"task {task} ({keys[task]}) is {state} after {attempts} attempts, branch {branch}; queue: {entry}"
            yield Violation("finished", text)


def check_caps(
    db: sqlite3.Connection, limit: int, most_seen: int, most_shown: int, doubles: list[str]
) -> Iterator[Violation]:
    """Never more agents than allowed: in the order of the events, among the processes, and as `rook status` showed."""
    alive: set[str] = set()
    most, at = 0, 0
    query = (
        "SELECT seq, type, coalesce(json_extract(data, '$.session.id'), json_extract(data, '$.session_id')) "
        "FROM events WHERE type IN ('agent.reserved', 'agent.ended') ORDER BY seq"
    )
    for seq, kind, session in db.execute(query):
        if kind == "agent.reserved":
            alive.add(session)
        else:
            alive.discard(session)
        if len(alive) > most:
            most, at = len(alive), seq
    if most > limit:
        yield Violation("caps", f"{most} agents were alive at event {at}, and {limit} may be")
    if most_seen > limit:
        yield Violation("caps", f"programs of {most_seen} agents ran at once, and {limit} may")
    if most_shown > limit:
        yield Violation("caps", f"rook status showed {most_shown} living agents, and {limit} may be")
    for double in sorted(set(doubles)):
        yield Violation("caps", f"two programs ran for one session at once: {double}")
