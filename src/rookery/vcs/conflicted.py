"""A worktree in which a merge with conflicts is under way as git knows it, so that a person's own tools finish it.

HEAD stands on one side, MERGE_HEAD names the other, the index has the stages of what conflicts, and the files have
git's markers. `git merge` is not asked: the caller has merged in the object database, perhaps from another base than
git would find, and has settled a part of the conflicts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState
from rookery.config import steps
from rookery.vcs import folders
from rookery.vcs.git.merge_tree import REGULAR, Conflict
from rookery.vcs.git.pointers import linked_worktrees, registration_of
from rookery.vcs.git.repository import LITERAL, NO_HOOKS, GitStore, failure, open_store

_QUIET = (*NO_HOOKS, "-c", "core.fsmonitor=false", "-c", "core.safecrlf=false")


def begin(
    store: GitStore, folder: str, ours: str, theirs: str, tree: str, conflicts: Sequence[Conflict], message: str
) -> None:
    """Make the worktree on `ours`, on no branch; its merge of `theirs` has come to a tree with conflicts in it."""
    words = ("worktree", "add", "--quiet", "--detach", folder, ours)
    done = store.run(*words, env={"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"})
    if not done.ok:
        raise failure(done, words)
    steps.reached("resolution checked out")
    here = open_store(folder, store.timeout)
    here.write(*_QUIET, "read-tree", "--reset", "-u", tree)
    here.write("update-index", "-z", "--index-info", stdin=_stages(conflicts, len(ours)))
    marked = [conflict.path for conflict in conflicts if _has_markers(conflict)]
    if marked:
        with_markers = ("--conflict=zdiff3", "--pathspec-from-file=-", "--pathspec-file-nul")
        here.write(*_QUIET, "checkout", "--quiet", *with_markers, stdin="\0".join(marked), env=LITERAL)
    own = here.own_folder()
    for name, text in {"MERGE_MSG": message, "MERGE_MODE": "no-ff", "MERGE_HEAD": f"{theirs}\n"}.items():
        write_whole(os.path.join(own, name), text.encode("utf-8", "surrogateescape"))


def lock(store: GitStore, folder: str, reason: str) -> None:
    """Keep every command that cleans worktrees from this one; `remove` removes it all the same."""
    own = _registration(store, folder)
    if own is not None:
        write_whole(os.path.join(own, "locked"), f"{reason}\n".encode())


def remove(store: GitStore, folder: str) -> None:
    """Remove a worktree and its registration, also an unfinished one; the caller has saved what is in it."""
    place = folders.own_place(folder)
    own = _registration(store, place)
    is_ours = own is not None or folders.is_empty(place)
    if not is_ours and registration_of(place, os.path.realpath(store.common)) is None:
        raise InvalidState(f"{place} is not a worktree of this repository", hint="it was left as it is")
    folders.put_aside(place)
    if own is not None:
        folders.delete_tree(own)
    folders.delete_aside(place)


def _registration(store: GitStore, folder: str) -> str | None:
    place, listed = folders.real_place(folder), linked_worktrees(os.path.realpath(store.common))
    return next((own for own, worktree in listed.items() if worktree == place), None)


def _stages(conflicts: Sequence[Conflict], length: int) -> str:
    """Lines for `update-index --index-info`: what each side has, instead of the merged file."""
    lines = []
    for conflict in conflicts:
        sides = {1: conflict.base, 2: conflict.ours, 3: conflict.theirs}
        if any(sides.values()):
            lines.append(f"0 {'0' * length}\t{conflict.path}\0")
            lines += [f"{side.mode} {side.oid} {stage}\t{conflict.path}\0" for stage, side in sides.items() if side]
    return "".join(lines)


def _has_markers(conflict: Conflict) -> bool:
    """True if git can write both sides into one file."""
    both = (conflict.ours, conflict.theirs)
    return all(side is not None and side.mode in REGULAR for side in both) and (
        conflict.base is None or conflict.base.mode in REGULAR
    )
