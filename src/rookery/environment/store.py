"""The files of the project's environment.

`.rookery/environment.json` (0600) holds the plain values and names one file of credentials, in a private folder for
this project's path under the user's own state folder. It is a file and not a table, because runners read it, and they
never open the database; and because an export or a copy of the database must not lead to credentials.

Both files change at once: the credentials are written under a new name, and the record that names them is renamed into
place. A process that is killed in between has changed nothing. The writer holds a lock, and notes in the lock's file
that there is a record, so that a record that was deleted is noticed.
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
from rookery.config.environ import is_own, read_sudo_user
from rookery.config.project import make_state_folder
from rookery.environment.model import Variables, can_be_set
from rookery.processes import locks

_PREFIX = "credentials-"
_VERSION = 1
_MOST_BYTES = 16 * 1024 * 1024
_PRIVATE = 0o700
_OTHERS, _WRITE = 0o077, 0o022
_REFRESH = "`rook env refresh` records the environment of your shell"


class EnvironmentUnusable(Refused):
    """The project's environment cannot be read, or must not be used."""

    code = "environment_unusable"
    default_hint = _REFRESH


class RecordedElsewhere(EnvironmentUnusable):
    """The record belongs to the folder from which the project was copied or moved."""


@dataclass(frozen=True, slots=True)
class Stored(Record):
    """The record as it lies on the disk."""

    variables: Variables
    credentials_path: str
    """The file with the values of the credentials; empty if there are none."""
    at: str
    by: str
    how: str
    """The command that wrote it: `sling` or `env refresh`."""


def record_path(root: str) -> str:
    """The file with a project's plain values."""
    return layout.path(root, layout.ENVIRONMENT)


def read(root: str) -> Stored | None:
    """The record; None if there never was one. Raises EnvironmentUnusable."""
    while True:
        data = _read_record(root)
        if data is None:
            if not _was_recorded(root):
                return None
            problem = f"the record of the project's environment is gone: {record_path(root)}"
        else:
            try:
                return _load(root, data, os.path.realpath(root))
            except FileNotFoundError:
                problem = f"the file with the project's credentials is gone: {data['credentials']}"
        if _read_record(root) == data:  # else another process has just written another record
            raise EnvironmentUnusable(problem)


def credentials_path(root: str) -> str:
    """The file of credentials that the record names, also if that file cannot be used; empty if it names none."""
    with suppress(EnvironmentUnusable):
        return str((_read_record(root) or {}).get("credentials", ""))
    return ""


def write(root: str, state_home: str, variables: Variables, *, at: str, by: str, how: str) -> str:
    """Record the environment, whole or not at all, under `writing`.

    Returns the file of the credentials, empty if there are none.
    """
    real = os.path.realpath(root)
    # The credentials are those of the project at this very path.
    folder = os.path.join(state_home, "rookery", hashlib.sha256(os.fsencode(real)).hexdigest()[:20])
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
    """Make the record of a project that was moved valid at its new place; nothing if it is not that of the old one."""
    with writing(root):
        data = _read_record(root)
        if data is not None and data.get("root") == before:
            stored = _load(root, data, before)
            write(root, state_home, stored.variables, at=stored.at, by=stored.by, how=stored.how)


@contextmanager
def writing(root: str) -> Iterator[None]:
    """Hold the lock of the writer."""
    path = _lock_path(root)
    make_state_folder(os.path.dirname(path))
    with open(locks.open_file(path), "rb") as file:
        calls.lock(file.fileno())
        yield


def _lock_path(root: str) -> str:
    return layout.path(root, layout.ENVIRONMENT_LOCK)


def _note_recorded(root: str) -> None:
    # On a full disk it fails, and the record is written all the same.
    with suppress(OSError), open(locks.open_file(_lock_path(root)), "wb") as file:
        file.write(b"recorded\n")


def _was_recorded(root: str) -> bool:
    try:
        return os.lstat(_lock_path(root)).st_size > 0
    except OSError:
        return False


