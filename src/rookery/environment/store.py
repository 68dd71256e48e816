"""The files of the project's environment.

`.rookery/environment.json` (0600) holds the plain values and names one file of credentials, which lies under the user's
own state folder, in a private folder for this project's path. It is a file and not a table, because runners read it,
and they never open the database; and because what is exported or copied of the database must not lead to credentials.

Both files change at once: the credentials are written under a new name, and the record that names them is renamed into
place. A process that is killed in between has changed nothing. The writer holds a lock, and notes in the lock's file
that there is a record: so one that has vanished is told from one that never was.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rookery.base import call as calls
from rookery.base.draft import unique, write_whole
from rookery.base.errors import Refused
from rookery.base.record import Record
from rookery.config import layout, steps
from rookery.config.environ import read_sudo_user
from rookery.config.project import make_state_folder
from rookery.environment.model import NOTHING, Variables, can_be_set
from rookery.ops.state_owner import is_own
from rookery.processes import locks

_PREFIX = "credentials-"
_VERSION = 1
_MOST_BYTES = 16 * 1024 * 1024
_TRIES = 5
_PRIVATE = 0o700
_OTHERS, _WRITE = 0o077, 0o022
_REFRESH = "`rook env refresh` records the environment of your shell"


class EnvironmentUnusable(Refused):
    """The project's environment cannot be read, or must not be used."""

    code = "environment_unusable"
    default_hint = _REFRESH


class RecordedElsewhere(EnvironmentUnusable):
    """The record is that of the place from which the project was copied or moved."""


@dataclass(frozen=True, slots=True)
class Stored(Record):
    """The record as it lies on the disk."""

    root: str
    variables: Variables
    """The credentials are empty if they were not asked for."""
    names: tuple[str, ...]
    """The names of all credentials."""
    credentials_path: str
    """Where their values are; empty if there are none."""
    at: str
    by: str
    how: str
    """The command that wrote it: `sling` or `env refresh`."""


def record_path(root: str) -> str:
    """Where a project's plain values are."""
    return layout.path(root, layout.ENVIRONMENT)


def private_folder(root: str, state_home: str) -> str:
    """Where the credentials of the project at this very path are kept."""
    real = os.path.realpath(root)
    return os.path.join(state_home, "rookery", hashlib.sha256(os.fsencode(real)).hexdigest()[:20])


def read(root: str, *, with_values: bool = True) -> Stored | None:
    """The record; None if there never was one. Raises EnvironmentUnusable.

    Without values it is only checked that the credentials are there and private.
    """
    for last in range(_TRIES, 0, -1):
        data = _read_record(root)
        if data is None:
            if not _was_recorded(root):
                return None
            if last > 1 and os.path.lexists(record_path(root)):
                continue  # another process has just written the first one
            raise EnvironmentUnusable(f"the record of the project's environment is gone: {record_path(root)}")
        stored = _parse(root, data)
        if not stored.credentials_path:
            return stored
        try:
            values = _read_values(stored, with_values=with_values)
        except FileNotFoundError as error:
            if last > 1 and _read_record(root) != data:
                continue  # another process has just written another record
            raise EnvironmentUnusable(
                f"the file with the project's credentials is gone: {stored.credentials_path}"
            ) from error
        return stored.replace(variables=stored.variables.replace(credentials=values))
    raise EnvironmentUnusable("the project's environment changes all the time")


def write(root: str, state_home: str, variables: Variables, *, at: str, by: str, how: str) -> str:
    """Record the environment, whole or not at all; gives the file of the credentials, empty if there are none.

    Who calls it holds `writing`.
    """
    real = os.path.realpath(root)
    folder = private_folder(root, state_home)
    path = ""
    if variables.credentials:
        _make_private(os.path.dirname(folder))
        _make_private(folder)
        path = os.path.join(folder, f"{_PREFIX}{unique()}.json")
        _write_json(path, {"v": _VERSION, "root": real, "values": variables.credentials})
    steps.reached("credentials written")
    record = {
        **{"v": _VERSION, "root": real, "at": at, "by": by, "how": how},
        **{"plain": variables.plain, "names": sorted(variables.credentials), "credentials": path},
    }
    try:
        _write_json(record_path(root), record)
    except BaseException:
        if path:
            with suppress(OSError):
                os.unlink(path)
        raise
    _note_recorded(root)
    steps.reached("environment written")
    _sweep(folder, _PREFIX, path)
    _sweep(layout.path(root), f"{layout.ENVIRONMENT}.", "")
    return path


def relocate(root: str, before: str, state_home: str) -> None:
    """Let the record of a project that was moved count at its new place; nothing if there is none of the old one."""
    with writing(root):
        data = _read_record(root)
        if data is None or data.get("root") != before:
            return
        stored = _parse(root, data | {"root": os.path.realpath(root)}).replace(root=before)
        values = _read_values(stored, with_values=True) if stored.credentials_path else {}
        whole = stored.variables.replace(credentials=values)
        write(root, state_home, whole, at=stored.at, by=stored.by, how=stored.how)


