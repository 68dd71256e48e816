"""A temporary repository with a home of its own, in which `rook` is called as a person calls it.

Nothing of the user's is read or written there: no settings, no credentials, no identity.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rookery.base import call as calls
from rookery.base.errors import ProgramFailed, RookError
from rookery.base.json import loads
from rookery.base.record import Record
from rookery.config.environ import unmarked_environ
from rookery.processes import process
from rookery.processes.python import module_command

_PATIENCE = 120.0
_PAUSE = 0.1
_KEPT = ("ROOKERY_DAEMON", "ROOKERY_TEST_")
"""Of the variables of Rookery, those that the demo obeys too."""


@dataclass(frozen=True, slots=True)
class Scene(Record):
    """One thing that the demo shows: what it says, or a command with its output."""

    text: str = ""
    command: str = ""
    output: str = ""


class Stage:
    """The demo's repository."""

    def __init__(self, pause: float, root: str = "") -> None:
        """With a `root`, the repository is there and a person goes on in it, with the same home and settings."""
        self.folder = root or tempfile.mkdtemp(prefix="rook-demo-")
        self.root = root or os.path.join(self.folder, "shop")
        self._pause = pause
        self._is_apart = not root
        if self._is_apart:
            os.mkdir(os.path.join(self.folder, "home"), 0o700)

    @cached_property
    def _environ(self) -> dict[str, str]:
        if not self._is_apart:
            return unmarked_environ()
        env = {
            name: value
            for name, value in unmarked_environ().items()
            if not name.startswith(("ROOKERY_", "XDG_")) or name.startswith(_KEPT)
        }
        return env | {"HOME": os.path.join(self.folder, "home"), "NO_COLOR": "1", "ROOKERY_COLUMNS": "80"}

    def say(self, text: str) -> Scene:
        """Tell what comes next."""
        calls.sleep(self._pause)
        return Scene(text=text)

    def show(self, *words: str) -> Scene:
        """Run a command as a person would, and show it with what it prints."""
        output = self._run(*words).stdout
        return Scene(command=" ".join(_quoted(word) for word in ("rook", *words)), output=output.rstrip("\n"))

    def query(self, *words: str) -> Any:
        """Run a command as a program would; what it gives."""
        return loads(self._run(*words, "--json").stdout)["data"]

    def wait(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds; raises ProgramFailed if it never does."""
        deadline = time.monotonic() + _PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise ProgramFailed("the demo's agents did not go on", hint="`rook demo --keep` lets you look around")
            calls.sleep(_PAUSE)

    def outcomes(self) -> dict[str, str]:
        """How each agent has ended, or its state."""
        shown = self.query("status", "--all")
        return {agent["agent"]: agent["outcome"] or agent["state"] for agent in (*shown["agents"], *shown["ended"])}

    def question(self) -> str | None:
        """The question that waits for a person."""
        asked = self.query("mail", "list", "--to", "human", "--type", "question")
        return str(asked[0]["id"]) if asked else None

    def clear(self) -> None:
        """End what is alive, and leave nothing behind."""
        with calls.interrupts_held():
            with suppress(RookError, OSError, ValueError):
                for name, state in self.outcomes().items():
                    if state in ("booting", "working", "waiting"):
                        self._run("stop", name, "--quiet")
            with suppress(RookError, OSError):
                self._run("daemon", "stop", "--quiet")
            for _ in range(50):
                shutil.rmtree(self.folder, ignore_errors=True)
                if not os.path.exists(self.folder):
                    return
                with suppress(KeyboardInterrupt):  # processes that end write their last line
                    calls.sleep(_PAUSE)

    def _run(self, *words: str) -> process.Finished:
        argv = (*module_command("rookery.client.main"), *words)
        return process.run(argv, cwd=self.root, env=self._environ, timeout=_PATIENCE)


def _quoted(word: str) -> str:
    return word if word.replace("-", "").replace("/", "").replace("_", "").isalnum() else f'"{word}"'


def scenes(stage: Stage, keep: bool, play: Callable[[Stage], Iterator[Scene]]) -> Iterator[Scene]:
    """The scenes of a play; then the stage is cleared, also after Ctrl-C."""
    try:
        yield from play(stage)
    finally:
        if not keep:
            stage.clear()
    if keep:
        yield Scene(text=f"Look around: cd {stage.root}")
        yield Scene(text=f"Remove it: rm -rf {stage.folder}")
    else:
        yield Scene(text="The repository and its agents are gone again; `rook demo --keep` keeps them")
