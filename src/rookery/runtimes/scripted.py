"""The runtime that needs no model: a real child that follows a small script, for the demo, for tests and for trials.

The script's language is in `docs/guides/scripted-runtime.md`; the child is `scripted_agent`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rookery.base.errors import InvalidInput
from rookery.base.json import loads
from rookery.config.project import make_state_folders
from rookery.processes.python import module_command
from rookery.runtimes import model

# A script may write transcripts, and then writes them as Claude Code does.
from rookery.runtimes.claude_transcripts import continue_from as continue_from
from rookery.runtimes.claude_transcripts import usage_of_turn as usage_of_turn
from rookery.runtimes.claude_transcripts import usage_since as usage_since
from rookery.runtimes.model import Command, Launch, TurnEvent, require_program

NAME = "scripted"
INSTRUCTIONS = "AGENTS.md"
MODES: tuple[str, ...] = model.MODES
CREDENTIALS: tuple[str, ...] = ()
INTERRUPT_KEY = "C-c"
SETTINGS: tuple[str, ...] = ()

PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
"""What the last line of the terminal begins with when the program waits for input."""

_MODULE = "rookery.runtimes.scripted_agent.__main__"

# What an event of each kind must hold.
_FIELDS: dict[str, dict[str, type]] = {
    model.SESSION: {"id": str},
    model.TEXT: {"text": str},
    model.TOOL: {"name": str, "input": dict},
    model.FILE: {"path": str, "change": str},
    model.USAGE: {"model": str, "input": int, "output": int, "cache_read": int, "cache_write": int},
    model.RESULT: {"text": str, "ok": bool},
    model.ERROR: {"message": str},
}


def check_installed(settings: Mapping[str, Any], path: str | None = None) -> None:
    """Raise ProgramFailed if there is no such Python for the child to run on."""
    hint = "the setting `program` of the scripted runtime must be a Python that has Rookery, or be left out"
    require_program(settings.get("program") or sys.executable, path, hint)


def find_login(settings: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """It reaches no model."""


def prepare(launch: Launch) -> None:
    """Make the session's folder, and check the script that the configuration names: a mistake ends the sling."""
    make_state_folders(launch.folder)
    path = _script_path(launch)
    if not path:
        return
    from rookery.runtimes.scripted_agent.script import parse_script  # it loads YAML, which runners do not need

    try:
        with open(path, encoding="utf-8") as file:
            parse_script(file.read())
    except OSError as error:
        raise InvalidInput(f"cannot read the script {path}: {error.strerror}") from error


def turn_command(launch: Launch, prompt: str) -> Command:
    """One turn: the prompt goes in by standard input, events come out as JSON, one a line."""
    return Command(_command(launch), {}, prompt)


def terminal_command(launch: Launch, prompt: str = "") -> Command:
    """The same program, waiting for prompts in a terminal."""
    return Command((*_command(launch), "--interactive"), {})


def read_line(line: str) -> Sequence[TurnEvent]:
    """The event of a line; anything else on standard output is ignored."""
    try:
        data = loads(line)
    except (ValueError, RecursionError):
        return ()
    kind = data.pop("type", None) if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        return ()
    is_whole = all(isinstance(data.get(name), wanted) for name, wanted in _FIELDS[kind].items())
    return (TurnEvent(kind, data),) if is_whole else ()


def is_ready(screen: str) -> bool:
    """True if the last line that is not empty is the prompt."""
    lines = [line for line in screen.splitlines() if line.strip()]
    return bool(lines) and lines[-1].startswith(PROMPT)


def _command(launch: Launch) -> tuple[str, ...]:
    words = [
        *module_command(_MODULE, launch.settings.get("program", "")),
        *("--folder", launch.folder),
        *("--worktree", launch.worktree),
        *("--instructions", os.path.join(launch.worktree, INSTRUCTIONS)),
        f"--agent={launch.agent}",
        f"--role={launch.role}",
        f"--parent={launch.parent}",
        f"--task={launch.task_id or 'none'}",
        f"--model={launch.model or NAME}",
    ]
    if launch.runtime_session:
        words += ["--resume", launch.runtime_session]
    path = _script_path(launch)
    return (*words, "--script", path) if path else tuple(words)


def _script_path(launch: Launch) -> str:
    """The script that the configuration names; a relative path begins at the worktree."""
    path = launch.settings.get("script", "")
    return os.path.join(launch.worktree, path) if path else ""
