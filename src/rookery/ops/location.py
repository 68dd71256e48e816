"""Where a project lies, and whether its state still lies there: a copied or moved project is recognised by this.

The table `location` keeps the root's path, the device and inode of `.rookery`, the time of change of the file
`.rookery/location`, host and pid namespace. The kernel gives inode and time of change, and no copy has them: `cp -a`
keeps neither. The time also holds where numbers of inodes change from mount to mount.

The file holds the project's id, by which a copy finds out whether the original is still at its place. A copy gets an
id of its own.

Whatever is not as it was is settled before anything else is done with the state: `rookery.location.settle` does that.
Often the daemon's loop is the first to come, so what was done is kept in a file until a person's command has shown it.
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
from rookery.config.environ import now
from rookery.config.project import FOLDER, is_project
from rookery.db.database import Database
from rookery.processes import holder as holders
from rookery.processes.locks import is_locked

HERE = "here"
COPIED = "copied"
MOVED = "moved"
SHARED = "shared"
"""The same folder, seen by another path while a process of another container or host may work in it."""

GONE, TWIN, SAME = "gone", "twin", "same"
"""What is at the old path: nothing of this project, a project of the same id, or this very folder."""

# By name: it stands above us. Only a project that is not where it was loads it.
_SETTLE = "rookery.location.settle"
_FILE = "location"
_NOTICE = "notice"
_COLUMNS = "id, path, folder, changed, host, namespace"


@dataclass(frozen=True, slots=True)
class Location(Record):
    """A project's place."""

    id: str
    """Random, and another one in a copy; empty for a project of an earlier Rookery."""
    path: str
    """The root, without links in its path."""
    folder: str
    """Device and inode of `.rookery`."""
    changed: int
    """When the file `.rookery/location` was last changed, in nanoseconds; 0 if there is none."""
    host: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Finding(Record):
    """What became of a project, and where it was."""

    verdict: str
    before: Location | None = None


def ensure_here(root: str, db: Database) -> None:
    """Settle it if the project was copied or moved. Costs a query and a look at a file where it was not."""
    if not is_here(root, db):
        import_module(_SETTLE).settle(root, db)


def is_here(root: str, db: Database) -> bool:
    """True if the project is known to lie where it did; else that is to be settled."""
    before = read(db)
    return before is not None and _is_plain(root, before)


def _is_plain(root: str, before: Location) -> bool:
    """True if nothing has changed at all."""
    return (
        before.path == os.path.realpath(root)
        and before.host == holders.host()
        and before.changed == _time_of_change(root)
    )


def look(root: str, db: Database) -> Finding:
    """What became of the project since its place was written down."""
    before = read(db)
    if before is None:
        return Finding(HERE)
    present = here(root)
    at_old = _look_at(before, present)
    # Asked only where it decides: it looks at every living agent.
    is_held = at_old == GONE and is_held_elsewhere(root, db, before)
    return Finding(decide(before, present, at_old, is_held_elsewhere=is_held), before)


def decide(before: Location, present: Location, at_old: str, *, is_held_elsewhere: bool) -> str:
    """What became of a project. Where it cannot be known, what destroys nothing."""
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
    """Raise InvalidState if agents of the project are left to another place that works in the same folder."""
    found = _look_closer(root, db)
    if found.verdict == SHARED and found.before is not None:
        raise InvalidState(
            f"the project is in use as {found.before.path} on {found.before.host}, and its agents run there",
            hint="sling and run agents there; here it can be done when nothing runs there any more",
        )


def can_run_agents(root: str, db: Database) -> bool:
    """False where its agents are another place's, or where a copied or moved project is still to be settled."""
    return _look_closer(root, db).verdict == HERE


def _is_other_place(before: Location) -> bool:
    me = holders.myself()
    return before.host not in ("", me.host) or before.namespace not in ("", me.namespace)


def _look_closer(root: str, db: Database) -> Finding:
    before = read(db)
    return Finding(HERE) if before is None or _is_plain(root, before) else look(root, db)


