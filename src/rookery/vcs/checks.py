"""What the doctor checks of version control."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import InvalidState, ProgramFailed
from rookery.config.environ import now
from rookery.config.project import main_checkout
from rookery.vcs.detect import detect
from rookery.vcs.git import locks as git_locks
from rookery.vcs.git.pointers import store_folder
from rookery.vcs.git.repository import git_version
from rookery.vcs.jj.program import jj_version
from rookery.vcs.model import JJ

CATEGORY = "vcs"
OLD_LOCK = 600.0
"""After so many seconds a lock that cannot be removed is worth a warning."""

_GIT = (2, 38)  # `git merge-tree --write-tree` came with it
_JJ = (0, 38)  # templates that print a workspace's folder came with it


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


CHECKS = (check_git, check_jj, check_repository, check_locks)
