"""What the doctor asks of the project's environment."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.base.text import plural
from rookery.config.loader import section
from rookery.environment import store
from rookery.environment.store import EnvironmentUnusable, Stored
from rookery.ops.checks import open_for_checks
from rookery.ops.context import Context
from rookery.runtimes.registry import open_runtime
from rookery.sessions import store as sessions

_CATEGORY = "environment"


def check_environment(place: Place) -> Iterator[Finding]:
    """There is a record while agents are alive, its credentials are private, and its PATH has their programs."""
    with open_for_checks(place) as ctx:
        if ctx is None:
            return
        alive = sessions.sessions(ctx.db, alive=True)
        runtimes = sorted({ctx.config.agents.runtime, *(session.runtime for session in alive)})
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
        return
    count, secret = len(stored.variables.whole), len(stored.variables.credentials)
    yield Finding(_CATEGORY, "record", OK, f"{count} variables, {secret} of them credentials, {stored.at}")
    yield from (_program(ctx, stored, runtime) for runtime in runtimes)


def _program(ctx: Context, stored: Stored, runtime: str) -> Finding:
    try:
        open_runtime(runtime).check_installed(section(ctx.config, runtime), stored.variables.plain.get("PATH", ""))
    except RookError as error:
        message = f"{error.message} by the recorded PATH"
        return Finding(_CATEGORY, runtime, WARNING, message, f"{EnvironmentUnusable.default_hint}; or: {error.hint}")
    return Finding(_CATEGORY, runtime, OK, "the recorded PATH has its program")


CHECKS = (check_environment,)
