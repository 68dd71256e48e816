"""What git and jj checkouts answer alike, from the git store: ancestry, saved refs and snapshots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Protocol

from rookery.config.project import main_checkout
from rookery.vcs import capture as snapshots
from rookery.vcs.git import landed as git_landed
from rookery.vcs.git.repository import GitStore
from rookery.vcs.model import FileDiff, Vcs
from rookery.vcs.ref_names import SAVED


class StoredCheckout(Vcs, Protocol):
    """A checkout whose commits are in a git store."""

    @property
    @abstractmethod
    def _store(self) -> GitStore:
        """The store."""

    @abstractmethod
    def _checkout(self) -> snapshots.Checkout:
        """What a snapshot is made of."""

    def main_root(self) -> str:
        """The top of the repository's main checkout."""
        return main_checkout(self.root) or self.root

    def contains(self, commit: str, within: str) -> bool:
        """True if `commit` is `within` or one of its ancestors."""
        return self._store.contains(self.resolve(commit), self.resolve(within))

    def has_landed(self, commit: str, base: str, *, since: str | None = None) -> bool:
        """True if `base` contains a commit and nothing later on it reverts that."""
        return git_landed.has_landed(self._store, self.resolve(commit), self.resolve(base), git_landed.Evidence(since))

    def count_commits(self, tip: str, base: str) -> int:
        """How many commits `tip` contains that `base` does not."""
        return self._store.count_commits(self.resolve(tip), self.resolve(base))

    def saved_refs(self, prefix: str = "") -> dict[str, str]:
        """The refs under `refs/rookery/` whose names begin with `prefix`, and their commits."""
        return {name: commit for name, commit in self._store.refs(SAVED).items() if name.startswith(prefix)}

    def changed_files(self, base: str, tip: str) -> Sequence[FileDiff]:
        """What changed from one commit to another."""
        return self._store.diff(self.resolve(base), self.resolve(tip))

    def snapshot(
        self, name: str, message: str, *, include_ignored: Collection[str] = (), replace: bool = False
    ) -> str | None:
        """Keep all that is in the checkout under `refs/rookery/<name>`."""
        return snapshots.take(self._checkout(), name, message, include_ignored=include_ignored, replace=replace)

    def restore(self, commit: str, rescue: str) -> str | None:
        """Make the files equal to a commit's. The index stays: what is committed next is what the backend takes in."""
        return snapshots.restore(self._checkout(), self.resolve(commit), rescue)

    def ignored_files(self) -> Sequence[str]:
        """Every file that is ignored here, by git's rules."""
        return snapshots.ignored_files(self._checkout())

    def _compared_with(self, base: str | None, here: str | None) -> str | None:
        """What `diff` compares the checkout, which stands on `here`, with; None for the empty tree."""
        if base is None:
            return here
        start = self.resolve(base)
        return start if here is None else self._store.fork_point(start, here) or start
