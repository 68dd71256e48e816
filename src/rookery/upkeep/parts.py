"""Resets parts of the state, only on request: one class of things at a time, and nothing of a living agent.

Rows go first, in one transaction with their event; then the files. A file that no row names is a leftover of a kill, so
doing it again finishes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property

from rookery.base.clock import stamp
from rookery.base.errors import Refused
from rookery.base.ids import TASK, is_id
from rookery.base.text import plural
from rookery.config import layout, steps
from rookery.costs import store as costs
from rookery.events.telemetry import Telemetry
from rookery.mail import store as mail
from rookery.ops.context import Context
from rookery.sessions import journal
from rookery.sessions import store as sessions
from rookery.sessions.model import Session
from rookery.tasks import store as tasks
from rookery.tasks.cleanup_ops import cleanup
from rookery.upkeep.model import Part
from rookery.vcs.folders import delete_tree, tree_size
from rookery.vcs.ref_names import AGENT_BRANCHES
from rookery.worktrees.cleaning import KEPT, Cleaned, Cleaner
from rookery.worktrees.service import open_repository

_SESSION_LOGS = (layout.SESSION_LOG, layout.SESSION_EVENTS, layout.SESSION_RUNNER_LOG)
_IN_USE = {os.path.basename(name) for name in (layout.DAEMON_LOG, layout.LOOP_LOG)}


@dataclass(frozen=True)
class Sweeper:
    """Measures and removes parts of a project's state."""

    ctx: Context
    older_than: float | None = None
    """Only what is older than so many seconds."""
    unread: bool = False
    """Also mail that was not read or answered."""

    @cached_property
    def before(self) -> str | None:
        """Only what is older than this time goes."""
        return None if self.older_than is None else stamp(self.ctx.clock() - self.older_than)

    @cached_property
    def everyone(self) -> list[Session]:
        """All sessions, as they were when this began."""
        return sessions.sessions(self.ctx.db)

    @property
    def alive(self) -> list[Session]:
        """The sessions that have not ended."""
        return [session for session in self.everyone if session.is_alive]

    def look(self, name: str) -> Part:
        """How much of a part may go."""
        return _PARTS[name](self, False)

    def remove(self, name: str) -> Part:
        """Remove what may go; safe to repeat."""
        part = _PARTS[name](self, True).replace(done=True)
        steps.reached("part cleaned")
        return part

    def is_old(self, at: str | None) -> bool:
        """True if a time is before the bound; without a bound everything is."""
        return self.before is None or (at is not None and at < self.before)

    def is_old_file(self, path: str) -> bool:
        """The same of a file's time of change."""
        if self.before is None:
            return True
        with suppress(FileNotFoundError):
            return self.is_old(stamp(os.lstat(path).st_mtime))
        return False


def _sessions(sweeper: Sweeper, remove: bool) -> Part:
    """Sessions that have ended and left no worktree and no branch: they serve nothing any more."""
    ctx, folder = sweeper.ctx, sweeper.ctx.path(layout.SESSIONS)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    branches: set[str] = set()
    has_repository = False
    with suppress(Refused):
        branches, has_repository = set(open_repository(ctx).branches(AGENT_BRANCHES)), True
    ended = [session for session in sweeper.everyone if not session.is_alive and sweeper.is_old(session.ended_at)]
    gone = [
        session
        for session in ended
        if has_repository
        and session.swept_at is not None
        and session.branch not in branches
        and not os.path.lexists(session.worktree)
    ]
    known = {session.id for session in sweeper.everyone}
    left = [name for name in names if name not in known and sweeper.is_old_file(os.path.join(folder, name))]
    ids = [session.id for session in gone]
    paths = [os.path.join(folder, name) for name in (*ids, *left) if name in names]
    size = sum(tree_size(path) for path in paths)
    if remove:
        if ids:
            with ctx.db.write() as db:
                costs.delete_usage(db, [turn for session_id in ids for turn in sessions.turn_ids(db, session_id)])
                sessions.delete_ended(db, ids, actor=ctx.actor, at=ctx.now())
        steps.reached("sessions deleted")
        for path in paths:
            delete_tree(path)
    kept = len(ended) - len(gone)
    why = "have a worktree or a branch" if kept else ""
    return Part("sessions", "ended sessions, their logs and costs", len(gone) + len(left), size, kept, why)


def _mail(sweeper: Sweeper, remove: bool) -> Part:
    ctx, busy = sweeper.ctx, [session.agent for session in sweeper.alive]
    with ctx.db.read() as db:
        count, size = mail.settled(db, before=sweeper.before, busy=busy, unread_too=sweeper.unread)
        total, _ = mail.settled(db, before=sweeper.before, busy=(), unread_too=True)
    if remove and count:
        with ctx.db.write() as db:
            busy = [session.agent for session in sessions.sessions(db, alive=True)]
            count = mail.purge(
                db, before=sweeper.before, busy=busy, unread_too=sweeper.unread, actor=ctx.actor, now=ctx.now()
            )
    what = "mail, also unread" if sweeper.unread else "mail that is read and answered"
    why = "of agents that are alive" if sweeper.unread else "unread, unanswered, or of agents that are alive"
    return Part("mail", what, count, size, total - count, why if total > count else "")