def here(root: str) -> Location:
    """The place of the project at `root`, as it is now, with the id that its file says."""
    me = holders.myself()
    path = os.path.realpath(root)
    return Location(_read_id(path), path, _identify(path), _time_of_change(root), me.host, me.namespace)


def read(db: Database) -> Location | None:
    """What was written down; None in a new project."""
    row = db.one(f"SELECT {_COLUMNS} FROM location WHERE one = 1")
    return None if row is None else Location(*row)


def write(root: str, db: Database, project_id: str) -> None:
    """Write down that the project is here: first the file, then the row."""
    if _read_id(root) != project_id:
        write_whole(_path(root), project_id + "\n", mode=0o600)
    present = here(root)
    with db.write():
        db.execute(
            f"INSERT INTO location (one, {_COLUMNS}) VALUES (1, ?, ?, ?, ?, ?, ?) ON CONFLICT (one) DO UPDATE SET "
            "id = excluded.id, path = excluded.path, folder = excluded.folder, changed = excluded.changed, "
            "host = excluded.host, namespace = excluded.namespace",
            present.as_tuple(),
        )


def refresh(root: str, db: Database, before: Location | None) -> None:
    """Write down what is new of a project that is where it was. If that cannot be written, it is not needed yet."""
    present = here(root)
    if before is not None and (before.path != present.path or before.host not in ("", present.host)):
        return  # by another path, or from another host: what is written down is the view of its own place
    with suppress(StorageFailed, OSError):
        write(root, db, (before.id if before is not None else "") or new_id())


def keep_notice(root: str, text: str) -> None:
    """Keep a line for the next person who calls."""
    write_whole(_notice_path(root), text + "\n", mode=0o600)


def read_notice(root: str) -> str:
    """The line that no person has seen yet; empty if there is none."""
    try:
        with open(_notice_path(root), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def take_notice(root: str) -> str:
    """The same, for the one caller who shows it."""
    text = read_notice(root)
    if not text:
        return ""
    try:
        os.unlink(_notice_path(root))
    except FileNotFoundError:
        return ""  # another command has shown it
    except OSError:
        return text  # once more is better than never
    return text


def new_id() -> str:
    """An id for a project."""
    return unique()


def is_held_elsewhere(root: str, db: Database, before: Location) -> bool:
    """True if a process that cannot be seen from here may drive an agent, land, or serve the project."""
    runners = db.all("SELECT runner_pid, runner_start FROM sessions WHERE state <> 'ended' AND runner_pid IS NOT NULL")
    leases = db.all("SELECT pid, pid_start FROM merge_leases WHERE pid IS NOT NULL AND expires_at > ?", (stamp(now()),))
    if any(holders.is_elsewhere(holders.read(pid, start)) for pid, start in (*runners, *leases)):
        return True
    is_other = _is_other_place(before)
    if is_other and db.value("SELECT 1 FROM sessions WHERE state <> 'ended' AND mode <> 'headless'"):
        return True  # its terminal runs there
    run = os.path.join(root, FOLDER, "run")
    return is_other and any(is_locked(os.path.join(run, name)) for name in ("daemon.lock", "loop.lock"))


def _look_at(before: Location, present: Location) -> str:
    """What is at the old path."""
    if before.path == present.path:
        return SAME
    if not is_project(before.path):
        return GONE
    try:
        if _identify(before.path) == present.folder:
            return SAME
    except OSError:
        return GONE
    other = _read_id(before.path)
    # Without a file it cannot be told apart, and is taken for the original: no agent runs twice.
    return TWIN if not before.id or not other or other == before.id else GONE


def _identify(root: str) -> str:
    found = os.stat(os.path.join(root, FOLDER))
    return f"{found.st_dev}:{found.st_ino}"


def _time_of_change(root: str) -> int:
    try:
        return os.lstat(_path(root)).st_ctime_ns
    except OSError:
        return 0


def _read_id(root: str) -> str:
    try:
        with open(_path(root), encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return ""


def _notice_path(root: str) -> str:
    return os.path.join(root, FOLDER, "run", _NOTICE)


def _path(root: str) -> str:
    return os.path.join(root, FOLDER, _FILE)
