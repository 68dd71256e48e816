"""Reading what git prints for programs: pure, NUL separated, so that any file name comes through as it is."""

from __future__ import annotations

from rookery.vcs.model import Change, FileDiff

ADDED = "added"
CONFLICTED = "conflicted"
DELETED = "deleted"
MODIFIED = "modified"
RENAMED = "renamed"
TYPE_CHANGED = "type_changed"
UNTRACKED = "untracked"

_KINDS = {"A": ADDED, "C": "copied", "D": DELETED, "M": MODIFIED, "R": RENAMED, "T": TYPE_CHANGED, "U": CONFLICTED}

DETACHED = "(detached)"


def parse_status(text: str) -> tuple[str | None, str, list[Change], list[str]]:
    """The commit, the branch, the changes and the ignored files of `git status --porcelain=v2 --branch -z`."""
    commit, branch = None, DETACHED
    changes: list[Change] = []
    ignored: list[str] = []
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
        elif mark == "!":
            ignored.append(rest)
    return commit, branch, changes, ignored


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


def parse_worktrees(text: str) -> list[dict[str, str]]:
    """What `git worktree list --porcelain -z` says of each worktree, the main one first."""
    blocks = [block.split("\0") for block in text.rstrip("\0").split("\0\0")]
    return [{name: value for name, _, value in (line.partition(" ") for line in block)} for block in blocks]
