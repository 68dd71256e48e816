"""What git and jj answer in, and how they refuse: records, errors and the rules for names and messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rookery.base.clock import stamp
from rookery.base.errors import InvalidInput, InvalidState, Refused
from rookery.base.record import Record
from rookery.base.text import check_text, plural

GIT: Final = "git"
JJ = "jj"

NAME = "Rookery"
EMAIL = "rookery@localhost"
"""The author of commits where the user has set neither name nor address."""

TRUNKS = ("main", "master", "trunk")
MAX_MESSAGE = 100_000
_LAST_SECOND = 253_402_300_799


class NothingToCommit(InvalidState):
    """The checkout has no change."""

    code = "nothing_to_commit"


class Conflicted(InvalidState):
    """The checkout is in the middle of a merge or holds unresolved conflicts."""

    code = "conflicted"


def in_conflict(paths: Sequence[str], hint: str) -> Conflicted:
    """The error for files that hold conflicts."""
    return Conflicted(f"conflicts in {plural(len(paths), 'file')}: {', '.join(map(repr, paths[:5]))}", hint=hint)


class DirtyCheckout(InvalidState):
    """The checkout has changes that the step would touch."""

    code = "dirty_checkout"
    default_hint = "commit or stash them first"


class RefMoved(Refused):
    """A ref was not where the caller last saw it; nothing was changed."""

    code = "ref_moved"


class UnknownRevision(Refused):
    """The name is not that of a commit here."""

    code = "unknown_revision"
    default_hint = "name a branch, a tag or a commit; `rook vcs log` shows the last ones"


@dataclass(frozen=True, slots=True)
class Change(Record):
    """One changed path: `kind` is added, modified, deleted, renamed, copied, type_changed, untracked or conflicted."""

    path: str
    kind: str
    staged: bool = False
    old_path: str | None = None


@dataclass(frozen=True, slots=True)
class Status(Record):
    """The state of a checkout."""

    branch: str | None
    commit: str | None
    changes: tuple[Change, ...]

    @property
    def is_clean(self) -> bool:
        """True if nothing is changed, staged or untracked."""
        return not self.changes


@dataclass(frozen=True, slots=True)
class Contents(Record):
    """What a checkout holds beside its commit."""

    status: Status
    ignored: tuple[str, ...]
    """Every ignored file."""
    inner: tuple[str, ...]
    """Folders with a repository of their own, submodules included."""


@dataclass(frozen=True, slots=True)
class LogEntry(Record):
    """One commit, newest first in a log."""

    PRINTS = "commit"
    commit: str
    message: str
    author: str
    at: str


@dataclass(frozen=True, slots=True)
class FileDiff(Record):
    """What happened to one path between two states; line counts are None for binary files."""

    PRINTS = "path"
    path: str
    kind: str
    added: int | None
    deleted: int | None
    old_path: str | None = None


def check_message(message: str) -> str:
    """The text itself, if it can be a commit's message."""
    if not message.strip():
        raise InvalidInput("the commit message is empty", hint="say what the commit does")
    return check_text("the commit message", message, limit=MAX_MESSAGE)


def ignore_line(path: str) -> str:
    """The line of an ignore file at the top that means this path and nothing else."""
    escaped = re.sub(r"([\\*?\[])", r"\\\1", path)
    return "/" + re.sub(r" \Z", r"\\ ", escaped)


def named_path(line: str) -> str:
    """The path that such a line means."""
    return re.sub(r"\\(.?)", r"\1", line.removeprefix("/"), flags=re.DOTALL)


def check_room(name: str, names: Iterable[str]) -> None:
    """Raise if git cannot have the branch beside the others: a ref is a file or a folder, never both."""
    for other in names:
        if other.startswith(name + "/") or name.startswith(other + "/"):
            raise InvalidState(f"branch {name} cannot be made beside branch {other}", hint="take another name")


def moved(name: str, expected: str | None, actual: str | None) -> RefMoved:
    """The error for a branch or saved ref that is not where the caller last saw it."""
    return RefMoved(f"{name} is {_place(actual)}, not {_place(expected)}", hint="it was moved meanwhile: try again")


def _place(commit: str | None) -> str:
    return "not there" if commit is None else f"at {commit[:12]}"


def commit_time(seconds: str) -> str:
    """A commit's time as it is written in records. Git stores any number; what no calendar holds is cut."""
    return stamp(min(max(int(seconds), 0), _LAST_SECOND))


def choose_default(remote_default: str | None, is_here: Callable[[str], bool], current: str | None) -> str | None:
    """The branch that others start from, out of those that are here."""
    named = (remote_default, *TRUNKS) if remote_default else TRUNKS
    return next((name for name in named if is_here(name)), current)
