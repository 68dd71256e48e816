"""Workspaces of jj beside the first one, snapshots of them, and what they ignore.

Git makes snapshots in its store under jj, so that conflicted files are recorded as they lie on disk.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState
from rookery.vcs import capture as snapshots
from rookery.vcs import folders
from rookery.vcs.backend import Vcs
from rookery.vcs.git import locks as git_locks
from rookery.vcs.git.merging import Merging
from rookery.vcs.git.unfinished import refuse_foreign_files
from rookery.vcs.jj.program import AS_IT_IS, JjProgram, quoted, remembered
from rookery.vcs.jj.view import WORKSPACE_TEMPLATE, parse_workspaces
from rookery.vcs.model import named_path

_PREFIX = "rook-"
_OURS = "# What Rookery generates; rewritten by it."
_END = "# End of what Rookery generates."


class JjWorkspaces(JjProgram, Vcs):
    """What the Protocol asks of checkouts and snapshots."""

    def add_checkout(self, folder: str, branch: str) -> None:
        """A workspace that stands on an existing bookmark. Jj lets several stand on the same one."""
        self._store.check_branch_name(branch)
        place = folders.own_place(folder)
        tip = self._tip(branch)
        name = self._workspaces().get(place)
        if not folders.is_empty(place) and os.listdir(place) != [".jj"]:
            _check_is_on(place, name is not None, branch, tip)
            return
        if os.path.isdir(os.path.join(place, ".jj")):
            folders.delete_tree(os.path.join(place, ".jj"))
        if name is not None:
            self._jj("workspace", "forget", AS_IT_IS, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        fresh = _PREFIX + os.path.basename(place)
        # Without a git worktree beside it, for which jj wants a newer git than every machine has.
        self._jj("workspace", "add", "--no-colocate", *self._identity(), f"--name={fresh}", f"--revision={tip}", place)
        JjProgram(place, self._timeout)._remember(branch)

    def remove_checkout(self, folder: str) -> None:
        """Remove a workspace; the first one stays."""
        place = folders.own_place(folder)
        name = self._workspaces().get(place)
        if place == os.path.realpath(self.main_root()):
            raise InvalidState(f"{place} is the repository's first workspace", hint="it was left as it is")
        if name is None and os.path.lexists(place) and not self._leads_here(place):
            raise InvalidState(f"{place} is not a workspace of this repository", hint="it was left as it is")
        folders.put_aside(place)
        if name is not None:
            self._jj("workspace", "forget", AS_IT_IS, name)
        folders.delete_aside(place)

    def discard_unfinished(self, folder: str, branch: str, *, is_new: bool = False) -> None:
        """Remove the folder of a workspace that jj had not yet registered when it was killed."""
        place = folders.own_place(folder)
        names = os.listdir(place) if os.path.isdir(place) else []
        if names and not (is_new and self._leads_here(place)):
            return
        noted = self._workspaces().get(place)
        if set(names) - {".jj"}:
            if noted is not None:
                return
            refuse_foreign_files(place, self._store.tree_paths(self._tip(branch)), beside=".jj")
        if noted is not None:
            self._jj("workspace", "forget", AS_IT_IS, noted)
        folders.put_aside(place)
        folders.delete_aside(place)

    def inner_repositories(self) -> Sequence[str]:
        """Folders with a repository that this one does not track; jj has no submodules."""
        return [path for path in snapshots.inner_repositories(self._files_store) if path != ".jj"]

    def merging(self) -> Merging:
        """What merges without a workspace, in the git store."""
        return JjMerging(self)

    def exclude(self, patterns: Sequence[str]) -> None:
        """Keep generated files out of what jj commits.

        Jj has no ignore file of a single workspace, so the patterns hold in all of them, where they hide untracked
        files only. A file that is tracked cannot be hidden from jj at all: that raises InvalidState.
        """
        names = [named_path(pattern) for pattern in patterns if not pattern.endswith("/")]
        committed, tracked_here = self._files_of("@-"), self._files_of("@")
        tracked = [name for name in names if name in committed]
        if tracked:
            raise InvalidState(
                f"{', '.join(tracked)} is tracked, and jj cannot hide a tracked file", hint="untrack it, or use git"
            )
        with self._locked():
            before, ours, after = self._excludes()
            if before and not before.endswith("\n"):
                before += "\n"
            lines = dict.fromkeys([*ours.splitlines(), *patterns])
            text = before + "\n".join((_OURS, *lines, _END)) + "\n" + after
            os.makedirs(os.path.dirname(self._exclude_file), exist_ok=True)
            write_whole(self._exclude_file, text.encode("utf-8", "surrogateescape"))
        for name in names:
            if name in tracked_here:  # jj has added it already, and goes on until it is told
                self._jj("file", "untrack", f"root-file:{quoted(name)}")

    def excluded(self) -> Sequence[str]:
        """The patterns that `exclude` keeps out of any workspace."""
        return self._excludes()[1].splitlines()

    def _excludes(self) -> tuple[str, str, str]:
        """The ignore file of the store: what is before our part, our part, and what is after it."""
        before, _, rest = folders.read_text(self._exclude_file).partition(_OURS + "\n")
        ours, _, after = rest.partition(_END + "\n")
        return before, ours, after

    @property
    def _exclude_file(self) -> str:
        return os.path.join(self._git_folder, "info", "exclude")

    def _files_of(self, revision: str) -> set[str]:
        return set(self.list_files("root:.", f"--revision={revision}"))

    def _workspaces(self) -> dict[str, str]:
        """The folder of every workspace and its name."""
        listed = self._jj("workspace", "list", AS_IT_IS, "--template=" + WORKSPACE_TEMPLATE)
        return {root: name for root, (name, _) in parse_workspaces(listed).items()}

    def _leads_here(self, place: str) -> bool:
        target = os.path.join(place, ".jj", folders.read_line(os.path.join(place, ".jj", "repo")))
        return os.path.realpath(target) == os.path.realpath(os.path.join(self.main_root(), ".jj", "repo"))

    def _checkout(self) -> snapshots.Checkout:
        index = os.path.join(self.root, ".jj", "rookery-index")
        return snapshots.Checkout(self._files_store, self._here().base, index, outside=(".jj", ".git"))


def _check_is_on(place: str, is_known: bool, branch: str, tip: str) -> None:
    """Raise unless the folder is a workspace on the bookmark; one that a kill left without its bookmark gets it."""
    if not is_known or not os.path.isdir(os.path.join(place, ".jj")):
        raise InvalidState(f"{place} holds files that are no workspace of this repository", hint="move them away first")
    workspace = JjProgram(place, 60)
    on = remembered(place)
    if not on:
        workspace._jj("workspace", "update-stale")
        if workspace._here().base == tip:
            workspace._remember(branch)
            on = branch
    if on != branch:
        raise InvalidState(f"{place} is on {on or 'no bookmark'}, not on {branch}", hint="switch it back")


class JjMerging(Merging):
    """Merging in the git store of a jj repository. Bookmarks go out to it before, and come back from it after.

    A workspace is never touched: jj's own way to bring it forward is `jj rebase`, which the user decides on.
    """

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