def _logs(sweeper: Sweeper, remove: bool) -> Part:
    paths = log_files(sweeper)
    size = sum(_size(path) for path in paths)
    if remove:
        delete_files(paths)
    return Part("logs", "logs of gates and of agents that have ended", len(paths), size)


def log_files(sweeper: Sweeper) -> list[str]:
    """What gates, resolving programs and ended agents printed. Gates that run now keep theirs."""
    ctx = sweeper.ctx
    paths = [path for path in _files(ctx.path(layout.LOGS)) if os.path.basename(path) not in _IN_USE]
    if not journal.jobs(ctx.root):
        paths += [path for name in (layout.GATES, layout.MERGES) for path in _files(ctx.path(name))]
    folder = ctx.path(layout.SESSIONS)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    living = {session.id for session in sessions.sessions(ctx.db, alive=True)}  # after the folders were listed
    paths += [os.path.join(folder, name, log) for name in names if name not in living for log in _SESSION_LOGS]
    return [path for path in paths if os.path.isfile(path) and sweeper.is_old_file(path)]


def delete_files(paths: list[str]) -> None:
    """Delete files that another process may delete too."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _metrics(sweeper: Sweeper, remove: bool) -> Part:
    path, busy = sweeper.ctx.path(layout.TELEMETRY), [session.id for session in sweeper.alive]
    if not os.path.exists(path):
        return Part("metrics", "records of what agents did", 0, 0)
    with closing(Telemetry(path)) as telemetry:
        count, size = telemetry.measure(sweeper.before, busy)
        if remove:
            count = telemetry.delete(sweeper.before, busy)
    return Part("metrics", "records of what agents did", count, size)


def _worktrees(sweeper: Sweeper, remove: bool) -> Part:
    cleaner = Cleaner(sweeper.ctx, dry_run=not remove, actor=sweeper.ctx.actor)
    try:
        cleaned = cleaner.clean(before=sweeper.before)
    except Refused as error:
        return Part("worktrees", "worktrees of ended agents", 0, 0, 0, error.message)
    kept = [worktree for worktree in cleaned if worktree.verdict == KEPT]
    size = 0 if remove else sum(tree_size(worktree.path) for worktree in cleaned if os.path.isdir(worktree.path))
    reasons = "; ".join(dict.fromkeys(f"{worktree.agent}: {worktree.reason}" for worktree in kept))
    what = "worktrees of ended agents; what is not committed is saved"
    notes = tuple(note for worktree in cleaned for note in _about(worktree, remove))
    return Part("worktrees", what, len(cleaned) - len(kept), size, len(kept), reasons, notes=notes)


def _about(worktree: Cleaned, is_removed: bool) -> Iterator[str]:
    """What of a worktree was saved, and what is not."""
    if worktree.ignored:
        files = plural(worktree.ignored, "ignored file")
        verb = "deleted unsaved" if is_removed else "will not be saved"
        hint = "" if is_removed else f"; `rook worktree clean {worktree.agent} --ignored` saves them"
        yield f"{worktree.agent}: {files} {verb}{hint}"
    if worktree.restore_with:
        yield f"{worktree.agent}: what was not committed is saved; `{worktree.restore_with}` brings it back"


def _branches(sweeper: Sweeper, remove: bool) -> Part:
    what = "branches whose work has landed"
    try:
        judged = cleanup(sweeper.ctx, delete=remove)
    except Refused as error:
        return Part("branches", what, 0, 0, 0, error.message)
    kept = [branch for branch in judged if branch.verdict == "kept"]
    why = "have work that has not landed, or are in use" if kept else ""
    return Part("branches", what, len(judged) - len(kept), 0, len(kept), why)


def _specs(sweeper: Sweeper, remove: bool) -> Part:
    ctx = sweeper.ctx
    folder = ctx.path(layout.SPECS)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    stems = {name.removesuffix(".md"): name for name in names if name.endswith(".md")}
    # Files of other names are a person's own: `rook sling --spec` takes any file.
    paths = {stem: os.path.join(folder, name) for stem, name in stems.items() if is_id(TASK, stem)}
    known = tasks.get_many(ctx.db, paths)
    busy = {session.task_id for session in sweeper.alive}
    free = [
        path
        for name, path in paths.items()
        if name not in busy and (name not in known or known[name].is_finished) and sweeper.is_old_file(path)
    ]
    size = sum(_size(path) for path in free)
    if remove:
        delete_files(free)
    kept = len(paths) - len(free)
    return Part("specs", "specifications of finished tasks", len(free), size, kept, "of open tasks" if kept else "")


_PARTS: dict[str, Callable[[Sweeper, bool], Part]] = {
    "worktrees": _worktrees,
    "branches": _branches,
    "sessions": _sessions,
    "mail": _mail,
    "logs": _logs,
    "metrics": _metrics,
    "specs": _specs,
}
"""In the order in which they are removed: a session goes only after its worktree and its branch."""
PARTS = tuple(_PARTS)


def _files(folder: str) -> Iterator[str]:
    for top, _, names in os.walk(folder):
        yield from (os.path.join(top, name) for name in sorted(names))


def _size(path: str) -> int:
    with suppress(FileNotFoundError):
        return os.lstat(path).st_size
    return 0
