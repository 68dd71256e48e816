"""What the rest of Rookery may ask of git and jj.

A *branch* is a git branch or a jj bookmark. Commits are named by their full git object id, so that a record made
on one backend is readable on the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from rookery.base.clock import stamp
from rookery.base.errors import InvalidInput, InvalidState, Refused
from rookery.base.record import Record
from rookery.base.text import check_text

if TYPE_CHECKING:
    from rookery.vcs.git.merging import Merging

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
    return Conflicted(f"{len(paths)} files hold conflicts: {', '.join(map(repr, paths[:5]))}", hint=hint)


class DirtyCheckout(InvalidState):
    """The checkout has changes that the step would touch."""

    code = "dirty_checkout"
    default_hint = "commit or stash them first"


class RefMoved(Refused):
    """A ref was not where the caller last saw it; nothing was changed."""

    code = "ref_moved"


class UnknownRevision(Refused):
    """The name stands for no commit here."""

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
class LogEntry(Record):
    """One commit, newest first in a log."""

    commit: str
    message: str
    author: str
    at: str


@dataclass(frozen=True, slots=True)
class FileDiff(Record):
    """What happened to one path between two states; line counts are None for binary files."""

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
    return RefMoved(f"{name} is {_place(actual)}, not {_place(expected)}", hint="read it again, then try again")


def _place(commit: str | None) -> str:
    return "not there" if commit is None else f"at {commit[:12]}"


def commit_time(seconds: str) -> str:
    """A commit's time as it is written in records. Git stores any number; what no calendar holds is cut."""
    return stamp(min(max(int(seconds), 0), _LAST_SECOND))


def choose_default(remote_default: str | None, is_here: Callable[[str], bool], current: str | None) -> str | None:
    """The branch that others start from, out of those that are here."""
    named = (remote_default, *TRUNKS) if remote_default else TRUNKS
    return next((name for name in named if is_here(name)), current)


