"""A copied project becomes its own, a moved one is repaired: before anything else is done with its state.

A copy has everything of the original: its sessions, leases, scratch folders, and worktrees whose pointers lead to the
original's repository. Nothing of the original is touched. In the copy, agents are stopped, what processes of the
original hold is dropped, and the worktrees are made its own.

In a moved project the same agents go on. Processes that still run by the old path are ended, since they find nothing
there any more; their turns begin again at the new place.

Every step can be repeated. The new place is recorded last, so after a kill the next command does all of it again;
other commands wait meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rookery.agents.siblings import find_siblings
from rookery.agents.sling import instruct
from rookery.base import call as calls
from rookery.base.errors import StorageFailed
from rookery.base.text import plural
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
from rookery.processes.proctable import LOOP, MARK, RUNNER, arguments_of, environ_of
from rookery.processes.proctree import Identity, end_tree, marked
from rookery.sandbox.model import clear_sockets, socket_folder
from rookery.sessions import store
from rookery.sessions.model import CHECKED_OUT, PROVISIONED, RESERVED, STOPPED, Session
from rookery.turns.settlement import end_session
from rookery.vcs import cage
from rookery.vcs.git import relocate as git_relocate
from rookery.vcs.git.index_claim import give_up_all
from rookery.worktrees import store as cleanings
from rookery.worktrees.place import elsewhere


def settle(root: str, db: Database) -> str:
    """Settle what happened to the project since its place was recorded: one line for people, empty if none is needed.

    The line is also kept for the next person who calls.
    """
    seen = location.compare(root, db)
    if seen.verdict == HERE:
        location.refresh(root, db, seen.before)
        return ""
    with _alone(root):
        seen = location.compare(root, db)  # another command may have settled it while we waited
        if seen.before is not None and seen.verdict == COPIED:
            return _make_own(Context.at(root, db), seen.before)
        if seen.before is not None and seen.verdict == MOVED:
            return _repair(Context.at(root, db), seen.before)
    return ""  # settled, or left to the place where it is in use


def _make_own(ctx: Context, before: Location) -> str:
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
    agents = f"stopped here: {', '.join(stopped)}" if stopped else "no agent runs here"
    text = f"this project was copied from {origin}; {agents}; its worktrees are its own now"
    return _record(ctx, text if stopped or repaired else "", "")


def _repair(ctx: Context, before: Location) -> str:
    """Let a moved project go on at its new place."""
    running = store.sessions(ctx.db, alive=True)
    _end_loop(before.path)
    for session in running:
        _end_processes_of(session, before.path)
    steps.reached("move ended")
    repaired = _repair_paths(ctx, before, is_copy=False)
    with suppress(EnvironmentUnusable, OSError):  # `rook env refresh` records another
        environment.relocate(ctx.root, before.path, read_environ().state_home)
    steps.reached("move repaired")
    for session in running:
        if session.step not in (RESERVED, CHECKED_OUT, PROVISIONED) and os.path.isdir(session.worktree):
            instruct(ctx, session, find_siblings(ctx, session))
    steps.reached("move instructed")
    text = f"this project was moved from {before.path}: {plural(repaired, 'worktree')} repaired"
    return _record(ctx, text if repaired else "", before.id)


def _record(ctx: Context, text: str, project_id: str) -> str:
    """Keep the line, then record the new place: so no kill costs the line."""
    if text:
        try:
            location.keep_notice(ctx.root, text)
        except OSError:
            calls.stderr().write(f"rook: {text}\n")
    steps.reached("notice kept")
    location.write(ctx.root, ctx.db, project_id)
    return text


def _repair_paths(ctx: Context, before: Location, *, is_copy: bool) -> int:
    """Let the absolute paths that name the old root name this one; how many worktrees were repaired."""
    root = os.path.realpath(ctx.root)
    cage.relocate(root, before.path, () if is_copy else elsewhere(ctx))
    return git_relocate.relocate(root, before.path, ctx.config.vcs.timeout, is_copy=is_copy)


def _drop_holders(ctx: Context) -> None:
    """Free what processes of the original hold in the copy: they know nothing of it."""
    with ctx.db.write() as db:
        lease_store.drop_all(db, ctx.now())
        cleanings.drop_all(db)
    give_up_all(os.path.realpath(ctx.root))
    scratch.drop_all(ctx.path(layout.SCRATCH))


def _end_loop(old: str) -> None:
    """End the loop of the old path: it holds the lock, which has moved too, so that none could run here."""
    for process in marked(RUNNER, LOOP):
        if _names(process, old):
            end_tree(process, None, 0)


def _end_processes_of(session: Session, old: str) -> None:
    """End an agent's processes that use the old path. Processes of the same session elsewhere belong to a copy."""
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
        raise StorageFailed(f"{folder} cannot be written: {error.strerror}", hint="see what is there") from error
    with lock:
        calls.lock(lock)
        yield
