"""Which living branches meet: found while the work goes on, not when it lands.

Two branches are compared only if they changed a common file, and each pair of commits only once: what was found is
kept by the commits, and commits do not change. The base only goes on, so where a branch parted from it stays, too. An
agent's last snapshot counts, so that work which is not committed yet is seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge import store
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, OPEN
from rookery.merge.radar import store as radar_store
from rookery.sessions import store as agents
from rookery.sessions.model import COMPLETED, Session
from rookery.vcs.ref_names import SNAPSHOTS, snapshot_name

OVERLAP, CONFLICT = "overlap", "conflict"


@dataclass(frozen=True, slots=True)
class Branch(Record):
    """Work that has not landed: whose it is, and the commit that tells how far it is."""

    name: str
    agent: str
    is_alive: bool
    commit: str
    """The tip, or a snapshot on top of it."""


@dataclass(frozen=True, slots=True)
class Meeting(Record):
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

    base: str
    branches: tuple[Branch, ...]
    meetings: tuple[Meeting, ...]


def scan(merger: Merger, base: str, *, only: str | None = None) -> Scan:
    """Every pair of branches that meet, or those with one branch or agent."""
    branches = living_branches(merger)
    files = _files(merger, branches, base)
    pairs = []
    for number, one in enumerate(branches):
        for other in branches[number + 1 :]:
            if only is not None and only not in (one.name, one.agent, other.name, other.agent):
                continue
            common = tuple(sorted(files[one.name] & files[other.name]))
            if common and one.commit != other.commit:
                pairs.append((one, other, common))
    conflicts = _conflicts(merger, [(one.commit, other.commit) for one, other, _ in pairs])
    meetings = [
        Meeting(
            one.name,
            other.name,
            (one.agent, other.agent),
            CONFLICT if found else OVERLAP,
            common,
            found,
        )
        for (one, other, common), found in zip(pairs, conflicts, strict=True)
    ]
    meetings.sort(key=lambda each: (each.kind != CONFLICT, each.one, each.other))
    return Scan(base, tuple(branches), tuple(meetings))


def living_branches(merger: Merger) -> list[Branch]:
    """The branches of living agents, and those that are ready or queued and have not landed."""
    last: dict[str, Session] = {}
    for session in agents.sessions(merger.ctx.db):
        last[session.branch] = session
    queued = {entry.branch for entry in store.select(merger.ctx.db, states=OPEN)}
    tips = merger.vcs.branches()
    kept = merger.vcs.saved_refs(SNAPSHOTS)
    by_life: dict[str, list[tuple[int, str]]] = {}
    for name, commit in kept.items():
        life, _, turn = name.rpartition("/")
        if turn.isdecimal():
            by_life.setdefault(life, []).append((int(turn), commit))
    parents = merger.merging.parents([max(found)[1] for found in by_life.values()])
    found = []
    for name, session in last.items():
        if name not in tips or not (session.is_alive or name in queued or session.outcome == COMPLETED):
            continue
        life = snapshot_name(session.agent, session.id, 0).rpartition("/")[0]
        commit = tips[name]
        if session.is_alive and life in by_life:
            newest = max(by_life[life])[1]
            # A snapshot that the branch has left behind says less than the branch.
            commit = newest if parents[newest][:1] == [commit] else commit
        found.append(Branch(name, session.agent, session.is_alive, commit))
    found += [Branch(name, "", False, tips[name]) for name in sorted(queued - last.keys()) if name in tips]
    return _unlanded(merger, found)


def _unlanded(merger: Merger, branches: list[Branch]) -> list[Branch]:
    landed = {entry.branch: entry.tip for entry in store.select(merger.ctx.db, states=(LANDED,))}
    return [each for each in branches if landed.get(each.name) != each.commit]


def files_of(merger: Merger, branch: Branch, base: str) -> frozenset[str]:
    """What a branch has changed since it parted from the base."""
    return _files(merger, [branch], base)[branch.name]


def _files(merger: Merger, branches: list[Branch], base: str) -> dict[str, frozenset[str]]:
    """The changed files of each branch, by one git for all that are not known."""
    tip = merger.merging.tip(base) or base
    found: dict[str, frozenset[str]] = {}
    asked: list[tuple[Branch, str]] = []
    for branch in branches:
        known = radar_store.files(merger.ctx.db, base, branch.commit)
        if known is not None:
            found[branch.name] = frozenset(known)
            continue
        parted = merger.merging.fork_point(tip, branch.commit)
        if parted is None:
            found[branch.name] = frozenset(merger.merging.files(branch.commit))
        else:
            asked.append((branch, parted))
    changed = merger.merging.changed_paths([(parted, branch.commit) for branch, parted in asked])
    fresh = {branch.commit: paths for (branch, _), paths in zip(asked, changed, strict=True)}
    found |= {branch.name: frozenset(fresh[branch.commit]) for branch, _ in asked}
    if fresh:
        with merger.ctx.db.write() as db:
            radar_store.keep_files(db, base, fresh)
    return found


def _conflicts(merger: Merger, pairs: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """In which files each pair conflicts, by one git for all that are not known; nothing is left in the repository."""
    keys = [(min(pair), max(pair)) for pair in pairs]
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    for key in dict.fromkeys(keys):
        found = radar_store.conflicts(merger.ctx.db, key)
        if found is not None:
            known[key] = found
    asked = [key for key in dict.fromkeys(keys) if key not in known]
    if asked:
        with merger.merging.on_trial() as trial:
            merged = trial.merge_many(asked)
        fresh = {
            key: tuple(sorted(each.path for each in found.conflicts)) for key, found in zip(asked, merged, strict=True)
        }
        known |= fresh
        with merger.ctx.db.write() as db:
            radar_store.keep_conflicts(db, fresh)
    return [known[key] for key in keys]
