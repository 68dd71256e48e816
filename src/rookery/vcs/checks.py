"""What the doctor checks of version control."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from functools import partial

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import InvalidState, ProgramFailed, RookError
from rookery.base.text import plural
from rookery.config.environ import child_environ, now, read_environ
from rookery.config.loader import load_config
from rookery.config.project import main_checkout
from rookery.vcs.detect import detect
from rookery.vcs.folders import read_line
from rookery.vcs.git import locks as git_locks
from rookery.vcs.git.pointers import linked_worktrees, store_folder
from rookery.vcs.git.repository import GitStore, git_version
from rookery.vcs.jj.program import jj_version
from rookery.vcs.model import EMAIL, JJ, NAME
from rookery.vcs.ref_names import AGENT_BRANCHES

CATEGORY = "vcs"
OLD_LOCK = 600.0
"""After so many seconds a lock that cannot be removed is worth a warning."""

_GIT = (2, 38)  # `git merge-tree --write-tree` came with it
_JJ = (0, 38)  # templates that print a workspace's folder came with it
_TIMEOUT = 30.0
_SUBMODULE = "160000 "
_OF_NEW_AGENTS = ("identity", "new submodules", "new lfs")
_POINTER = b"version https://git-lfs"
_IDENTITY = {"user.name": "GIT_AUTHOR_NAME", "user.email": "GIT_AUTHOR_EMAIL"}
IDENTITY_HINT = '`git config --global user.name "YOUR NAME"` and `git config --global user.email YOU@EXAMPLE.COM`'


def check_git(_place: Place) -> Iterator[Finding]:
    """Git is installed, and new enough to predict merges."""
    yield _check_version("git", git_version, _GIT, "cannot predict merges", "")


def check_jj(place: Place) -> Iterator[Finding]:
    """Jj is installed where the repository is one of its own."""
    repository = detect(place.root or place.cwd)
    if repository is None or repository[0] != JJ:
        return
    hint = "install jj, or set vcs.backend to git where there is a `.git` too"
    yield _check_version("jj", jj_version, _JJ, "is too old", hint)


def _check_version(name: str, ask: Callable[[], str], least: tuple[int, int], fault: str, hint: str) -> Finding:
    try:
        version = ask()
    except ProgramFailed as error:
        return Finding(CATEGORY, name, ERROR, error.message, hint=hint or error.hint)
    if _numbers(version) < least:
        newer = f"install {name} {least[0]}.{least[1]} or newer"
        return Finding(CATEGORY, name, WARNING, f"{name} {version} {fault}", hint=newer)
    return Finding(CATEGORY, name, OK, f"{name} {version}")


def check_repository(place: Place) -> Iterator[Finding]:
    """There is a repository; without one tasks can be kept, but not started or completed."""
    start = place.root or place.cwd
    repository = detect(start)
    if repository is None:
        hint = "run `git init`: tasks can be kept without it, but not started or completed"
        yield Finding(CATEGORY, "repository", WARNING, f"no repository in {start} or above it", hint=hint)
        return
    yield Finding(CATEGORY, "repository", OK, f"{repository[0]} repository at {repository[1]}")


def check_identity(place: Place) -> Iterator[Finding]:
    """Git knows the user's name and address; without them agents' commits get an invented author."""
    repository = detect(place.root or place.cwd)
    if repository is None or repository[0] == JJ:
        return
    try:
        missing = missing_identity(repository[1])
    except ProgramFailed:
        return  # git's own check says so
    if missing:
        yield Finding(CATEGORY, "identity", WARNING, identity_problem(missing), IDENTITY_HINT)
    else:
        yield Finding(CATEGORY, "identity", OK, "git knows your name and address")


def missing_identity(folder: str) -> list[str]:
    """Which of the user's name and address git does not know in the repository."""
    store, env = GitStore(folder, _TIMEOUT), child_environ()
    return [key for key, name in _IDENTITY.items() if not env.get(name) and not store.ask("config", key)]


def identity_problem(missing: list[str]) -> str:
    """What follows from what is missing."""
    return f"git has no {' and no '.join(missing)}: commits get the author {NAME} <{EMAIL}>"


