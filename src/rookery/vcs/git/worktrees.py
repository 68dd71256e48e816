"""Linked worktrees of git: added, removed, and given ignored files of their own.

Everything can be repeated after a kill. Git itself marks a worktree that it has not finished by a lock whose reason
is `initializing`: what is left of such a one is discarded, and it is made again. Any other lock is a person's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from rookery.base import call as calls
from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState, ProgramFailed
from rookery.config.environ import child_environ
from rookery.vcs import cage, folders
from rookery.vcs.backend import Vcs
from rookery.vcs.capture import inner_repositories
from rookery.vcs.git import in_progress, unfinished
from rookery.vcs.git.pointers import linked_worktrees, registration_of
from rookery.vcs.git.repository import LITERAL, GitStore, failure
from rookery.vcs.git.unfinished import MARK as _UNFINISHED
from rookery.vcs.model import named_path

EXCLUDES = "rookery-exclude"
_OWN = "worktree"
"""The scope of a worktree's own configuration."""
_OURS = "# What Rookery generated in this worktree; rewritten by it."
_WAITS = (0.01, 0.05, 0.1, 0.3, 1.0)


class GitWorktrees(Vcs):
    """What the Protocol asks of git's checkouts beside this one, and of the files that this one ignores."""

    def add_checkout(self, folder: str, branch: str) -> None:
        """A linked worktree on an existing branch; there already is fine."""
        store, place = self._main_store, folders.own_place(folder)
        store.check_branch(branch)
        unfinished.discard(store, place, branch, is_new=False)
        own = _registration(store, place)
        if not folders.is_empty(place):
            _check_is_on(place, None if own is None else self.checkouts().get(place), branch)
            return
        if own is not None:
            _refuse_locked(own, place)
            _unregister(store, place)
        _add_new(store, place, branch)

    def remove_checkout(self, folder: str) -> None:
        """Remove a linked worktree and its registration; the caller has proved that nothing is lost."""
        store, place = self._main_store, folders.own_place(folder)
        own = _registration(store, place)
        if own is not None:
            _refuse_locked(own, place)
        elif os.path.lexists(place) and registration_of(place, os.path.realpath(store.common)) is None:
            raise InvalidState(f"{place} is not a worktree of this repository", hint="it was left as it is")
        folders.put_aside(place)
        if own is not None:
            _unregister(store, place)
        folders.delete_aside(place)
        cage.forget(place)

    def discard_unfinished(self, folder: str, branch: str, *, is_new: bool = False) -> None:
        """Remove what a killed `git worktree add` left, with its registration."""
        unfinished.discard(self._main_store, folder, branch, is_new=is_new)

    def lock_state(self, folder: str) -> str | None:
        """Why the worktree is locked ('' without a reason); None if it is not, or if git is still making it."""
        own = _registration(self._store, folders.real_place(folder))
        return None if own is None else _lock_of(own)

    def running_step(self) -> str | None:
        """The merge, rebase or the like that has begun here and not ended."""
        return in_progress.step_in(self._store.own_folder())

    def inner_repositories(self) -> Sequence[str]:
        """Submodules that are checked out here, and folders with a repository that this one does not track."""
        return self.modules() + inner_repositories(self._store)

    def modules(self) -> list[str]:
        """Submodules that are checked out here."""
        entries = self._store.read_list("ls-files", "-z", "--stage")
        modules = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
        return [path for path in modules if os.path.lexists(os.path.join(self.root, path, ".git"))]

    def exclude(self, patterns: Sequence[str]) -> None:
        """Keep generated files out of what is committed in this worktree, and in no other.

        Git reads `info/exclude` for all worktrees together, so this one gets an ignore file by configuration of its
        own; what the user ignores everywhere is copied into it. A tracked file cannot be ignored: it is marked
        `skip-worktree`, so that what lies there instead is never committed.
        """
        store = self._store
        own = store.own_folder()
        if os.path.basename(os.path.dirname(own)) != "worktrees":
            hint = "use a linked worktree"
            raise InvalidState("this is the main checkout: nothing can be ignored here alone", hint=hint)
        _enable_own_configuration(store)
        path = os.path.join(own, EXCLUDES)
        wanted = dict.fromkeys([*_read_own(path), *patterns])
        listed = _excludes_files(store)
        text = _user_excludes(listed) + "\n".join((_OURS, *wanted)) + "\n"
        write_whole(path, text.encode("utf-8", "surrogateescape"))
        if [file for scope, file in listed if scope == _OWN][-1:] != [path]:
            _configure(store, "--worktree", "core.excludesFile", path)
        tracked = "".join(f"{path}\0" for path in _tracked(store, patterns))
        if tracked:
            # In a sparse checkout git takes the mark from files that are there, unless it is told to expect them.
            expect = "sparse.expectFilesOutsideOfPatterns"
            is_sparse = store.ask("config", "--type=bool", "--get", "core.sparseCheckout") == "true"
            if is_sparse and store.ask("config", "--worktree", "--get", expect) != "true":
                _configure(store, "--worktree", expect, "true")
            store.write("update-index", "-z", "--skip-worktree", "--stdin", stdin=tracked)

    def excluded(self) -> Sequence[str]:
        """The patterns that `exclude` keeps out of this worktree."""
        return _read_own(os.path.join(self._store.own_folder(), EXCLUDES))

    @property
    def _main_store(self) -> GitStore:
        """The store at the main checkout: from a linked one git would copy that one's settings into a new one."""
        return self._store.at(self.main_root())


