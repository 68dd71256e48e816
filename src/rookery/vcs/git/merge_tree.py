"""What `git merge-tree` prints for a merge: its tree, and what conflicts in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rookery.base.record import Record

CONTENT = "content"
ADD_ADD = "add/add"
MODIFY_DELETE = "modify/delete"
RENAME_RENAME = "rename/rename"
UNRELATED = "unrelated histories"
REGULAR = ("100644", "100755")
_KINDS = {"contents": CONTENT}
MERGE_TREE = ("merge-tree", "--write-tree", "--stdin")


@dataclass(frozen=True, slots=True)
class Side(Record):
    """What one side has at a path: a file's mode and the id of its content."""

    mode: str
    oid: str


@dataclass(frozen=True, slots=True)
class Conflict(Record):
    """A path on which two sides disagree. `kind` is git's own word: content, add/add, modify/delete, rename/delete …"""

    path: str
    kind: str
    base: Side | None = None
    ours: Side | None = None
    theirs: Side | None = None


@dataclass(frozen=True, slots=True)
class Merged(Record):
    """A merge: its tree, with conflict markers in it where it is not clean."""

    tree: str
    conflicts: tuple[Conflict, ...] = ()

    @property
    def is_clean(self) -> bool:
        """True if nothing conflicts."""
        return not self.conflicts


def parse_merges(text: str) -> list[Merged]:
    """The merges of `merge-tree --write-tree --stdin`."""
    tokens = iter(text.split("\0")[:-1])
    merges = []
    for status in tokens:
        tree = next(tokens)
        sides: dict[str, dict[str, Side]] = {}
        for token in tokens:
            if not token:
                break
            about, _, path = token.partition("\t")
            mode, oid, stage = about.split(" ")
            sides.setdefault(path, {})[stage] = Side(mode, oid)
        kinds = {} if status == "1" else _parse_kinds(tokens)
        conflicts = [
            Conflict(path, _kind(kinds.get(path), stages), stages.get("1"), stages.get("2"), stages.get("3"))
            for path, stages in sides.items()
        ]
        if status != "1" and not conflicts:
            # Some conflicts leave nothing at the path that they are about.
            conflicts = [Conflict(path, kind) for path, kind in kinds.items()] or [Conflict("", "unknown")]
        merges.append(Merged(tree, tuple(conflicts)))
    return merges


def _parse_kinds(tokens: Iterator[str]) -> dict[str, str]:
    """The kind of conflict at each path, from git's messages; the gravest wins."""
    kinds: dict[str, str] = {}
    for count in tokens:
        # Some gits print advice on submodules for people there, in front of the empty token that ends the list.
        if not count.isdecimal():
            break
        paths = [next(tokens) for _ in range(int(count))]
        word = next(tokens)
        next(tokens)
        if not word.startswith("CONFLICT"):
            continue
        kind = word.partition("(")[2].rstrip(")")
        for path in paths:
            if kinds.get(path, CONTENT) == CONTENT:
                kinds[path] = _KINDS.get(kind, kind)
    return kinds


def _kind(kind: str | None, stages: Mapping[str, Side]) -> str:
    """The kind of a conflict: git's, or what follows from what each side has."""
    if kind not in (None, CONTENT):
        return str(kind)
    if "2" in stages and "3" in stages:
        return CONTENT if "1" in stages else ADD_ADD
    return MODIFY_DELETE
