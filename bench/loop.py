"""The control loop in a real daemon: how soon an event leads to an action, and mail to a turn whose program runs."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable

from bench.agents import make_repository
from bench.cold import program_words
from bench.project import Size
from bench.table import Figure, Table
from rookery.base.clock import seconds_of
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.sessions import journal

_SCRIPT = "```rook-script\n- until: {mail_type: result}\n```"
_PATIENCE = 120.0
_PAUSE = 0.001


def measure(root: str, size: Size) -> Table:
    """One agent that waits, and mail for it again and again."""
    repo = os.path.join(os.path.dirname(root), "loop")
    env = {**os.environ, "ROOKERY_DAEMON": "on"}
    rook = program_words()
    many = 40 if size.rounds > 2 else 8

    def run(*words: str) -> str:
        return subprocess.run([*rook, *words], cwd=repo, env=env, check=True, capture_output=True, text=True).stdout

    try:
        make_repository(repo, rook, files=50, tasks=1, script=_SCRIPT)
        run("sling", run("task", "list", "-q").split()[0], "--name", "bee", "--headless")
        db = Database.open(database_path(repo))
        _wait(lambda: _is_waiting(db))
        programs = _Programs(repo)
        for number in range(many):
            run("mail", "send", "bee", "--subject", f"number {number}", "--type", "status")
            _wait(lambda number=number: _turns(db) == number + 2 and _is_waiting(db))  # type: ignore[misc]
        programs.stop()
        sent = [seconds_of(row[0]) for row in db.all("SELECT created_at FROM messages WHERE recipient = 'bee'")]
        opened = [seconds_of(row[0]) for row in db.all("SELECT started_at FROM turns WHERE number > 1 ORDER BY number")]
        db.close()
        run("daemon", "stop")
    finally:
        shutil.rmtree(repo, ignore_errors=True)
    acted = _millis(sent, opened)
    begun = _millis(sent, programs.begun)
    return Table(
        "the control loop",
        "",
        (
            Figure("event to action, p95", _p95(acted), best=min(acted), most=20.0),
            Figure(
                "mail to a program that runs", statistics.median(begun), best=min(begun), p95=_p95(begun), most=150.0
            ),
        ),
        (f"{many} messages to an agent that waits; times are those of the rows and of the runner's journal",),
    )


class _Programs:
    """Notes when each turn's program was started, as its runner writes it."""

    def __init__(self, repo: str) -> None:
        self.begun: list[float] = []
        self._repo = repo
        self._seen: set[str] = set()
        self._is_over = False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over = True
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over:
            for turn_id in filter(journal.is_turn, journal.owners(self._repo)):
                if turn_id in self._seen:
                    continue
                record = journal.find(self._repo, turn_id, journal.CHILD)
                if record is not None:
                    self._seen.add(turn_id)
                    self.begun.append(seconds_of(record["at"]))
            time.sleep(_PAUSE)


def _millis(sent: list[float], then: list[float]) -> list[float]:
    return [1000 * (after - before) for before, after in zip(sent, then, strict=False)]


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def _turns(db: Database) -> int:
    return int(db.value("SELECT count(*) FROM turns"))


def _is_waiting(db: Database) -> bool:
    return bool(db.value("SELECT state = 'waiting' FROM sessions"))


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the agent does not do what it should")
        time.sleep(0.01)
