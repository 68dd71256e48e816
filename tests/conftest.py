"""Fixtures that every test may use. Nothing here touches the user's own home or configuration."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import results
import selection
import writing
from daemons import daemons_under, end_daemon
from process_tools import end_agents
from rookery.config.layout import FOLDER
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.processes.proctree import send
from selection import pytest_addoption as pytest_addoption
from selection import pytest_collection_modifyitems as pytest_collection_modifyitems
from selection import pytest_sessionfinish as pytest_sessionfinish
from selection import pytest_terminal_summary as pytest_terminal_summary
from selection import pytest_testnodedown as pytest_testnodedown
from selection import sample as sample
from support import Ran, commands, own_daemons, run_rook
from templates import copy_database, copy_repository

writing.install()

# A shell lets what it runs in the background ignore interrupts, and so would everything that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("rookery", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
# What lands must not depend on luck: there the same examples every time, elsewhere new ones at every run.
settings.register_profile("same", settings.get_profile("rookery"), max_examples=30, derandomize=True, database=None)
settings.load_profile("same" if "CI" in os.environ else "rookery")


_homes = count()


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own for every test, and an environment without anything of the user's or of an agent's."""
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    home.mkdir(parents=True)
    for name in list(os.environ):
        # The id of a test run looks like a secret, and would be one of every project's credentials.
        if name.startswith(("ROOKERY_", "CLAUDE", "GIT_", "JJ_", "XDG_", "PYTEST_XDIST_")) or name in {
            "NO_COLOR",
            "FORCE_COLOR",
        }:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("ROOKERY_DAEMON", "off")  # tests of the daemon ask for it
    # A process that is started inside a write transaction of the database is a bug, wherever it is started.
    monkeypatch.setenv("ROOKERY_TEST_NO_CHILD_WHILE_WRITING", "1")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n"
    )


@pytest.fixture(autouse=True)
def _no_daemon_left() -> Iterator[None]:
    """The daemons of a test end with it."""
    yield
    while own_daemons:
        own_daemons.popitem()[1].close()


@pytest.fixture(autouse=True, scope="session")
def _results_are_as_declared() -> None:
    results.install()


@pytest.fixture(autouse=True, scope="session")
def _no_daemon_survives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A run fails if it leaves a daemon behind; one that is leaving may take a moment."""
    yield
    folder = tmp_path_factory.getbasetemp()
    deadline = time.monotonic() + 2
    while (left := daemons_under(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for daemon in left:
        send(daemon, signal.SIGKILL)
    assert not left, f"daemons were left behind: {left}"


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Let the reports say which tests ran commands: only these differ where commands run in a daemon."""
    if commands:
        item.user_properties.append(("commands", len(commands)))
        commands.clear()


_IN_MEMORY = "/dev/shm"
_PREFIX = f"rookery-tests-{os.getuid()}-"
_ENOUGH = 1 << 30
_OLD_SECONDS = 6 * 3600


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests' folders in memory where that has room: git and SQLite wait for the disk at every commit."""
    selection.pytest_configure(config)
    if config.option.basetemp is None and not hasattr(config, "workerinput") and _has_room(_IN_MEMORY):
        _remove_old(_IN_MEMORY)
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=_IN_MEMORY)
        config.option.basetemp = folder
        config.add_cleanup(lambda: _let_go(config, folder))


def _has_room(folder: str) -> bool:
    try:
        status = os.statvfs(folder)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize > _ENOUGH and not status.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)


def _remove_old(folder: str) -> None:
    """Take away what earlier runs left: failed tests, or a run that was killed."""
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            if entry.name.startswith(_PREFIX) and time.time() - entry.stat().st_mtime > _OLD_SECONDS:
                shutil.rmtree(entry.path, ignore_errors=True)


def _let_go(config: pytest.Config, folder: str) -> None:
    """Keep what failed tests left, and nothing else."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not {"failed", "error"} & reporter.stats.keys():
        shutil.rmtree(folder, ignore_errors=True)


class Clock:
    """The time of all processes of a test: the machine's, and what the test has added to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ahead = 0.0
        self.advance()

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        """Let time pass for everything at once."""
        self._ahead += seconds + 60 * minutes + 3600 * hours
        draft = self._path.with_suffix(".new")
        draft.write_text(str(self._ahead))
        draft.replace(self._path)


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that the test can put forward; processes that an agent starts keep the machine's time."""
    monkeypatch.setenv("ROOKERY_TEST_CLOCK", str(tmp_path / "clock"))
    return Clock(tmp_path / "clock")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Path]:
    """A git repository with one commit on `main`; what agents in it still run at the end of the test is ended."""
    folder = copy_repository(tmp_path / "repo")
    yield folder
    end_agents(folder)
    end_daemon(folder)


def git(folder: Path, *args: str) -> str:
    """Run git for a test's own set-up or assertions."""
    done = subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """A new database, with no project around it."""
    path = str(tmp_path / "rookery.db")
    copy_database(path)
    database = Database.open(path)
    yield database
    database.close()


@pytest.fixture
def project(repo: Path) -> Path:
    """A git repository with a Rookery project in it."""
    (repo / FOLDER).mkdir()
    copy_database(database_path(str(repo)))
    return repo


class Rook:
    """`rook` in a project, as a process of its own each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
        return run_rook(self.folder, *args, stdin=stdin, env=env)

    def json(self, *args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
        """Run with `--json`."""
        return run_rook(self.folder, *args, "--json", stdin=stdin, env=env)

    def open(self) -> Database:
        """The project's database, for assertions."""
        return Database.open(database_path(str(self.folder)))

    def count_events(self) -> int:
        """How many events there are."""
        db = self.open()
        try:
            return int(db.value("SELECT count(*) FROM events"))
        finally:
            db.close()


@pytest.fixture
def rook(project: Path) -> Rook:
    """Runs `rook` in the project."""
    return Rook(project)
