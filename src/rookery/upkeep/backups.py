"""Backups of the database, and how one is restored.

A restore never touches the database's file, unless that is damaged (`upkeep/salvage.py`). The backup is prepared beside
it: brought to the newest schema, its agents ended, its place recorded. Then SQLite replaces the live content in one
transaction, so a kill at any step leaves the old database or the new one, whole. What it replaces is a backup before.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial

from rookery.base.clock import is_stamp, stamp
from rookery.base.errors import InvalidState, NotFound, Refused, StorageFailed
from rookery.config import layout, steps
from rookery.config.project import PRIVATE, database_path, make_state_folders
from rookery.db import commits
from rookery.db.copies import (
    check_tables,
    check_whole,
    copy_to,
    keep_journal,
    open_copy,
    read_schema,
    replace_content,
    version_of,
)
from rookery.db.migrate import SCHEMA_VERSION, remove
from rookery.events.store import publish
from rookery.merge import store as merges
from rookery.merge.model import LANDED
from rookery.ops import store as project
from rookery.ops.context import Context
from rookery.ops.model import Location
from rookery.processes import holder as holders
from rookery.processes import locks
from rookery.sessions import store as sessions
from rookery.sessions.model import STOPPED, Session
from rookery.turns.settlement import end_session
from rookery.upkeep import salvage
from rookery.upkeep.model import BEFORE_MIGRATION, BEFORE_RESTORE, KINDS, Backup, Restoration
from rookery.vcs.ref_names import AGENT_BRANCHES, SNAPSHOTS
from rookery.worktrees.service import open_repository
from rookery.worktrees.snapshots import last_snapshot

_ENDING = ".db"
_NAME = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-(\d{3})-")
_TRIES = 3
_REASON = "the project was restored from a backup"


def list_backups(root: str) -> list[Backup]:
    """Every backup, the newest first."""
    folder = layout.path(root, layout.BACKUPS)
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    backups = [backup for name in names if (backup := _describe(folder, name)) is not None]
    return sorted(backups, key=lambda backup: backup.at, reverse=True)


def make_backup(ctx: Context, kind: str) -> Backup:
    """Copy the database as it is now, and remove the oldest backups of the kind beyond `backup.keep`."""
    path = _copy(ctx, kind)
    steps.reached("backup made")
    thin_out(ctx, kind)
    return _existing(path)


def thin_out(ctx: Context, kind: str) -> None:
    """Remove the oldest backups of a kind; the newest one always stays."""
    most = max(1, ctx.config.backup.keep)
    for backup in [backup for backup in list_backups(ctx.root) if backup.kind == kind][most:]:
        remove(backup.path)


def find_backup(root: str, name: str) -> Backup:
    """The backup of that name, or of the only one that begins so; raises NotFound."""
    known = list_backups(root)
    fitting = [backup for backup in known if backup.name == name] or [
        backup for backup in known if backup.name.startswith(name)
    ]
    if len(fitting) != 1:
        problem = "no backup is" if not fitting else f"{len(fitting)} backups are"
        raise NotFound(f"{problem} called {name}", hint="`rook restore` lists the backups")
    return fitting[0]


def restore(ctx: Context, name: str, agree: Callable[[Restoration], bool]) -> Restoration:
    """Give the database the content of a backup, if that is agreed to. What it was is kept as a backup."""
    root = salvage.root_of(ctx)
    chosen = find_backup(root, name)
    _check_usable(chosen)
    is_damaged = salvage.is_needed(root)
    if not is_damaged:
        check_at_rest(ctx, "a restore")
    if not agree(Restoration(chosen=chosen)):
        raise Refused("nothing was restored", code="declined")
    if is_damaged:
        return _replace_damaged(ctx, root, chosen)
    with _alone(ctx.root):
        draft = layout.path(ctx.root, layout.RESTORING)
        remove(draft)
        try:
            stopped = _prepare(ctx, root, chosen, draft, project.read_location(ctx.db))
            steps.reached("restore prepared")
            kept = _replace(ctx, draft)
        finally:
            remove(draft)
        steps.reached("restored")
        thin_out(ctx, BEFORE_RESTORE)
    return _compare(ctx, Restoration(chosen=chosen, is_done=True, kept=kept, stopped=stopped))


def check_at_rest(ctx: Context, what: str) -> None:
    """Raise InvalidState if an agent is alive, or a landing is under way."""
    living = [session.agent for session in sessions.sessions(ctx.db, alive=True)]
    if living:
        names = " ".join(living)
        raise InvalidState(
            f"{what} is not possible while agents are alive: {', '.join(living)}",
            hint=" and ".join(f"`rook stop {name}`" for name in living[:3]) if len(living) < 4 else f"stop {names}",
        )
    if any(not holders.is_gone(holder) for holder in project.process_holders(ctx.db, ctx.now())):
        raise InvalidState(f"{what} is not possible while work lands", hint="wait for `rook merge` to end")


def _check_usable(backup: Backup) -> None:
    if backup.schema is None:
        raise StorageFailed(f"{backup.path} is not a Rookery database", hint="choose another one: `rook restore`")
    if backup.schema > SCHEMA_VERSION:
        raise StorageFailed(
            f"{backup.name} was made by a newer Rookery (schema {backup.schema}, this one knows {SCHEMA_VERSION})",
            hint="upgrade Rookery, or choose another one: `rook restore`",
            code="storage_newer",
        )
    check_whole(backup.path)


def _replace_damaged(ctx: Context, root: str, chosen: Backup) -> Restoration:
    """Put the backup in the place of a database that is missing or damaged."""
    draft = layout.path(root, layout.RESTORING)
    with _alone(root):
        remove(draft)
        try:
            stopped = _prepare(ctx, root, chosen, draft, None)
            keep_journal(draft)
            steps.reached("restore prepared")
            damaged = salvage.put_in_place(root, draft, f"damaged-{_digits(stamp(ctx.clock()))}")
        finally:
            remove(draft)
        steps.reached("restored")
    with closing(open_copy(database_path(root))) as db:
        restored = Restoration(chosen=chosen, is_done=True, damaged=damaged, stopped=stopped)
        return _compare(Context.at(root, db), restored)


def _prepare(ctx: Context, root: str, chosen: Backup, draft: str, here: Location | None) -> tuple[str, ...]:
    """Make of the backup what the database will be: at the newest schema, at this place, with no agent alive."""
    try:
        shutil.copyfile(chosen.path, draft)
        os.chmod(draft, 0o600)
    except OSError as error:
        raise StorageFailed(f"{draft} cannot be written: {error.strerror}", hint="make room on the disk") from error
    with closing(open_copy(draft)) as db:
        check_tables(db, f"{draft}-fresh")
        inside, actor = Context.at(root, db, ctx.config, ctx.clock), ctx.actor
        stopped = []
        for session in sessions.sessions(db, alive=True):
            end_session(inside, session.id, STOPPED, _REASON, tell_parent=False)
            stopped.append(session.agent)
        with db.write():
            if here is not None:
                project.write_location(db, here)
            data = {"backup": chosen.name, "made_at": chosen.at, "stopped": stopped}
            publish(db, "project.restored", "project", data, actor=actor, at=ctx.now())
    return tuple(stopped)


def _replace(ctx: Context, draft: str) -> Backup:
    """Keep what the database is, and replace its content."""
    for _ in range(_TRIES):
        check_at_rest(ctx, "a restore")
        seen = version_of(ctx.db)
        path = _copy(ctx, BEFORE_RESTORE)
        steps.reached("restore kept")
        check_at_rest(ctx, "a restore")
        # What was written since the copy began is not in it.
        if replace_content(database_path(ctx.root), draft, partial(_is_still, ctx, seen)):
            commits.announce(ctx.db.path)
            return _existing(path)
        remove(path)
    raise InvalidState("other processes write all the time", hint="try again when they are done")


def _is_still(ctx: Context, version: int) -> bool:
    return version_of(ctx.db) == version


def _last_commit(snapshots: dict[str, str], session: Session) -> str | None:
    last = last_snapshot(snapshots, session)
    return None if last is None else last[1]


def _compare(ctx: Context, done: Restoration) -> Restoration:
    """What git has and the restored database does not know, and the other way round."""
    with suppress(Refused):
        vcs = open_repository(ctx)
        branches = vcs.branches(AGENT_BRANCHES)
        known = {session.branch: session for session in sessions.sessions(ctx.db)}
        landed = {entry.branch for entry in merges.select(ctx.db, states=(LANDED,))}
        base = ctx.config.project.base or vcs.default_branch()
        snapshots = vcs.saved_refs(SNAPSHOTS)  # of a branch that landed and is gone, the last one has its work
        tips = {name: branches.get(name) or _last_commit(snapshots, known[name]) for name in known.keys() - landed}
        return done.replace(
            unknown_branches=tuple(sorted(branches.keys() - known.keys())),
            missing_branches=tuple(sorted(name for name in known.keys() - branches.keys() if name not in landed)),
            lost_landings=tuple(
                sorted(
                    name
                    for name, tip in tips.items()
                    if base is not None
                    and tip is not None
                    and vcs.count_commits(tip, known[name].base_commit)
                    and vcs.has_landed(tip, base, since=known[name].base_commit)
                )
            ),
        )
    return done


def _copy(ctx: Context, kind: str) -> str:
    """Write a backup of that kind; its path."""
    folder = layout.path(ctx.root, layout.BACKUPS)
    try:
        make_state_folders(folder)
    except OSError as error:
        raise StorageFailed(f"{folder} cannot be made: {error.strerror}", hint="see what is there") from error
    _remove_drafts(folder)
    name = f"{_digits(stamp(ctx.clock()))}-{kind}{_ENDING}"
    path = os.path.join(folder, name)
    if os.path.lexists(path):
        raise InvalidState(f"the backup {name.removesuffix(_ENDING)} already exists", hint="try again")
    copy_to(ctx.db, path)
    return path


def _remove_drafts(folder: str) -> None:
    """Remove halves of copies that a kill has left, an hour later: a process may be writing one now."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        stem, _, ending = name.rpartition(_ENDING + ".")
        if stem and len(ending) == 16 and _is_old(path):
            remove(path)