def check_contents(place: Place) -> Iterator[Finding]:
    """The worktrees of agents have the files of submodules and of Git LFS, not empty folders and pointers."""
    repository = detect(place.root or place.cwd)
    if place.root is None or repository is None or repository[0] == JJ:
        return
    store = GitStore(repository[1], _TIMEOUT)
    try:
        if (store.ask("rev-parse", "--verify", "--quiet", "HEAD") or "") == "":
            return
        submodules = _entries(store.ask("ls-files", "-z", "--stage"))
        stored = (store.ask("ls-files", "-z", "--", ":(attr:filter=lfs)") or "").split("\0")[:-1]
    except ProgramFailed:
        return  # git's own check says so
    agents = f"ref: refs/heads/{AGENT_BRANCHES}"
    linked = linked_worktrees(os.path.realpath(store.common)).items()
    for tree in sorted(tree for own, tree in linked if read_line(os.path.join(own, "HEAD")).startswith(agents)):
        name = os.path.basename(tree)
        empty = [path for path in submodules if os.path.isdir(tree) and not _has_files(os.path.join(tree, path))]
        if empty:
            message = f"{name}'s worktree lacks the files of the submodule{'s' * (len(empty) > 1)} {', '.join(empty)}"
            hint = f"`git -C {shlex.quote(tree)} submodule update --init --recursive`"
            yield Finding(CATEGORY, "submodules", WARNING, message, hint)
        pointers = [path for path in stored if _is_pointer(os.path.join(tree, path))]
        if pointers:
            message = f"{name}'s worktree has only pointers to {len(pointers)} LFS files, such as {pointers[0]}"
            hint = f"`git lfs install`, then `git -C {shlex.quote(tree)} lfs pull`"
            yield Finding(CATEGORY, "lfs", WARNING, message, hint)
    yield from _coming(store, place.root, submodules, stored)


def problems_of_new_agents(root: str) -> Iterator[str]:
    """What will be wrong with an agent that is started now, with a way out, a line each."""
    for check in (check_identity, check_contents):
        for finding in check(Place(root, root)):
            if finding.status != OK and finding.name in _OF_NEW_AGENTS:
                yield f"{finding.message}; {finding.hint}"


def _coming(store: GitStore, root: str, submodules: list[str], stored: list[str]) -> Iterator[Finding]:
    """What new worktrees will lack."""
    try:
        setup = load_config(root, read_environ(), {}).config.provision.setup
    except RookError:
        return  # the configuration's own check says so
    if submodules and "submodule" not in setup:
        message = f"new worktrees will lack the files of submodules: {', '.join(submodules)}"
        hint = "set provision.setup to a command that begins with `git submodule update --init --recursive`"
        yield Finding(CATEGORY, "new submodules", WARNING, message, hint)
    if stored and not (store.ask("config", "filter.lfs.process") or store.ask("config", "filter.lfs.smudge")):
        message = f"Git LFS is not set up: new worktrees will have pointers instead of {plural(len(stored), 'file')}"
        yield Finding(CATEGORY, "new lfs", WARNING, message, "install git-lfs, then run `git lfs install`")


def _entries(stages: str | None) -> list[str]:
    """The submodules among the entries of an index."""
    entries = [entry.partition("\t") for entry in (stages or "").split("\0") if entry.startswith(_SUBMODULE)]
    return [path for _about, _tab, path in entries]


def _has_files(folder: str) -> bool:
    return os.path.isdir(folder) and bool(os.listdir(folder))


def _is_pointer(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False


def check_locks(place: Place) -> Iterator[Finding]:
    """No git that died has left a lock on a checkout, a branch or the configuration."""
    repository = detect(place.root or place.cwd)
    folder = repository and store_folder(main_checkout(repository[1]) or repository[1])
    for path in git_locks.find(folder) if folder else ():
        try:
            age = now() - os.stat(path).st_mtime
        except FileNotFoundError:
            continue
        reason = git_locks.why_held(path)
        about = f"{path} is {_spoken(age)} old and keeps git from changing what it locks"
        if not reason and age > git_locks.MIN_AGE:
            message, hint = f"{about}; no git runs that could hold it", "run `rook doctor --fix`"
            yield Finding(CATEGORY, "lock", WARNING, message, hint, partial(_remove_lock, path))
        elif reason and age > OLD_LOCK:
            yield Finding(CATEGORY, "lock", WARNING, f"{about}; {reason}", f"if no git is running there: rm '{path}'")


def _remove_lock(path: str) -> str:
    held = git_locks.remove_dead([path])
    if held:
        raise InvalidState(f"{path} stays: {held[path]}", hint="wait for that process, then try again")
    return f"removed {path}"


def _spoken(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"


def _numbers(version: str) -> tuple[int, ...]:
    """`2.39.5.windows.1` and `0.46.0-abc` as numbers that compare."""
    parts = version.replace("-", ".").split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal())


CHECKS = (check_git, check_jj, check_repository, check_identity, check_contents, check_locks)
