"""What the doctor asks of the project's environment."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.base.text import plural
from rookery.config.environ import child_environ
from rookery.config.loader import section
from rookery.environment import store
from rookery.environment.store import EnvironmentUnusable, Stored
from rookery.ops.checks import open_for_checks
from rookery.ops.context import Context
from rookery.runtimes.registry import RUNTIMES, open_runtime
from rookery.sessions import store as sessions

_CATEGORY = "environment"
_LOGINS = {True: OK, False: ERROR, None: WARNING}


def check_environment(place: Place) -> Iterator[Finding]:
    """There is a record while agents are alive, its credentials are private, and its PATH has their programs."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        alive = sessions.sessions(ctx.db, alive=True)
        runtimes = sorted({ctx.config.agents.runtime, *(session.runtime for session in alive)} & RUNTIMES.keys())
    try:
        stored = store.read(ctx.root)
    except EnvironmentUnusable as error:
        yield Finding(_CATEGORY, "record", ERROR if alive else WARNING, error.message, error.hint)
        return
    if stored is None:
        if alive:
            message = f"nothing is recorded: {plural(len(alive), 'living agent')} can get only PATH, HOME and the like"
            yield Finding(_CATEGORY, "record", WARNING, message, EnvironmentUnusable.default_hint)
        else:
            yield Finding(_CATEGORY, "record", OK, "nothing is recorded yet; the first sling does that")
    else:
        count, secret = len(stored.variables.whole), len(stored.variables.credentials)
        yield Finding(
            _CATEGORY,
            "record",
            OK,
            f"{plural(count, 'variable')}, {plural(secret, 'credential')} among them, {stored.at}",
        )
    for runtime in runtimes:
        program = _program(ctx, stored, runtime)
        yield program
        if program.status == OK:
            yield from _login(ctx, stored, runtime)


def _program(ctx: Context, stored: Stored | None, runtime: str) -> Finding:
    path = None if stored is None else stored.variables.plain.get("PATH", "")
    try:
        open_runtime(runtime).check_installed(section(ctx.config, runtime), path or child_environ().get("PATH"))
    except RookError as error:
        # What the project's agents run on: none can be slung without it.
        status = ERROR if runtime == ctx.config.agents.runtime else WARNING
        if stored is None:
            return Finding(_CATEGORY, runtime, status, error.message, error.hint)
        message = f"{error.message} by the recorded PATH"
        return Finding(_CATEGORY, runtime, status, message, f"{EnvironmentUnusable.default_hint}; or: {error.hint}")
    by = "your" if stored is None else "the recorded"
    return Finding(_CATEGORY, runtime, OK, f"{by} PATH has its program")


def _login(ctx: Context, stored: Stored | None, runtime: str) -> Iterator[Finding]:
    """Whether the program is logged in, as far as files and variables show it."""
    environ = child_environ() if stored is None else stored.variables.whole
    login = open_runtime(runtime).find_login(section(ctx.config, runtime), environ)
    if login is not None:
        yield Finding(_CATEGORY, f"{runtime} login", _LOGINS[login.is_valid], login.message, login.hint)


CHECKS = (check_environment,)
