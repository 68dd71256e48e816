"""Whether a project's state may be used: it is ours, and no repository brought it along.

What is in the state gets executed: every command starts runners for agents that the database says are alive. So state
from a clone whose author committed `.rookery/`, or from a folder that another user prepared, could run any command.

Commands and hooks start all the time, so we ask version control only when its list of tracked files has changed, and
keep the identity of that file in `.rookery/cache/`. A file from a repository cannot forge it: the kernel gives inode
and time of change when the repository is cloned.

The client checks the state before it starts a daemon, in an interpreter that sees no installed packages.
"""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from shlex import quote

from rookery.base.draft import write_whole
from rookery.base.errors import UntrustedState
from rookery.config import layout
from rookery.config.environ import is_own, read_sudo_user
from rookery.config.project import database_path, find_root, git_folder, is_project, make_state_folder, upward
from rookery.vcs.tracked import check_untracked

_LONGEST = 65536
_RULES = 1  # goes up when less may be tracked than before, so that no older answer counts


def find_project(start: str, named: str | None = None) -> str:
    """The root of the project that `start` lies in, as `find_root` finds it, if its state may be used."""
    root = find_root(start, named)
    check_state(root)
    return root


def check_state(root: str) -> None:
    """Raise UntrustedState if the state at `root` is another user's, or tracked by git or jj. None is fine."""
    check_owner(root)
    indexes = find_indexes(root)
    identity = _identify(root, indexes)
    if not indexes or _is_answered(root, identity):
        return
    for top, index in indexes:
        check_untracked(os.path.realpath(root), top, index)
    if identity is not None and _identify(root, indexes) == identity and is_project(root):
        _write(_answer_path(root), identity)


def last_answer(root: str) -> bytes | None:
    """What identifies the lists of tracked files, if version control was asked since they changed; else None."""
    indexes = find_indexes(root)
    identity = _identify(root, indexes)
    return identity if indexes and _is_answered(root, identity) else None


def _is_answered(root: str, identity: bytes | None) -> bool:
    return identity is not None and _read(_answer_path(root)) == identity


def keep_answer(root: str, before: bytes, index: str) -> None:
    """Say that git's index as it is now has nothing of the state in it either, and that it alone has changed."""
    identity = _identify(root, find_indexes(root))
    if identity is not None and _without(identity, index) == _without(before, index) and is_project(root):
        _write(_answer_path(root), identity)


def _without(identity: bytes, index: str) -> list[bytes]:
    return [line for line in identity.splitlines() if not line.endswith(b" " + os.fsencode(index))]


def check_owner(root: str) -> None:
    """Raise UntrustedState if the state's folder or database, or what it links to, is another user's."""
    for path in (layout.path(root), database_path(root)):
        try:
            owners = {os.lstat(path).st_uid, os.stat(path).st_uid}
        except (FileNotFoundError, NotADirectoryError):
            continue  # `rook init` reports what it finds in place of the folder
        for owner in owners:
            if not is_own(owner, os.geteuid(), read_sudo_user()):
                raise _foreign(path, owner)


def _foreign(path: str, owner: int) -> UntrustedState:
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = str(owner)
    folder = path if os.path.basename(path) == layout.FOLDER else os.path.dirname(path)
    take = f"sudo chown -RH {os.geteuid()} {quote(folder)}"
    return UntrustedState(
        f"{path} belongs to another user, {name}: what is in it would run as you",
        hint=f"run `rook` as {name}; or, if you know all that is in it, `{take}`",
    )


def find_indexes(root: str) -> list[tuple[str, str]]:
    """Where the repositories that the root lies in list their tracked files, git's first, with the top of each.

    The first `.git` ends the search: no repository can bring one along. A `.jj` proves nothing, as git may track it.
    """
    indexes: list[tuple[str, str]] = []
    for top in upward(os.path.realpath(root)):
        jj = os.path.join(top, ".jj", "working_copy", "tree_state")
        if os.path.exists(jj):
            indexes.append((top, jj))
        git = git_folder(top)
        if git is not None:
            index = os.path.join(git, "index")
            return [(top, index), *indexes] if os.path.exists(index) else indexes
    return indexes


def _answer_path(root: str) -> str:
    return layout.path(root, layout.UNTRACKED)


def _identify(root: str, indexes: list[tuple[str, str]]) -> bytes | None:
    """What is another one as soon as any list of tracked files is; None if one has just gone."""
    lines = [f"{_RULES} {root}"]
    try:
        for _, index in indexes:
            stat = os.stat(index)
            lines.append(f"{stat.st_dev} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_size} {index}")
    except FileNotFoundError:
        return None
    return os.fsencode("\n".join(lines) + "\n")


def _read(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(file, _LONGEST)
    except OSError:
        return b""
    finally:
        os.close(file)


def _write(path: str, text: bytes) -> None:
    with suppress(OSError):  # a disk that is full or read-only: the next command asks git again
        make_state_folder(os.path.dirname(path))
        write_whole(path, text)