def _registration(store: GitStore, place: str) -> str | None:
    """What the repository keeps for the linked worktree in a folder."""
    return next((own for own, worktree in linked_worktrees(store.common).items() if worktree == place), None)


def _check_is_on(place: str, on: str | None, branch: str) -> None:
    """Raise unless a folder with files is a worktree on the branch; `on` is None if it is not registered."""
    if on is None:
        raise InvalidState(f"{place} holds files that are no checkout of this repository", hint="move them away first")
    if not os.path.isfile(os.path.join(place, ".git")):
        raise InvalidState(
            f"{place} holds files and is no longer a checkout", hint="move them away, and run `git worktree prune`"
        )
    if on != branch:
        raise InvalidState(f"{place} is on {on or 'no branch'}, not on {branch}", hint="switch it back")


def _lock_of(own: str) -> str | None:
    path = os.path.join(own, "locked")
    reason = folders.read_line(path) if os.path.lexists(path) else _UNFINISHED
    return None if reason == _UNFINISHED else reason


def _refuse_locked(own: str, place: str) -> None:
    lock = _lock_of(own)
    if lock is not None:
        reason = f": {lock}" if lock else ""
        raise InvalidState(f"the worktree {place} is locked{reason}", hint=f"`git worktree unlock {place}`")


def _unregister(store: GitStore, place: str) -> None:
    """Make git forget a worktree whose folder is gone or empty; with an empty one it would refuse."""
    if os.path.isdir(place):
        os.rmdir(place)
    store.write("worktree", "remove", "--force", "--force", place)


def _add_new(store: GitStore, place: str, branch: str) -> None:
    done = store.run("worktree", "add", "--quiet", place, branch, env={"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"})
    if done.ok:
        return
    if "already checked out" in done.stderr or "already used by worktree" in done.stderr:
        raise InvalidState(f"branch {branch} is checked out elsewhere: {done.last_output}", hint="switch it away there")
    raise failure(done, ("worktree", "add"))


def _enable_own_configuration(store: GitStore) -> None:
    """Let worktrees have settings of their own.

    From then on git reads `core.bare` and `core.worktree` for linked worktrees too, where they are wrong, so the main
    checkout's move to its own file: they are written there first, and removed from the shared file last.
    """
    if store.ask("config", "--type=bool", "--get", "extensions.worktreeConfig") == "true":
        return
    shared, own = (os.path.join(store.common, name) for name in ("config", "config.worktree"))
    moved = {}
    for key, harmless in (("core.bare", "false"), ("core.worktree", None)):
        value = store.ask("config", f"--file={shared}", "--get", key)
        if value is not None and value != harmless:
            moved[key] = value
    for key, value in moved.items():
        _configure(store, f"--file={own}", key, value)
    _configure(store, f"--file={shared}", "extensions.worktreeConfig", "true")
    for key in moved:
        _configure(store, f"--file={shared}", "--unset-all", key)


def _configure(store: GitStore, *args: str) -> None:
    """Change a configuration file; another git may hold its lock for a moment."""
    for wait in (*_WAITS, None):
        done = store.run("config", *args, env={"LC_ALL": "C"})
        if done.ok or ("--unset-all" in args and done.status == 5):
            return
        if wait is None or "could not lock" not in done.stderr:
            raise ProgramFailed(f"git could not be configured: {done.last_output}")
        calls.sleep(wait)


def _read_own(path: str) -> list[str]:
    return folders.read_text(path).partition(_OURS + "\n")[2].splitlines()


def _excludes_files(store: GitStore) -> list[tuple[str, str]]:
    """Where each scope of the configuration says that ignored files are listed, the last one counts."""
    text = store.ask("config", "-z", "--show-scope", "--type=path", "--get-all", "core.excludesFile") or ""
    return list(zip(*[iter(text.split("\0")[:-1])] * 2, strict=True))


def _user_excludes(listed: Sequence[tuple[str, str]]) -> str:
    """What the user ignores in every repository."""
    env = child_environ()
    home = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    paths = [os.path.join(home, "git", "ignore"), *(path for scope, path in listed if scope != _OWN)]
    text = ""
    with suppress(OSError):  # git ignores a file that it cannot read, too
        text = folders.read_text(paths[-1])
    return text if not text or text.endswith("\n") else text + "\n"


def _tracked(store: GitStore, patterns: Sequence[str]) -> list[str]:
    """Those of the patterns that name one tracked file."""
    names = [named_path(pattern) for pattern in patterns if not pattern.endswith("/")]
    if not names:
        return []
    return [path for path in store.read_list("ls-files", "-z", "--", *names, env=LITERAL) if path in names]