def _is_old(path: str) -> bool:
    with suppress(OSError):
        newest = max(os.stat(other.path).st_mtime for other in os.scandir(os.path.dirname(path)))
        return os.stat(path).st_mtime < newest - 3600
    return False


def _describe(folder: str, name: str) -> Backup | None:
    path = os.path.join(folder, name)
    stem = name.removesuffix(_ENDING)
    if stem == name or not os.path.isfile(path):
        return None
    kind = next((kind for kind in KINDS if stem.endswith(f"-{kind}")), None)
    if kind is None and not stem.startswith("schema-"):
        return None
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    schema = read_schema(path)
    can_restore = schema is not None and schema <= SCHEMA_VERSION
    at = stamp(status.st_mtime) if kind is None else _time_of(stem) or stamp(status.st_mtime)
    return Backup(stem, path, at, kind or BEFORE_MIGRATION, status.st_size, schema, can_restore)


def _digits(at: str) -> str:
    """A time in the name of a file: `20260131-120000-000`."""
    return f"{at[:10].replace('-', '')}-{at[11:19].replace(':', '')}-{at[20:23]}"


def _time_of(stem: str) -> str | None:
    """The time that the name of a backup begins with."""
    match = _NAME.match(stem)
    at = None if match is None else "{}-{}-{}T{}:{}:{}.{}Z".format(*match.groups())
    return at if at is not None and is_stamp(at) else None


def _existing(path: str) -> Backup:
    backup = _describe(*os.path.split(path))
    if backup is None:
        raise StorageFailed(f"{path} is gone", hint="try again")
    return backup


@contextmanager
def _alone(root: str) -> Iterator[None]:
    """One restore at a time."""
    with suppress(FileExistsError):
        os.mkdir(layout.path(root, layout.RUN), PRIVATE)  # also where the database is missing
    file = locks.take(layout.path(root, layout.RESTORE_LOCK))
    if file is None:
        raise InvalidState("another process restores a backup just now", hint="wait until it is done")
    try:
        yield
    finally:
        os.close(file)
