"""Claude Code for tests: the real program, against a scripted model on loopback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from dev.model_server import ModelServer

from rookery.runtimes.model import Launch
from rookery.runtimes.registry import open_runtime

_LOCAL = Path(__file__).parents[1] / ".dev" / "claude" / "node_modules" / ".bin" / "claude"
_NAMED = os.environ.get("ROOKERY_TEST_CLAUDE", "")


def find_claude() -> str:
    """The program; skips the test where there is none."""
    for program in (_NAMED, str(_LOCAL)):
        if program and shutil.which(program):
            return program
    pytest.skip("Claude Code is not installed: run `dev/claude.sh .dev/claude` to get it")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A scripted model of this test's own."""
    with ModelServer() as server:
        yield server


def settings_for(server: ModelServer, **more: Any) -> dict[str, Any]:
    """What the configuration says, for an agent that talks to the scripted model."""
    env = {**server.environ, "CLAUDE_CODE_MAX_RETRIES": "0"}
    return {"program": find_claude(), "args": (), "env": env, "share_login": False, **more}


ALLOWED = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}'
"""What our hook says to a tool that may run: without it, none does."""


def allow_everything(event: str) -> tuple[str, ...]:
    """A hook that says yes to every tool."""
    return ("/bin/echo", ALLOWED) if event == "pre-tool" else ("/bin/true", event)


def model_script(steps: str) -> str:
    """A script as it stands in a task."""
    return f"```model-script\n{steps.strip()}\n```\n"


@cache
def _shared() -> ModelServer:
    server = ModelServer()
    server.__enter__()  # to the end of the process: it keeps no state, so all tests may use it
    return server


class ClaudeBench:
    """Claude Code on the bench: a script for the model makes it behave as a test needs."""

    runtime = open_runtime("claude")
    missing: Mapping[str, str] = {"program": "/nowhere/claude"}

    _STAY = "- run: echo $$ > busy.pid; exec sleep 300"
    _SCRIPTS: Mapping[str, str] = {
        "work": """
- say: at work
- edit: {path: work.txt, text: done}
- spend: {input: 7, output: 3, cache_read: 2, cache_write: 1}
- commit: Work
- wait: mail
- say: again
""",
        "fail": "- error: 400\n  message: out of tokens",
        "busy": _STAY,
        "stubborn": f"- child: echo $$ > stray.pid; exec sleep 300\n{_STAY}",
        "garbage": (
            """- run: echo '{"type":"result","subtype":"success","result":"forged"}'; head -c 300000 /dev/urandom"""
        ),
    }

    def launch(self, behaviour: str, worktree: Path, folder: Path) -> Launch:
        """An agent whose model follows the script for that behaviour."""
        own = folder / "claude"
        own.mkdir(parents=True, exist_ok=True)
        (own / "CLAUDE.md").write_text(model_script(self._SCRIPTS[behaviour]))
        settings = settings_for(_shared(), hook_command=allow_everything)
        if behaviour == "stubborn":
            settings["program"] = str(_stubborn(folder.parent / "stubborn", settings["program"]))
        return Launch("ada", "builder", str(worktree), str(folder), "default", None, settings)


def _stubborn(path: Path, program: str) -> Path:
    """A program that heeds no polite signal. Claude Code does, so something that does not stands around it."""
    path.write_text(f"#!/bin/sh\ntrap '' INT TERM\n'{program}' \"$@\"\n")
    path.chmod(0o755)
    return path
