"""Where agents' worktrees live: in `.rookery/worktrees`, or in the folder that `worktrees.dir` names.

A session records its worktree, so one that was made under an earlier setting stays where it is, and is found there.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rookery.base.draft import write_whole
from rookery.base.errors import Refused, StorageFailed
from rookery.config import layout
from rookery.config.project import git_folder, make_state_folders
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import check_new_name
from rookery.vcs.folders import is_below, is_empty, read_text

_PROJECT = "{project}"
_IGNORE, _ALL = ".gitignore", "*\n"


def default_folder(root: str) -> str:
    """Where worktrees are unless a setting says otherwise."""
    return layout.path(os.path.realpath(root), layout.WORKTREES)


def folder_of_new(ctx: Context) -> str:
    """The folder in which new worktrees are made; raises Refused if it is no place for them."""
    root, text = os.path.realpath(ctx.root), ctx.config.worktrees.dir
    if not text:
        return default_folder(root)
    if text == "~" or text.startswith("~/"):
        text = ctx.environ.home + text[1:]
    folder = os.path.realpath(os.path.join(root, text.replace(_PROJECT, os.path.basename(root))))
    if folder == default_folder(root):
        return folder
    git = git_folder(root)
    for own in (layout.path(root), *(() if git is None else (os.path.realpath(git),))):
        if is_below(folder, own):
            raise _unfit(f"{folder} is in {own}, which is not for worktrees")
    if os.path.commonpath([root, folder]) == folder:
        raise _unfit(f"{folder} holds the project itself")
    return folder


def place_of_new(db: Database, agent: str, folder: str) -> str:
    """Where a new agent's worktree goes: where an earlier one of its name still is, else into the folder."""
    earlier = store.latest(db, check_new_name(agent))
    if earlier is not None and os.path.lexists(earlier.worktree):
        return earlier.worktree
    return os.path.join(folder, agent)


def make_parent(root: str, path: str) -> None:
    """Make the folder around a worktree; a link in its place that leads elsewhere is refused."""
    root, parent = os.path.realpath(root), os.path.dirname(path)
    try:
        if parent == default_folder(root):
            make_state_folders(parent)
        else:
            _make_folder(root, parent)
    except OSError as error:
        hint = "see what blocks it" if parent == default_folder(root) else "make it, or set worktrees.dir to another"
        raise StorageFailed(f"{parent} cannot be made or written: {error.strerror}", hint=hint) from error
    if os.path.realpath(parent) != parent and not os.path.realpath(parent).startswith(root + os.sep):
        raise Refused(f"{parent} leads out of the project", hint="remove the link")


def _make_folder(root: str, folder: str) -> None:
    """Make a folder that was chosen; inside the main checkout, it ignores itself in version control."""
    ignore = os.path.join(folder, _IGNORE)
    is_inside = is_below(folder, root)
    if is_inside and not is_empty(folder) and read_text(ignore) != _ALL:
        raise _unfit(f"{folder} is in the main checkout and holds files")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if is_inside:
        write_whole(ignore, _ALL)
    elif not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", folder)


def remove_empty(ctx: Context) -> None:
    """Remove the folders that were chosen for worktrees and hold none any more; others stay."""
    root = os.path.realpath(ctx.root)
    for folder in dict.fromkeys(map(os.path.dirname, _recorded(ctx))):
        with suppress(OSError):
            ignore = os.path.join(folder, _IGNORE)
            if is_below(folder, root) and os.listdir(folder) == [_IGNORE] and read_text(ignore) == _ALL:
                os.unlink(ignore)
            os.rmdir(folder)


def elsewhere(ctx: Context) -> list[str]:
    """The worktrees of agents that are there, and are not in the usual folder."""
    return [path for path in _recorded(ctx) if os.path.isdir(path)]


def _recorded(ctx: Context) -> list[str]:
    return store.worktrees_outside(ctx.db, layout.path("", layout.WORKTREES))


def agents_on_disk(ctx: Context) -> list[str]:
    """The agents that have a folder for their worktree, whatever is in it."""
    parent = default_folder(ctx.root)
    names = os.listdir(parent) if os.path.isdir(parent) else []
    # Others are being removed, or hold a conflict to be resolved.
    return sorted([name for name in names if "." not in name] + [os.path.basename(path) for path in elsewhere(ctx)])


def _unfit(problem: str) -> Refused:
    return Refused(problem, hint="set worktrees.dir to an empty folder, or to one beside the repository")
