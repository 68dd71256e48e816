"""An agent program as the rest of Rookery sees it. A runtime is a module that satisfies `Runtime`.

The caller starts the child, reads its lines and ends it; a runtime only knows what to start and how to read it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rookery.base.errors import ProgramFailed
from rookery.base.record import Record

TEXT = "text"
TOOL = "tool"
FILE = "file"
USAGE = "usage"
SESSION = "session"
RESULT = "result"
ERROR = "error"
DENIED = "denied"
LIMIT = "limit"

HEADLESS = "headless"
TMUX = "tmux"
MODES = (HEADLESS, TMUX)


@dataclass(frozen=True, slots=True)
class Launch(Record):
    """Everything that a runtime may need to start an agent or one turn of it."""

    agent: str
    role: str
    worktree: str
    folder: str
    """A private folder of this session, outside the worktree, for the runtime's own state and configuration."""
    model: str
    runtime_session: str | None
    """The program's own name of the conversation, once it is known."""
    settings: Mapping[str, Any]
    """What the project's configuration says for this runtime."""
    task_id: str | None = None
    parent: str = "human"
    """Who gets a message when the work is done."""
    may_write: bool = True
    """False for a role that changes no files."""
    environ: Mapping[str, str] | None = None
    """What the program will have in its environment, beside what its command adds; None for the caller's own."""


@dataclass(frozen=True, slots=True)
class Command(Record):
    """A child to start in the worktree; `env` adds to what every agent gets."""

    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: str | None = None
    interrupt: str | None = None
    """What to send after `stdin`, which then stays open until the result, to interrupt the turn; else it is SIGINT."""
    has_prompt: bool = False
    """The prompt is among the words, so that nothing has to be typed."""


@dataclass(frozen=True, slots=True)
class TurnEvent(Record):
    """Something that an agent did.

    text {text}; tool {name, input, id?, ok?, output?, duration_ms?}; file {path, change}; usage {model, input, output,
    cache_read, cache_write, cost_micros?}; session {id}; result {text, ok}; error {message, kind?, status?}; denied
    {name, input, id?}, a tool that was not let through; limit {status, resets_at?}, what is left of a plan.

    A program that reports a tool's end separately gives two tool events: {id, name, input}, later {id, ok, output}. The
    kind of an error is `limit` (used up, for now), `auth`, `overloaded`, `turns` or nothing in particular.
    """

    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Login(Record):
    """Whether a program can reach its model, as far as files and variables show it."""

    is_valid: bool | None
    """None if that cannot be known without asking the model."""
    message: str
    hint: str = ""


def require_program(program: str, path: str | None, hint: str) -> None:
    """Raise ProgramFailed, with the hint, if the program cannot be started by this PATH."""
    if shutil.which(program, path=path) is None:
        raise ProgramFailed(f"{program} is not installed", hint=hint, code="program_missing")


class Runtime(Protocol):
    """An agent program."""

    NAME: str
    INSTRUCTIONS: str
    """Where in the worktree the program reads its instructions."""
    MODES: tuple[str, ...]
    INTERRUPT_KEY: str
    """The key that interrupts a turn in a terminal, by tmux's name for it."""
    CREDENTIALS: tuple[str, ...]
    """Variables that the program needs to reach its model; in a sandbox it gets these of the user's environment."""
    SETTINGS: tuple[str, ...]
    """Files in the session's folder, or in one directly in it, that say what the program runs: our hooks, or others.

    In a sandbox the agent cannot change them.
    """

    def check_installed(self, settings: Mapping[str, Any], path: str | None = None) -> None:
        """Raise ProgramFailed, with a hint on how to get it, if the program cannot be started by this PATH."""

    def find_login(self, settings: Mapping[str, Any], environ: Mapping[str, str]) -> Login | None:
        """Whether its agents will be logged in, in this environment; None for a program that needs no login."""

    def prepare(self, launch: Launch) -> None:
        """Write what the program needs into the session's folder; safe to repeat."""

    def turn_command(self, launch: Launch, prompt: str) -> Command:
        """The child for one headless turn: prompt in, lines out, ends by itself."""

    def read_line(self, line: str) -> Sequence[TurnEvent]:
        """The events in a line of the child's output; none if it has none."""

    def terminal_command(self, launch: Launch, prompt: str = "") -> Command:
        """The child for an interactive session in a terminal; with its first prompt, if it can begin with one."""

    def is_ready(self, screen: str) -> bool:
        """True if the terminal shows that the program waits for input."""

    def continue_from(self, folder: str, earlier: str) -> None:
        """Let a new session in `folder` go on with the conversation of the one in `earlier`; safe to repeat.

        The earlier folder stays as it is, and what its session used is not counted again.
        """

    def usage_of_turn(self, folder: str, turn_id: str, is_settled: Callable[[str], bool]) -> Sequence[dict[str, Any]]:
        """What one turn of the session in `folder` used, as usage events say it, from transcripts; nothing without.

        Call it before the turn is settled. After a kill it returns the same again for a turn that was not settled, and
        nothing twice for one that was: what was read for a turn counts only once `is_settled` says so of it.
        """

    def usage_since(self, folder: str, at: str) -> Sequence[dict[str, Any]]:
        """What the session in `folder` used since a time, by model, from transcripts; nothing is remembered."""
