"""What the rest of Rookery may ask of git and jj, and what both answer alike, from the git store under them.

A *branch* is a git branch or a jj bookmark. Commits are named by their full git object id, so that a record made
on one backend is readable on the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Protocol

from rookery.base.errors import InvalidState
from rookery.base.text import plural
from rookery.config.project import main_checkout
from rookery.vcs import capture as snapshots
from rookery.vcs.git import landed as git_landed
from rookery.vcs.git.landed import Evidence
from rookery.vcs.git.merging import Merging
from rookery.vcs.git.repository import DIFF, PATCH, GitStore
from rookery.vcs.git.tree_diff import own_changes
from rookery.vcs.model import Contents, DirtyCheckout, FileDiff, LogEntry, Status
from rookery.vcs.ref_names import SAVED


class Vcs(Protocol):
    """One checkout of one repository. Every method runs the backend's own command line and may raise ProgramFailed."""

    kind: str
    root: str
    """The top of the checkout that the caller stands in."""

    def main_root(self) -> str:
        """The top of the repository's main checkout, also when called in a linked one."""
        return main_checkout(self.root) or self.root

    def status(self) -> Status:
        """What is changed here, untracked files included and ignored ones not."""

    def log(self, limit: int = 20) -> Sequence[LogEntry]:
        """The newest commits that the checkout contains."""

    def diff(self, base: str | None = None, *, exact: bool = False) -> Sequence[FileDiff]:
        """What the checkout, uncommitted and untracked work included, has that `base` (or its last commit) has not.

        Where both have gone on since they parted, it counts from where they parted; `exact`: from `base` itself.
        """

    def patch(self, base: str | None = None, *, exact: bool = False) -> str:
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

    def base_commit(self, base: str) -> str:
        """Where work starts: at the base that is named, else at the default branch."""
        here = self.current_commit()
        name = base or self.default_branch()
        if name is not None and (here is not None or self.branch_tip(name) is not None):
            return self.resolve(name)
        if here is None:
            raise InvalidState("the repository has no commit to start from", hint="make a first commit")
        return here

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

        The caller has proved that nothing is lost. Git refuses (InvalidState) while a checkout is on it or uses it.
        """

    def switch(self, branch: str) -> None:
        """Check the branch out here; raises DirtyCheckout unless the checkout is clean."""

    def checkouts(self) -> dict[str, str]:
        """Every checkout of the repository: its folder and the branch that it is on ('' for none)."""

    def has_landed(self, commit: str, base: str, *, since: str | None = None, evidence: Evidence | None = None) -> bool:
        """True if `base` contains a commit and nothing later on it reverts that; `since` is where the work began.

        Squashed and rebased work is only found by `evidence` that tells of it.
        """
        known = evidence or Evidence(since)
        return git_landed.has_landed(self._store, self.resolve(commit), self.resolve(base), known)

    def count_commits(self, tip: str, base: str) -> int:
        """How many commits `tip` contains that `base` does not."""
        return self._store.count_commits(self.resolve(tip), self.resolve(base))

    def count_many(self, tips: Collection[str], base: str) -> dict[str, int]:
        """The same for each of many commit ids, by one command."""
        return self._store.count_many(tips, self.resolve(base)) if tips else {}

    def saved_refs(self, prefix: str = "") -> dict[str, str]:
        """The refs under `refs/rookery/` whose names begin with `prefix`, and their commits."""
        return {name: commit for name, commit in self._store.refs(SAVED).items() if name.startswith(prefix)}

    def changed_files(self, base: str, tip: str) -> Sequence[FileDiff]:
        """What changed from one commit to another, whether one contains the other or not."""
        return self._store.diff(self.resolve(base), self.resolve(tip))

    def changed_patch(self, base: str, tip: str) -> str:
        """The same as `changed_files`, as a patch for people."""
        return self._store.read(*DIFF, *PATCH, self.resolve(base), self.resolve(tip), "--")

    def fork_point(self, base: str, tip: str) -> str | None:
        """Where two commits parted; None if they have nothing in common."""
        return self._store.fork_point(self.resolve(base), self.resolve(tip))

    def own_changes(self, tip: str, bases: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Where the work of a commit parted from its bases, all named by their ids, and the paths changed since."""
        return own_changes(self._store, tip, bases)

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
        """Why the user locked a checkout ('' without a reason); None if it is not locked. Jj locks none."""
        return None

    def running_step(self) -> str | None:
        """`merge`, `rebase`, `cherry-pick`, `revert` or `am`, if one has begun here and not ended; else None.

        Jj finishes every step at once; conflicts are part of a commit.
        """
        return None

    def snapshot(
        self, name: str, message: str, *, include_ignored: Collection[str] = (), replace: bool = False
    ) -> str | None:
        """Keep a commit of all that is in this checkout under `refs/rookery/<name>`, and return it.

        Untracked files belong to it; ignored ones only where `include_ignored` names them: a path, a folder or a glob.
        Branch, index and files stay as they are, and no hook runs. If nothing differs, the commit that the checkout
        stands on is kept (None before the first one). A name that keeps another commit raises RefMoved, or is moved
        with `replace`.
        """
        return snapshots.take(self._checkout(), name, message, include_ignored=include_ignored, replace=replace)

    def restore(self, commit: str, rescue: str) -> str | None:
        """Make the files here equal to a commit's, after a snapshot of them under `refs/rookery/<rescue>`.

        Branch, commit and index stay, and so do ignored files that the commit does not have. Returns the snapshot.
        """
        return snapshots.restore(self._checkout(), self.resolve(commit), rescue)

    def ignored_files(self) -> Sequence[str]:
        """Every file that is ignored here, by git's rules."""
        return snapshots.ignored_files(self._checkout())

    def inner_repositories(self) -> Sequence[str]:
        """Folders with a repository of their own, submodules included: no snapshot holds what is in them."""

    def contents(self) -> Contents:
        """All that is here and in no commit, by as few commands as the backend needs."""
        ignored = snapshots.ignored_paths(self._checkout())
        files = tuple(path for path in ignored if not path.endswith("/"))
        inner = (path.rstrip("/") for path in ignored if path.endswith("/"))
        return Contents(self.status(), files, (*self.inner_repositories(), *inner))

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

    @property
    @abstractmethod
    def _store(self) -> GitStore:
        """The git store that holds the commits."""

    @abstractmethod
    def _checkout(self) -> snapshots.Checkout:
        """What a snapshot is made of."""

    def _compared_with(self, base: str | None, here: str | None, *, exact: bool = False) -> str | None:
        """What `diff` compares the checkout, which stands on `here`, with; None for the empty tree."""
        if base is None:
            return here
        start = self.resolve(base)
        if exact:
            return start
        return start if here is None else self._store.fork_point(start, here) or start

    def _check_clean(self, hint: str = "") -> None:
        """Raise DirtyCheckout if anything here is not committed."""
        changes = self.status().changes
        if changes:
            raise DirtyCheckout(f"{plural(len(changes), 'uncommitted file')} in {self.root}", hint=hint)
