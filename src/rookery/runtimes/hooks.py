"""The command that an agent's program calls at its events: one absolute argument list, the same for every runtime.

It runs at every tool call, so it starts the interpreter without `site`, and without anything from the user's Python or
the current folder. Programs allow a tool when the hook fails or is slow. So `pre-tool` refuses it when the hook cannot
start, and when it has no answer in time, long before the program would stop waiting.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from rookery.base.record import Record

MODULE = "rookery.client.hook"
"""Its `main()` finds the event in `sys.argv[1]` and the program's own JSON on standard input."""

SESSION_START = "session-start"
PROMPT = "prompt"
PRE_TOOL = "pre-tool"
POST_TOOL = "post-tool"
POST_TOOL_FAILURE = "post-tool-failure"
STOP = "stop"
SUBAGENT_STOP = "subagent-stop"
PRE_COMPACT = "pre-compact"
SESSION_END = "session-end"
NOTIFICATION = "notification"


@dataclass(frozen=True, slots=True)
class Hook(Record):
    """One event of a program at which it calls us."""

    event: str
    timeout: int
    """Seconds until the program goes on without an answer."""
    headless: str | None = ""
    """Which of these events a headless program reports, all by default. None where its output has them anyway."""


HOOKS: tuple[Hook, ...] = (
    Hook(SESSION_START, 30, "compact"),
    Hook(PROMPT, 30, None),
    Hook(PRE_TOOL, 60),
    Hook(POST_TOOL, 10, None),
    Hook(POST_TOOL_FAILURE, 10, None),
    Hook(STOP, 120),
    Hook(SUBAGENT_STOP, 30),
    Hook(PRE_COMPACT, 30),
    Hook(SESSION_END, 30, None),
    Hook(NOTIFICATION, 10),
)
"""Every headless turn resumes its conversation, so only one that was compacted is reminded of what it may have lost.
A stop takes a snapshot of the whole worktree, which may be large. `pre-tool` answers within PRE_TOOL_SECONDS."""

PRE_TOOL_SECONDS = 10

# Exit status 2 is the only one that keeps a tool from running; for other events it means other things.
# `_signal`, because `signal` loads enum. os._exit is found in posix, which is loaded anyway.
_START = (
    "import sys, posix, _signal\n"
    "def refuse(*_):\n"
    "    posix.write(2, b'rook: the hook had no answer in time')\n"
    "    posix._exit(2)\n"
    "if sys.argv[2] == {pre_tool!r}:\n"
    "    _signal.signal(_signal.SIGALRM, refuse)\n"
    "    _signal.alarm({seconds})\n"
    "sys.path += sys.argv.pop(1).split({separator!r})\n"
    "try:\n"
    "    from {module} import main\n"
    "    status = main()\n"
    "except SystemExit:\n"
    "    raise\n"
    "except BaseException as error:\n"
    "    sys.stderr.write(f'rook: the hook cannot start: {{error}}\\n')\n"
    "    sys.stderr.flush()\n"
    "    posix._exit(2 if sys.argv[1] == {pre_tool!r} else 1)\n"
    "sys.exit(status)\n"
)


def hook_command(event: str, module: str = MODULE, seconds: int = PRE_TOOL_SECONDS) -> tuple[str, ...]:
    """What to run at the event, as an absolute argument list; `pre-tool` has so many seconds."""
    code = _START.format(separator=os.pathsep, module=module, pre_tool=PRE_TOOL, seconds=seconds)
    return (sys.executable, "-I", "-S", "-c", code, os.pathsep.join(_libraries()), event)


def _libraries() -> list[str]:
    """The folders of Rookery and its database library; without `site` Python does not know them."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    spec = find_spec("apsw")
    packages = [os.path.dirname(os.path.dirname(spec.origin))] if spec is not None and spec.origin else []
    return list(dict.fromkeys([home, *packages]))
