"""The table of files that branches change outside of their agents' scopes, and what those scopes are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rookery.base.json import dumps, loads
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.db.dialect import in_chunks
from rookery.events.store import publish
from rookery.tasks.model import OutsideFile


@dataclass(frozen=True, slots=True)
class BranchScope(Record):
    """What the agent of a branch may change, and where it began."""

    branch: str
    agent: str
    task_id: str | None
    base_commit: str
    base: str
    """The branch that it started from; empty for the project's base."""
    files: tuple[str, ...]


def find(db: Database, branch: str) -> BranchScope | None:
    """The scope of the last agent on a branch; None if it had none, or if no agent made the branch.

    A sling that failed before it had the branch changed nothing there, so it does not count.
    """
    row = db.one(
        "SELECT agent, task_id, base_commit, json_extract(settings, '$.base'), json_extract(settings, '$.files') "
        "FROM sessions WHERE branch = ? AND step <> 'reserved' ORDER BY seq DESC LIMIT 1",
        (branch,),
    )
    if row is None:
        return None
    agent, task_id, base_commit, base, files = row
    scope = BranchScope(branch, agent, task_id, base_commit, base or "", tuple(loads(files or "[]")))
    return scope if scope.files else None


def explained(db: Database, branches: Iterable[str]) -> dict[str, tuple[OutsideFile, ...]]:
    """The files outside the scopes of some branches for which there is a reason."""
    rows = in_chunks(db, "SELECT branch, files FROM outside_files WHERE branch IN (%s)", branches)
    return {branch: tuple(OutsideFile(**file) for file in loads(files)) for branch, files in rows}


def keep(db: Database, scope: BranchScope, files: Sequence[OutsideFile], *, actor: str, at: str) -> None:
    """Keep for which files outside a scope there is a reason, instead of what was kept for the branch before."""
    listed = [file.as_dict() for file in files]
    db.execute(
        "INSERT INTO outside_files (branch, files) VALUES (?, ?) "
        "ON CONFLICT (branch) DO UPDATE SET files = excluded.files",
        (scope.branch, dumps(listed)),
    )
    data = {"branch": scope.branch, "files": listed}
    publish(db, "scope.explained", scope.task_id or scope.branch, data, actor=actor, at=at)


def forget(db: Database, branch: str) -> None:
    """A new agent begins on a branch of that name: what was said of an earlier one does not count for it."""
    db.execute("DELETE FROM outside_files WHERE branch = ?", (branch,))
