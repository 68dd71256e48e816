"""A conflicted merge on its way through the tiers: what is settled, what is left, what speaks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.merge import store
from rookery.merge.merger import Merger
from rookery.merge.model import DECLINED, REFUSED, RESOLVED, VERDICTS, Entry, FileOutcome, GateRun
from rookery.merge.resolve.files import Settings, lineage_of, resolve
from rookery.merge.resolve.markers import has_markers, parses
from rookery.merge.resolve.model import Declined, Hunk, Resolved, Sides
from rookery.vcs.git.merge_tree import REGULAR, Conflict, Side

_VERSIONS = 40
_MOST_TEXT = 4_000


@dataclass(frozen=True, slots=True)
class Case(Record):
    """One branch, what it is to stand on, and the tree so far: with markers in the files that still conflict."""

    entry: Entry
    onto: str
    tree: str
    conflicts: tuple[Conflict, ...]
    """What is left."""
    outcomes: tuple[FileOutcome, ...] = ()
    tier: str = ""
    commit: str = ""
    notes: str = ""
    """What an earlier attempt ran into, for the next one."""

    @property
    def is_settled(self) -> bool:
        """True if nothing is left."""
        return not self.conflicts

    def note(self, *outcomes: FileOutcome) -> Case:
        """The same, with more on record."""
        return self.replace(outcomes=(*self.outcomes, *outcomes))

    def decline(self, tier: str, why: str) -> Case:
        """The same, with the reason why a tier left what is left."""
        return self.note(*(FileOutcome(each.path, each.kind, tier, DECLINED, why) for each in self.conflicts))

    def record(self, merger: Merger) -> None:
        """Keep what was done to each file."""
        with merger.ctx.db.write() as db:
            store.add_outcomes(db, self.entry.id, self.outcomes, merger.ctx.now())

    def refuse(self, merger: Merger, failed: GateRun) -> None:
        """Keep that a gate turned it down."""
        why = f"the gate {failed.name} {VERDICTS[failed.verdict]}"
        turned_down = [
            each.replace(outcome=REFUSED, why=f"{each.why}; {why}") if each.outcome == RESOLVED else each
            for each in self.outcomes
        ]
        self.replace(outcomes=tuple(turned_down)).record(merger)


def sides_of(merger: Merger, case: Case, conflict: Conflict) -> Sides:
    """What each side has at a path, with what it had there on the way; for the rules and the loss check."""
    merging = merger.merging
    parted = merging.fork_point(case.onto, case.entry.tip)
    histories: list[list[str]] = [[], []]
    if parted is not None and all(_is_text(side) for side in (conflict.ours, conflict.theirs)):
        histories = [merging.versions(parted, tip, conflict.path, _VERSIONS) for tip in (case.onto, case.entry.tip)]
    sides = (conflict.base, conflict.ours, conflict.theirs)
    blobs = merging.read_blobs([*(side.oid for side in sides if side and _is_text(side)), *histories[0], *histories[1]])
    base, ours, theirs = (None if side is None else blobs.get(side.oid) for side in sides)
    modes = {f"{name}_mode": side.mode for name, side in zip(("base", "ours", "theirs"), sides, strict=True) if side}
    by_ours, by_theirs = (
        tuple(blobs[each] for each in ids if each in blobs and (now is None or each != now.oid))
        for ids, now in zip(histories, sides[1:], strict=True)
    )
    return Sides(conflict.path, base, ours, theirs, ours_history=by_ours, theirs_history=by_theirs).replace(**modes)


def is_unfinished(path: str, content: bytes) -> str:
    """Why a file cannot be the end of a conflict: markers in it, or a text that its language cannot read."""
    if has_markers(content):
        return "it still holds conflict markers"
    return "it does not parse" if parses(path, content) is False else ""


def resolve_mechanically(merger: Merger, sides: Sequence[Sides]) -> Iterator[Resolved | Declined]:
    """What the rules that the configuration lets speak make of each conflicted path of a merge."""
    settings = Settings(rules=merger.ctx.config.merge.rules, unions=merger.ctx.config.merge.unions)
    lineage = lineage_of(sides, settings=settings)
    for each in sides:
        yield resolve(each, lineage=lineage, settings=settings)


def shown_hunk(hunk: Hunk) -> dict[str, Any]:
    """A hunk as it is kept: every text of bounded size."""
    data = hunk.as_dict() | {"covers": [each.as_dict() for each in hunk.covers]}
    return {key: value[:_MOST_TEXT] if isinstance(value, str) else value for key, value in data.items()}


def _is_text(side: Side | None) -> bool:
    return side is not None and side.mode in REGULAR