def _sweep(folder: str, prefix: str, keep: str) -> None:
    """Remove older files, and what killed processes left."""
    with suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.startswith(prefix) and path != keep:
                os.unlink(path)


def _read_record(root: str) -> dict[str, Any] | None:
    with suppress(FileNotFoundError):
        return _read_json(record_path(root), others=_WRITE)  # it has no secrets, and its folder is private
    return None


def _load(root: str, data: dict[str, Any], place: str) -> Stored:
    """Check a record that was written at `place`, and read its credentials. Raises FileNotFoundError without them."""
    with _checked(record_path(root)):
        plain, version = _strings(data["plain"]), data["v"]
        path, at, by, how, recorded_at = (str(data[key]) for key in ("credentials", "at", "by", "how", "root"))
    if version != _VERSION:
        raise EnvironmentUnusable(f"{record_path(root)} was written by another version of Rookery")
    if recorded_at != place:
        raise RecordedElsewhere(f"the environment was recorded for {recorded_at}: this project was copied or moved")
    return Stored(Variables(plain, _read_credentials(path, place) if path else {}), path, at, by, how)


def _read_credentials(path: str, place: str) -> dict[str, str]:
    folder = os.path.dirname(path)
    state = os.lstat(folder)
    if not stat.S_ISDIR(state.st_mode) or not _is_ours(state) or state.st_mode & _WRITE:
        raise EnvironmentUnusable(f"{folder} is not a folder that only you can change")
    data = _read_json(path)
    with _checked(path):
        recorded_at, values = data["root"], _strings(data["values"])
    if recorded_at != place:
        raise EnvironmentUnusable(f"{path} holds the credentials of another project")
    return values


@contextmanager
def _checked(path: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise EnvironmentUnusable(f"{path} is broken") from error


def _strings(values: Any) -> dict[str, str]:
    """Variables as they may be given to a program: what cannot be one is left out."""
    if not isinstance(values, dict):
        raise TypeError
    return {name: value for name, value in values.items() if isinstance(value, str) and can_be_set(name, value)}


def _read_json(path: str, *, others: int = _OTHERS) -> dict[str, Any]:
    """The content of a file of ours. No link is followed. `others` are the permissions that other users may not have.

    Raises FileNotFoundError.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            _check_private(path, os.fstat(handle), others)
            content = file.read(_MOST_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        problem = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise EnvironmentUnusable(f"{path} {problem}") from error
    with _checked(path):
        data = json.loads(content)
        if not isinstance(data, dict):
            raise TypeError
    return data


def _check_private(path: str, state: os.stat_result, others: int) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise EnvironmentUnusable(f"{path} is no file")
    if not _is_ours(state):
        raise EnvironmentUnusable(f"{path} belongs to another user")
    if state.st_mode & others:
        raise EnvironmentUnusable(
            f"others may read or change {path} (mode {state.st_mode & 0o777:04o})", hint=f"chmod 600 {path}"
        )


def _is_ours(state: os.stat_result) -> bool:
    return is_own(state.st_uid, os.geteuid(), read_sudo_user())


def _make_private(folder: str) -> None:
    """Make a folder for its user alone, or check one that exists."""
    os.makedirs(folder, mode=_PRIVATE, exist_ok=True)
    state = os.lstat(folder)
    if not stat.S_ISDIR(state.st_mode):
        raise EnvironmentUnusable(f"{folder} is a link, so no credentials are written there", hint="remove the link")
    if state.st_uid != os.geteuid():
        raise EnvironmentUnusable(
            f"{folder} belongs to another user, so no credentials are written there",
            hint="set XDG_STATE_HOME to a folder of your own",
        )
    if state.st_mode & _OTHERS:
        os.chmod(folder, _PRIVATE)


def _write_json(path: str, data: dict[str, Any]) -> None:
    # In ASCII: bytes that are no UTF-8 are lone surrogates in Python, and come back from their escapes.
    write_whole(path, json.dumps(data, indent=1), mode=0o600, sync=True)
