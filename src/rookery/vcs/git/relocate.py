"""Worktrees of a git repository that was copied or moved with them: their pointers, made right by hand.

A worktree and its repository name each other by absolute paths: `.git` in the worktree, `worktrees/<name>/gitdir` in
the repository. In a copy both name the original. There `git worktree repair` does harm: it follows the pointers, and
makes the original's worktree belong to the copy (git 2.39), or the original's repository own the copy's. So here only
files below the new root are written, and in a moved repository the pointers of worktrees outside of it.

Everything can be repeated after a kill. Jj names its workspaces relative to each other, and needs none of this.
"""

from __future__ import annotations

import os

from rookery.base.draft import write_whole
from rookery.config import layout
from rookery.vcs import folders
from rookery.vcs.detect import is_bare
from rookery.vcs.git import worktrees as git_checkouts
from rookery.vcs.git.locks import store_folder
from rookery.vcs.git.repository import GitStore
from rookery.vcs.ref_names import RESCUE

_WORKTREES = "worktrees"


def relocate(root: str, old: str, timeout: float, *, is_copy: bool) -> int:
    """Let the repository at `root`, which was at `old`, have its worktrees below `root`; gives how many changed."""
    common = common_folder(root)
    if common is None or (is_copy and not _is_below(common, root)):
        return 0  # a repository outside of the project is not copied with it, and stays the original's
    top = os.path.join(common, _WORKTREES)
    names = sorted(os.listdir(top)) if os.path.isdir(top) else []
    return sum(_relocate(GitStore(root, timeout), os.path.join(top, name), root, old, is_copy) for name in names)


def stale(root: str) -> list[str]:
    """The agents' worktrees whose pointers do not lead to this repository and back, by their folders."""
    common = common_folder(root)
    found = []
    top = layout.path(root, layout.WORKTREES)
    for name in sorted(os.listdir(top)) if common is not None and os.path.isdir(top) else ():
        pointer = os.path.join(top, name, ".git")
        if os.path.isfile(pointer):
            own = _target(pointer)
            is_ours = os.path.dirname(own) == os.path.join(str(common), _WORKTREES)
            if not is_ours or not _same_file(folders.read_line(os.path.join(own, "gitdir")), pointer):
                found.append(os.path.join(top, name))
    return found


def reclaim(root: str) -> int:
    """Let those worktrees belong to this repository again, if it still has what it keeps for them."""
    count = 0
    for folder in stale(root):
        pointer = os.path.join(folder, ".git")
        own = os.path.join(str(common_folder(root)), _WORKTREES, os.path.basename(_target(pointer)))
        if os.path.isfile(os.path.join(own, "gitdir")) and _is_plain_file(pointer):
            write_whole(os.path.join(own, "gitdir"), f"{pointer}\n".encode("utf-8", "surrogateescape"))
            _point(pointer, own)
            count += 1
    return count


def common_folder(root: str) -> str | None:
    """What all worktrees of the project's repository share; None without git."""
    found = store_folder(root) or (root if is_bare(root) else None)
    return None if found is None else os.path.realpath(found)


def _relocate(store: GitStore, own: str, root: str, old: str, is_copy: bool) -> bool:
    """Repair one worktree, by the folder that the repository keeps for it; True if anything changed."""
    gitdir = folders.read_line(os.path.join(own, "gitdir"))
    if not os.path.isabs(gitdir):
        return False
    place = _new_place(os.path.dirname(gitdir), root, old)
    if place is None:
        return _leave_to_original(store, own, gitdir) if is_copy else _lead_back(own, gitdir, root, old)
    pointer = os.path.join(place, ".git")
    is_changed = gitdir != pointer
    if is_changed:
        write_whole(os.path.join(own, "gitdir"), f"{pointer}\n".encode("utf-8", "surrogateescape"))
    if _is_plain_file(pointer) and os.path.basename(_target(pointer)) == os.path.basename(own):
        is_changed |= _point(pointer, own)
        if os.path.exists(os.path.join(own, git_checkouts.EXCLUDES)):
            git_checkouts.exclude(store.at(place), [])  # its file is named by an absolute path, too
    return is_changed


def _new_place(folder: str, root: str, old: str) -> str | None:
    """Where a worktree is now; None if it was outside of the project. One of the two may lie in the other."""
    for top in sorted((root, old), key=len, reverse=True):
        if _is_below(folder, top):
            return root + folder[len(top) :]
    return None


def _leave_to_original(store: GitStore, own: str, gitdir: str) -> bool:
    """Forget, in a copy, a worktree outside of it: it is the original's. A commit on no branch is kept by a ref."""
    if not _is_plain_file(gitdir) or os.path.realpath(_target(gitdir)) == own:
        return False
    head = folders.read_line(os.path.join(own, "HEAD"))
    if head and not head.startswith("ref:"):
        store.save_ref(f"{RESCUE}{os.path.basename(own)}/{head[:12]}", head)
    folders.delete_tree(own)
    return True


def _lead_back(own: str, gitdir: str, root: str, old: str) -> bool:
    """Let a worktree outside of a moved project lead to its repository again."""
    was = old + own[len(root) :] if _is_below(own, root) else own
    return _is_plain_file(gitdir) and _target(gitdir) == was and _point(gitdir, own)


def _point(pointer: str, own: str) -> bool:
    if _target(pointer) == own:
        return False
    write_whole(pointer, f"gitdir: {own}\n".encode("utf-8", "surrogateescape"))
    return True


def _target(pointer: str) -> str:
    """Where a `.git` file leads."""
    found = folders.read_line(pointer).removeprefix("gitdir:").strip()
    return os.path.normpath(os.path.join(os.path.dirname(pointer), found))


def _is_below(path: str, top: str) -> bool:
    return path.startswith(top + os.sep) or path == top


def _is_plain_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
