"""Where a project is: the main checkout's root, found without starting git or jj.

Only the main checkout has the state. A linked git worktree or a second jj workspace leads back there, also when it
carries a tracked `.rookery/config.yaml` of its own.
"""

from __future__ import annotations

import errno
import os

from rookery.base import call as calls
from rookery.base.errors import NotInitialised, UntrustedState
from rookery.config import layout

_STATE = (layout.LOCATION, layout.RUN, layout.SESSIONS, layout.WORKTREES)
"""What is there only where a project was; settings may come with a clone."""
PRIVATE = 0o700
"""The mode of the folder: it holds tokens, mail and what agents run."""


def find_root(start: str, named: str | None = None) -> str:
    """The root of the project that `start` lies in; `named` (from the environment) goes first."""
    if named is not None:
        root = calls.absolute(named)
        if is_project(root):
            return root
        _check_whole(root)
        raise NotInitialised(f"ROOKERY_ROOT is {root}, and there is no project there")
    for folder in upward(calls.absolute(start)):
        main = main_checkout(folder)
        if is_project(main or folder):
            return main or folder
        if main is not None:
            _check_reachable(layout.path(main))
            _check_whole(main)
            raise NotInitialised(f"the repository at {main} has no Rookery project")
    raise NotInitialised(f"no Rookery project in {start} or above it")


def _check_reachable(state: str) -> None:
    """Raise UntrustedState if there may be a project that we cannot look into."""
    if os.path.isdir(state) and not os.access(state, os.X_OK):
        raise UntrustedState(f"{state} may not be looked into", hint="run `rook` as its owner, and check its mode")


def _check_whole(root: str) -> None:
    """Raise NotInitialised with what helps if there is a part of a project's state, as after half of an `rm -rf`."""
    if any(os.path.lexists(layout.path(root, name)) for name in _STATE):
        raise NotInitialised(
            f"{layout.path(root)} is not whole: its database, {layout.DATABASE}, is missing",
            hint="`rook restore` lists the backups that can take its place; else `rook init` begins with an "
            "empty one, and keeps the rest. Commits of agents are in git: `git branch --list 'rook/*'`",
        )


def find_repository(start: str) -> str | None:
    """The main checkout of the repository that `start` lies in, where `find_root` will look for the project."""
    for folder in upward(calls.absolute(start)):
        main = main_checkout(folder)
        if main is not None:
            return main
    return None


def is_project(root: str) -> bool:
    """True if the folder holds a project's state."""
    return os.path.isfile(database_path(root))


def database_path(root: str) -> str:
    """Where a project's state is kept."""
    return layout.path(root, layout.DATABASE)


def root_of(database: str) -> str:
    """The root, without links in its path, of the project whose state is kept in that file."""
    return os.path.realpath(os.path.dirname(os.path.dirname(database)))


def to_stored(root: str, path: str) -> str:
    """A path as the state keeps it: below the root relative to it, so that a copied or moved project names its own."""
    if not os.path.isabs(path):
        return path
    folder, name = os.path.split(path)
    inside = os.path.relpath(os.path.join(os.path.realpath(folder), name), root)
    return path if inside.split(os.sep)[0] == os.pardir else inside


def from_stored(root: str, path: str) -> str:
    """The absolute path that `to_stored` has kept."""
    return os.path.join(root, path) if path else ""


def main_checkout(folder: str) -> str | None:
    """The main checkout of the repository whose top `folder` is; None if it is not the top of one."""
    jj = os.path.join(folder, ".jj")
    if os.path.isdir(jj):
        # In a second workspace `.jj/repo` is a file that names the first one's `.jj/repo`.
        repo = os.path.join(jj, "repo")
        if os.path.isfile(repo):
            return os.path.dirname(os.path.dirname(os.path.normpath(os.path.join(jj, _read(repo)))))
        return folder
    gitdir = git_folder(folder)
    if gitdir is None or gitdir == os.path.join(folder, ".git"):
        return None if gitdir is None else folder
    common = os.path.join(gitdir, "commondir")
    if not os.path.isfile(common):
        # A submodule belongs to the repository around it; with `git init --separate-git-dir` the folder is the top.
        is_own = os.path.isfile(os.path.join(gitdir, "HEAD")) and f"{os.sep}modules{os.sep}" not in gitdir
        return folder if is_own else None
    main = os.path.normpath(os.path.join(gitdir, _read(common)))
    top = os.path.dirname(main)
    # A bare repository has no main checkout: its own folder stands for it, as in `git worktree list`.
    return top if os.path.lexists(os.path.join(top, ".git")) else main


def git_folder(folder: str) -> str | None:
    """Where git keeps what belongs to the checkout whose top `folder` is; None if there is no `.git`."""
    git = os.path.join(folder, ".git")
    if os.path.isdir(git):
        return git
    if not os.path.isfile(git):
        return None
    pointer = _read(git).removeprefix("gitdir:").strip()
    return os.path.normpath(os.path.join(folder, pointer))


def upward(folder: str) -> list[str]:
    """The folder and all above it."""
    folders = [folder]
    while os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().strip()


def is_own_name(name: str) -> bool:
    """True if a file system may find `.rookery` under a name.

    Some ignore letter case, some (HFS+) also characters without a shape.
    """
    import unicodedata

    whole = unicodedata.normalize("NFKC", name)
    return "".join(char for char in whole if unicodedata.category(char) != "Cf").casefold() == layout.FOLDER


def make_state_folders(path: str) -> None:
    """Make a folder of the state with those above it, if they are missing, but not `.rookery` itself.

    Raises FileNotFoundError if the project is gone: what a process that outlived it makes would look like a project.
    """
    try:
        make_state_folder(path)
    except FileNotFoundError:
        above = os.path.dirname(path)
        if os.path.basename(above) in (layout.FOLDER, ""):
            raise
        make_state_folders(above)
        make_state_folder(path)


def make_state_folder(path: str) -> bool:
    """Make a folder of the state, for its user alone; False if it is there, as others may do so at this moment.

    None above it, and none beside a missing database: a project that was deleted, or is just being, is not made again.
    """
    root, state, inside = path.rpartition(f"{os.sep}{layout.FOLDER}{os.sep}")
    if state and inside and not os.path.isdir(path) and not is_project(root):
        raise FileNotFoundError(errno.ENOENT, "there is no project", path)
    try:
        os.mkdir(path, PRIVATE)
    except FileExistsError:
        return False
    return True
