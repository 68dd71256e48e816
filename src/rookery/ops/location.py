"""Where a project is, and whether its state is still there: this recognises a copied or moved project.

The table `location` keeps the root's path, the device and inode of `.rookery`, the time of change of the file
`.rookery/location`, host and pid namespace. The kernel gives inode and time of change, and no copy has them: `cp -a`
keeps neither. The time also holds where numbers of inodes change from mount to mount.

The file holds the project's id, by which a copy finds out whether the original is still at its place. A copy gets an
id of its own.

`rookery.location.settle` settles a copied or moved project before anything else is done with its state. Often the
daemon's loop is the first to do so, so a file keeps what was done until a person's command has shown it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

from rookery.base.clock import stamp
from rookery.base.draft import unique, write_whole
from rookery.base.errors import InvalidState, StorageFailed
from rookery.base.record import Record
from rookery.config import layout
from rookery.config.environ import now
from rookery.config.project import is_project
from rookery.db.database import Database
from rookery.ops import store
from rookery.ops.model import Location
from rookery.processes import holder as holders
from rookery.processes.locks import is_locked

HERE = "here"
COPIED = "copied"
MOVED = "moved"
SHARED = "shared"
"""The same folder, seen by another path while a process of another container or host may work in it."""

GONE, TWIN, SAME = "gone", "twin", "same"
"""What is at the old path: nothing of this project, a project of the same id, or this very folder."""

# By name: it is above us in the layers. Only a project that is not where it was loads it.
_SETTLE = "rookery.location.settle"


@dataclass(frozen=True, slots=True)
class Comparison(Record):
    """What happened to a project, and where it was."""

    verdict: str
    before: Location | None = None


def ensure_here(root: str, db: Database) -> None:
    """Settle it if the project was copied or moved. Costs a query and a look at a file where it was not."""
    if not is_here(root, db):
        import_module(_SETTLE).settle(root, db)


def is_here(root: str, db: Database) -> bool:
    """True if the project is known to lie where it did; else it has to be settled."""
    before = store.read_location(db)
    return before is not None and _is_unchanged(root, before)


def _is_unchanged(root: str, before: Location) -> bool:
    return (
        before.path == os.path.realpath(root)
        and before.host == holders.host()
        and before.changed == _time_of_change(root)
    )


def compare(root: str, db: Database) -> Comparison:
    """What happened to the project since its place was recorded."""
    before = store.read_location(db)
    if before is None or _is_unchanged(root, before):
        return Comparison(HERE, before)
    present = here(root)
    at_old = _look_at_old(before, present)
    # Asked only where it decides: it looks at every running agent.
    is_held = at_old == GONE and _is_held_elsewhere(root, db, before)
    return Comparison(decide(before, present, at_old, is_held_elsewhere=is_held), before)


def decide(before: Location, present: Location, at_old: str, *, is_held_elsewhere: bool) -> str:
    """What happened to a project. Where that cannot be known, the answer that destroys nothing."""
    is_same_folder = before.folder == present.folder or (before.changed == present.changed != 0)
    is_same_host = before.host in ("", present.host)
    if before.path == present.path:
        # On this host it is the project of this path, also if it was restored from a backup.
        return HERE if is_same_host or is_same_folder else COPIED
    if at_old == TWIN:
        return COPIED
    if is_same_folder:
        if at_old == SAME:
            return HERE  # one folder with two paths: a bind mount
        return SHARED if is_held_elsewhere else MOVED
    sees_old = is_same_host and before.namespace in ("", present.namespace)
    return MOVED if sees_old else COPIED


def check_can_run_agents(root: str, db: Database) -> None:
    """Raise InvalidState if the project's agents run at another place, in the same folder."""
    seen = compare(root, db)
    if seen.verdict == SHARED and seen.before is not None:
        raise InvalidState(
            f"the project is in use as {seen.before.path} on {seen.before.host}, and its agents run there",
            hint="sling and run agents there; here it can be done when nothing runs there any more",
        )


def can_run_agents(root: str, db: Database) -> bool:
    """False if its agents run at another place, or if a copied or moved project is not yet settled."""
    return compare(root, db).verdict == HERE


def here(root: str) -> Location:
    """The place of the project at `root`, as it is now, with the id that its file says."""
    me = holders.myself()
    path = os.path.realpath(root)
    return Location(_read_id(path), path, _identify(path), _time_of_change(root), me.host, me.namespace)


def write(root: str, db: Database, project_id: str = "") -> None:
    """Record that the project is here, under a new id if none is given: first the file, then the row."""
    project_id = project_id or unique()
    if _read_id(root) != project_id:
        write_whole(layout.path(root, layout.LOCATION), project_id + "\n", mode=0o600)
    present = here(root)
    with db.write():
        store.write_location(db, present)


def refresh(root: str, db: Database, before: Location | None) -> None:
    """Record what is new of a project that is where it was. If that cannot be written, it is not needed yet."""
    present = here(root)
    if before is not None and (before.path != present.path or before.host not in ("", present.host)):
        return  # seen by another path, or from another host: the record is for the place where it runs
    with suppress(StorageFailed, OSError):
        write(root, db, before.id if before is not None else "")


def keep_notice(root: str, text: str) -> None:
    """Keep a line for the next person who calls."""
    write_whole(layout.path(root, layout.NOTICE), text + "\n", mode=0o600)


def read_notice(root: str) -> str:
    """The line that no person has seen yet; empty if there is none."""
    try:
        with open(layout.path(root, layout.NOTICE), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def take_notice(root: str) -> str:
    """The same, for the one caller who shows it."""
    text = read_notice(root)
    try:
        if text:
            os.unlink(layout.path(root, layout.NOTICE))
    except FileNotFoundError:
        return ""  # another command has shown it
    except OSError:
        return text  # once more is better than never
    return text


def _is_held_elsewhere(root: str, db: Database, before: Location) -> bool:
    """True if a process that cannot be seen from here may run an agent, land, or serve the project."""
    if any(holders.is_elsewhere(holder) for holder in store.process_holders(db, stamp(now()))):
        return True
    me = holders.myself()
    if before.host in ("", me.host) and before.namespace in ("", me.namespace):
        return False
    locks = (layout.DAEMON_LOCK, layout.LOOP_LOCK)
    return store.has_terminals(db) or any(is_locked(layout.path(root, name)) for name in locks)


def _look_at_old(before: Location, present: Location) -> str:
    """What is at the old path."""
    if before.path == present.path:
        return SAME
    try:
        if not is_project(before.path):
            return GONE
        if _identify(before.path) == present.folder:
            return SAME
    except OSError:
        return GONE
    other = _read_id(before.path)
    # Without a file it cannot be told apart, and is taken for the original: no agent runs twice.
    return TWIN if not before.id or not other or other == before.id else GONE


def _identify(root: str) -> str:
    folder = os.stat(layout.path(root))
    return f"{folder.st_dev}:{folder.st_ino}"


def _time_of_change(root: str) -> int:
    try:
        return os.lstat(layout.path(root, layout.LOCATION)).st_ctime_ns
    except OSError:
        return 0


def _read_id(root: str) -> str:
    try:
        with open(layout.path(root, layout.LOCATION), encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return ""
