"""How git's worktrees and their repository lead to each other: read from their files, without git.

The repository keeps a folder for each linked worktree, its *registration*: `worktrees/<name>`. The file `gitdir` in it
names the worktree's `.git`, which is a file that names the registration.
"""

from __future__ import annotations

import os

from rookery.config.project import git_folder
from rookery.vcs.folders import read_line, read_text


def store_folder(root: str) -> str | None:
    """The folder of the git store of a main checkout, which all its worktrees share."""
    own = git_folder(root)
    if own is not None:
        return common_folder(own)
    below_jj = os.path.join(root, ".jj", "repo", "store", "git")
    return below_jj if os.path.isdir(below_jj) else None


def common_folder(own: str) -> str:
    """The folder that all worktrees of a repository share, by the folder that git keeps for one of them."""
    shared = read_text(os.path.join(own, "commondir")).strip()
    return os.path.normpath(os.path.join(own, shared)) if shared else own


def registrations(common: str) -> list[str]:
    """The folders that a repository keeps for its linked worktrees."""
    top = os.path.join(common, "worktrees")
    return [os.path.join(top, name) for name in sorted(os.listdir(top))] if os.path.isdir(top) else []


def linked_worktrees(common: str) -> dict[str, str]:
    """The registration of each linked worktree, and where the worktree is."""
    pointers = {own: read_line(os.path.join(own, "gitdir")) for own in registrations(common)}
    paths = {own: os.path.normpath(os.path.join(own, pointer)) for own, pointer in pointers.items() if pointer}
    return {own: os.path.dirname(path) for own, path in paths.items()}


def registration_of(worktree: str, common: str) -> str | None:
    """The registration that a worktree's `.git` names, whether it is there or not; None if another repository's."""
    own = git_folder(worktree)
    return own if own is not None and os.path.dirname(own) == os.path.join(common, "worktrees") else None
