"""Jujutsu: one workspace, through the command line.

Jj's working copy is a commit of its own. What we call *uncommitted* is what that commit changes, the commit that we
*stand on* is its parent, and the current *branch* is the bookmark there. jj keeps no current bookmark, so where
several are at one commit a file in the workspace's `.jj` remembers which one was switched to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from rookery.base.errors import InvalidState
from rookery.vcs.git.porcelain import UNTRACKED
from rookery.vcs.git.repository import DIFF, PATCH
from rookery.vcs.jj.program import AS_IT_IS, conflicted, failed, one, quoted, remembered, show
from rookery.vcs.jj.view import (
    DIFF_TEMPLATE,
    LOG_TEMPLATE,
    WORKSPACE_TEMPLATE,
    Here,
    choose_bookmark,
    is_root,
    parse_change,
    parse_log,
    parse_rows,
    parse_workspaces,
)
from rookery.vcs.jj.workspaces import JjWorkspaces
from rookery.vcs.model import (
    JJ,
    Change,
    FileDiff,
    LogEntry,
    NothingToCommit,
    Status,
    UnknownRevision,
    check_message,
    check_room,
    choose_default,
    in_conflict,
    moved,
)

_FULL_ID = re.compile("[0-9a-f]{40}").fullmatch
_TAKE_ALL = '--config=snapshot.auto-track="all()"'


class Jj(JjWorkspaces):
    """A jj workspace, the first one or another, with or without a `.git` beside it."""

    kind = JJ

    def status(self) -> Status:
        """What the working copy changes, and the files that jj does not track."""
        here = self._here()
        return Status(self._branch(here), here.base, here.changes + self._left_out())

    def log(self, limit: int = 20) -> Sequence[LogEntry]:
        """The newest commits under the working copy."""
        return parse_log(self._jj(*show("::@- ~ root()", LOG_TEMPLATE), f"--limit={limit}"))

    def diff(self, base: str | None = None, *, exact: bool = False) -> Sequence[FileDiff]:
        """What the working copy has that `base` (or its last commit) has not."""
        here = self._here()
        start = self._compared_with(base, here.base, exact=exact)
        if here.conflicts:
            files = self._diff_conflicted(start)
        else:
            files = self._store.diff(start or self._store.empty_tree(), here.commit)
        return [*files, *(FileDiff(change.path, change.kind, None, None) for change in self._left_out())]

    def patch(self, base: str | None = None, *, exact: bool = False) -> str:
        """The same, as a patch for people."""
        here = self._here()
        start = self._compared_with(base, here.base, exact=exact)
        if here.conflicts:
            return self._jj("diff", AS_IT_IS, "--git", f"--from={start or 'root()'}", "--to=@")
        return self._store.read(*DIFF, *PATCH, start or self._store.empty_tree(), here.commit, "--")

    def commit(self, message: str) -> str:
        """Commit everything that is changed here, move the current bookmark to it, and return the commit."""
        check_message(message)
        with self._locked():
            here = self._here(_TAKE_ALL)
            self._check_committable(here)
            branch = self._branch(here)
            at = {mark.commit for mark in here.bookmarks if mark.name == branch}
            if branch is not None:
                if any(mark.is_conflicted for mark in here.bookmarks if mark.name == branch):
                    raise conflicted(branch)
                self._remember(branch)
            self._jj("commit", *self._identity(), _TAKE_ALL, f"--message={message}")
            commit = self._jj(*show("@-", "commit_id"), AS_IT_IS)
            # A bookmark at the working copy itself goes along with it.
            if branch is not None and here.commit not in at:
                self._jj("bookmark", "set", AS_IT_IS, f"--revision={commit}", quoted(branch))
        return commit

    def current_commit(self) -> str | None:
        """The commit that the working copy stands on; None before the first one."""
        return self._here().base

    def current_branch(self) -> str | None:
        """The bookmark at the working copy or at what it stands on."""
        return self._branch(self._here())

    def default_branch(self) -> str | None:
        """The remote's default, else main, master or trunk, else the current one."""
        trunk = self._jj("config", "get", 'revset-aliases."trunk()"').strip()
        name, _, remote = trunk.rpartition("@")
        named = name.strip('"') if remote.isidentifier() else None
        return choose_default(named, self._bookmarks().__contains__, self.current_branch())

    def resolve(self, revision: str) -> str:
        """The commit that a bookmark, a commit id or any revset for one commit stands for."""
        if _FULL_ID(revision):
            # Also a commit that git made in the store, and jj does not know.
            known = self._store.find_commit(revision)
            if known is not None:
                return known
        tip = self.branch_tip(revision)
        if tip is not None:
            return tip
        revset = revision.replace("\0", " ")  # no argument can hold it, and no commit has such a name
        done = self._run(*show(revset, 'commit_id ++ "\\n"'), "--limit=2", AS_IT_IS)
        commits = done.stdout.split()
        if done.status not in (0, 1, 2):
            raise failed(done)
        if not done.ok or len(commits) != 1 or is_root(commits[0]):
            raise UnknownRevision(f"{revision!r} is not a commit here, or more than one")
        return commits[0]

    def branches(self, prefix: str = "") -> dict[str, str]:
        """Bookmarks whose names begin with `prefix`, and where they are; raises Conflicted if one is at several."""
        return {name: one(name, at) for name, at in self._bookmarks().items() if name.startswith(prefix)}

    def create_branch(self, name: str, at: str) -> None:
        """Make a bookmark without touching any workspace."""
        self._store.check_branch_name(name)
        commit = self.resolve(at)
        with self._locked():
            bookmarks = self._bookmarks()
            if name not in bookmarks:
                check_room(name, bookmarks)
                self._jj("bookmark", "create", AS_IT_IS, f"--revision={commit}", quoted(name))
                # A jj that the user runs does not take our lock.
                bookmarks = self._bookmarks()
            actual = one(name, bookmarks[name])
        if actual != commit:
            raise moved(name, commit, actual)

    def delete_branch(self, name: str, expected: str) -> None:
        """Delete a bookmark if it is still at `expected`. A remote's own is left alone, as git does."""
        self._store.check_branch_name(name)
        commit = self.resolve(expected)
        with self._locked():
            actual = self.branch_tip(name)
            if actual != commit:
                raise moved(name, commit, actual)
            self._jj("bookmark", "forget", AS_IT_IS, "exact:" + quoted(name))

    def switch(self, branch: str) -> None:
        """Begin a new working copy on the bookmark, if nothing is left uncommitted in this one."""
        self._store.check_branch_name(branch)
        tip = self._tip(branch)
        self._check_clean("commit them first")
        self._jj("new", *self._identity(), tip)
        self._remember(branch)

    def checkouts(self) -> dict[str, str]:
        """Every workspace of the repository: its folder and the bookmark that it is on."""
        listed = parse_workspaces(self._jj("workspace", "list", AS_IT_IS, "--template=" + WORKSPACE_TEMPLATE))
        return {root: choose_bookmark(names, remembered(root)) or "" for root, (_, names) in listed.items()}

    def _branch(self, here: Here) -> str | None:
        """The current bookmark.

        A remembered one counts also further down, with no other bookmark between: a commit that was interrupted
        before its bookmark followed.
        """
        last = remembered(self.root)
        if any(mark.name == last for mark in here.bookmarks):
            return last
        return choose_bookmark((mark.name for mark in here.direct_bookmarks()), last)

    def _check_committable(self, here: Here) -> None:
        if here.conflicts:
            raise in_conflict(here.conflicts, hint="resolve them in the files, or with `jj resolve`")
        left_out = self._left_out()
        if left_out:
            raise InvalidState(
                f"jj does not track {', '.join(repr(change.path) for change in left_out[:5])}",
                hint="ignore them, or raise jj's snapshot.max-new-file-size; names must be UTF-8",
            )
        if not here.changes and len(here.parents) == 1:
            raise NothingToCommit("nothing has changed since the last commit")

    def _left_out(self) -> tuple[Change, ...]:
        """Files on disk that jj neither ignores nor tracks: too large, not tracked by the user's wish, or misnamed."""
        env = {"GIT_INDEX_FILE": os.path.join(self.root, ".jj", "no-index")}
        # A repository inside this one ends in `/`.
        listed = self._files_store.untracked("--exclude=/.jj", env=env)
        on_disk = {path for path in listed if not path.endswith("/")}
        left = on_disk - self._files_of("@") if on_disk else on_disk
        return tuple(Change(path, UNTRACKED) for path in sorted(left) if not self._is_in_other_workspace(path))

    def _is_in_other_workspace(self, path: str) -> bool:
        """True for a file of a workspace inside this one."""
        folder = os.path.dirname(path)
        is_top = os.path.exists(os.path.join(self.root, folder, ".jj"))
        return bool(folder) and (is_top or self._is_in_other_workspace(folder))

    def _diff_conflicted(self, start: str | None) -> list[FileDiff]:
        """The paths only: a conflicted commit has no tree that git could count lines in."""
        listed = self._jj("diff", AS_IT_IS, f"--from={start or 'root()'}", "--to=@", "--template=" + DIFF_TEMPLATE)
        changes = [parse_change(entry) for entry in parse_rows(listed)]
        return [FileDiff(change.path, change.kind, None, None, change.old_path) for change in changes]
