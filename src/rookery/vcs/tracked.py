"""Which of a project's state git or jj tracks: a team may share the configuration and the roles, and nothing else.

A path that differs from `.rookery` only in letter case counts too: on macOS it is the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import escape
from shlex import join, quote

from rookery.base.errors import RookError, UntrustedState
from rookery.config import layout
from rookery.config.project import is_own_name
from rookery.vcs.git.repository import GitStore
from rookery.vcs.jj.program import JjProgram, quoted

SHARED_FILES = (layout.CONFIG, layout.IGNORE)
SHARED_FOLDER = layout.ROLES
"""What may be tracked in `.rookery`."""

_SECONDS = 7.0  # a hook before a tool has eight
_MOST_NAMED = 6


def check_untracked(root: str, top: str, index: str) -> None:
    """Raise UntrustedState if the repository at `top`, which lists its files in `index`, tracks state of `root`.

    It is also raised if git or jj does not say.
    """
    under = "" if root == top else os.path.relpath(root, top)
    is_git = os.path.basename(index) == "index"
    program, command = ("git", "git -C {} ls-files") if is_git else ("jj", "jj -R {} file list")
    try:
        paths = (_ask_git if is_git else _ask_jj)(top, under)
    except RookError as error:
        raise UntrustedState(
            f"{program} does not say whether it tracks {layout.FOLDER} in {top}: {error.message}",
            hint=f"make `{command.format(quote(top))}` work first",
        ) from error
    wrong = [path for path in paths if is_state(path, under)]
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise UntrustedState(
            f"{program} tracks {wrong[0]}{more} in {top}: it came with the repository, and what is in it would run as "
            "you",
            hint=_hint(top, under, _shorten(wrong, under)),
        )


def tracked_files(top: str) -> list[str]:
    """The files in the `.rookery` at the top of a repository that git or jj tracks."""
    paths = _ask_git(top, "") if os.path.exists(os.path.join(top, ".git")) else []
    paths += _ask_jj(top, "") if os.path.exists(os.path.join(top, ".jj")) else []
    return [path for path in dict.fromkeys(paths) if path.startswith(layout.FOLDER + "/")]


def is_state(path: str, under: str = "") -> bool:
    """True if a tracked path is state of the project in the folder `under`, and nothing that a team may share."""
    parts = path.split("/")[len(under.split("/")) if under else 0 :]
    if not is_own_name(parts[0]):
        return False
    is_shared = len(parts) == 2 and parts[1] in SHARED_FILES
    return parts[0] != layout.FOLDER or not (is_shared or (len(parts) > 2 and parts[1] == SHARED_FOLDER))


def _ask_git(top: str, under: str) -> list[str]:
    # In every letter case, and with every letter of the folder's own name taken as it is.
    hidden = escape(f"{under}/.".replace("\\", "\\\\")) if under else "."
    # A monitor of the file system is a program that the repository's settings name.
    words = ("-c", "core.fsmonitor=false", "ls-files", "-z", "--", f":(top,icase){hidden}*")
    return GitStore(top, _SECONDS).read_list(*words)


def _ask_jj(top: str, under: str) -> list[str]:
    files = f"root:{quoted(under)}" if under else 'root-glob:".*" | root-glob:".*/**"'
    return JjProgram(top, _SECONDS).list_files(files)


def _shorten(paths: Sequence[str], under: str) -> list[str]:
    """The files and folders directly in `.rookery` that the paths are in; if those are many, `.rookery` itself."""
    depth = len(under.split("/")) if under else 0
    direct, own = (dict.fromkeys("/".join(path.split("/")[: depth + levels]) for path in paths) for levels in (2, 1))
    return list(direct if len(direct) <= _MOST_NAMED else own)


def _hint(top: str, under: str, names: Sequence[str]) -> str:
    """How to delete it, and how to keep one's own. Where git and jj share a checkout, both have to stop tracking it."""
    delete, keep = [], []
    has_jj = os.path.exists(os.path.join(top, ".jj"))
    if os.path.exists(os.path.join(top, ".git")):
        files = f"{'--ignore-unmatch ' if has_jj else ''}-- {join(names)}"
        delete.append(f"git -C {quote(top)} rm -r {files}")
        keep.append(f"git -C {quote(top)} rm -r --cached {files}")
    if has_jj:
        own = join([f"root:{quoted(name)}" for name in names])
        ignore = quote(layout.path(os.path.join(top, under), layout.IGNORE))
        paths = join([os.path.join(top, name) for name in names])
        delete += [f"rm -rf -- {paths}", f"jj -R {quote(top)} status"]
        keep += [f"echo '*' > {ignore}", f"jj -R {quote(top)} file untrack {own}"]
    return (
        f"`{' && '.join(delete)}` deletes it, then `rook init`; "
        f"only if you made it yourself, `{' && '.join(keep)}` keeps the files"
    )
