"""What the doctor asks of the project's environment."""

from __future__ import annotations

from rookery.agents import store as sessions
from rookery.agents.environment import store
from rookery.agents.environment.store import EnvironmentUnusable
from rookery.agents.home import Home
from rookery.agents.start import settings_of
from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.runtimes.index import open_runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rookery.agents.environment.store import Stored

_CATEGORY = "environment"


def check_environment(place: Place) -> Iterator[Finding]:
    """There is a record while agents are alive, its credentials are private, and its PATH has their programs."""
    if place.root is None or not is_project(place.root):
        return
    try:
        db = Database.open(database_path(place.root))
        home = Home(place.root, db, load_config(place.root, read_environ(), {}).config)
    except RookError:
        return  # the database's and the configuration's own checks say so
    try:
        alive = sessions.sessions(db, alive=True)
        runtimes = sorted({home.config.agents.runtime, *(each.runtime for each in alive)})
    finally:
        db.close()
    try:
        stored = store.read(place.root)
    except EnvironmentUnusable as error:
        yield Finding(_CATEGORY, "record", ERROR if alive else WARNING, error.message, error.hint)
        return
    if stored is None:
        if alive:
            said = f"nothing is recorded, and {len(alive)} agents are alive: they get the environment of who wakes them"
            yield Finding(_CATEGORY, "record", WARNING, said, EnvironmentUnusable.default_hint)
        else:
            yield Finding(_CATEGORY, "record", OK, "nothing is recorded yet; the first sling does that")
        return
    count = len(stored.variables.whole)
    yield Finding(_CATEGORY, "record", OK, f"{count} variables, {len(stored.names)} of them credentials, {stored.at}")
    yield from (_program(home, stored, each) for each in runtimes)


def _program(home: Home, stored: Stored, runtime: str) -> Finding:
    try:
        open_runtime(runtime).check_installed(settings_of(home, runtime), stored.variables.plain.get("PATH", ""))
    except RookError as error:
        said = f"{error.message} by the recorded PATH"
        return Finding(_CATEGORY, runtime, WARNING, said, f"{EnvironmentUnusable.default_hint}; or: {error.hint}")
    return Finding(_CATEGORY, runtime, OK, "the recorded PATH has its program")


CHECKS = (check_environment,)
