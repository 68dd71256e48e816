"""The table of worktrees that are being removed. Their paths are stored relative to the project's root."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.config.project import from_stored, root_of, to_stored
from rookery.db.database import Database, Row
from rookery.processes import holder as holders
from rookery.processes.holder import HolderId

_COLUMNS = "path, agent, branch, rescue, inode, actor, pid, pid_start, at"


@dataclass(frozen=True, slots=True)
class Cleaning(Record):
    """A worktree that is being removed."""

    path: str
    agent: str
    branch: str
    rescue: str | None
    """The whole name of the ref under which its work was saved."""
    inode: int | None
    """What tells the folder from a later one at the same path; None if there was none."""
    actor: str
    holder: HolderId
    at: str


def pending(db: Database) -> list[Cleaning]:
    """Every worktree that is being removed, or was when its process was killed."""
    return [_cleaning(db, row) for row in db.all(f"SELECT {_COLUMNS} FROM cleanings ORDER BY path")]


def find(db: Database, path: str) -> Cleaning | None:
    """The cleaning of a worktree, if there is one."""
    row = db.one(f"SELECT {_COLUMNS} FROM cleanings WHERE path = ?", (to_stored(root_of(db.path), path),))
    return None if row is None else _cleaning(db, row)


def insert(db: Database, cleaning: Cleaning) -> None:
    """Note that a worktree is about to be removed."""
    path, *values, holder, at = cleaning.as_tuple()
    row = (to_stored(root_of(db.path), path), *values, holder.pid, holder.text, at)
    db.execute(f"INSERT INTO cleanings ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def forget(db: Database, path: str) -> bool:
    """Drop the row of a cleaning that is over; False if another process has done so."""
    db.execute("DELETE FROM cleanings WHERE path = ?", (to_stored(root_of(db.path), path),))
    return db.changed == 1


def drop_all(db: Database) -> None:
    """Drop the cleanings of a copied project: they are the original's."""
    db.execute("DELETE FROM cleanings")


def _cleaning(db: Database, row: Row) -> Cleaning:
    path, agent, branch, rescue, inode, actor, pid, start, at = row
    path = from_stored(root_of(db.path), path)
    return Cleaning(path, agent, branch, rescue, inode, actor, holders.read(pid, start), at)
