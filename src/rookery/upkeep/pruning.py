"""What Rookery does once a day by itself: the backup of the day, and removing what is old, in small steps.

Snapshots go only with the whole work of their session on the base, in the very content of its last snapshot. Of events
only those of agents, turns and mail go, since the state of tasks and landings is folded from the others; they are in
a file before they leave the database.
"""

from __future__ import annotations

import gzip
import os
from contextlib import closing, suppress

from rookery.base.clock import stamp
from rookery.base.draft import write_whole
from rookery.base.errors import Refused
from rookery.base.json import dumps
from rookery.config import layout, steps
from rookery.config.project import make_state_folders
from rookery.events import store as events
from rookery.events.telemetry import Telemetry
from rookery.merge import store as merges
from rookery.merge.model import LANDED
from rookery.ops.context import Context
from rookery.sessions import store as sessions
from rookery.sessions.model import Session
from rookery.upkeep.backups import list_backups, make_backup
from rookery.upkeep.due import DAY, put_off
from rookery.upkeep.model import DAILY, Pruned
from rookery.upkeep.parts import Sweeper, delete_files, log_files
from rookery.vcs.git.merging import Merging
from rookery.vcs.ref_names import SAVED, SNAPSHOTS, snapshot_name
from rookery.worktrees.service import open_repository

_RETRY = 3600.0
_FAMILIES = ("agent", "turn", "mail")
_BATCH = 5_000
_MEGABYTE = 1_000_000


def begin(ctx: Context) -> None:
    """Put it off for an hour, so that work that fails is not begun again at once."""
    put_off(ctx.root, ctx.clock() + _RETRY)


def do_due(ctx: Context) -> Pruned:
    """Make the backup of the day and prune; safe to repeat after a kill."""
    begin(ctx)
    backup = _back_up(ctx)
    steps.reached("day backed up")
    done = prune(ctx).replace(backup=backup)
    put_off(ctx.root, ctx.clock() + ctx.config.backup.every)
    return done


def _back_up(ctx: Context) -> str | None:
    """A backup, unless there is one that is young enough."""
    if ctx.config.backup.keep == 0:
        return None
    now = ctx.clock()
    before, until = stamp(now - ctx.config.backup.every / 2), stamp(now)  # the clock may have been ahead
    young = [backup for backup in list_backups(ctx.root) if backup.kind == DAILY and before < backup.at <= until]
    return None if young else make_backup(ctx, DAILY).name


def prune(ctx: Context) -> Pruned:
    """Remove what is older than the settings say."""
    settings = ctx.config.prune
    telemetry = _prune_telemetry(ctx, settings.telemetry, settings.size)
    steps.reached("telemetry pruned")
    files = _prune_logs(ctx, settings.logs, settings.size)
    snapshots = _prune_snapshots(ctx, settings.snapshots) if settings.snapshots else 0
    steps.reached("snapshots pruned")
    archived = _prune_events(ctx, settings.events) if settings.events else 0
    return Pruned(None, telemetry, files, snapshots, archived)


def _prune_telemetry(ctx: Context, days: int, megabytes: int) -> int:
    path, count = ctx.path(layout.TELEMETRY), 0
    if not os.path.exists(path):
        return 0
    busy = [session.id for session in sessions.sessions(ctx.db, alive=True)]
    with closing(Telemetry(path)) as telemetry:
        while days and (deleted := telemetry.delete(_before(ctx, days), busy, _BATCH)):
            count += deleted
        while megabytes and telemetry.measure(None, busy)[1] > megabytes * _MEGABYTE:
            deleted = telemetry.delete(None, busy, _BATCH)
            count += deleted
        if count:
            telemetry.shrink()
    return count


def _prune_logs(ctx: Context, days: int, megabytes: int) -> int:
    old = log_files(Sweeper(ctx, days * DAY)) if days else []
    delete_files(old)
    if not megabytes:
        return len(old)
    ages = {}
    for path in log_files(Sweeper(ctx)):
        with suppress(FileNotFoundError):
            status = os.lstat(path)
            ages[path] = (status.st_mtime, status.st_size)
    excess = sum(size for _, size in ages.values()) - megabytes * _MEGABYTE
    more = []
    for path in sorted(ages, key=lambda path: ages[path][0]):
        if excess <= 0:
            break
        excess -= ages[path][1]
        more.append(path)
    delete_files(more)
    return len(old) + len(more)


def _prune_snapshots(ctx: Context, days: int) -> int:
    """Delete the snapshots of sessions whose last one has just what has landed."""
    try:
        vcs = open_repository(ctx)
        saved = vcs.saved_refs(SNAPSHOTS)
        merging = vcs.merging()
    except Refused:  # no repository, or one that cannot be read now
        return 0
    before, count = _before(ctx, days), 0
    for session in sessions.sessions(ctx.db):
        if session.is_alive or (session.ended_at or before) >= before:
            continue
        start = snapshot_name(session.agent, session.id, 0).removesuffix("0")
        own = {name: commit for name, commit in saved.items() if name.startswith(start)}
        if own and _has_landed(ctx, merging, session, own):
            merging.store.delete_refs({SAVED + name: commit for name, commit in own.items()})
            count += len(own)
    return count


def _has_landed(ctx: Context, merging: Merging, session: Session, snapshots: dict[str, str]) -> bool:
    """True if the last snapshot of a session has the files of a commit of its branch that landed, and no other."""
    numbers = {int(name.rpartition("/")[2]): commit for name, commit in snapshots.items()}
    last = numbers[max(numbers)]
    with suppress(Refused):  # the commit that landed is gone
        entries = merges.select(ctx.db, states=(LANDED,), branch=session.branch)
        return any(merging.tree(entry.tip) == merging.tree(last) for entry in entries)
    return False


def _prune_events(ctx: Context, days: int) -> int:
    """Move old events into files of the archive."""
    folder, count = ctx.path(layout.ARCHIVE), 0
    while rows := events.oldest(ctx.db, _FAMILIES, _before(ctx, days), _BATCH):
        make_state_folders(folder)
        lines = "".join(dumps(row.to_json()) + "\n" for row in rows)
        # After a kill the same events come first again: the file is replaced by one that has them all.
        path = os.path.join(folder, f"events-{rows[0].seq}.ndjson.gz")
        write_whole(path, gzip.compress(lines.encode(), mtime=0), mode=0o600, sync=True)
        steps.reached("events archived")
        with ctx.db.write() as db:
            events.delete(db, rows)
        count += len(rows)
    return count


def _before(ctx: Context, days: int) -> str:
    return stamp(ctx.clock() - days * DAY)
