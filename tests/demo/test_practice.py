"""The guide to a first day, word for word: a lead with five builders, a question, a crash, a conflict, an undo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from guide_blocks import ROOT, read_blocks
from support import child_environ, wait_until

pytestmark = pytest.mark.slow

_GUIDE = ROOT / "docs/guides/first-day.md"
_PATIENCE = 120


class Person:
    """Someone who types what the guide says, and puts in the handles that the commands before have shown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "programs"
        programs.mkdir()
        (programs / "rook").write_text(f'#!/bin/sh\nexec {sys.executable} -m rookery "$@"\n')
        (programs / "rook").chmod(0o755)
        self.environ = child_environ() | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        self.shop = folder / "shop"

    def type(self, command: str) -> str:
        """Run one line; it has to work."""
        for word, find in (("MESSAGE", self._question), ("TASK", self._task_of_eve), ("MERGE", self._conflict)):
            command = command.replace(word, find()) if word in command.split() else command
        self._wait_before(command)
        if command.startswith("cd "):
            command += " && pwd"
        done = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        if command.startswith("cd "):
            self.folder = Path(done.stdout.strip())
        return done.stdout

    def query(self, *words: str) -> Any:
        """What a command gives a program."""
        done = subprocess.run(
            ["rook", *words, "--json"], cwd=self.shop, env=self.environ, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)["data"]

    def _wait_before(self, command: str) -> None:
        """A person takes a moment; agents need one."""
        if command == "rook inbox":
            wait_until(lambda: "lead" not in self._busy(), _PATIENCE)
        if command == "rook review list":
            wait_until(lambda: not self._busy(), _PATIENCE)
        if command == "rook merge --all --dry-run":
            wait_until(lambda: self._states() == ["PENDING_REVIEW"] * 5 and not self._busy(), _PATIENCE)

    def _busy(self) -> list[str]:
        """The agents that have work to do just now."""
        return [agent["agent"] for agent in self.query("status")["agents"] if agent["state"] != "waiting"]

    def _states(self) -> list[str]:
        return [task["state"] for task in self.query("task", "list", "--kind", "task")]

    def _question(self) -> str:
        return str(self.query("mail", "list", "--unanswered")[0]["id"])

    def _task_of_eve(self) -> str:
        return str(next(row["task_id"] for row in self.query("status", "--all")["ended"] if row["agent"] == "eve"))

    def _conflict(self) -> str:
        return str(next(row["id"] for row in self.query("merge", "list", "--all") if row["state"] != "landed"))


def test_the_first_day_goes_as_the_guide_says(tmp_path: Path) -> None:
    person = Person(tmp_path)
    output: dict[str, str] = {}
    for line in [line for block in read_blocks(_GUIDE) for line in block.commands]:
        output[line] = output.get(line, "") + person.type(line)
    assert "lead" in output["rook status"]
    assert "exited with status 3" in output["rook inbox"]
    assert "4 of 5 landed" in output["rook merge --all || true"]
    assert "def total(prices, off=0, tax=0)" in git(person.shop, "show", "main:shop.py")
    assert "In euros." in git(person.shop, "show", "main:show.py")
    assert "max(0" in git(person.shop, "show", "main:stock.py")
    assert not (person.shop / ".rookery").exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "rookery", "demo", "--practice", "shop"],
        cwd=tmp_path,
        env=child_environ(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "already exists" in done.stderr
    assert list((tmp_path / "shop").iterdir()) == []
