"""The command that an agent's program calls at its events, the same for every runtime.

It runs at every tool call, so it starts the interpreter without `site`, and without anything from the user's Python or
the current folder. Programs allow a tool when the hook fails or is slow. So `pre-tool` refuses it when the hook cannot
start, and when it has no answer in time, long before the program would stop waiting.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass

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
A stop takes a snapshot of the whole worktree, which may be large. `pre-tool` answers within 10 s."""

START = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "client", "hook_start.py")
"""The script that starts the module: an interpreter without `site` finds nothing by itself."""

# The interpreter may be gone, with its virtual environment: a program that cannot start its hook does not say why.
# Exit status 2 keeps a tool from running.
_FILE = """\
#!/bin/sh
# Written by Rookery: what the agent's program calls at its events.
if [ -x {python} ] && [ -r {start} ]; then
  exec {python} -I -S {start} {module} "$@"
fi
echo "rook: Rookery is not installed any more at" {home} >&2
echo "  instead: end your turn; a person has to install it there again, or sling the task again" >&2
[ "$1" = {pre_tool} ] && exit 2
exit 1
"""


def hook_command(event: str, module: str = MODULE) -> tuple[str, ...]:
    """What to run at the event, as an absolute argument list."""
    return (sys.executable, "-I", "-S", START, module, event)


def hook_file(module: str = MODULE) -> str:
    """A shell script that does the same for the event that is its argument: programs show the command of a hook."""
    words = {"python": sys.executable, "start": START, "home": os.path.dirname(os.path.dirname(START))}
    quoted = {name: shlex.quote(word) for name, word in words.items()}
    return _FILE.format(**quoted, module=module, pre_tool=PRE_TOOL)
