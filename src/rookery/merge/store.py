"""The tables of landing. Every change of an entry is a compare-and-set, and publishes its event."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rookery.base.ids import MERGE, resolve_id
from rookery.base.page import rows_for
from rookery.base.text import as_utf8
from rookery.config.project import from_stored, root_of, to_stored
from rookery.db.database import Database
from rookery.db.dialect import equals, ids_between, marks
from rookery.events.store import publish
from rookery.merge.model import (
    FAILED,
    LANDED,
    OPEN,
    QUEUED,
    STATES,
    WAITING,
    Entry,
    FileOutcome,
    GateRun,
    next_state,
)
from rookery.tasks.model import OutsideFile

_FIELDS = [name for name in Entry.field_names() if name != "last_lines"]
_COLUMNS = ", ".join(_FIELDS)
_ORDER = "priority + attempts, created_at, id"
"""Urgent first, then old; every failed attempt counts as one step less urgent."""
_PART = "CASE WHEN state IN ('testing', 'landing') THEN 0 WHEN state IN ('queued', 'waiting') THEN 1 ELSE 2 END"
_PLACE = f"{_PART}, CASE {_PART} WHEN 0 THEN seq WHEN 1 THEN priority + attempts ELSE -seq END, created_at, id"
"""Where an entry stands in a list: what lands now, then the queue in its order, then what is settled, newest first."""


def resolve(db: Database, text: str) -> str:
    """The id that the text names, whole or by a part of it."""
    return resolve_id(MERGE, text, ids_between(db, "merges"), lambda one: get(db, one).branch)


def find(db: Database, merge_id: str) -> Entry | None:
    """The entry with that whole id, if there is one."""
    return next(_entries(db, "id = ?", merge_id), None)


def get(db: Database, merge_id: str) -> Entry:
    """The entry with that whole id, which the caller knows to exist."""
    entry = find(db, merge_id)
    if entry is None:
        raise LookupError(merge_id)
    return entry


def unsettled_bases(db: Database) -> set[str]:
    """The bases on which a landing, its undoing or what follows from it is under way, or was cut off."""
    rows = db.all(
        "SELECT base FROM merges WHERE state IN ('testing', 'landing') "
        "UNION SELECT base FROM merges WHERE kind = 'undoing' "
        "UNION SELECT base FROM merges WHERE state = 'landed' AND followed_at IS NULL"
    )
    return {row[0] for row in rows}


def insert(db: Database, entry: Entry) -> None:
    """Put an entry into the queue."""
    values = entry.as_dict() | _stored(entry.as_dict())
    db.execute(f"INSERT INTO merges ({_COLUMNS}) VALUES ({marks(len(_FIELDS))})", [values[name] for name in _FIELDS])
    publish(db, "merge.queued", entry.id, {"merge": entry.as_dict()}, actor=entry.requested_by, at=entry.created_at)


def change(db: Database, entry: Entry, step: str, *, actor: str, at: str, **changes: Any) -> Entry:
    """Take an entry one step on, if it is still as the caller read it; raises LookupError otherwise."""
    if "state" in changes:
        raise ValueError("the step determines the state")
    changes = {"state": next_state(step, entry), "updated_at": at, **changes}
    if changes.get("log"):
        changes["log"] = to_stored(root_of(db.path), changes["log"])
    if "files" in changes:
        changes["files"] = tuple(map(as_utf8, changes["files"]))
    stored = changes | _stored(changes)
    columns = ", ".join(f"{name} = ?" for name in stored)
    db.execute(
        f"UPDATE merges SET {columns} WHERE id = ? AND state = ? AND updated_at = ?",
        (*stored.values(), entry.id, entry.state, entry.updated_at),
    )
    if db.changed != 1:
        raise LookupError(f"{entry.id} is no longer {entry.state}")
    publish(db, f"merge.{changes['state']}", entry.id, {"step": step, "set": changes}, actor=actor, at=at)
    return _with_log(db, entry.replace(**changes))


def force(db: Database, entry: Entry, *, actor: str, at: str) -> Entry:
    """Mark that a person wants a queued entry to land whatever became of its task."""
    db.execute("UPDATE merges SET forced = 1 WHERE id = ?", (entry.id,))
    publish(db, "merge.forced", entry.id, {"branch": entry.branch}, actor=actor, at=at)
    return entry.replace(forced=True)


def mark_undoing(db: Database, entry: Entry, kind: str | None) -> None:
    """Mark that an entry is being undone, or (None) that it is not."""
    db.execute("UPDATE merges SET kind = ? WHERE id = ?", (kind, entry.id))


def undoing(db: Database) -> list[Entry]:
    """The entries that are being undone, or were when their process was killed."""
    return list(_entries(db, "kind = 'undoing'"))


def mark_cleaned(db: Database, entry: Entry, at: str) -> None:
    """Its worktree is removed, or stays for a reason."""
    db.execute("UPDATE merges SET cleaned_at = ? WHERE id = ?", (at, entry.id))


def select(db: Database, *, states: Sequence[str] = (), limit: int = -1, **columns: str | None) -> list[Entry]:
    """Entries, the newest first: all, or those in these states and with these values in their columns."""
    where, values = equals(columns)
    if states:
        where.append(f"state IN ({marks(len(states))})")
    condition = " AND ".join(where) or "1 = 1"
    return list(_entries(db, f"{condition} ORDER BY seq DESC LIMIT ?", *values, *states, limit))


def page(db: Database, *, everything: bool, limit: int, cursor: str | None) -> list[Entry]:
    """One page of what is open, with `everything` also of what is settled, and the first entry after the page."""
    states = STATES if everything else OPEN
    condition, values = f"state IN ({marks(len(states))})", [*states]
    if cursor is not None:
        # An entry that was settled since the page before counts as where it stood in the queue.
        place = _PLACE if everything else _PLACE.replace(_PART, f"min({_PART}, 1)")
        condition += f" AND ({_PLACE}) > (SELECT {place} FROM merges WHERE id = ?)"
        values.append(resolve(db, cursor))
    return list(_entries(db, f"{condition} ORDER BY {_PLACE} LIMIT ?", *values, rows_for(limit)))


def queue(db: Database, base: str | None = None) -> list[Entry]:
    """What may be taken next, in order."""
    where, values = equals({"base": base})
    condition = " AND ".join(("state IN (?, ?)", *where))
    return list(_entries(db, f"{condition} ORDER BY {_ORDER}", QUEUED, WAITING, *values))


def newest(db: Database, branch: str, base: str) -> Entry | None:
    """The entry of a branch that is not settled, else the last one."""
    condition = f"branch = ? AND base = ? ORDER BY state IN ({marks(len(OPEN))}) DESC, seq DESC LIMIT 1"
    return next(_entries(db, condition, branch, base, *OPEN), None)


def count_failed(db: Database) -> int:
    """How many branches failed to land on a base, and were not queued again since."""
    newest = "SELECT max(seq) AS seq FROM merges GROUP BY branch, base"
    return int(db.value(f"SELECT count(*) FROM merges JOIN ({newest}) USING (seq) WHERE state = ?", (FAILED,)))


def is_candidate(db: Database, commit: str) -> bool:
    """True if a commit was made to land some entry."""
    return db.value("SELECT 1 FROM merges WHERE candidate = ? LIMIT 1", (commit,)) is not None


def settled_before(db: Database, count: int) -> dict[str, str]:
    """The settled entries without the last so many, and without those that are being undone: ids and states."""
    rows = db.all(
        "SELECT id, state FROM merges WHERE seq <= (SELECT max(seq) FROM merges) - ? "
        f"AND state NOT IN ({marks(len(OPEN))}) AND kind IS NOT 'undoing'",
        (count, *OPEN),
    )
    return dict(rows)


def candidates(db: Database) -> dict[str, str]:
    """Every commit that was made to land an entry, and the tip of the branch that it brings in."""
    return dict(db.all("SELECT candidate, tip FROM merges WHERE candidate IS NOT NULL"))


def landed_tips(db: Database, base: str) -> set[tuple[str, str]]:
    """The branches that landed on a base, with the tips that they had."""
    rows = db.all("SELECT branch, tip FROM merges WHERE base = ? AND state = ?", (base, LANDED))
    return {(branch, tip) for branch, tip in rows}


def last_landings(db: Database) -> dict[str, Entry]:
    """For each task the last entry that landed for it, not by force, and was not undone."""
    entries = _entries(db, "state = ? AND task_id IS NOT NULL AND NOT forced ORDER BY seq", LANDED)
    return {str(entry.task_id): entry for entry in entries}


def has_landing(db: Database, task_id: str) -> bool:
    """True if something landed for a task, not by force, and was not undone."""
    row = db.one("SELECT 1 FROM merges WHERE task_id = ? AND state = ? AND NOT forced LIMIT 1", (task_id, LANDED))
    return row is not None


def uncleaned(db: Database) -> list[Entry]:
    """What has landed, and may have a worktree that can go."""
    return list(_entries(db, "state = ? AND cleaned_at IS NULL", LANDED))


def unfollowed(db: Database, base: str) -> list[Entry]:
    """What has landed on a base, where the agents that would have to rebase have not been asked yet."""
    return list(_entries(db, "state = 'landed' AND followed_at IS NULL AND base = ? ORDER BY seq", base))


def mark_followed(db: Database, entries: Iterable[Entry], at: str) -> None:
    """The agents whose work these touch have been asked to rebase."""
    db.execute_many("UPDATE merges SET followed_at = ? WHERE id = ?", [(at, entry.id) for entry in entries])


def add_outcomes(db: Database, merge_id: str, outcomes: Iterable[FileOutcome], at: str) -> None:
    """Remember what was done to conflicted files."""
    db.execute_many(
        "INSERT INTO merge_files (merge_id, path, kind, tier, outcome, why, hunks, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(merge_id, *map(as_utf8, outcome.as_tuple()[:-1]), json.dumps(outcome.hunks), at) for outcome in outcomes],
    )


def outcomes(db: Database, merge_id: str) -> list[FileOutcome]:
    """What was done to the files of one entry, in order."""
    return _outcomes(db, "merge_id = ? ORDER BY seq", (merge_id,))


def past_outcomes(db: Database, paths: Sequence[str], limit: int = 20) -> list[FileOutcome]:
    """What was done to the same files before, the newest first."""
    if not paths:
        return []
    return _outcomes(db, f"path IN ({marks(len(paths))}) ORDER BY seq DESC LIMIT ?", (*map(as_utf8, paths), limit))


def _outcomes(db: Database, condition: str, values: Sequence[object]) -> list[FileOutcome]:
    rows = db.all(f"SELECT path, kind, tier, outcome, why, hunks FROM merge_files WHERE {condition}", values)
    return [FileOutcome(*row).replace(hunks=tuple(json.loads(row[-1]))) for row in rows]


def add_gate_run(db: Database, run: GateRun, command: str, *, actor: str, at: str) -> None:
    """Remember a gate's run, unless it is known already; its log is named relative to the project's root."""
    if gate_runs(db, tree=run.tree, command=command, at=run.at, limit=1):
        return  # the process that remembered it was killed before it deleted the job
    log = to_stored(root_of(db.path), run.log)
    db.execute(
        "INSERT INTO gate_runs (tree, command, name, verdict, status, seconds, log, at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (run.tree, command, run.name, run.verdict, run.status, run.seconds, log, run.at),
    )
    data = {"tree": run.tree, "verdict": run.verdict, "seconds": run.seconds, "log": log}
    publish(db, f"gate.{run.verdict}", run.name, data, actor=actor, at=at)


def last_gate_run(db: Database, tree: str, command: str, *, after: int = 0) -> GateRun | None:
    """The last run of a command on a tree, if it was kept after the run of that number."""
    return next(iter(gate_runs(db, tree=tree, command=command, after=after, limit=1)), None)


def last_gate_seq(db: Database) -> int:
    """The number of the newest run of a gate."""
    return int(db.value("SELECT coalesce(max(seq), 0) FROM gate_runs"))


def gate_runs(db: Database, *, after: int = 0, limit: int = 100, **columns: str) -> list[GateRun]:
    """Runs of gates, the newest first: all, or those with these values in their columns."""
    where, values = equals(columns)
    where, values = [*where, "seq > ?"], [*values, after]
    rows = db.all(
        "SELECT name, tree, verdict, status, seconds, log, at FROM gate_runs "
        f"WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ?",
        (*values, limit),
    )
    root = root_of(db.path)
    return [run.replace(log=from_stored(root, run.log)) for run in (GateRun(*row) for row in rows)]


def recent_failures(db: Database, count: int) -> tuple[int, int]:
    """Of the last entries that were gated, how many there were, and how many failed at a gate."""
    rows = db.all(
        "SELECT state, kind FROM merges WHERE state IN ('landed', 'undone') OR (state = 'failed' AND kind = 'gate') "
        "ORDER BY updated_at DESC LIMIT ?",
        (count,),
    )
    return len(rows), sum(1 for state, _ in rows if state == FAILED)


def _entries(db: Database, condition: str, *values: object) -> Iterator[Entry]:
    for row in db.all(f"SELECT {_COLUMNS} FROM merges WHERE {condition}", values):
        columns = dict(zip(_FIELDS, row, strict=True))
        columns |= {"files": tuple(json.loads(columns["files"])), "forced": bool(columns["forced"])}
        columns["outside"] = tuple(OutsideFile(**file) for file in json.loads(columns["outside"]))
        yield _with_log(db, Entry(**columns))


def _stored(values: Mapping[str, Any]) -> dict[str, str]:
    """The lists among the values of an entry, as the table has them."""
    lists = {name: list(values[name]) for name in ("files", "outside") if name in values}
    return {name: json.dumps(items, default=lambda record: record.as_dict()) for name, items in lists.items()}


def _with_log(db: Database, entry: Entry) -> Entry:
    return entry if entry.log is None else entry.replace(log=from_stored(root_of(db.path), entry.log))
