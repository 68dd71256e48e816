"""The table of worktrees that are being taken away. Their paths are kept relative to the project's root."""

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
    """A worktree that is being taken away."""

    path: str
    agent: str
    branch: str
    rescue: str | None
    """The whole name of the ref under which its work was saved."""
    inode: int | None
    """What tells the folder from a later one in the same place; None if there was none."""
    actor: str
    holder: HolderId
    at: str


def pending(db: Database) -> list[Cleaning]:
    """Every worktree that is being taken away, or was when its process was killed."""
    return [_cleaning(db, row) for row in db.all(f"SELECT {_COLUMNS} FROM cleanings ORDER BY path")]


def find(db: Database, path: str) -> Cleaning | None:
    """The cleaning of a worktree, if there is one."""
    row = db.one(f"SELECT {_COLUMNS} FROM cleanings WHERE path = ?", (to_stored(root_of(db.path), path),))
    return None if row is None else _cleaning(db, row)


def insert(db: Database, each: Cleaning) -> None:
    """A worktree is about to be taken away."""
    stored = to_stored(root_of(db.path), each.path)
    row = (stored, each.agent, each.branch, each.rescue, each.inode, each.actor)
    statement = f"INSERT INTO cleanings ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    db.execute(statement, (*row, each.holder.pid, each.holder.text, each.at))


def forget(db: Database, path: str) -> bool:
    """The cleaning is over; False if another process has said so."""
    db.execute("DELETE FROM cleanings WHERE path = ?", (to_stored(root_of(db.path), path),))
    return db.changed == 1


def drop_all(db: Database) -> None:
    """Forget the cleanings of a copied project: they are the original's."""
    db.execute("DELETE FROM cleanings")


def _cleaning(db: Database, row: Row) -> Cleaning:
    path, agent, branch, rescue, inode, actor, pid, start, at = row
    path = from_stored(root_of(db.path), path)
    return Cleaning(path, agent, branch, rescue, inode, actor, holders.read(pid, start), at)
