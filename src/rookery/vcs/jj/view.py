"""Reading what jj prints by our templates: pure. Names come as JSON, so that any of them comes through as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.vcs.git.porcelain import ADDED, CONFLICTED, DELETED, MODIFIED, RENAMED, TYPE_CHANGED
from rookery.vcs.model import TRUNKS, Change, LogEntry, commit_time


def _list(items: str, entry: str) -> str:
    """A template for a JSON list."""
    return f'"[" ++ {items}.map(|x| {entry}).join(",") ++ "]"'


_BOOKMARKS = '"[" ++ json(x.name()) ++ "," ++ x.conflict() ++ "]"'
_FILES = (
    '"[" ++ json(x.status()) ++ "," ++ json(x.source().path()) ++ "," ++ json(x.path()) ++ "," '
    '++ json(x.source().file_type()) ++ "," ++ json(x.target().file_type()) ++ "]"'
)
_END = ' ++ "\\0"'

# The working copy and the nearest commits beneath it (or itself) that have a bookmark.
HERE = "@ | heads(::@ & bookmarks())"
HERE_TEMPLATE = "".join(
    part + _END + " ++ "
    for part in (
        "current_working_copy",
        "commit_id",
        _list("parents", "json(x.commit_id())"),
        _list("local_bookmarks", _BOOKMARKS),
        f'if(current_working_copy, {_list("self.diff().files()", _FILES)}, "[]")',
        f'if(current_working_copy, {_list("self.conflicted_files()", "json(x.path())")}, "[]")',
    )
).removesuffix(" ++ ")
_HERE_FIELDS = 6

BOOKMARK_TEMPLATE = (
    'if(remote, "", if(present, json(name) ++ "\\0" ++ '
    + _list("added_targets", "json(x.commit_id())")
    + ' ++ "\\0" ++ conflict ++ "\\0"))'
)
LOG_TEMPLATE = (
    'commit_id ++ "\\0" ++ json(author.name()) ++ "\\0" ++ json(stringify(author.email())) ++ "\\0" '
    '++ author.timestamp().format("%s") ++ "\\0" ++ json(description) ++ "\\0"'
)
WORKSPACE_TEMPLATE = (
    'root ++ "\\0" ++ '
    + _list("target.local_bookmarks()", _BOOKMARKS)
    + ' ++ "\\0" ++ "[" ++ target.parents().map(|p| '
    + _list("p.local_bookmarks()", _BOOKMARKS)
    + ').join(",") ++ "]" ++ "\\0"'
)
PATH_TEMPLATE = 'json(path) ++ "\\0"'
DIFF_TEMPLATE = _FILES.replace("x.", "self.") + _END


@dataclass(frozen=True, slots=True)
class Bookmark(Record):
    """A bookmark at a commit; a conflicted one is at several."""

    name: str
    commit: str
    is_conflicted: bool


@dataclass(frozen=True, slots=True)
class Here(Record):
    """The working copy: its own commit, what that stands on, what it changed, and the nearest bookmarks."""

    commit: str
    parents: tuple[str, ...]
    bookmarks: tuple[Bookmark, ...]
    changes: tuple[Change, ...]
    conflicts: tuple[str, ...]

    @property
    def base(self) -> str | None:
        """The commit that the checkout stands on; None before the first one."""
        return None if is_root(self.parents[0]) else self.parents[0]

    def direct_bookmarks(self) -> list[Bookmark]:
        """Those at the working copy itself, else those at the first commit that it stands on and that has any."""
        for commit in (self.commit, *self.parents):
            found = [mark for mark in self.bookmarks if mark.commit == commit]
            if found:
                return found
        return []


def is_root(commit: str) -> bool:
    """True for the commit beneath all others, which jj has and git has not."""
    return not commit.strip("0")


def parse_here(text: str) -> Here:
    """The working copy, from HERE in HERE_TEMPLATE."""
    fields = text.split("\0")[:-1]
    rows = list(zip(*[iter(fields)] * _HERE_FIELDS, strict=True))
    bookmarks = tuple(
        Bookmark(name, commit, is_conflicted)
        for _, commit, _, marks, _, _ in rows
        for name, is_conflicted in json.loads(marks)
    )
    own = next(row for row in rows if row[0] == "true")
    conflicts = tuple(json.loads(own[5]))
    changes = [parse_change(entry, conflicts) for entry in json.loads(own[4])]
    listed = {change.path for change in changes}
    changes += [Change(path, CONFLICTED) for path in conflicts if path not in listed]
    return Here(own[1], tuple(json.loads(own[2])), bookmarks, tuple(changes), conflicts)


def parse_change(entry: list[str], conflicts: Iterable[str] = ()) -> Change:
    """One changed file, from its entry in a template."""
    status, old, path, old_type, new_type = entry
    kind = {"removed": DELETED, "added": ADDED}.get(status, status)
    if path in conflicts or new_type == "conflict":
        kind = CONFLICTED
    elif kind == MODIFIED and "conflict" != old_type != new_type:
        kind = TYPE_CHANGED
    return Change(path, kind, old_path=old if kind in (RENAMED, "copied") else None)


def parse_bookmarks(text: str) -> dict[str, list[str]]:
    """Every local bookmark and where it is: one commit, or several when it is conflicted."""
    fields = text.split("\0")[:-1]
    found = {}
    for name, targets, is_conflicted in zip(*[iter(fields)] * 3, strict=True):
        commits = json.loads(targets)
        # A side that deleted it leaves one commit only, and still the bookmark is in conflict.
        found[json.loads(name)] = commits if is_conflicted == "false" else [*commits, ""]
    return found


def parse_log(text: str) -> list[LogEntry]:
    """The commits of a log in LOG_TEMPLATE."""
    fields = text.split("\0")[:-1]
    return [
        LogEntry(
            commit, json.loads(message).rstrip("\n"), f"{json.loads(name)} <{json.loads(email)}>", commit_time(seconds)
        )
        for commit, name, email, seconds, message in zip(*[iter(fields)] * 5, strict=True)
    ]


def parse_workspaces(text: str) -> dict[str, list[str]]:
    """The folder of every workspace, and the bookmarks at its working copy, else at what that stands on."""
    fields = text.split("\0")[:-1]
    found = {}
    for root, own, beneath in zip(*[iter(fields)] * 3, strict=True):
        places: list[list[list[str]]] = [json.loads(own), *json.loads(beneath)]
        found[root] = [mark[0] for mark in next(filter(None, places), [])]
    return found


def choose_bookmark(names: Iterable[str], remembered: str) -> str | None:
    """The one that is meant, of several at one commit: what was switched to, else the trunk, else the first."""
    here = set(names)
    for name in (remembered, *TRUNKS):
        if name in here:
            return name
    return min(here, default=None)
