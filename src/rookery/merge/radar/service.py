"""Which unlanded branches overlap: found while the work goes on, not when it lands.

Two branches are compared only if they changed a common file, and a pair of commits only once: the result is kept by the
commits, and commits do not change. The base only goes on, so the point where a branch parted from it stays, too. An
agent's last snapshot counts, so that work which is not committed yet is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from rookery.base.record import Record
from rookery.config import steps
from rookery.events.store import publish
from rookery.merge import store
from rookery.merge.landing import messages
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, OPEN
from rookery.merge.radar import store as radar_store
from rookery.sessions import store as agents
from rookery.sessions.model import COMPLETED, last_by
from rookery.vcs.ref_names import SNAPSHOTS, snapshot_name

OVERLAP, CONFLICT = "overlap", "conflict"


@dataclass(frozen=True, slots=True)
class Branch(Record):
    """Work that has not landed: whose it is, and the commit that shows how far it is."""

    name: str
    agent: str
    is_alive: bool
    commit: str
    """The tip, or a snapshot on top of it."""


@dataclass(frozen=True, slots=True)
class Overlap(Record):
    """Two branches that changed the same files."""

    one: str
    other: str
    agents: tuple[str, str]
    kind: str
    """`conflict` if they could not both land as they are, `overlap` if they could."""
    files: tuple[str, ...]
    """The files that both changed."""
    conflicts: tuple[str, ...]
    """Those of them in which they conflict."""


@dataclass(frozen=True, slots=True)
class Scan(Record):
    """What the radar sees."""

    JSON_NAMES = {"overlaps": "meetings"}
    base: str
    branches: tuple[Branch, ...]
    overlaps: tuple[Overlap, ...]


def scan(merger: Merger, base: str, *, only: str | None = None) -> Scan:
    """Every pair of branches that overlap, or those with one branch or agent."""
    branches = unlanded_branches(merger)
    files = changed_files(merger, branches, base)
    pairs = []
    for one, other in combinations(branches, 2):
        if only is not None and only not in (one.name, one.agent, other.name, other.agent):
            continue
        common = tuple(sorted(files[one.name] & files[other.name]))
        if common and one.commit != other.commit:
            pairs.append((one, other, common))
    conflicts = _conflicts(merger, [(one.commit, other.commit) for one, other, _ in pairs])
    overlaps = [
        Overlap(one.name, other.name, (one.agent, other.agent), CONFLICT if paths else OVERLAP, common, paths)
        for (one, other, common), paths in zip(pairs, conflicts, strict=True)
    ]
    overlaps.sort(key=lambda overlap: (overlap.kind != CONFLICT, overlap.one, overlap.other))
    return Scan(base, tuple(branches), tuple(overlaps))


def scan_and_warn(merger: Merger) -> None:
    """Scan, and warn running agents whose work overlaps: once for every file that two of them have in common."""
    scanned = scan(merger, merger.base())
    steps.reached("radar scanned")
    alive = {branch.agent for branch in scanned.branches if branch.is_alive}
    with merger.ctx.db.write() as db:
        now = merger.ctx.now()
        for overlap in scanned.overlaps:
            one, other = overlap.one, overlap.other
            new = [path for path in overlap.files if not radar_store.is_warned(db, one, other, path)]
            if new and alive & set(overlap.agents):
                radar_store.keep_warnings(db, one, other, new, now)
                publish(db, f"radar.{overlap.kind}", one, overlap.as_dict(), actor=merger.actor, at=now)
                _warn(merger, overlap, alive)
    steps.reached("agents warned")


def _warn(merger: Merger, overlap: Overlap, alive: set[str]) -> None:
    is_conflict = overlap.kind == CONFLICT
    files = overlap.conflicts if is_conflict else overlap.files
    one, other = overlap.agents
    for agent, branch, partner in ((one, overlap.one, other), (other, overlap.other, one)):
        if agent in alive and partner != agent:
            named = partner or "a queued branch"
            messages.warn_of_overlap(merger, agent, branch, named, files, is_conflict=is_conflict)


def unlanded_branches(merger: Merger) -> list[Branch]:
    """The branches of running agents, and those that are ready or queued and have not landed."""
    db = merger.ctx.db
    sessions = last_by("branch", agents.sessions(db))
    queued = {entry.branch for entry in store.select(db, states=OPEN)}
    landed = {(entry.branch, entry.tip) for entry in store.select(db, states=(LANDED,))}
    tips = merger.vcs.branches()
    snapshots = _last_snapshots(merger)
    parents = merger.merging.parents(list(snapshots.values()))
    branches = []
    for name, session in sessions.items():
        if name not in tips or not (session.is_alive or name in queued or session.outcome == COMPLETED):
            continue
        commit = tips[name]
        snapshot = snapshots.get(snapshot_name(session.agent, session.id, 0).rpartition("/")[0])
        # A snapshot that the branch has left behind says less than the branch.
        if session.is_alive and snapshot is not None and parents[snapshot][:1] == [commit]:
            commit = snapshot
        branches.append(Branch(name, session.agent, session.is_alive, commit))
    branches += [Branch(name, "", False, tips[name]) for name in sorted(queued - sessions.keys()) if name in tips]
    return [branch for branch in branches if (branch.name, branch.commit) not in landed]


def _last_snapshots(merger: Merger) -> dict[str, str]:
    """The last snapshot of every session, by the name that all snapshots of the session begin with."""
    newest: dict[str, tuple[int, str]] = {}
    for name, commit in merger.vcs.saved_refs(SNAPSHOTS).items():
        session, _, turn = name.rpartition("/")
        if turn.isdecimal():
            newest[session] = max(newest.get(session, (0, "")), (int(turn), commit))
    return {session: commit for session, (_, commit) in newest.items()}


def changed_files(merger: Merger, branches: Sequence[Branch], base: str) -> dict[str, frozenset[str]]:
    """The files that branches have changed since they parted from the base; one git finds all that are not known."""
    merging = merger.merging
    tip = merging.tip(base) or base
    files: dict[str, frozenset[str]] = {}
    unknown: list[tuple[Branch, str]] = []
    for branch in branches:
        known = radar_store.files(merger.ctx.db, base, branch.commit)
        fork_point = None if known is not None else merging.fork_point(tip, branch.commit)
        if fork_point is not None:
            unknown.append((branch, fork_point))
        else:
            files[branch.name] = frozenset(merging.files(branch.commit) if known is None else known)
    changed = merging.changed_paths([(fork_point, branch.commit) for branch, fork_point in unknown])
    fresh = {branch.commit: paths for (branch, _), paths in zip(unknown, changed, strict=True)}
    if fresh:
        with merger.ctx.db.write() as db:
            radar_store.keep_files(db, base, fresh)
    return files | {branch.name: frozenset(fresh[branch.commit]) for branch, _ in unknown}


def _conflicts(merger: Merger, pairs: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """The files in which pairs conflict; one git finds all that are not known, and leaves nothing in the repository."""
    keys = [(min(pair), max(pair)) for pair in pairs]
    known = {key: radar_store.conflicts(merger.ctx.db, key) for key in keys}
    unknown = [key for key, paths in known.items() if paths is None]
    if unknown:
        with merger.merging.on_trial() as trial:
            results = trial.merge_many(unknown)
        fresh = {
            key: tuple(sorted(conflict.path for conflict in merged.conflicts))
            for key, merged in zip(unknown, results, strict=True)
        }
        with merger.ctx.db.write() as db:
            radar_store.keep_conflicts(db, fresh)
        known |= fresh
    return [known[key] or () for key in keys]
