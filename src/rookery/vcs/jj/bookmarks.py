"""Merging in the git store of a jj repository. Bookmarks go out to it before, and come back from it after.

A workspace is never touched: jj's own way to bring it forward is `jj rebase`, which the user decides on.
"""

from __future__ import annotations

from rookery.vcs.git import locks as git_locks
from rookery.vcs.git.merging import Merging
from rookery.vcs.jj.program import AS_IT_IS, JjProgram


class JjMerging(Merging):
    """The same, where jj keeps the branches."""

    def __init__(self, jj: JjProgram) -> None:
        super().__init__(jj._store, dict)
        self._jj = jj

    def refresh(self) -> None:
        """Let the store's refs be where the bookmarks are, work in progress included.

        Jj leaves out a bookmark whose ref is locked, and only warns: locks of killed gits are removed first.
        """
        git_locks.remove_dead(git_locks.find(self.store.common))
        self._jj._here()
        self._jj._jj("git", "export", AS_IT_IS)

    def settle(self) -> None:
        """Let the bookmarks be where the store's refs are."""
        self._jj._jj("git", "import", AS_IT_IS)
