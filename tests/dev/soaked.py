"""What tests of the soak begin with: a repository as it makes one, a database with rows of their own, a ledger."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dev.soak import hand as hands
from dev.soak.checks.model import Ledger, Violation, gather
from dev.soak.repository import BASE, make_repository
from dev.soak.site import Call, Site

from conftest import git
from templates import copy_database


class Place:
    """A repository as a soak makes it, a database with rows of the test's own, and a ledger."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder)
        for directory in (self.site.repo, self.site.ledger, self.site.home, self.site.temporary):
            directory.mkdir(parents=True)
        self.repo = self.site.repo
        make_repository(self.site)
        copy_database(str(folder / "rookery.db"))
        self.db = sqlite3.connect(folder / "rookery.db")
        self.lines: list[dict[str, Any]] = []

    @property
    def ledger(self) -> Ledger:
        return gather(self.lines)

    def add(self, table: str, **values: object) -> None:
        """A row with these values, and something for what else it must have."""
        for _, name, kind, is_needed, default, is_key in self.db.execute(f"PRAGMA table_info({table})").fetchall():
            if is_needed and default is None and not is_key and name not in values:
                values[name] = 0 if kind == "INTEGER" else name
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        self.db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", list(values.values()))

    def event(self, kind: str, subject: str = "it", **data: object) -> None:
        """One more event."""
        count = self.db.execute("SELECT count(*) FROM events").fetchone()[0]
        self.add("events", id=f"evt_{count}", type=kind, subject=subject, data=json.dumps(data))

    def work(self, key: str, *verbs: str, branch: str = BASE) -> str:
        """Let a hand work on a branch of the repository; the commit that came of it."""
        git(self.repo, "switch", "-q", *([] if branch == BASE else ["-C"]), branch)
        for verb in verbs:
            argv = [sys.executable, "-I", "-S", hands.__file__, str(self.site.ledger), key, verb]
            env = {**os.environ, "ROOKERY_AGENT": branch.replace("/", "-")}
            subprocess.run([*argv, ""] if verb != "record" else argv, cwd=self.repo, env=env, check=True)
        return git(self.repo, "rev-parse", "HEAD")

    def land(self, key: str, task: str = "task_1") -> str:
        """A task whose work is on the base, as the database tells it."""
        commit = self.work(key, "finish")
        self.add("tasks", id=task, title=key, state="COMPLETED", attempts=1)
        self.add("merges", id=f"mrg_{task}", task_id=task, state="landed", candidate=commit)
        return commit


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    soaked = Place(tmp_path)
    yield soaked
    soaked.db.close()


def texts(violations: Iterator[Violation]) -> list[str]:
    return [violation.text for violation in violations]


def call(*words: str, status: int = 0, out: str = "", err: str = "", is_hung: bool = False) -> Call:
    return Call(words, status, 0.1, out, err, is_hung)
