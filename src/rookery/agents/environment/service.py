"""The project's environment in use: recorded when a person slings or refreshes it, given to whatever runs for agents.

Where there is no record that can be used, everything gets the environment of its caller, and a person is told how to
record one. Nothing fails for that reason.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from weakref import WeakSet

from rookery.agents.environment import store
from rookery.agents.environment.masking import secret_values
from rookery.agents.environment.model import (
    ADDED,
    CHANGED,
    CREDENTIAL,
    NOTHING,
    REMOVED,
    Environment,
    add_to,
    compare,
    replace_only,
    sort_out,
    with_whole_settings,
)
from rookery.agents.environment.store import EnvironmentUnusable
from rookery.base import call as calls
from rookery.base.errors import StorageFailed
from rookery.base.record import Record
from rookery.config.environ import HUMAN, passed_on_environ, read_environ, unmarked_environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rookery.agents.environment.model import Change, Variables
    from rookery.agents.environment.store import Stored

SLING, REFRESH = "sling", "env refresh"
_SOCKETS = ("SSH_AUTH_SOCK",)


class Recorded(Record):
    """What recording a shell's environment did."""

    changes: tuple[Change, ...]
    credentials_path: str
    problem: str = ""
    """Why the earlier record could not be read; its credentials are lost."""


def project_environ(root: str, *, with_credentials: bool = True, hints: bool = True) -> Environment:
    """The environment of turns, gates and everything else that runs for the project, without any mark.

    `with_credentials=False` is for our own processes, which need none. Without `hints` a missing record is not told.
    """
    stored = _read_usable(root, with_values=with_credentials, hints=hints)
    if stored is None:
        return Environment(unmarked_environ())
    found = stored.variables.whole
    for name in _SOCKETS:
        if name in found and not _is_own_socket(found[name]):
            del found[name]
    return Environment(with_whole_settings(found) | passed_on_environ())


def search_path(root: str, caller: str) -> str:
    """The PATH that an agent will have which the caller slings: a person's own, which is about to be recorded."""
    env = unmarked_environ() if caller == HUMAN else project_environ(root, with_credentials=False)
    return env.get("PATH", os.defpath)


def secrets(root: str) -> tuple[str, ...]:
    """The values that must not be seen in any log or record."""
    try:
        stored = store.read(root)
    except EnvironmentUnusable:
        return ()
    return () if stored is None else secret_values(stored.variables.credentials)


def recorded_names(root: str) -> frozenset[str] | None:
    """The names of everything that is recorded; None if there is no record that can be used."""
    try:
        stored = store.read(root, with_values=False)
    except EnvironmentUnusable:
        return None
    return None if stored is None else frozenset((*stored.variables.plain, *stored.names))


def credentials_folder(root: str) -> str:
    """The folder with the credentials' values; empty if there is none."""
    try:
        stored = store.read(root, with_values=False)
    except EnvironmentUnusable:
        return ""
    return "" if stored is None else os.path.dirname(stored.credentials_path)


def read_shell() -> Variables:
    """What of the caller's environment can be recorded."""
    return sort_out(unmarked_environ())


def record_sling(root: str, at: str) -> None:
    """Record the shell of a person who slings, keep the credentials that it lacks, and say what is new.

    It never fails: where it cannot be written, that is said, and agents get the environment of who wakes them.
    """
    try:
        done = _record(root, at, SLING, ())
    except (EnvironmentUnusable, OSError) as error:
        said = error.message if isinstance(error, EnvironmentUnusable) else f"{error.filename}: {error.strerror}"
        _say(f"the environment for agents cannot be recorded, so they get that of who wakes them: {said}")
        return
    line = describe(done)
    if line:
        _say(line)


def refresh(root: str, at: str, only: Collection[str], *, dry_run: bool) -> Recorded:
    """Record the caller's shell as it is: what it does not have is dropped. With `only`, just these variables."""
    try:
        return _record(root, at, REFRESH, only, dry_run=dry_run)
    except OSError as error:
        raise StorageFailed(
            f"the environment cannot be recorded: {error.filename}: {error.strerror}",
            hint="make room there, or set XDG_STATE_HOME to a folder that you can write",
        ) from error


def _record(root: str, at: str, how: str, only: Collection[str], *, dry_run: bool = False) -> Recorded:
    shell = read_shell()
    if dry_run:
        old, _, problem = _read_old(root)
        return Recorded(compare(old, _next(old, shell, how, only)), "", problem)
    with store.writing(root):
        old, path, problem = _read_old(root)
        new = _next(old, shell, how, only)
        changes = compare(old, new)
        if new != old or problem or how == REFRESH or not os.path.lexists(store.record_path(root)):
            state_home = read_environ().state_home
            path = store.write(root, state_home, new, at=at, by=_user(), how=how)
    return Recorded(changes, path, problem)


def _next(old: Variables, shell: Variables, how: str, only: Collection[str]) -> Variables:
    if how == SLING:
        return add_to(old, shell)
    return replace_only(old, shell, only) if only else shell


def _read_old(root: str) -> tuple[Variables, str, str]:
    try:
        stored = store.read(root)
    except EnvironmentUnusable as error:
        return NOTHING, "", error.message
    return (NOTHING, "", "") if stored is None else (stored.variables, stored.credentials_path, "")


def describe(done: Recorded) -> str:
    """What a sling changed of the credentials, in one line without any value; empty if nothing."""
    told = []
    for what, words in ((ADDED, "new"), (CHANGED, "another value for"), (REMOVED, "no more")):
        names = [each.name for each in done.changes if each.kind == CREDENTIAL and each.what == what]
        told += [f"{words} {', '.join(names)}"] if names else []
    if done.problem:
        told.insert(0, f"the earlier record could not be used ({done.problem})")
    return f"credentials for agents: {'; '.join(told)} (`rook env show`)" if told else ""


_hinted: WeakSet[calls.Call] = WeakSet()
_own_hints = deque[str](maxlen=100)


def _read_usable(root: str, *, with_values: bool, hints: bool) -> Stored | None:
    """The record; None if there is none that can be used, and then a person hears of it, once in a call."""
    try:
        stored = store.read(root, with_values=with_values)
        problem = "no environment is recorded for this project"
    except EnvironmentUnusable as error:
        stored, problem = None, error.message
    if stored is None and hints and not read_environ().is_agents_process:
        call = calls.current()
        if not (root in _own_hints if call is None else call in _hinted):
            _own_hints.append(root) if call is None else _hinted.add(call)
            _say(f"{problem}: agents get that of this shell (`rook env refresh` records it)")
    return stored


def _say(line: str) -> None:
    from rookery.base.text import visible

    out = calls.stderr()
    try:
        out.write(f"rook: {visible(line)}\n")
        out.flush()
    except (OSError, ValueError):
        return  # there is nobody to read it


def _is_own_socket(path: str) -> bool:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
