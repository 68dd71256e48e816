"""The project's environment in use: recorded when a person slings or refreshes it, given to whatever runs for agents.

A record that is broken, gone or open to others is not used, and neither is anything in its place: what needs it is
refused until a person runs `rook env refresh`. Where nothing was ever recorded, what a person's own call runs gets the
environment of that call, and the person is told; what the loop or an agent's call begins gets the little that every
program needs, and nothing of the sender of the mail.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakSet

from rookery.base import call as calls
from rookery.base.errors import StorageFailed
from rookery.base.record import Record
from rookery.base.text import visible
from rookery.config.environ import HUMAN, least_environ, passed_on_environ, read_environ, unmarked_environ
from rookery.config.project import database_path
from rookery.environment import store
from rookery.environment.masking import secret_values
from rookery.environment.model import (
    ADDED,
    CHANGED,
    CREDENTIAL,
    NOTHING,
    REMOVED,
    Change,
    Environment,
    Variables,
    add_to,
    compare,
    replace_only,
    sort_out,
    with_whole_settings,
)
from rookery.environment.store import EnvironmentUnusable, RecordedElsewhere, Stored

SLING, REFRESH = "sling", "env refresh"
_SOCKETS = ("SSH_AUTH_SOCK",)


@dataclass(frozen=True, slots=True)
class Recorded(Record):
    """What recording a shell's environment did."""

    changes: tuple[Change, ...]
    credentials_path: str
    problem: str = ""
    """Why the earlier record could not be read; its credentials are lost."""


class acting_alone:  # noqa: N801 - reads as a verb: `with acting_alone():`
    """What is done within is done by the loop itself, whatever call it runs in: that call's environment is not used."""

    def __enter__(self) -> None:
        self._token = _is_alone.set(True)

    def __exit__(self, *_error: object) -> None:
        _is_alone.reset(self._token)


_is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)


def project_environ(root: str) -> Environment:
    """The environment of turns, gates and everything else that runs for the project, without any mark.

    Raises EnvironmentUnusable.
    """
    stored = _read_usable(root)
    if stored is not None:
        return _given(stored)
    return Environment(unmarked_environ() if _is_persons_call() else least_environ())


def own_environ(root: str) -> Environment:
    """The environment of our own processes: the same without credentials, and the least where it cannot be used."""
    try:
        stored = store.read(root, with_values=False)
    except EnvironmentUnusable:
        return Environment(least_environ())
    if stored is not None:
        return _given(stored)
    return Environment(read_shell().plain | passed_on_environ() if _is_persons_call() else least_environ())


def search_path(root: str) -> str:
    """Where programs are looked for that run for the project. Raises EnvironmentUnusable."""
    return project_environ(root).get("PATH", os.defpath)


def sling_path(root: str, caller: str) -> str:
    """The PATH that an agent will have which the caller slings: a person's own, which is about to be recorded.

    Raises EnvironmentUnusable if there is a record that cannot be used.
    """
    if caller != HUMAN:
        return search_path(root)
    problem = find_problem(root)
    if problem is not None and not isinstance(problem, RecordedElsewhere):
        raise problem
    return unmarked_environ().get("PATH", os.defpath)


def find_problem(root: str) -> EnvironmentUnusable | None:
    """Why the record cannot be used; None if it can be, or if there never was one."""
    try:
        store.read(root)
    except EnvironmentUnusable as error:
        return error
    return None


def is_recorded(root: str) -> bool:
    """False if nothing was ever recorded. Raises EnvironmentUnusable."""
    return store.read(root, with_values=False) is not None


def _given(stored: Stored) -> Environment:
    found = with_whole_settings(stored.variables.whole)
    for name in _SOCKETS:
        if name in found and not _is_own_socket(found[name]):
            del found[name]
    return Environment(found | passed_on_environ())


def _is_persons_call() -> bool:
    """True if what we do is what a person has called for, and not what the loop does on that occasion."""
    call, environ = calls.current(), read_environ()
    is_agents = environ.is_agents_process or environ.is_confined or (call is not None and call.session_id is not None)
    return not is_agents and not _is_alone.get()


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

    Raises EnvironmentUnusable or StorageFailed where it cannot be written.
    """
    line = describe(_record(root, at, SLING, ()))
    if line:
        _say(line)


def refresh(root: str, at: str, only: Collection[str], *, dry_run: bool) -> Recorded:
    """Record the caller's shell as it is: what it does not have is dropped. With `only`, just these variables."""
    return _record(root, at, REFRESH, only, dry_run=dry_run)


def _record(root: str, at: str, how: str, only: Collection[str], *, dry_run: bool = False) -> Recorded:
    try:
        return _write(root, at, how, only, dry_run=dry_run)
    except OSError as error:
        raise StorageFailed(
            f"the environment for agents cannot be recorded: {error.filename}: {error.strerror}",
            hint="make room there, or set XDG_STATE_HOME to a folder that you can write",
        ) from error


def _write(root: str, at: str, how: str, only: Collection[str], *, dry_run: bool) -> Recorded:
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
            _tell_loop(root)
    return Recorded(changes, path, problem)


def _tell_loop(root: str) -> None:
    """Let the loop look again: turns may have waited for the record."""
    from rookery.db import commits  # a runner loads us, and nothing of the database

    commits.announce(database_path(root))


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


def _read_usable(root: str) -> Stored | None:
    """The record; None if there never was one, and then a person hears of it, once in a call."""
    try:
        stored = store.read(root)
        problem = "no environment is recorded for this project"
    except RecordedElsewhere as error:
        if not _is_persons_call():
            raise
        stored, problem = None, error.message
    if stored is None and not read_environ().is_agents_process:
        call = calls.current()
        if not (root in _own_hints if call is None else call in _hinted):
            _own_hints.append(root) if call is None else _hinted.add(call)
            what = "that of this shell" if _is_persons_call() else "only PATH, HOME and the like"
            _say(f"{problem}: agents get {what} (`rook env refresh` records it)")
    return stored


def _say(line: str) -> None:
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
