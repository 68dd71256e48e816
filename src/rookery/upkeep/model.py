"""Types of upkeep: backups, parts of the state that can be reset, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record

DAILY, MANUAL, BEFORE_RESTORE = "daily", "manual", "before-restore"
KINDS = (DAILY, MANUAL, BEFORE_RESTORE)
BEFORE_MIGRATION = "before-migration"


@dataclass(frozen=True, slots=True)
class Backup(Record):
    """A copy of the database."""

    PRINTS = "name"
    name: str
    path: str
    at: str
    """When it was made."""
    kind: str
    """`daily`, `manual`, `before-restore` or `before-migration`."""
    size: int
    schema: int | None
    """The version of its tables; None if the file is no database."""
    can_restore: bool
    """False if it is damaged, or was made by a newer Rookery."""


@dataclass(frozen=True, slots=True)
class Restoration(Record):
    """What `rook restore` did, would do, or can do."""

    PRINTS = "backups"
    backups: tuple[Backup, ...] = ()
    """What there is to choose from, the newest first."""
    chosen: Backup | None = None
    is_done: bool = False
    kept: Backup | None = None
    """What the database was before: restoring that undoes it."""
    damaged: str = ""
    """The folder with the files of a database that was damaged."""
    stopped: tuple[str, ...] = ()
    """Agents that were alive in the backup: their sessions are over now."""
    unknown_branches: tuple[str, ...] = ()
    """Branches of agents that the restored database knows nothing of."""
    missing_branches: tuple[str, ...] = ()
    """Branches of agents that the restored database names and that are gone."""
    lost_landings: tuple[str, ...] = ()
    """Branches that landed after the backup was made: the database does not say so."""


@dataclass(frozen=True, slots=True)
class Part(Record):
    """A part of the state that can be reset, and how much of it may go."""

    name: str
    what: str
    count: int
    size: int
    """In bytes, as far as it is known."""
    kept: int = 0
    """How much of the same kind has to stay."""
    why_kept: str = ""
    done: bool = False
    """True if it was removed."""
    notes: tuple[str, ...] = ()
    """What was saved, and what is not."""


@dataclass(frozen=True, slots=True)
class Cleanup(Record):
    """The parts of the state, or what was done to those that were named."""

    parts: tuple[Part, ...]
    is_done: bool = False
    is_plan: bool = False
    """True if parts were named, and nothing was done yet."""


@dataclass(frozen=True, slots=True)
class Pruned(Record):
    """What went because it was old."""

    backup: str | None = None
    telemetry: int = 0
    files: int = 0
    snapshots: int = 0
    events: int = 0


@dataclass(frozen=True, slots=True)
class Removal(Record):
    """What `rook deinit` removes, or has removed."""

    root: str
    size: int
    worktrees: tuple[str, ...]
    branches: tuple[str, ...]
    """Branches of agents: they stay."""
    unlanded: tuple[str, ...]
    """Those of them whose work has not landed."""
    refs: int
    """What is kept under `refs/rookery`: it stays."""
    hooks: bool
    """True if the hooks of the person's own session are removed too."""
    kept_files: tuple[str, ...] = ()
    """Files that are committed, which stay."""
    backup: str | None = None
    is_done: bool = False