class Vcs(Protocol):
    """One checkout of one repository. Every method runs the backend's own command line and may raise ProgramFailed."""

    kind: str
    root: str
    """The top of the checkout that the caller stands in."""

    def main_root(self) -> str:
        """The top of the repository's main checkout, also when called in a linked one."""

    def status(self) -> Status:
        """What is changed here, untracked files included and ignored ones not."""

    def log(self, limit: int = 20) -> Sequence[LogEntry]:
        """The newest commits that the checkout contains."""

    def diff(self, base: str | None = None) -> Sequence[FileDiff]:
        """What the checkout, uncommitted and untracked work included, has that `base` (or its last commit) has not.

        Where both have gone on since they parted, it counts from where they parted.
        """

    def patch(self, base: str | None = None) -> str:
        """The same as `diff`, as a patch for people."""

    def commit(self, message: str) -> str:
        """Commit everything that is changed here, untracked files included, and return the commit.

        The current branch, if there is one, then has the commit as its tip. Raises NothingToCommit, or Conflicted
        where a merge is unresolved.
        """

    def current_commit(self) -> str | None:
        """The commit that this checkout stands on; None before the first one."""

    def current_branch(self) -> str | None:
        """The branch that this checkout is on, if it is on one."""

    def default_branch(self) -> str | None:
        """The branch that others start from, of those that are here.

        It is the remote's default, else main, master or trunk, else the current one.
        """

    def resolve(self, revision: str) -> str:
        """The commit that a branch name or commit id stands for; raises UnknownRevision."""

    def branches(self, prefix: str = "") -> dict[str, str]:
        """Branch names that begin with `prefix`, and their tips."""

    def branch_tip(self, name: str) -> str | None:
        """Where a branch is, None if it is not there; however many others there are."""

    def create_branch(self, name: str, at: str) -> None:
        """Make a branch without touching any checkout.

        If it is there already at `at`, fine; elsewhere raises RefMoved. A name that git would not take raises
        InvalidInput.
        """

    def delete_branch(self, name: str, expected: str) -> None:
        """Delete a branch if it is still at `expected`, else raises RefMoved.

        The caller has proved that nothing is lost. Git refuses (InvalidState) while a checkout is on it.
        """

    def switch(self, branch: str) -> None:
        """Check the branch out here; raises DirtyCheckout unless the checkout is clean."""

    def checkouts(self) -> dict[str, str]:
        """Every checkout of the repository: its folder and the branch that it is on ('' for none)."""

    def contains(self, commit: str, within: str) -> bool:
        """True if `commit` is `within` or one of its ancestors."""

    def has_landed(self, commit: str, base: str, *, since: str | None = None) -> bool:
        """True if `base` contains a commit and nothing later on it reverts that; `since` is where the work began."""

    def count_commits(self, tip: str, base: str) -> int:
        """How many commits `tip` contains that `base` does not."""

    def saved_refs(self, prefix: str = "") -> dict[str, str]:
        """The refs under `refs/rookery/` whose names begin with `prefix`, and their commits."""

    def changed_files(self, base: str, tip: str) -> Sequence[FileDiff]:
        """What changed from one commit to another, whether one contains the other or not."""

    def add_checkout(self, folder: str, branch: str) -> None:
        """Check an existing branch out in a folder of its own.

        There already is fine, and what a kill left unfinished is finished. A link, or a folder with files that no
        checkout wrote, raises InvalidState; nothing of it is deleted.
        """

    def remove_checkout(self, folder: str) -> None:
        """Delete a checkout with all that is in it; the caller has proved that nothing is lost.

        The folder may be gone already. A locked one, a link (never followed) and a folder that is no checkout of this
        repository raise InvalidState.
        """

    def discard_unfinished(self, folder: str, branch: str, *, is_new: bool = False) -> None:
        """Remove what is left of a checkout whose `add_checkout` was killed; a finished one stays.

        The caller has ended the process that was at it. With `is_new` the caller knows that no folder was there
        before. Files that the branch does not have raise InvalidState, and all stays.
        """

    def lock_state(self, folder: str) -> str | None:
        """Why the user locked a checkout ('' without a reason); None if it is not locked."""

    def running_step(self) -> str | None:
        """`merge`, `rebase`, `cherry-pick` or `revert`, if one has begun here and not ended; else None."""

    def snapshot(
        self, name: str, message: str, *, include_ignored: Collection[str] = (), replace: bool = False
    ) -> str | None:
        """Keep a commit of all that is in this checkout under `refs/rookery/<name>`, and return it.

        Untracked files belong to it; ignored ones only where `include_ignored` names them: a path, a folder or a glob.
        Branch, index and files stay as they are, and no hook runs. If nothing differs, the commit that the checkout
        stands on is kept (None before the first one). A name that keeps another commit raises RefMoved, or is moved
        with `replace`.
        """

    def restore(self, commit: str, rescue: str) -> str | None:
        """Make the files here equal to a commit's, after a snapshot of them under `refs/rookery/<rescue>`.

        Branch and commit stay, and so do ignored files that the commit does not have. Returns the snapshot.
        """

    def ignored_files(self) -> Sequence[str]:
        """Every file that is ignored here."""

    def inner_repositories(self) -> Sequence[str]:
        """Folders with a repository of their own, submodules included: no snapshot holds what is in them."""

    def merging(self) -> Merging:
        """What merges commits in the object database and moves branches, without a checkout.

        With jj it works on the git store: workspaces are never touched, and a merge that jj itself would record as a
        conflicted commit is a conflict here.
        """

    def exclude(self, patterns: Sequence[str]) -> None:
        """Keep generated files out of what is committed here, without touching a tracked file.

        A pattern is a line of a `.gitignore` at the top; `/AGENTS.md` names one file, which may be tracked: then the
        file stays in commits as it is, whatever lies there. Called again, the patterns add up.
        """

    def excluded(self) -> Sequence[str]:
        """The patterns that `exclude` keeps out here."""
