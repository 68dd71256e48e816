"""Jujutsu: one workspace, through the command line.

jj's working copy is a commit of its own. What we call *uncommitted* is what that commit changes, the commit that we
*stand on* is its parent, and the current *branch* is the bookmark there. jj keeps no current bookmark, so where
several are at one commit a file in the workspace's `.jj` remembers which one was switched to.
"""

from __future__ import annotations

import json
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
    PATH_TEMPLATE,
    WORKSPACE_TEMPLATE,
    Here,
    choose_bookmark,
    is_root,
    parse_change,
    parse_log,
    parse_workspaces,
)
from rookery.vcs.jj.workspaces import JjWorkspaces
from rookery.vcs.model import (
    JJ,
    Change,
    Conflicted,
    DirtyCheckout,
    FileDiff,
    LogEntry,
    NothingToCommit,
    Status,
    UnknownRevision,
    check_message,
    check_room,
    choose_default,
    moved,
)

_FULL_ID = re.compile("[0-9a-f]{40}").fullmatch
_TAKE_ALL = '--config=snapshot.auto-track="all()"'


class Jj(JjWorkspaces):
    """A jj workspace, the first one or another, with or without a `.git` beside it."""

    kind = JJ

    def status(self) -> Status:
        """What the working copy changes, and the files that jj does not take into it."""
        here = self._here()
        return Status(self._branch(here), here.base, here.changes + self._left_out())

    def log(self, limit: int = 20) -> Sequence[LogEntry]:
        """The newest commits under the working copy."""
        return parse_log(self._jj(*show("::@- ~ root()", LOG_TEMPLATE), f"--limit={limit}"))

    def diff(self, base: str | None = None) -> Sequence[FileDiff]:
        """What the working copy has that `base` (or its last commit) has not."""
        here = self._here()
        start = self._start(here, base)
        if here.conflicts:
            found = self._diff_conflicted(start)
        else:
            found = self._store.diff(start or self._store.empty_tree(), here.commit)
        return [*found, *(FileDiff(change.path, change.kind, None, None) for change in self._left_out())]

    def patch(self, base: str | None = None) -> str:
        """The same, as a patch for people."""
        here = self._here()
        start = self._start(here, base)
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
            made = self._jj(*show("@-", "commit_id"), AS_IT_IS)
            # A bookmark at the working copy itself goes along with it.
            if branch is not None and here.commit not in at:
                self._jj("bookmark", "set", AS_IT_IS, f"--revision={made}", quoted(branch))
        return made

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
            # Also a commit that git made in the store, and jj has not heard of.
            found = self._store.find_commit(revision)
            if found is not None:
                return found
        bookmarks = self._bookmarks()
        if revision in bookmarks:
            return one(revision, bookmarks[revision])
        revset = revision.replace("\0", " ")  # no argument can hold it, and no commit has such a name
        done = self._run(*show(revset, 'commit_id ++ "\\n"'), "--limit=2", AS_IT_IS)
        commits = done.stdout.split()
        if done.status not in (0, 1, 2):
            raise failed(done)
        if not done.ok or len(commits) != 1 or is_root(commits[0]):
            raise UnknownRevision(f"{revision!r} stands for no commit here, or for several")
        return commits[0]

    def branches(self, prefix: str = "") -> dict[str, str]:
        """Bookmarks whose names begin with `prefix`, and where they are; raises Conflicted if one is at several."""
        return {name: one(name, at) for name, at in self._bookmarks().items() if name.startswith(prefix)}

    def branch_tip(self, name: str) -> str | None:
        """Where a bookmark is, None if it is not there; raises Conflicted if it is at several commits."""
        at = self._bookmarks().get(name)
        return None if at is None else one(name, at)

    def create_branch(self, name: str, at: str) -> None:
        """Make a bookmark without touching any workspace."""
        self._store.check_branch_name(name)
        commit = self.resolve(at)
        with self._locked():
            found = self._bookmarks()
            if name not in found:
                check_room(name, found)
                self._jj("bookmark", "create", AS_IT_IS, f"--revision={commit}", quoted(name))
                # A jj of somebody else knows nothing of our lock.
                found = self._bookmarks()
            actual = one(name, found[name])
        if actual != commit:
            raise moved(name, commit, actual)

    def delete_branch(self, name: str, expected: str) -> None:
        """Delete a bookmark if it is still at `expected`. A remote's own is left alone, as git does."""
        self._store.check_branch_name(name)
        commit = self.resolve(expected)
        with self._locked():
            found = self._bookmarks()
            actual = one(name, found[name]) if name in found else None
            if actual != commit:
                raise moved(name, commit, actual)
            self._jj("bookmark", "forget", AS_IT_IS, "exact:" + quoted(name))

    def switch(self, branch: str) -> None:
        """Begin a new working copy on the bookmark, if nothing is left uncommitted in this one."""
        self._store.check_branch_name(branch)
        tip = self._tip(branch)
        changes = self.status().changes
        if changes:
            raise DirtyCheckout(f"{len(changes)} files in {self.root} are not committed", hint="commit them first")
        self._jj("new", *self._identity(), tip)
        self._remember(branch)

    def checkouts(self) -> dict[str, str]:
        """Every workspace of the repository: its folder and the bookmark that it is on."""
        listed = parse_workspaces(self._jj("workspace", "list", AS_IT_IS, "--template=" + WORKSPACE_TEMPLATE))
        return {root: choose_bookmark(names, remembered(root)) or "" for root, names in listed.items()}

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
            raise Conflicted(
                f"{len(here.conflicts)} files hold conflicts: {', '.join(map(repr, here.conflicts[:5]))}",
                hint="resolve them in the files, or with `jj resolve`",
            )
        left_out = self._left_out()
        if left_out:
            raise InvalidState(
                f"jj does not take {', '.join(repr(change.path) for change in left_out[:5])}",
                hint="ignore them, or raise jj's snapshot.max-new-file-size; names must be UTF-8",
            )
        if not here.changes and len(here.parents) == 1:
            raise NothingToCommit("nothing has changed since the last commit")

    def _left_out(self) -> tuple[Change, ...]:
        """Files on disk that jj neither ignores nor takes: too large, not tracked by the user's wish, or misnamed."""
        listed = self._store.read(
            *(f"--work-tree={self.root}", "ls-files", "-z", "--others", "--exclude-standard", "--exclude=/.jj"),
            env={"GIT_INDEX_FILE": os.path.join(self.root, ".jj", "no-index")},
        )
        # A repository inside this one ends in `/`.
        on_disk = {path for path in listed.split("\0") if path and not path.endswith("/")}
        if not on_disk:
            return ()
        taken = self._jj("file", "list", AS_IT_IS, "--template=" + PATH_TEMPLATE, "root:.").split("\0")[:-1]
        left = on_disk.difference(json.loads(path) for path in taken)
        return tuple(Change(path, UNTRACKED) for path in sorted(left) if not self._is_in_other_workspace(path))

    def _is_in_other_workspace(self, path: str) -> bool:
        folder = os.path.dirname(path)
        while folder:
            if os.path.exists(os.path.join(self.root, folder, ".jj")):
                return True
            folder = os.path.dirname(folder)
        return False

    def _start(self, here: Here, base: str | None) -> str | None:
        """What the working copy is compared with; None for the empty tree."""
        return here.base if base is None else self._store.fork_point(self.resolve(base), here.base)

    def _diff_conflicted(self, start: str | None) -> list[FileDiff]:
        """The paths only: a conflicted commit has no tree that git could count lines in."""
        listed = self._jj("diff", AS_IT_IS, f"--from={start or 'root()'}", "--to=@", "--template=" + DIFF_TEMPLATE)
        changes = [parse_change(json.loads(entry)) for entry in listed.split("\0")[:-1]]
        return [FileDiff(change.path, change.kind, None, None, change.old_path) for change in changes]
