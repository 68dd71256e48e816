"""Git: one checkout, through the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property

from rookery.base.errors import InvalidState, ProgramFailed
from rookery.vcs import capture as snapshots
from rookery.vcs.git import unfinished
from rookery.vcs.git import worktrees as git_checkouts
from rookery.vcs.git.merging import Merging, objects_apart, objects_of
from rookery.vcs.git.porcelain import (
    CONFLICTED,
    DETACHED,
    LOG_FORMAT,
    parse_diff,
    parse_log,
    parse_status,
    parse_worktrees,
)
from rookery.vcs.git.repository import COUNTED, DIFF, PATCH, GitStore
from rookery.vcs.model import (
    GIT,
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
)
from rookery.vcs.ref_names import HEADS
from rookery.vcs.stored import StoredCheckout
from rookery.vcs.temporary import temporary_folder

_REFUSAL_LINES = 60


class Git(StoredCheckout):
    """A git checkout, the main one or a linked worktree."""

    kind = GIT

    def __init__(self, root: str, timeout: float) -> None:
        self.root = root
        self._timeout = timeout

    @cached_property
    def _store(self) -> GitStore:
        # A broken `.git` must not lead git on to a repository further up.
        env = {"GIT_CEILING_DIRECTORIES": os.path.dirname(self.root)}
        return GitStore(self.root, self._timeout, env=env)

    def status(self) -> Status:
        """What is changed here, untracked files included and ignored ones not."""
        text = self._store.read(
            *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-ahead-behind"),
            *("--find-renames", "--ignore-submodules=none"),
        )
        commit, branch, changes = parse_status(text)
        # A branch can have the very name that git prints for none.
        return Status(self.current_branch() if branch == DETACHED else branch, commit, tuple(changes))

    def log(self, limit: int = 20) -> Sequence[LogEntry]:
        """The newest commits that the checkout contains."""
        start = self.current_commit()
        if start is None:
            return []
        return parse_log(
            self._store.read(
                *(
                    "log",
                    "-z",
                    "--no-show-signature",
                    "--no-patch",
                    "--encoding=UTF-8",
                    f"--format=tformat:{LOG_FORMAT}",
                ),
                *(f"--max-count={limit}", start, "--"),
            )
        )

    def diff(self, base: str | None = None) -> Sequence[FileDiff]:
        """What the checkout has that `base` (or its last commit) has not."""
        found = parse_diff(self._diff(base, *COUNTED))
        # Compared with a commit, a conflicted file is listed as modified.
        unresolved = self._store.read("diff", "--name-only", "--diff-filter=U", "-z", "--no-relative", "--").split("\0")
        return [each.replace(kind=CONFLICTED) if each.path in unresolved else each for each in found]

    def patch(self, base: str | None = None) -> str:
        """The same, as a patch for people."""
        return self._diff(base, *PATCH)

    def commit(self, message: str) -> str:
        """Commit everything that is changed here and return the commit."""
        check_message(message)
        status = self.status()
        unresolved = [change.path for change in status.changes if change.kind == CONFLICTED]
        if unresolved:
            raise Conflicted(
                f"{len(unresolved)} files hold conflicts: {', '.join(map(repr, unresolved[:5]))}",
                hint="resolve them and `git add` them first",
            )
        is_merging = self._store.find_commit("MERGE_HEAD") is not None
        if not status.changes and not is_merging:
            raise NothingToCommit("nothing has changed since the last commit")
        self._store.write("add", "--all")
        if not is_merging and self._store.ask("diff", "--cached", "--quiet", "--ignore-submodules=dirty") is not None:
            raise NothingToCommit(
                "nothing has changed that can be committed here", hint="changes inside a submodule are committed there"
            )
        self._commit_index(message)
        return self._store.get_commit("HEAD")

    def current_commit(self) -> str | None:
        """The commit that this checkout stands on; None before the first one."""
        return self._store.find_commit("HEAD")

    def current_branch(self) -> str | None:
        """The branch that this checkout is on, if it is on one."""
        ref = self._store.ask("symbolic-ref", "--quiet", "HEAD")
        return None if ref is None else ref.rstrip("\n").removeprefix(HEADS)

    def default_branch(self) -> str | None:
        """The remote's default, else main, master or trunk, else the current one."""
        ref = self._store.symbolic("refs/remotes/origin/HEAD")
        remote = None if ref is None else ref.removeprefix("refs/remotes/origin/")
        return choose_default(remote, lambda name: self.branch_tip(name) is not None, None) or self.current_branch()

    def resolve(self, revision: str) -> str:
        """The commit that a branch name or commit id stands for. A branch goes before a tag of the same name."""
        return self._store.get_commit(HEADS + revision, revision)

    def branches(self, prefix: str = "") -> dict[str, str]:
        """Branch names that begin with `prefix`, and their tips."""
        return {name: tip for name, tip in self._store.refs(HEADS).items() if name.startswith(prefix)}

    def branch_tip(self, name: str) -> str | None:
        """Where a branch is, None if it is not there."""
        return self._store.ref(HEADS + name)

    def create_branch(self, name: str, at: str) -> None:
        """Make a branch without touching any checkout."""
        self._store.check_branch_name(name)
        commit = self.resolve(at)
        try:
            self._store.create_ref(HEADS + name, commit)
        except ProgramFailed:
            check_room(name, self.branches())
            raise

    def delete_branch(self, name: str, expected: str) -> None:
        """Delete a branch if it is still at `expected`."""
        self._store.check_branch_name(name)
        for folder, branch in self.checkouts().items():
            if branch == name:
                raise InvalidState(f"branch {name} is checked out in {folder}", hint="switch it away or remove it")
        self._store.delete_ref(HEADS + name, self._store.get_commit(expected))

    def switch(self, branch: str) -> None:
        """Check the branch out here, if the checkout is clean."""
        self._store.check_branch_name(branch)
        if self._store.find_commit(HEADS + branch) is None:
            raise UnknownRevision(f"there is no branch {branch}")
        changes = self.status().changes
        if changes:
            raise DirtyCheckout(f"{len(changes)} files in {self.root} are not committed")
        self._store.write("switch", "--quiet", "--no-guess", branch)

    def checkouts(self) -> dict[str, str]:
        """Every checkout of the repository: its folder and the branch that it is on."""
        plain = self._store.checkouts()
        if plain is not None:
            return plain
        found = parse_worktrees(self._store.read("worktree", "list", "--porcelain", "-z"))
        # The first is the main one; for a submodule git names its folder in the outer `.git` instead.
        folders = [self.main_root(), *(each.folder for each in found[1:])]
        return {folder: each.branch for folder, each in zip(folders, found, strict=True) if not each.is_bare}

    def add_checkout(self, folder: str, branch: str) -> None:
        """A linked worktree on an existing branch."""
        # From a linked worktree git would copy that one's own settings into the new one.
        git_checkouts.add(self._store.at(self.main_root()), folder, branch)

    def remove_checkout(self, folder: str) -> None:
        """Take a linked worktree away, with its registration."""
        git_checkouts.remove(self._store.at(self.main_root()), folder)

    def discard_unfinished(self, folder: str, branch: str, *, is_new: bool = False) -> None:
        """Remove what a killed `git worktree add` left, with its registration."""
        unfinished.discard(self._store.at(self.main_root()), folder, branch, is_new=is_new)

    def lock_state(self, folder: str) -> str | None:
        """Why a worktree is locked ('' without a reason), None if it is not."""
        return git_checkouts.lock_reason(self._store, folder)

    def running_step(self) -> str | None:
        """The merge, rebase or the like that has begun here and not ended."""
        return git_checkouts.running_step(self._store)

    def inner_repositories(self) -> Sequence[str]:
        """Submodules that are checked out here, and folders with a repository that this one does not track."""
        return git_checkouts.submodules(self._store, self.root) + snapshots.inner_repositories(self._checkout())

    def unpushed_commits(self) -> int:
        """How many commits of any branch, or of none, no remote is known to have."""
        return self._store.count_unpushed()

    def exclude(self, patterns: Sequence[str]) -> None:
        """Keep generated files out of what is committed in this linked worktree."""
        git_checkouts.exclude(self._store, patterns)

    def include(self, patterns: Sequence[str]) -> None:
        """Take back `exclude`."""
        git_checkouts.include(self._store, self.root, patterns)

    def excluded(self) -> Sequence[str]:
        """What `exclude` was asked for in this worktree."""
        return git_checkouts.excluded(self._store)

    def merging(self) -> Merging:
        """What merges without a checkout."""
        return Merging(self._store, self.checkouts)

    def _checkout(self) -> snapshots.Checkout:
        return snapshots.Checkout(self._store, self.current_commit(), self._index())

    def _index(self) -> str:
        path = self._store.read("rev-parse", "--git-path", "index").rstrip("\n")
        return os.path.join(self.root, path)

    def _diff(self, base: str | None, *form: str) -> str:
        start = self._start(base)
        untracked = self._untracked()
        if not untracked:
            return self._store.read(*DIFF, *form, start, "--")
        with temporary_folder(self.root, "index") as folder:
            env = {"GIT_INDEX_FILE": os.path.join(folder, "index"), "GIT_LITERAL_PATHSPECS": "1"}
            env |= objects_apart(objects_of(self._store), folder)
            snapshots.copy_index(self._index(), env["GIT_INDEX_FILE"])
            self._store.write(
                *("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"),
                stdin="\0".join(untracked),
                env=env,
            )
            return self._store.read(*DIFF, *form, start, "--", env=env)

    def _start(self, base: str | None) -> str:
        """What the checkout is compared with."""
        here = self.current_commit()
        if base is not None:
            return self._store.fork_point(self.resolve(base), here)
        return self._store.empty_tree() if here is None else here

    def _untracked(self) -> list[str]:
        """Files that git would add; a repository inside this one (its name ends in `/`) is no file."""
        listed = self._store.read("ls-files", "-z", "--others", "--exclude-standard").split("\0")
        return [path for path in listed if path and not path.endswith("/")]

    def _commit_index(self, message: str) -> None:
        """Commit what is staged, with the user's hooks and name."""
        who = [word for key, value in self._store.identity().items() for word in ("-c", f"{key}={value}")]
        done = self._store.run(*who, "commit", "--quiet", "--cleanup=whitespace", "--file=-", stdin=message)
        if not done.ok:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_REFUSAL_LINES:]
            raise ProgramFailed(
                "git refused the commit:\n" + "\n".join(said), hint="nothing was committed; the changes are staged"
            )