@contextmanager
def writing(root: str) -> Iterator[None]:
    """Keep others from writing the record meanwhile."""
    path = _lock_path(root)
    make_state_folder(os.path.dirname(path))
    handle = locks.open_file(path)
    try:
        calls.lock(handle)
        yield
    finally:
        os.close(handle)


def _lock_path(root: str) -> str:
    return layout.path(root, layout.ENVIRONMENT_LOCK)


def _note_recorded(root: str) -> None:
    with suppress(OSError):  # a full disk: the record is written
        handle = os.open(_lock_path(root), os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.pwrite(handle, b"recorded\n", 0)
        finally:
            os.close(handle)


def _was_recorded(root: str) -> bool:
    try:
        return os.lstat(_lock_path(root)).st_size > 0
    except OSError:
        return False


def _read_record(root: str) -> dict[str, Any] | None:
    return _read_json(record_path(root), others=_WRITE)  # it has no secrets, and its folder is private


def _sweep(folder: str, prefix: str, keep: str) -> None:
    """Remove older files, and what killed processes left."""
    with suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.startswith(prefix) and path != keep:
                os.unlink(path)


def _parse(root: str, data: dict[str, Any]) -> Stored:
    path = record_path(root)
    try:
        plain, names = _strings(data["plain"]), tuple(str(each) for each in data["names"])
        where, at, by, how, place = (str(data[key]) for key in ("credentials", "at", "by", "how", "root"))
        version = data["v"]
    except (KeyError, TypeError) as error:
        raise EnvironmentUnusable(f"{path} is broken") from error
    if version != _VERSION:
        raise EnvironmentUnusable(f"{path} was written by another version of Rookery")
    if place != os.path.realpath(root):
        raise RecordedElsewhere(f"the environment was recorded for {place}: this project was copied or moved")
    return Stored(place, NOTHING.replace(plain=plain), names, where, at, by, how)


def _read_values(stored: Stored, *, with_values: bool) -> dict[str, str]:
    path = stored.credentials_path
    folder = os.lstat(os.path.dirname(path))
    if not stat.S_ISDIR(folder.st_mode) or not _is_ours(folder) or folder.st_mode & _WRITE:
        raise EnvironmentUnusable(f"{os.path.dirname(path)} is not a folder that only you can change")
    data = _read_json(path, parse=with_values)
    if data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if not with_values:
        return {}
    if data.get("root") != stored.root:
        raise EnvironmentUnusable(f"{path} holds the credentials of another project")
    try:
        return _strings(data["values"])
    except (KeyError, TypeError) as error:
        raise EnvironmentUnusable(f"{path} is broken") from error


def _strings(values: Any) -> dict[str, str]:
    """Variables as they may be given to a program: what cannot be one is left out."""
    if not isinstance(values, dict):
        raise TypeError
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, str) and isinstance(name, str) and can_be_set(name, value)
    }


def _read_json(path: str, *, others: int = _OTHERS, parse: bool = True) -> dict[str, Any] | None:
    """The content of a file of ours; None if there is none. No link is followed. `others` is what they may not do."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        said = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise EnvironmentUnusable(f"{path} {said}") from error
    with open(handle, "rb") as file:
        _check_private(path, os.fstat(handle), others)
        if not parse:
            return {}
        try:
            found = json.loads(file.read(_MOST_BYTES))
        except (ValueError, RecursionError) as error:
            raise EnvironmentUnusable(f"{path} is broken") from error
        except OSError as error:
            raise EnvironmentUnusable(f"{path} cannot be read: {error.strerror}") from error
    if not isinstance(found, dict):
        raise EnvironmentUnusable(f"{path} is broken")
    return found


def _check_private(path: str, found: os.stat_result, others: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise EnvironmentUnusable(f"{path} is no file")
    if not _is_ours(found):
        raise EnvironmentUnusable(f"{path} belongs to another user")
    if found.st_mode & others:
        raise EnvironmentUnusable(
            f"others may read or change {path} (mode {found.st_mode & 0o777:04o})", hint=f"chmod 600 {path}"
        )


def _is_ours(found: os.stat_result) -> bool:
    return is_own(found.st_uid, os.geteuid(), read_sudo_user())


def _make_private(folder: str) -> None:
    """Make a folder for its user alone, or check one that is there."""
    os.makedirs(folder, mode=_PRIVATE, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise EnvironmentUnusable(f"{folder} is a link, so no credentials are written there", hint="remove the link")
    if found.st_uid != os.geteuid():
        raise EnvironmentUnusable(
            f"{folder} belongs to another user, so no credentials are written there",
            hint="set XDG_STATE_HOME to a folder of your own",
        )
    if found.st_mode & _OTHERS:
        os.chmod(folder, _PRIVATE)


def _write_json(path: str, data: dict[str, Any]) -> None:
    # In ASCII: bytes that are no UTF-8 are lone surrogates in Python, and come back from their escapes.
    write_whole(path, json.dumps(data, indent=1), mode=0o600, sync=True)
