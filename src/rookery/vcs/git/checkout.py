"""Git: one checkout, through the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from rookery.base.errors import InvalidState, ProgramFailed
from rookery.vcs import capture as snapshots
from rookery.vcs.git.in_progress import check_free
from rookery.vcs.git.merging import Merging
from rookery.vcs.git.porcelain import CONFLICTED, DETACHED, parse_diff, parse_status, parse_worktrees
from rookery.vcs.git.refs import AskGit
from rookery.vcs.git.repository import COUNTED, DIFF, LITERAL, PATCH, GitStore, open_store
from rookery.vcs.git.worktrees import GitWorktrees
from rookery.vcs.model import (
    GIT,
    Contents,
    FileDiff,
    LogEntry,
    NothingToCommit,
    Status,
    check_message,
    check_room,
    choose_default,
    commit_time,
    in_conflict,
)
from rookery.vcs.ref_names import HEADS
from rookery.vcs.temporary import temporary_folder

_REFUSAL_LINES = 60


class Git(GitWorktrees):
    """A git checkout, the main one or a linked worktree."""

    kind = GIT

    def __init__(self, root: str, timeout: float) -> None:
        self.root = root
        self._timeout = timeout

    @cached_property
    def _store(self) -> GitStore:
        return open_store(self.root, self._timeout)

    def status(self) -> Status:
        """What is changed here, untracked files included and ignored ones not."""
        return self._read_status()[0]

    def contents(self) -> Contents:
        """All that is here and in no commit; git looks through the folder once."""
        status, ignored = self._read_status("--ignored=traditional")
        # A repository inside this one, whose name ends in `/`, is no file; git hides what is in an ignored one, too.
        loose = (*(change.path for change in status.changes), *ignored)
        inner = [path.rstrip("/") for path in loose if path.endswith("/")]
        files = tuple(path for path in ignored if not path.endswith("/"))
        return Contents(status, files, (*self.modules(), *inner))

    def _read_status(self, *options: str) -> tuple[Status, list[str]]:
        """What is changed here, and with `--ignored` what is ignored."""
        text = self._store.read(
            *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-ahead-behind"),
            *("--find-renames", "--ignore-submodules=none", *options),
        )
        commit, branch, changes, ignored = parse_status(text)
        # A branch can have the very name that git prints for none.
        return Status(self.current_branch() if branch == DETACHED else branch, commit, tuple(changes)), ignored

    def log(self, limit: int = 20) -> Sequence[LogEntry]:
        """The newest commits that the checkout contains."""
        start = self.current_commit()
        if start is None:
            return []
        rows = self._store.read_log(("%H", "%B", "%an <%ae>", "%at"), f"--max-count={limit}", start, "--")
        return [LogEntry(commit, text.rstrip("\n"), author, commit_time(at)) for commit, text, author, at in rows]

    def diff(self, base: str | None = None, *, exact: bool = False) -> Sequence[FileDiff]:
        """What the checkout has that `base` (or its last commit) has not."""
        files = parse_diff(self._diff(base, *COUNTED, exact=exact))
        # Compared with a commit, a conflicted file is listed as modified.
        unresolved = self._store.read_list("diff", "--name-only", "--diff-filter=U", "-z", "--no-relative", "--")
        return [file.replace(kind=CONFLICTED) if file.path in unresolved else file for file in files]

    def patch(self, base: str | None = None, *, exact: bool = False) -> str:
        """The same, as a patch for people."""
        return self._diff(base, *PATCH, exact=exact)

    def commit(self, message: str) -> str:
        """Commit everything that is changed here and return the commit."""
        check_message(message)
        status = self.status()
        unresolved = [change.path for change in status.changes if change.kind == CONFLICTED]
        if unresolved:
            raise in_conflict(unresolved, hint="resolve them and `git add` them first")
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
        return None if ref is None else ref.removeprefix(HEADS)

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
            self._store.change_ref(HEADS + name, old=None, new=commit)
        except ProgramFailed:
            check_room(name, self.branches())
            raise

    def delete_branch(self, name: str, expected: str) -> None:
        """Delete a branch if it is still at `expected`."""
        self._store.check_branch_name(name)
        for folder, branch in self.checkouts().items():
            if branch == name:
                raise InvalidState(f"branch {name} is checked out in {folder}", hint="switch it away or remove it")
        check_free(self._store, name)
        self._store.change_ref(HEADS + name, old=self._store.get_commit(expected), new=None)

    def switch(self, branch: str) -> None:
        """Check the branch out here, if the checkout is clean."""
        self._store.check_branch(branch)
        self._check_clean()
        self._store.write("switch", "--quiet", "--no-guess", branch)

    def checkouts(self) -> dict[str, str]:
        """Every checkout of the repository: its folder and the branch that it is on."""
        with suppress(AskGit):
            return self._store.files.checkouts()
        main, *linked = parse_worktrees(self._store.read("worktree", "list", "--porcelain", "-z"))
        # For the main one of a submodule git names its folder in the outer `.git` instead.
        worktrees = [main | {"worktree": self.main_root()}, *linked]
        branches = {fields["worktree"]: fields.get("branch", "") for fields in worktrees if "bare" not in fields}
        return {folder: branch.removeprefix(HEADS) for folder, branch in branches.items()}

    def unpushed_commits(self) -> int:
        """How many commits, on branches or not, no remote is known to have; stashes are such, too."""
        tips = [name for name in ("HEAD", "refs/stash") if self._store.find_commit(name)]
        return int(self._store.read("rev-list", "--count", *tips, "--branches", "--tags", "--not", "--remotes", "--"))

    def merging(self) -> Merging:
        """What merges without a checkout."""
        return Merging(self._store, self.checkouts)

    def _checkout(self) -> snapshots.Checkout:
        return snapshots.Checkout(self._store, self.current_commit(), self._index(), always_has_index=True)

    def _index(self) -> str:
        return os.path.join(self._store.own_folder(), "index")

    def _diff(self, base: str | None, *form: str, exact: bool) -> str:
        start = self._compared_with(base, self.current_commit(), exact=exact) or self._store.empty_tree()
        # A repository inside this one, whose name ends in `/`, is no file.
        untracked = [path for path in self._store.untracked() if not path.endswith("/")]
        if not untracked:
            return self._store.read(*DIFF, *form, start, "--")
        with temporary_folder(self.root, "index") as folder:
            store, env = self._store.writing_to(folder), {"GIT_INDEX_FILE": os.path.join(folder, "index"), **LITERAL}
            snapshots.copy_index(self._index(), env["GIT_INDEX_FILE"])
            words = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
            store.write(*words, stdin="\0".join(untracked), env=env)
            return store.read(*DIFF, *form, start, "--", env=env)

    def _commit_index(self, message: str) -> None:
        """Commit what is staged, with the user's hooks and name."""
        words = ("commit", "--quiet", "--cleanup=whitespace", "--file=-")
        done = self._store.run(*self._store.identity_options(), *words, stdin=message)
        if not done.ok:
            output = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_REFUSAL_LINES:]
            raise ProgramFailed(
                "git refused the commit:\n" + "\n".join(output), hint="nothing was committed; the changes are staged"
            )
