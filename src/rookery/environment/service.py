"""The project's environment in use: recorded when a person slings or refreshes it, given to everything agents run.

A record that is broken, gone or open to others is not used, and nothing replaces it: what needs it is refused until a
person runs `rook env refresh`. Where nothing was ever recorded, what a person's own call runs gets the environment of
that call, and the person is told; what the loop or an agent's call begins gets the little that every program needs,
and nothing from the sender of the mail.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from rookery.base import call as calls
from rookery.base.errors import StorageFailed
from rookery.base.record import Record
from rookery.base.text import visible
from rookery.config.environ import HUMAN, least_environ, passed_on_environ, read_environ, unmarked_environ
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
_SOCKET = "SSH_AUTH_SOCK"


@dataclass(frozen=True, slots=True)
class Refreshed(Record):
    """What was recorded, or would be."""

    changes: tuple[Change, ...]
    path: str
    credentials_path: str
    dry_run: bool
    problem: str
    """Why the earlier record could not be read; its credentials are lost."""


_is_alone: ContextVar[bool] = ContextVar("is_alone", default=False)


@contextmanager
def acting_alone() -> Iterator[None]:
    """Mark what is done within as the loop's own, whatever call it runs in: that call's environment is not used."""
    token = _is_alone.set(True)
    try:
        yield
    finally:
        _is_alone.reset(token)


def project_environ(root: str) -> Environment:
    """The environment of turns, gates and everything else that runs for the project, without any mark.

    Raises EnvironmentUnusable.
    """
    stored = _read_usable(root)
    if stored is not None:
        return _compose(stored.variables.whole)
    return Environment(unmarked_environ() if _is_persons_call() else least_environ())


def own_environ(root: str) -> Environment:
    """The environment of our own processes: the same without credentials, and the least where it cannot be used."""
    stored, problem = try_to_read(root)
    if stored is not None:
        return _compose(stored.variables.plain)
    is_shell = problem is None and _is_persons_call()
    return Environment(read_shell().plain | passed_on_environ() if is_shell else least_environ())


def search_path(root: str) -> str:
    """The PATH of programs that run for the project. Raises EnvironmentUnusable."""
    return project_environ(root).get("PATH", os.defpath)


def sling_path(root: str, caller: str) -> str:
    """The PATH of an agent that the caller slings: a person's own, which is about to be recorded.

    Raises EnvironmentUnusable if there is a record that cannot be used.
    """
    if caller != HUMAN:
        return search_path(root)
    problem = find_problem(root)
    if problem is not None and not isinstance(problem, RecordedElsewhere):
        raise problem
    return unmarked_environ().get("PATH", os.defpath)


def try_to_read(root: str) -> tuple[Stored | None, EnvironmentUnusable | None]:
    """The record, if there is one that can be used, and why one cannot be used."""
    try:
        return store.read(root), None
    except EnvironmentUnusable as error:
        return None, error


def find_problem(root: str) -> EnvironmentUnusable | None:
    """Why the record cannot be used; None if it can be, or if there never was one."""
    return try_to_read(root)[1]


def is_recorded(root: str) -> bool:
    """False if nothing was ever recorded. Raises EnvironmentUnusable."""
    return store.read(root) is not None


def read_if_usable(root: str) -> Stored | None:
    """The record; None if there is none that can be used."""
    return try_to_read(root)[0]


def secrets(root: str) -> tuple[str, ...]:
    """The values that must not be seen in any log or record."""
    stored = read_if_usable(root)
    return () if stored is None else secret_values(stored.variables.credentials)


def read_shell() -> Variables:
    """What can be recorded of the caller's environment."""
    return sort_out(unmarked_environ())


def record_sling(root: str, at: str) -> None:
    """Record the shell of a person who slings, keep the credentials that it lacks, and print what is new.

    Raises EnvironmentUnusable or StorageFailed where it cannot be written.
    """
    line = describe(_record(root, at, SLING, add_to))
    if line:
        _print(line)


def refresh(root: str, at: str, only: Collection[str], *, dry_run: bool) -> Refreshed:
    """Record the caller's shell as it is: what it does not have is dropped. With `only`, just these variables."""

    def update(old: Variables, shell: Variables) -> Variables:
        return replace_only(old, shell, only) if only else shell

    return _record(root, at, REFRESH, update, dry_run=dry_run)


def _record(
    root: str, at: str, how: str, update: Callable[[Variables, Variables], Variables], *, dry_run: bool = False
) -> Refreshed:
    shell = read_shell()
    try:
        with nullcontext() if dry_run else store.writing(root):
            stored, problem = try_to_read(root)
            old, credentials = (stored.variables, stored.credentials_path) if stored else (NOTHING, "")
            new = update(old, shell)
            if not dry_run and (stored is None or new != old or how == REFRESH):
                credentials = store.write(root, read_environ().state_home, new, at=at, by=_user(), how=how)
    except OSError as error:
        raise StorageFailed(
            f"the environment for agents cannot be recorded: {error.filename}: {error.strerror}",
            hint="make room there, or set XDG_STATE_HOME to a folder that you can write",
        ) from error
    path, message = store.record_path(root), problem.message if problem else ""
    return Refreshed(compare(old, new), path, "" if dry_run else credentials, dry_run, message)


def describe(recorded: Refreshed) -> str:
    """What a sling changed of the credentials, in one line without any value; empty if nothing."""
    parts = [f"the earlier record could not be used ({recorded.problem})"] if recorded.problem else []
    for what, words in ((ADDED, "new"), (CHANGED, "another value for"), (REMOVED, "no more")):
        names = [change.name for change in recorded.changes if (change.kind, change.what) == (CREDENTIAL, what)]
        if names:
            parts.append(f"{words} {', '.join(names)}")
    return f"credentials for agents: {'; '.join(parts)} (`rook env show`)" if parts else ""


def _compose(variables: dict[str, str]) -> Environment:
    """An environment from recorded variables, with what belongs to the call itself."""
    env = with_whole_settings(variables)
    if _SOCKET in env and not _is_own_socket(env[_SOCKET]):
        del env[_SOCKET]
    return Environment(env | passed_on_environ())


def _is_persons_call() -> bool:
    """True if a person has called for what we do now; False if the loop does it on that occasion."""
    call, environ = calls.current(), read_environ()
    is_agents = environ.is_agents_process or environ.is_confined or (call is not None and call.session_id is not None)
    return not is_agents and not _is_alone.get()


_hinted = deque[tuple[str, str]](maxlen=100)
"""The calls and projects in which a person was told that nothing is recorded."""


def _read_usable(root: str) -> Stored | None:
    """The record; None if there never was one, and then a person is told so, once in a call."""
    try:
        stored = store.read(root)
        problem = "no environment is recorded for this project"
    except RecordedElsewhere as error:
        if not _is_persons_call():
            raise
        stored, problem = None, error.message
    call = calls.current()
    key = ("" if call is None else call.id, root)
    if stored is None and not read_environ().is_agents_process and key not in _hinted:
        _hinted.append(key)
        what = "that of this shell" if _is_persons_call() else "only PATH, HOME and the like"
        _print(f"{problem}: agents get {what} (`rook env refresh` records it)")
    return stored


def _print(line: str) -> None:
    out = calls.stderr()
    try:
        out.write(f"rook: {visible(line)}\n")
        out.flush()
    except (OSError, ValueError):
        return  # the caller has closed it


def _is_own_socket(path: str) -> bool:
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISSOCK(state.st_mode) and state.st_uid == os.geteuid()


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
