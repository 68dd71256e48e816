"""Claude Code: a child for each headless turn, or a session in a terminal.

A turn's prompt goes in as a line on standard input, which stays open so that an interrupt can follow it. The
conversation is kept in the session's own folder and resumed by its id. Our hook alone decides what the agent may do,
call by call: a hook that is killed, hangs or cannot start has allowed nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rookery.runtimes import model
from rookery.runtimes.claude_folder import HOOK_FILE, LOGINS, folder_of, read_login, settings_name, settings_path
from rookery.runtimes.claude_folder import find_login as find_login
from rookery.runtimes.claude_folder import prepare as prepare
from rookery.runtimes.claude_stream import INTERRUPT_LINE, user_line
from rookery.runtimes.claude_stream import read_line as read_line
from rookery.runtimes.claude_transcripts import continue_from as continue_from
from rookery.runtimes.claude_transcripts import usage_of_turn as usage_of_turn
from rookery.runtimes.claude_transcripts import usage_since as usage_since
from rookery.runtimes.model import Command, Launch, require_program

NAME = "claude"
INSTRUCTIONS = "CLAUDE.local.md"
"""Read beside the repository's own CLAUDE.md, which stays as it is."""
MODES: tuple[str, ...] = model.MODES
INTERRUPT_KEY = "Escape"
CREDENTIALS: tuple[str, ...] = (*LOGINS, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_MODEL")
SETTINGS: tuple[str, ...] = (
    *("settings.json", "settings.local.json", HOOK_FILE),
    *(settings_name(mode) for mode in MODES),
)

PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
_BUSY = "esc to interrupt"

# Its own agents, questions to a person, timers and worktrees: Rookery has its own of each.
_NOT_OURS = (
    *("Task", "Agent", "SendMessage", "Workflow", "TaskOutput", "TaskStop"),
    *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode"),
    *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger", "Monitor"),
    *("EnterWorktree", "ExitWorktree"),
)
_WRITING = ("Write", "Edit", "MultiEdit", "NotebookEdit")


def check_installed(settings: Mapping[str, Any], path: str | None = None) -> None:
    """Raise ProgramFailed if the program is not there."""
    hint = "`npm install -g @anthropic-ai/claude-code`, or set claude.program to its path"
    require_program(_program(settings), path, hint)


def turn_command(launch: Launch, prompt: str) -> Command:
    """One turn: the prompt as a line in, events as lines out."""
    lines = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    # What runs in the background would end with the turn, so it must not be started.
    env = _environment(launch) | {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
    return Command((*_command(launch, model.HEADLESS), *lines), env, user_line(prompt), INTERRUPT_LINE)


def terminal_command(launch: Launch, prompt: str = "") -> Command:
    """The same program in a terminal. A prompt comes first: some options would take it for one of their values."""
    program, *words = _command(launch, model.TMUX)
    first = (prompt,) if prompt else ()
    return Command((program, *first, *words), _environment(launch), has_prompt=bool(prompt))


def is_ready(screen: str) -> bool:
    """True if there is a line to type into and no work under way. A dialog marks one of its numbered answers."""
    lines = [line[1:].strip() for line in screen.splitlines() if line.startswith(PROMPT)]
    return bool(lines) and not any(line[:1].isdigit() and line[1:2] == "." for line in lines) and _BUSY not in screen


def _command(launch: Launch, mode: str) -> tuple[str, ...]:
    words = [_program(launch.settings), "--settings", settings_path(launch, mode)]
    # A repository's .mcp.json starts programs, and asks a person first.
    words.append("--strict-mcp-config")
    if launch.model not in ("", "default"):
        words += ["--model", launch.model]
    if launch.runtime_session:
        words += ["--resume", launch.runtime_session]
    # Nothing is allowed here: our hook allows each call by name, and without its answer none runs.
    denied = _NOT_OURS if launch.may_write else (*_NOT_OURS, *_WRITING)
    words += ["--permission-mode", "default", "--disallowedTools", ",".join(denied)]
    return (*words, *launch.settings.get("args", ()))


def _environment(launch: Launch) -> dict[str, str]:
    env = {
        "CLAUDE_CONFIG_DIR": folder_of(launch),
        "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
        "DISABLE_AUTOUPDATER": "1",
        # The person who slings may be in an editor's session; the agent must not talk to that editor.
        "CLAUDE_CODE_SSE_PORT": "",
        "MCP_CONNECTION_NONBLOCKING": "0",
    }
    if os.geteuid() == 0:
        # Without it the program refuses to skip its questions as root.
        env["IS_SANDBOX"] = "1"
    configured: Mapping[str, str] = launch.settings.get("env", {})
    return {**env, **read_login(launch), **configured}


def _program(settings: Mapping[str, Any]) -> str:
    return str(settings.get("program") or NAME)
