"""Snapshots of turns: the end of every turn is kept, can be listed, and can be restored."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rookery.base.errors import InvalidState, NotFound
from rookery.base.record import Record
from rookery.config.environ import marked_children
from rookery.config.project import to_stored
from rookery.events.store import publish
from rookery.ops.context import Context
from rookery.processes.proctable import SLING
from rookery.sessions import store
from rookery.sessions.model import BOOTING, WORKING, NoSuchAgent, Session, check_not_taken
from rookery.vcs.detect import open_vcs
from rookery.vcs.model import DirtyCheckout
from rookery.vcs.ref_names import SAVED, SNAPSHOTS, rescue_name, snapshot_name
from rookery.worktrees import service as worktrees
from rookery.worktrees.place import make_parent
from rookery.worktrees.removal import alone


@dataclass(frozen=True, slots=True)
class Snapshot(Record):
    """The end of one turn."""

    PRINTS = "ref"
    session_id: str
    turn: int
    at: str | None
    commit: str
    ref: str
    files: tuple[str, ...]
    """What changed since the turn before, or since the worktree was made."""


@dataclass(frozen=True, slots=True)
class Restored(Record):
    """A worktree that was brought back to a turn."""

    PRINTS = "agent"
    agent: str
    turn: int
    path: str
    commit: str
    rescue: str | None
    """The ref under which the earlier content is kept."""
    was_recreated: bool


def take(ctx: Context, session: Session, turn: int) -> str:
    """Keep a worktree as it is at the end of a turn; returns the name under `refs/rookery/`."""
    here = open_vcs(session.worktree, ctx.config.vcs)
    if here.root == os.path.realpath(ctx.root):
        raise InvalidState(f"{session.worktree} is no worktree of its own", hint="see what replaced it")
    name = snapshot_name(session.agent, session.id, turn)
    ignored = ctx.config.worktrees.snapshot_ignored
    here.snapshot(name, f"Turn {turn} of {session.agent}", include_ignored=ignored, replace=True)
    return name


def list_snapshots(project: Context, agent: str) -> list[Snapshot]:
    """The snapshots of all of an agent's sessions, in order."""
    sessions = store.sessions(project.db, agent=agent)
    if not sessions:
        raise _no_agent(agent)
    vcs = worktrees.open_repository(project)
    refs = vcs.saved_refs(f"{SNAPSHOTS}{agent}/")
    snapshots = []
    for session in sessions:
        before = session.base_commit
        ended = {turn.number: turn.ended_at for turn in store.turns(project.db, session.id)}
        for number in sorted(_numbers(refs, agent, session.id)):
            name = snapshot_name(agent, session.id, number)
            files = tuple(file.path for file in vcs.changed_files(before, refs[name]))
            snapshots.append(Snapshot(session.id, number, ended.get(number), refs[name], SAVED + name, files))
            before = refs[name]
    return snapshots


def last_snapshot(refs: dict[str, str], session: Session) -> tuple[str, str] | None:
    """The name and the commit of a session's last snapshot, of all that are saved."""
    numbers = _numbers(refs, session.agent, session.id)
    if not numbers:
        return None
    name = snapshot_name(session.agent, session.id, max(numbers))
    return name, refs[name]


def restore_snapshot(project: Context, agent: str, turn: int, *, force: bool = False, actor: str = "human") -> Restored:
    """Restore an agent's worktree to the end of a turn of its last session; one that was cleaned is created again.

    What is there now is saved first. Without `force`, a worktree with changes that are not committed is refused.
    """
    session = _idle(project, agent)
    check_not_taken(session, actor)
    vcs = worktrees.open_repository(project)
    name = snapshot_name(agent, session.id, turn)
    commit = vcs.saved_refs(name).get(name)
    if commit is None:
        raise NotFound(f"{agent} has no snapshot of turn {turn}", hint=f"`rook worktree snapshots {agent}` lists them")
    path = session.worktree
    with alone(project.root):  # one that is just being made looks as if it were left unfinished
        is_missing = not os.path.lexists(path)
        if is_missing:
            make_parent(project.root, path)
            if vcs.branch_tip(session.branch) is None:
                vcs.create_branch(session.branch, session.start_commit)
            with marked_children(SLING, session.id):
                vcs.add_checkout(path, session.branch)
    here = worktrees.check(path, project.config.vcs, branch=session.branch)
    if not force and not here.status().is_clean:
        raise DirtyCheckout(f"{path} has changes that are not committed", hint="with --force they are saved first")
    rescue = rescue_name(agent, project.now())
    here.restore(commit, rescue)
    ref = SAVED + rescue
    with project.db.write() as db:
        stored = to_stored(os.path.realpath(project.root), path)
        data = {"turn": turn, "commit": commit, "path": stored, "rescue": ref}
        publish(db, "worktree.restored", agent, data, actor=actor, at=project.now())
    return Restored(agent, turn, path, commit, ref, is_missing)


def _idle(project: Context, agent: str) -> Session:
    """The agent's last session, which must not be in the middle of a turn."""
    session = store.latest(project.db, agent)
    if session is None:
        raise _no_agent(agent)
    if session.state in (BOOTING, WORKING) or store.running_turn(project.db, session.id) is not None:
        raise InvalidState(f"{agent} is {session.state}", hint=f"wait for its turn to end, or `rook stop {agent}`")
    return session


def _no_agent(agent: str) -> NoSuchAgent:
    return NoSuchAgent(f"no agent {agent}", hint="`rook status --all` lists all agents, also those that have ended")


def _numbers(refs: dict[str, str], agent: str, session_id: str) -> list[int]:
    """The turns of a session that have a snapshot."""
    prefix = snapshot_name(agent, session_id, 0).removesuffix("0")
    ends = (name.removeprefix(prefix) for name in refs if name.startswith(prefix))
    return [int(end) for end in ends if end.isdecimal()]
