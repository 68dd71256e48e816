"""A conflicted merge on its way through the tiers: what is settled, what is left, and why."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

from rookery.base.record import Record
from rookery.merge import store
from rookery.merge.landing.history import Start
from rookery.merge.merger import Merger
from rookery.merge.model import DECLINED, REFUSED, RESOLVED, VERDICTS, Entry, FileOutcome, GateRun
from rookery.merge.resolve.markers import has_markers, parses
from rookery.merge.resolve.model import Sides
from rookery.vcs.git.merge_tree import REGULAR, Conflict

_VERSIONS = 40


@dataclass(frozen=True, slots=True)
class Case(Record):
    """One branch, the commit that it lands on, and the tree so far: with markers in the files that still conflict."""

    entry: Entry
    onto: str
    start: Start
    tree: str
    conflicts: tuple[Conflict, ...]
    """What is left."""
    outcomes: tuple[FileOutcome, ...] = ()
    notes: str = ""
    """Why an earlier attempt failed, for the next one."""

    @property
    def is_settled(self) -> bool:
        """True if nothing is left."""
        return not self.conflicts

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that conflict."""
        return tuple(conflict.path for conflict in self.conflicts)

    def note(self, *outcomes: FileOutcome) -> Case:
        """The same, with more on record."""
        return self.replace(outcomes=(*self.outcomes, *outcomes))

    def decline(self, tier: str, why: str) -> Case:
        """The same, with the reason why a tier left what is left."""
        outcomes = (FileOutcome(conflict.path, conflict.kind, tier, DECLINED, why) for conflict in self.conflicts)
        return self.note(*outcomes)

    def record(self, merger: Merger) -> None:
        """Keep what was done to each file."""
        with merger.ctx.db.write() as db:
            store.add_outcomes(db, self.entry.id, self.outcomes, merger.ctx.now())

    def refuse(self, merger: Merger, failed: GateRun) -> None:
        """Keep that a gate turned it down."""
        why = f"the gate {failed.name} {VERDICTS[failed.verdict]}"
        outcomes = (
            outcome.replace(outcome=REFUSED, why=f"{outcome.why}; {why}") if outcome.outcome == RESOLVED else outcome
            for outcome in self.outcomes
        )
        self.replace(outcomes=tuple(outcomes)).record(merger)


def sides_of(merger: Merger, case: Case, conflict: Conflict) -> Sides:
    """What each side has at a path, and its earlier versions there; for the rules and the loss check."""
    merging = merger.merging
    fork = merging.fork_point(case.onto, case.entry.tip)
    sides = {"base": conflict.base, "ours": conflict.ours, "theirs": conflict.theirs}
    tips = {"ours": case.onto, "theirs": case.entry.tip}
    histories: dict[str, list[str]] = {}
    if fork is not None and conflict.ours and conflict.theirs and is_text(conflict):
        histories = {name: merging.versions(fork, tip, conflict.path, _VERSIONS) for name, tip in tips.items()}
    now = {name: side.oid for name, side in sides.items() if side and side.mode in REGULAR}
    blobs = merging.read_blobs([*now.values(), *chain.from_iterable(histories.values())])
    values: dict[str, Any] = {name: blobs.get(now.get(name, "")) for name in sides}
    values |= {f"{name}_mode": side.mode for name, side in sides.items() if side}
    for name, oids in histories.items():
        values[f"{name}_history"] = tuple(blobs[oid] for oid in oids if oid in blobs and oid != now[name])
    return Sides(conflict.path, **values)


def why_unfinished(path: str, content: bytes) -> str:
    """Why a file cannot be the end of a conflict: markers in it, or a text that its language cannot read."""
    if has_markers(content):
        return "it still holds conflict markers"
    return "it does not parse" if parses(path, content) is False else ""


def is_text(conflict: Conflict) -> bool:
    """True if every side that has the path has a regular file there."""
    return all(side is None or side.mode in REGULAR for side in (conflict.base, conflict.ours, conflict.theirs))
