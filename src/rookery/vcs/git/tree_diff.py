"""The paths in which two trees differ, with what each of them has there."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.vcs.git.repository import GitStore

NOTHING = "000000"
DIFF_TREE = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")


@dataclass(frozen=True, slots=True)
class TreeChange(Record):
    """A path in which two commits differ; a mode of zeros says that a commit has nothing there."""

    path: str
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str

    @property
    def is_added(self) -> bool:
        """True if only the new commit has it."""
        return self.old_mode == NOTHING

    @property
    def is_deleted(self) -> bool:
        """True if only the old commit has it."""
        return self.new_mode == NOTHING

    @property
    def inverse(self) -> TreeChange:
        """The way back."""
        return TreeChange(self.path, self.new_mode, self.old_mode, self.new_oid, self.old_oid)


def tree_changes(store: GitStore, old: str, new: str) -> list[TreeChange]:
    """Every path in which two commits differ; a rename is a deletion and an addition. Both are ids."""
    key = ("changes", old, new)
    if key not in store.known:
        store.known[key] = parse_changes(store.read(*DIFF_TREE, old, new))
    changes: list[TreeChange] = store.known[key]
    return changes


def parse_changes(text: str) -> list[TreeChange]:
    """The paths of `--raw -z`."""
    fields = text.split("\0")[:-1]
    return [parse_change(about, path) for about, path in zip(fields[::2], fields[1::2], strict=False)]


def parse_change(about: str, path: str) -> TreeChange:
    """One path of `--raw -z`, with what stands before it."""
    old_mode, new_mode, old_oid, new_oid, _ = about.strip("\n").removeprefix(":").split(" ")
    return TreeChange(path, old_mode, new_mode, old_oid, new_oid)
