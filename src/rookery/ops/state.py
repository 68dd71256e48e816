"""Whether a project's state may be used: it is ours, and no repository brought it along. Every way to the state leads
through here, before anything of it is opened.

What is in the state gets executed: every command starts runners for agents that the database says are alive. So state
from a clone, where its author committed `.rookery/`, or from a folder that another user prepared, would run commands of
their choice.

Commands and hooks start all the time, so version control is asked only when its list of tracked files has changed. The
identity of that file is kept in `.rookery/cache/`. A file from a repository cannot forge it: inode and time of change
are given by the kernel when the repository is cloned.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rookery.base.errors import UntrustedState
from rookery.config import layout
from rookery.config.project import database_path, find_root, git_folder, is_project, make_state_folder, upward

if TYPE_CHECKING:
    from rookery.db.database import Database

_LONGEST = 65536
_RULES = 1  # goes up when less may be tracked than before, so that no older answer counts
_ROOT = 0
_LINK = 0o120000
_TYPE = 0o170000


def find_project(start: str, given: str | None = None) -> str:
    """The root of the project that `start` lies in, as `find_root` finds it, if its state may be used."""
    root = find_root(start, given)
    check_state(root)
    return root


def open_state(root: str) -> Database:
    """The database of the project at `root`, if its state may be used."""
    check_state(root)
    return open_here(root)


def open_if_ready(root: str) -> Database | None:
    """The database, if nothing has to be done before it can be used: no question to git, no migration, no settling."""
    from rookery.db.database import Database, is_current
    from rookery.ops.location import is_here

    for path in (layout.path(root), database_path(root)):
        _check_owner(path)
    if _find_indexes(os.path.realpath(root)) and last_answer(root) is None:
        return None
    if not is_current(database_path(root)):
        return None
    db = Database.open(database_path(root))
    if is_here(root, db):
        return db
    db.close()
    return None


def open_here(root: str) -> Database:
    """The database of a project whose state may be used; one that was copied or moved is settled first."""
    from rookery.db.database import Database
    from rookery.ops.location import ensure_here

    db = Database.open(database_path(root))
    try:
        ensure_here(root, db)
    except BaseException:
        db.close()
        raise
    return db


def check_state(root: str) -> None:
    """Raise UntrustedState if the state at `root` is another user's, or tracked by git or jj. None is fine."""
    for path in (layout.path(root), database_path(root)):
        _check_owner(path)
    indexes = _find_indexes(os.path.realpath(root))
    if indexes:
        _check_untracked(root, indexes)


def last_answer(root: str) -> bytes | None:
    """What identifies the lists of tracked files, if version control was asked since they changed; else None."""
    indexes = _find_indexes(os.path.realpath(root))
    identity = _identify(root, indexes) if indexes else None
    return identity if identity is not None and _read(_answer_path(root)) == identity else None


def keep_answer(root: str, before: bytes, index: str) -> None:
    """Say that git's index as it is now has nothing of the state in it either, and that it alone has changed."""
    identity = _identify(root, _find_indexes(os.path.realpath(root)))
    if identity is not None and _without(identity, index) == _without(before, index) and is_project(root):
        _write(_answer_path(root), identity)


def _without(identity: bytes, index: str) -> list[bytes]:
    return [line for line in identity.splitlines() if not line.endswith(b" " + os.fsencode(index))]


def is_own(owner: int, user: int, sudo_user: int | None) -> bool:
    """True if what `owner` has made may act for `user`: his own, or, for root, that of the user who called sudo."""
    return owner == user or (user == _ROOT and sudo_user is not None and owner == sudo_user)


def _check_owner(path: str) -> None:
    try:
        found = [os.lstat(path)]
        if found[0].st_mode & _TYPE == _LINK:
            found.append(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return  # `rook init` says what it finds in the place of the folder
    user = os.geteuid()
    for each in found:
        if each.st_uid != user:
            from rookery.config.environ import read_sudo_user

            if not is_own(each.st_uid, user, read_sudo_user()):
                raise _foreign(path, each.st_uid)


def _foreign(path: str, owner: int) -> UntrustedState:
    import pwd
    from shlex import quote

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


def _find_indexes(root: str) -> list[tuple[str, str]]:
    """Where the repositories that the root lies in list their tracked files, git's first, with the top of each.

    The first `.git` ends the search: no repository can bring one along. A `.jj` proves nothing, as git may track it.
    """
    found: list[tuple[str, str]] = []
    for top in upward(root):
        jj = os.path.join(top, ".jj", "working_copy", "tree_state")
        if os.path.exists(jj):
            found.append((top, jj))
        git = git_folder(top)
        if git is not None:
            index = os.path.join(git, "index")
            return [(top, index), *found] if os.path.exists(index) else found
    return found


def _check_untracked(root: str, indexes: list[tuple[str, str]]) -> None:
    path = _answer_path(root)
    identity = _identify(root, indexes)
    if identity is not None and _read(path) == identity:
        return
    from rookery.vcs.tracked import check_untracked

    for top, index in indexes:
        check_untracked(os.path.realpath(root), top, index)
    if identity is not None and _identify(root, indexes) == identity and is_project(root):
        _write(path, identity)


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
    folder = os.path.dirname(path)
    from rookery.base.draft import write_whole

    try:
        make_state_folder(folder)
        write_whole(path, text)
    except OSError:
        return  # a disk that is full or not ours to write: the next one asks again
