"""Worktrees of a git repository that was copied or moved with them: their pointers, corrected by hand.

A worktree and its repository name each other by absolute paths (`pointers`). In a copy both name the original. There
`git worktree repair` does harm: it follows the pointers, and makes the original's worktree belong to the copy (git
2.39), or the original's repository own the copy's. So here only files below the new root are written, and in a moved
repository the pointers of worktrees outside of it.

Everything can be repeated after a kill. Jj names its workspaces relative to each other, and needs none of this.
"""

from __future__ import annotations

import os

from rookery.base.draft import write_whole
from rookery.config import layout
from rookery.config.project import git_folder
from rookery.vcs import folders
from rookery.vcs.detect import is_bare
from rookery.vcs.git.checkout import Git
from rookery.vcs.git.pointers import registration_of, registrations, store_folder
from rookery.vcs.git.repository import GitStore
from rookery.vcs.git.worktrees import EXCLUDES
from rookery.vcs.ref_names import RESCUE, SAVED


def relocate(root: str, old: str, timeout: float, *, is_copy: bool) -> int:
    """Let the repository at `root`, which was at `old`, have its worktrees below `root`; returns how many changed."""
    common = _common_folder(root)
    if common is None or (is_copy and not folders.is_below(common, root)):
        return 0  # a repository outside of the project is not copied with it, and stays the original's
    store = GitStore(root, timeout)
    return sum(_relocate(store, own, root, old, is_copy) for own in registrations(common))


def stale(root: str) -> list[str]:
    """The agents' worktrees whose pointers do not lead to this repository and back, by their folders."""
    common, top = _common_folder(root), layout.path(root, layout.WORKTREES)
    if common is None or not os.path.isdir(top):
        return []
    worktrees = [os.path.join(top, name) for name in sorted(os.listdir(top))]
    return [
        folder
        for folder in worktrees
        if os.path.isfile(os.path.join(folder, ".git")) and not _is_registered(registration_of(folder, common), folder)
    ]


def reclaim(root: str) -> int:
    """Let those worktrees belong to this repository again, if it still has their registrations."""
    count = 0
    for folder in stale(root):
        pointer = os.path.join(folder, ".git")
        own = os.path.join(str(_common_folder(root)), "worktrees", os.path.basename(_target(pointer)))
        if os.path.isfile(os.path.join(own, "gitdir")) and _is_plain_file(pointer):
            _write_line(os.path.join(own, "gitdir"), pointer)
            _point(pointer, own)
            count += 1
    return count


def _common_folder(root: str) -> str | None:
    """The folder that all worktrees of the project's repository share; None without git."""
    common = store_folder(root) or (root if is_bare(root) else None)
    return None if common is None else os.path.realpath(common)


def _is_registered(own: str | None, folder: str) -> bool:
    """True if a registration names the worktree in a folder."""
    gitdir = "" if own is None else folders.read_line(os.path.join(own, "gitdir"))
    return os.path.exists(gitdir) and os.path.samefile(gitdir, os.path.join(folder, ".git"))


def _relocate(store: GitStore, own: str, root: str, old: str, is_copy: bool) -> bool:
    """Repair one worktree, by its registration; True if anything changed."""
    gitdir = folders.read_line(os.path.join(own, "gitdir"))
    if not os.path.isabs(gitdir):
        return False
    place = folders.relocated(os.path.dirname(gitdir), root, old)
    if place is None:
        return _leave_to_original(store, own, gitdir) if is_copy else _lead_back(own, gitdir, root, old)
    pointer = os.path.join(place, ".git")
    is_changed = gitdir != pointer
    if is_changed:
        _write_line(os.path.join(own, "gitdir"), pointer)
    if _is_plain_file(pointer) and os.path.basename(_target(pointer)) == os.path.basename(own):
        is_changed |= _point(pointer, own)
        if os.path.exists(os.path.join(own, EXCLUDES)):
            Git(place, store.timeout).exclude([])  # its file is named by an absolute path, too
    return is_changed


def _leave_to_original(store: GitStore, own: str, gitdir: str) -> bool:
    """Forget, in a copy, a worktree outside of it: it is the original's. A ref keeps a commit on no branch."""
    if not _is_plain_file(gitdir) or os.path.realpath(_target(gitdir)) == own:
        return False
    head = folders.read_line(os.path.join(own, "HEAD"))
    if head and not head.startswith("ref:"):
        store.change_ref(f"{SAVED}{RESCUE}{os.path.basename(own)}/{head[:12]}", old=None, new=head)
    folders.delete_tree(own)
    return True


def _lead_back(own: str, gitdir: str, root: str, old: str) -> bool:
    """Let a worktree outside of a moved project lead to its repository again."""
    before = old + own[len(root) :] if folders.is_below(own, root) else own
    return _is_plain_file(gitdir) and _target(gitdir) == before and _point(gitdir, own)


def _point(pointer: str, own: str) -> bool:
    if _target(pointer) == own:
        return False
    _write_line(pointer, f"gitdir: {own}")
    return True


def _write_line(path: str, line: str) -> None:
    write_whole(path, f"{line}\n".encode("utf-8", "surrogateescape"))


def _target(pointer: str) -> str:
    """The registration that a `.git` file names."""
    return str(git_folder(os.path.dirname(pointer)))


def _is_plain_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)
