"""A copied project becomes its own, a moved one is repaired: before anything else is done with its state.

A copy has everything of the original: its sessions, leases, scratch folders, and worktrees whose pointers lead to the
original's repository. Nothing of the original is touched: its processes, folders and files are its own. In the copy its
agents are stopped, what others hold is dropped, and its worktrees are made its own.

In a moved project the same agents go on. What still runs by the old path is ended: it can find nothing any more, and
its turn begins again at the new place.

Every step can be repeated. The new place is written down last, so after a kill the next command does all of it again;
commands that come meanwhile wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rookery.agents.sling import instruct
from rookery.base import call as calls
from rookery.base.errors import StorageFailed
from rookery.base.record import Record
from rookery.config import layout, steps
from rookery.config.environ import read_environ
from rookery.config.project import make_state_folder
from rookery.db.database import Database
from rookery.environment import store as environment
from rookery.environment.store import EnvironmentUnusable
from rookery.merge import lease_store
from rookery.merge.gates import scratch
from rookery.ops import location
from rookery.ops.context import Context
from rookery.ops.location import COPIED, HERE, MOVED
from rookery.ops.model import Location
from rookery.processes import holder as holders
from rookery.processes.proctable import MARK, RUNNER, arguments_of, environ_of
from rookery.processes.proctree import Identity, end_tree, marked
from rookery.sandbox.model import clear_sockets, socket_folder
from rookery.sessions import store
from rookery.sessions.model import CHECKED_OUT, PROVISIONED, RESERVED, STOPPED, Session
from rookery.turns.settlement import end_session
from rookery.vcs import cage
from rookery.vcs.git import relocate as git_relocate
from rookery.vcs.git.index_claim import give_up_all
from rookery.worktrees import store as cleanings


@dataclass(frozen=True, slots=True)
class Settled(Record):
    """What was done."""

    verdict: str
    before: str = ""
    """Where the project was."""
    stopped: tuple[str, ...] = ()
    """Agents of a copy that were stopped."""
    worktrees: int = 0
    """How many were repaired."""

    def describe(self) -> str:
        """One line for people; empty where there is nothing to say."""
        if self.verdict == COPIED and (self.stopped or self.worktrees):
            agents = f"stopped here: {', '.join(self.stopped)}" if self.stopped else "no agent runs here"
            return f"this project was copied from {self.before}; {agents}; its worktrees are its own now"
        if self.verdict == MOVED and self.worktrees:
            return f"this project was moved from {self.before}: {self.worktrees} worktrees were repaired"
        return ""


def settle(root: str, db: Database) -> Settled:
    """Settle what became of the project since its place was written down, and keep a line for the next person."""
    found = location.look(root, db)
    if found.verdict == HERE or found.before is None:
        location.refresh(root, db, found.before)
        return Settled(HERE)
    with _alone(root):
        found = location.look(root, db)
        if found.verdict == HERE or found.before is None:
            return Settled(HERE)  # another command has done it while we waited
        ctx = Context.at(root, db)
        if found.verdict == COPIED:
            settled = _make_own(ctx, found.before)
        elif found.verdict == MOVED:
            settled = _repair(ctx, found.before)
        else:
            return Settled(found.verdict, found.before.path)  # it is left to the place where it is in use
    return settled


def _keep_notice(ctx: Context, settled: Settled) -> Settled:
    """Before the new place is written down, so that no kill costs the line."""
    text = settled.describe()
    if text:
        try:
            location.keep_notice(ctx.root, text)
        except OSError:
            calls.stderr().write(f"rook: {text}\n")
    steps.reached("notice kept")
    return settled


def _make_own(ctx: Context, before: Location) -> Settled:
    """Make a copy a project of its own."""
    repaired = _repair_paths(ctx, before, is_copy=True)
    steps.reached("copy repaired")
    _drop_holders(ctx)
    steps.reached("copy dropped")
    origin = before.path if before.host in ("", holders.host()) else f"{before.host}:{before.path}"
    stopped = []
    for session in store.sessions(ctx.db, alive=True):
        end_session(ctx, session.id, STOPPED, f"copied from {origin}", tell_parent=False)
        stopped.append(session.agent)
        steps.reached("copy stopped")
    settled = _keep_notice(ctx, Settled(COPIED, origin, tuple(stopped), repaired))
    location.write(ctx.root, ctx.db, location.new_id())
    return settled


def _repair(ctx: Context, before: Location) -> Settled:
    """Let a moved project go on at its new place."""
    living = store.sessions(ctx.db, alive=True)
    for session in living:
        _end_processes_of(session, before.path)
    steps.reached("move ended")
    repaired = _repair_paths(ctx, before, is_copy=False)
    with suppress(EnvironmentUnusable, OSError):  # `rook env refresh` records another
        environment.relocate(ctx.root, before.path, read_environ().state_home)
    steps.reached("move repaired")
    for session in living:
        if session.step not in (RESERVED, CHECKED_OUT, PROVISIONED) and os.path.isdir(session.worktree):
            instruct(ctx, session)
    steps.reached("move instructed")
    settled = _keep_notice(ctx, Settled(MOVED, before.path, worktrees=repaired))
    location.write(ctx.root, ctx.db, before.id or location.new_id())
    return settled


def _repair_paths(ctx: Context, before: Location, *, is_copy: bool) -> int:
    """Let everything that names the old root by an absolute path name this one."""
    root = os.path.realpath(ctx.root)
    cage.relocate(root, before.path)
    return git_relocate.relocate(root, before.path, ctx.config.vcs.timeout, is_copy=is_copy)


def _drop_holders(ctx: Context) -> None:
    """Free what processes of the original hold in the copy: they know nothing of it."""
    with ctx.db.write() as db:
        lease_store.drop_all(db, ctx.now())
        cleanings.drop_all(db)
    give_up_all(os.path.realpath(ctx.root))
    scratch.drop_all(ctx.path(layout.SCRATCH))


def _end_processes_of(session: Session, old: str) -> None:
    """End what an agent runs by the old path. Processes of the same session elsewhere belong to a copy."""
    for process in (*marked(RUNNER, session.id), *marked(MARK, session.id)):
        if _names(process, old):
            end_tree(process, None, 0)
            clear_sockets(socket_folder(session.id))


def _names(process: Identity, root: str) -> bool:
    """True if the process was started for the project of that path."""
    with suppress(OSError):
        return root in arguments_of(process.pid) or f"ROOKERY_ROOT={root}" in environ_of(process.pid)
    return False


@contextmanager
def _alone(root: str) -> Iterator[None]:
    """One command at a time settles it."""
    folder = layout.path(root, layout.RUN)
    try:
        make_state_folder(folder)
        lock = open(layout.path(root, layout.LOCATION_LOCK), "a")  # noqa: SIM115
    except OSError as error:
        raise StorageFailed(f"{folder} cannot be written: {error.strerror}", hint="see what lies there") from error
    with lock:
        calls.lock(lock)
        yield
