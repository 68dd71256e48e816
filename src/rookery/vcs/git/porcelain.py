"""Reading what git prints for programs: pure, NUL separated, so that any file name comes through as it is."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.base.record import Record
from rookery.vcs.model import Change, FileDiff
from rookery.vcs.ref_names import HEADS

ADDED = "added"
CONFLICTED = "conflicted"
DELETED = "deleted"
MODIFIED = "modified"
RENAMED = "renamed"
TYPE_CHANGED = "type_changed"
UNTRACKED = "untracked"

_KINDS = {"A": ADDED, "C": "copied", "D": DELETED, "M": MODIFIED, "R": RENAMED, "T": TYPE_CHANGED, "U": CONFLICTED}

DETACHED = "(detached)"


def parse_status(text: str) -> tuple[str | None, str, list[Change]]:
    """The commit, the branch and the changes of `git status --porcelain=v2 --branch -z`."""
    commit, branch, changes = None, DETACHED, []
    tokens = iter(text.split("\0"))
    for token in tokens:
        mark, _, rest = token.partition(" ")
        if mark == "#":
            field, _, value = rest.partition(" ")
            if field == "branch.oid" and value != "(initial)":
                commit = value
            elif field == "branch.head":
                branch = value
        elif mark in ("1", "2"):
            state, path = rest[:2], rest.split(" ", 7 if mark == "1" else 8)[-1]
            old_path = next(tokens) if mark == "2" else None
            changes.append(Change(path, _kind(state), staged=state[0] != ".", old_path=old_path))
        elif mark == "u":
            changes.append(Change(rest.split(" ", 9)[9], CONFLICTED))
        elif mark == "?":
            changes.append(Change(rest, UNTRACKED))
    return commit, branch, changes


def _kind(state: str) -> str:
    """One word for what is staged and what happened since."""
    staged, since = state[0], state[1]
    if since == "D":
        return DELETED
    return _KINDS[since if staged == "." else staged]


def parse_diff(text: str) -> list[FileDiff]:
    """The paths of `git diff --raw --numstat -z`: first what happened to each, then how many lines."""
    kinds: dict[str, tuple[str, str | None]] = {}
    counts: dict[str, tuple[int | None, int | None]] = {}
    tokens = iter(text.split("\0")[:-1])
    for token in tokens:
        if token.startswith(":"):
            letter = token.rpartition(" ")[2][0]
            old = next(tokens) if letter in "RC" else None
            path = next(tokens)
            # A conflicted path is listed a second time with what lies in the checkout.
            if kinds.get(path, ("", None))[0] != CONFLICTED:
                kinds[path] = (_KINDS[letter], old)
        else:
            added, deleted, path = token.split("\t", 2)
            if not path:
                next(tokens)
                path = next(tokens)
            counts[path] = (_count(added), _count(deleted))
    return [FileDiff(path, kind, *counts.get(path, (None, None)), old) for path, (kind, old) in sorted(kinds.items())]


def _count(text: str) -> int | None:
    return None if text == "-" else int(text)


@dataclass(frozen=True, slots=True)
class Worktree(Record):
    """A checkout as git lists it."""

    folder: str
    branch: str
    """'' for none."""
    is_bare: bool
    lock: str | None
    """Why it is locked ('' without a reason); None if it is not."""


def parse_worktrees(text: str) -> list[Worktree]:
    """What `git worktree list --porcelain -z` lists, the main one first."""
    worktrees = []
    for block in text.split("\0\0"):
        lines = (line.partition(" ") for line in block.strip("\0").split("\0"))
        fields = {name: value for name, _, value in lines}
        if "worktree" in fields:
            branch = fields.get("branch", "").removeprefix(HEADS)
            worktrees.append(Worktree(fields["worktree"], branch, "bare" in fields, fields.get("locked")))
    return worktrees
