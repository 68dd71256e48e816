"""What a killed `git worktree add` leaves: a registration, and a folder with the files that it had written.

Git makes, in this order: the registration's folder, `locked` in it with the word `initializing`, the worktree's folder,
`gitdir`, the worktree's `.git`, `HEAD`, `commondir`; then it checks the files out and removes `locked`. As long as
`commondir` is empty, every git dies that looks through the worktrees. So we find and remove what is left by its files,
and ask git only where it had begun to check out.

A git that fails removes all this itself, in any order, and may be killed while it does: then `locked` is gone, or the
registration, and only the caller knows that the folder was not there before.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable

from rookery.base import call as calls
from rookery.base.errors import InvalidState
from rookery.config import steps
from rookery.config.project import git_folder
from rookery.vcs import folders
from rookery.vcs.git import processes as git_processes
from rookery.vcs.git.pointers import linked_worktrees, registration_of, registrations
from rookery.vcs.git.repository import GitStore
from rookery.vcs.ref_names import HEADS

MARK = "initializing"
"""The reason with which git locks a worktree that it is still making."""
_BEFORE_GITDIR = {"locked", "gitdir"}
_PATIENCE = 2.0
_PAUSE = 0.05


def discard(store: GitStore, folder: str, branch: str, *, is_new: bool) -> None:
    """Remove what a killed `git worktree add` left of a worktree; one that is finished stays.

    The caller has ended the git that made it, and knows by `is_new` that no folder was there before. Files that the
    branch does not have are not git's: they raise InvalidState, and all stays.
    """
    place = folders.own_place(folder)
    common = os.path.realpath(store.common)
    registered = [own for own, worktree in linked_worktrees(common).items() if worktree == place]
    unfinished = [own for own in registered if _read(own, "locked") == MARK or (is_new and not _is_whole(own))]
    if unfinished or not registered:
        _put_aside(store, place, branch, is_gits=is_new or bool(unfinished))
    for own in unfinished:
        folders.delete_tree(own)
        steps.reached("registration removed")
    folders.delete_aside(place)
    for own in _without_gitdir(common, os.path.basename(place), branch):
        if _has_no_maker(own, common):
            folders.delete_tree(own)


def is_unfinished(folder: str) -> bool:
    """True if git has marked the worktree in a folder as one that it is making, and has not finished it."""
    own = git_folder(folder)
    return own is not None and _read(own, "locked") == MARK


def _put_aside(store: GitStore, place: str, branch: str, *, is_gits: bool) -> None:
    """Move the folder away, if git has written what is in it: a pointer, and files of the branch."""
    if not os.path.isdir(place):
        return
    names = os.listdir(place)
    if not is_gits and names:
        own = registration_of(place, os.path.realpath(store.common)) if names == [".git"] else None
        if own is None or os.path.lexists(own):
            return
    if set(names) - {".git"}:
        refuse_foreign_files(place, store.tree_paths(HEADS + branch), beside=".git")
    folders.put_aside(place)


def refuse_foreign_files(place: str, expected: Iterable[str], *, beside: str) -> None:
    """Raise InvalidState if a folder holds other files than these, and than what version control keeps beside them."""
    own = {*expected, beside}
    for above, inner, names in os.walk(place):
        inner[:] = [name for name in inner if above != place or name != beside]
        for name in (*names, *(name for name in inner if os.path.islink(os.path.join(above, name)))):
            path = os.path.relpath(os.path.join(above, name), place)
            if path not in own:
                raise InvalidState(f"{place} holds {path}, which no checkout wrote", hint="move it away")


def _is_whole(own: str) -> bool:
    """True if git had begun to check out, and has removed nothing of the registration since."""
    is_on_branch = _read(own, "HEAD").startswith("ref: ")
    return is_on_branch and bool(_read(own, "commondir")) and os.path.isfile(os.path.join(own, "index"))


def _without_gitdir(common: str, name: str, branch: str) -> list[str]:
    """Registrations of that name that do not say where their worktree is: `git worktree list` leaves them out.

    They are unfinished, or on the branch, or hold nothing yet.
    """
    named = re.compile(re.escape(name) + r"\d*").fullmatch  # git adds a number where the name is taken
    return [
        own
        for own in registrations(common)
        if named(os.path.basename(own))
        and os.path.isdir(own)
        and not _read(own, "gitdir")
        and (_read(own, "locked") == MARK or _is_on(own, branch) or set(os.listdir(own)) <= _BEFORE_GITDIR)
    ]


def _is_on(own: str, branch: str) -> bool:
    return not _read(own, "locked") and _read(own, "HEAD") == f"ref: {HEADS}{branch}"


def _has_no_maker(own: str, common: str) -> bool:
    """True if no running git can be making this registration, for us or for a worktree of the user's own.

    Only one that runs now can: those that begin later do not matter.
    """
    if git_processes.blind_spot(own):
        return False
    makers = git_processes.at_work(common, os.geteuid())
    deadline = time.monotonic() + _PATIENCE
    while any(process.is_alive for process in makers):
        if time.monotonic() > deadline:
            return False
        calls.sleep(_PAUSE)
    return os.path.isdir(own) and not _read(own, "gitdir")


def _read(folder: str, name: str) -> str:
    return folders.read_line(os.path.join(folder, name))
