"""Templates for jj, and how to read what it prints by them: one JSON list a line, whatever characters a name has."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.vcs.git.porcelain import ADDED, CONFLICTED, DELETED, MODIFIED, RENAMED, TYPE_CHANGED
from rookery.vcs.model import TRUNKS, Change, LogEntry, commit_time


def _row(*fields: str) -> str:
    """A template for a JSON list of fields."""
    return '"[" ++ ' + ' ++ "," ++ '.join(fields) + ' ++ "]"'


def _list(items: str, entry: str) -> str:
    """A template for a JSON list of the items that another template lists."""
    return f'"[" ++ {items}.map(|x| {entry}).join(",") ++ "]"'


def _file(name: str) -> str:
    """A template for a changed file."""
    fields = ("status()", "source().path()", "path()", "source().file_type()", "target().file_type()")
    return _row(*(f"json({name}.{field})" for field in fields))


_END = ' ++ "\\n"'
_BOOKMARKS = _row("json(x.name())", "x.conflict()")

# The working copy and the nearest commits under it (or itself) that have a bookmark.
HERE = "@ | heads(::@ & bookmarks())"
HERE_TEMPLATE = (
    _row(
        "current_working_copy",
        "json(commit_id)",
        _list("parents", "json(x.commit_id())"),
        _list("local_bookmarks", _BOOKMARKS),
        f'if(current_working_copy, {_list("self.diff().files()", _file("x"))}, "[]")',
        f'if(current_working_copy, {_list("self.conflicted_files()", "json(x.path())")}, "[]")',
    )
    + _END
)
_BOOKMARK = _row("json(name)", _list("added_targets", "json(x.commit_id())"), "conflict") + _END
BOOKMARK_TEMPLATE = f'if(remote, "", if(present, {_BOOKMARK}))'
LOG_TEMPLATE = (
    _row(
        *("json(commit_id)", "json(description)", "json(author.name())", "json(stringify(author.email()))"),
        'json(author.timestamp().format("%s"))',
    )
    + _END
)
WORKSPACE_TEMPLATE = (
    _row(
        *("json(name)", "json(stringify(root))", _list("target.local_bookmarks()", _BOOKMARKS)),
        f'"[" ++ target.parents().map(|p| {_list("p.local_bookmarks()", _BOOKMARKS)}).join(",") ++ "]"',
    )
    + _END
)
PATH_TEMPLATE = "json(path)" + _END
DIFF_TEMPLATE = _file("self") + _END


def parse_rows(text: str) -> list[Any]:
    """What jj printed by one of the templates."""
    return [json.loads(line) for line in text.split("\n")[:-1]]


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
        by_commit = ([mark for mark in self.bookmarks if mark.commit == at] for at in (self.commit, *self.parents))
        return next(filter(None, by_commit), [])


def is_root(commit: str) -> bool:
    """True for the commit under all others, which jj has and git has not."""
    return not commit.strip("0")


def parse_here(text: str) -> Here:
    """The working copy, from HERE in HERE_TEMPLATE."""
    rows = parse_rows(text)
    bookmarks = tuple(
        Bookmark(name, commit, is_conflicted) for _, commit, _, marks, _, _ in rows for name, is_conflicted in marks
    )
    _, commit, parents, _, files, conflicts = next(row for row in rows if row[0])
    changes = [parse_change(entry, conflicts) for entry in files]
    listed = {change.path for change in changes}
    changes += [Change(path, CONFLICTED) for path in conflicts if path not in listed]
    return Here(commit, tuple(parents), bookmarks, tuple(changes), tuple(conflicts))


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
    # A side that deleted it leaves one commit only, and still the bookmark is in conflict.
    return {name: [*at, ""] if is_conflicted else at for name, at, is_conflicted in parse_rows(text)}


def parse_log(text: str) -> list[LogEntry]:
    """The commits of a log in LOG_TEMPLATE."""
    return [
        LogEntry(commit, message.rstrip("\n"), f"{name} <{email}>", commit_time(seconds))
        for commit, message, name, email, seconds in parse_rows(text)
    ]


def parse_workspaces(text: str) -> dict[str, tuple[str, list[str]]]:
    """The folder of every workspace, its name, and the bookmarks at its working copy, else at what that stands on."""
    return {
        root: (name, [mark[0] for mark in next(filter(None, (own, *parents)), [])])
        for name, root, own, parents in parse_rows(text)
    }


def choose_bookmark(names: Iterable[str], remembered: str) -> str | None:
    """The one that is meant, of several at one commit: what was switched to, else the trunk, else the first."""
    here = set(names)
    return next((name for name in (remembered, *TRUNKS) if name in here), min(here, default=None))
