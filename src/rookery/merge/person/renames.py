"""Files that a side of a merge renamed: which of the paths in conflict are one file, and what each side calls it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge.merger import Merger
from rookery.vcs.git.merge_tree import RENAME_RENAME, Conflict


@dataclass(frozen=True, slots=True)
class Renames(Record):
    """What both sides of a merge renamed since they parted: old names and new ones."""

    ours: dict[str, str]
    theirs: dict[str, str]

    def old_name(self, path: str) -> str:
        """The name that a file had before; its own, if no side renamed it."""
        news = ((new, old) for names in (self.ours, self.theirs) for old, new in names.items())
        return next((old for new, old in news if new == path), path)


def find(merger: Merger, fork: str, ours: str, theirs: str) -> Renames:
    """What both sides renamed since `fork`, where git sees that the content is similar."""
    return Renames(merger.merging.renames(fork, ours), merger.merging.renames(fork, theirs))


def join(
    merger: Merger, conflicts: Sequence[Conflict], ours: str, theirs: str, left: Collection[str]
) -> list[Conflict]:
    """The conflicts, with the three paths of a file that both sides renamed as one, at the name that alone is left."""
    by_path = {one.path: one for one in conflicts}
    begun = [path for path, one in by_path.items() if one.kind == RENAME_RENAME and one.base is not None]
    fork = merger.merging.fork_point(ours, theirs) if begun else None
    if fork is None:
        return list(conflicts)
    renames = find(merger, fork, ours, theirs)
    for old in begun:
        by_path |= _as_they_were(merger, by_path, old, renames, ours, theirs)
        paths = (old, renames.ours.get(old, ""), renames.theirs.get(old, ""))
        names = [path for path in paths if path in left]
        if len(names) == 1 and all(path in by_path for path in paths):
            parts = [by_path.pop(path) for path in paths]
            by_path[names[0]] = Conflict(names[0], RENAME_RENAME, parts[0].base, parts[1].ours, parts[2].theirs)
    return list(by_path.values())


def _as_they_were(
    merger: Merger, by_path: dict[str, Conflict], old: str, renames: Renames, ours: str, theirs: str
) -> dict[str, Conflict]:
    """Both new names of a file, each as its side has it: git names its own merge of them there, with markers in it."""
    mine, other = (by_path.get(names.get(old, "")) for names in (renames.ours, renames.theirs))
    files = merger.merging.files
    changed = [mine.replace(ours=files(ours, [mine.path]).get(mine.path))] if mine else []
    changed += [other.replace(theirs=files(theirs, [other.path]).get(other.path))] if other else []
    return {one.path: one for one in changed}
