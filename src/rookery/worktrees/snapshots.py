"""Snapshots of turns: every turn's end is kept, can be looked at, and can be gone back to."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rookery.base.errors import InvalidState, NotFound
from rookery.base.record import Record
from rookery.config.model import VcsConfig
from rookery.config.project import to_stored
from rookery.events.store import publish
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import BOOTING, WORKING, NoSuchAgent, Session
from rookery.vcs.detect import open_vcs
from rookery.vcs.model import DirtyCheckout
from rookery.vcs.ref_names import SAVED, SNAPSHOTS, rescue_name, snapshot_name
from rookery.worktrees import service as worktrees


@dataclass(frozen=True, slots=True)
class Snapshot(Record):
    """The end of one turn."""

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

    agent: str
    turn: int
    path: str
    commit: str
    rescue: str | None
    """Where what was there before is kept."""
    was_recreated: bool


def take(
    root: str,
    settings: VcsConfig,
    *,
    agent: str,
    session_id: str,
    turn: int,
    worktree: str,
    include_ignored: tuple[str, ...] = (),
) -> str:
    """Keep a worktree as it is at the end of a turn; returns the name beneath `refs/rookery/`."""
    here = open_vcs(worktree, settings)
    if here.root == os.path.realpath(root):
        raise InvalidState(f"{worktree} is no worktree of its own", hint="look what became of it")
    name = snapshot_name(agent, session_id, turn)
    here.snapshot(name, f"Turn {turn} of {agent}", include_ignored=include_ignored, replace=True)
    return name


def list_snapshots(project: Context, agent: str) -> list[Snapshot]:
    """The snapshots of all of an agent's lives, in order."""
    lives = store.sessions(project.db, agent=agent)
    if not lives:
        raise NoSuchAgent(f"there is and was no agent {agent}", hint="`rook status` shows who there is")
    vcs = worktrees.open_repository(project.root, project.config.vcs)
    kept = vcs.saved_refs(f"{SNAPSHOTS}{agent}/")
    found = []
    for session in lives:
        before = session.base_commit
        ended = {turn.number: turn.ended_at for turn in store.turns(project.db, session.id)}
        for number in sorted(_numbers(kept, agent, session.id)):
            name = snapshot_name(agent, session.id, number)
            files = tuple(each.path for each in vcs.changed_files(before, kept[name]))
            found.append(Snapshot(session.id, number, ended.get(number), kept[name], SAVED + name, files))
            before = kept[name]
    return found


def restore(project: Context, agent: str, turn: int, *, force: bool = False, actor: str = "human") -> Restored:
    """Make an agent's worktree as it was at the end of a turn of its last life; one that was cleaned is made again.

    What is there now is saved first. Without `force`, a worktree with changes that are not committed is refused.
    """
    session = _idle(project, agent)
    vcs = worktrees.open_repository(project.root, project.config.vcs)
    name = snapshot_name(agent, session.id, turn)
    commit = vcs.saved_refs(name).get(name)
    if commit is None:
        raise NotFound(f"{agent} has no snapshot of turn {turn}", hint=f"`rook agent snapshots {agent}` lists them")
    path = worktrees.path_of(project.root, agent)
    is_missing = not os.path.lexists(path)
    if is_missing:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if vcs.branch_tip(session.branch) is None:
            vcs.create_branch(session.branch, session.base_commit)
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
    """The agent's last life, which must not be in the middle of a turn."""
    session = store.latest(project.db, agent)
    if session is None:
        raise NoSuchAgent(f"there is and was no agent {agent}", hint="`rook status` shows who there is")
    if session.state in (BOOTING, WORKING) or store.running_turn(project.db, session.id) is not None:
        raise InvalidState(f"{agent} is {session.state}", hint=f"wait for its turn to end, or `rook stop {agent}`")
    return session


def _numbers(kept: dict[str, str], agent: str, session_id: str) -> list[int]:
    """The turns of a life that have a snapshot."""
    under = snapshot_name(agent, session_id, 0).removesuffix("0")
    ends = (name.removeprefix(under) for name in kept if name.startswith(under))
    return [int(end) for end in ends if end.isdecimal()]
