"""The decision on one tool call. Pure: it reads where paths lead, and does nothing else.

It never raises and never lets pass what it does not understand: the answer to anything odd is a denial.
"""

from __future__ import annotations

import os
from typing import Any

from rookery.guard.command import Word
from rookery.guard.judge import Denied, Judge
from rookery.guard.model import DENY, Bounds, Call, Verdict
from rookery.guard.paths import check_read, check_write
from rookery.guard.shell.script import check_script
from rookery.guard.shell.syntax import is_one_command
from rookery.roles import tools
from rookery.roles.model import PROFILES, Role


def decide(role: Role, profile: str, bounds: Bounds, call: Call) -> Verdict:
    """Whether an agent of that role may make the call."""
    judge = Judge(role, profile, bounds)
    try:
        _check(judge, call)
    except Denied as denied:
        return denied.verdict
    except Exception as error:
        reason = f"the guard cannot judge this call ({type(error).__name__})"
        return Verdict(DENY, reason, "write it plainly, in smaller steps", "broken")
    return judge.verdict()


def _check(judge: Judge, call: Call) -> None:
    tool, values = call.tool, call.input
    if not isinstance(tool, str) or not isinstance(values, dict) or judge.profile not in PROFILES:
        judge.deny("broken", "the call does not have the form of a tool call", "call a tool with its parameters")
    if not os.path.isabs(judge.bounds.worktree) or not os.path.isabs(judge.bounds.root):
        judge.deny("broken", "it is not known where the agent works", "report it by mail")
    if tool in tools.HARMLESS or tool.startswith(tools.OWN_SERVERS):
        return
    cwd = judge.bounds.cwd or judge.bounds.worktree
    if not judge.has_tool(tool) and not tools.why_no_tool(tool) and not _is_plain_rook(judge, tool, values):
        judge.deny("tool", f"{tool} is not among your tools", "do without it, or ask by mail; `rook` still works")
    if tool in tools.SHELL:
        _check_shell(judge, values, cwd)
    elif tool in tools.READERS:
        _check_reader(judge, tool, values, cwd)
    elif tool in tools.WRITERS:
        check_write(judge, (cwd,), Word(_path(judge, tool, values, tools.WRITERS[tool])))
    elif tool in tools.FORBIDDEN:
        rule, hint = tools.FORBIDDEN[tool]
        judge.deny(rule, f"agents do not use {tool}", hint)
    elif tool in tools.OUTSIDE:
        judge.doubt("outside-tool", f"{tool} reaches beyond the project", "work with what is in the repository")
    elif tool.startswith(tools.SERVER):
        judge.doubt("mcp", f"{tool[:80]} belongs to another program", "use `rook` and Bash")
    else:
        judge.deny("unknown-tool", f"the guard does not know {tool[:80]}", "use Bash, Read, Edit, Write, Grep or Glob")


def _is_plain_rook(judge: Judge, tool: str, values: dict[str, Any]) -> bool:
    """True for one call of `rook` and nothing beside it: an agent without Bash reports by it, too."""
    command = values.get("command")
    return tool in tools.SHELL and isinstance(command, str) and is_one_command(judge, command, "rook")


def _check_shell(judge: Judge, values: dict[str, Any], cwd: str) -> None:
    command = values.get("command")
    if not isinstance(command, str):
        judge.deny("broken", "there is no command", "give Bash a command")
    if values.get("dangerouslyDisableSandbox"):
        judge.deny("sandbox", "an agent may not leave its sandbox", "run it within, or ask by mail")
    check_script(judge, command, cwd, in_background=bool(values.get("run_in_background")))


def _check_reader(judge: Judge, tool: str, values: dict[str, Any], cwd: str) -> None:
    searches_here = tool in ("Glob", "Grep", "LS") and not any(values.get(name) for name in tools.READERS[tool])
    path = cwd if searches_here else _path(judge, tool, values, tools.READERS[tool])
    check_read(judge, (cwd,), Word(path), deep=tool == "Grep")
    pattern = values.get("pattern")
    if tool == "Glob" and isinstance(pattern, str):
        check_read(judge, (cwd,), Word(os.path.join(path, os.path.expanduser(pattern)), glob=True))


def _path(judge: Judge, tool: str, values: dict[str, Any], names: tuple[str, ...]) -> str:
    path = next((values[name] for name in names if values.get(name)), None)
    if not isinstance(path, str):
        judge.deny("broken", f"{tool} got no path", f"give {tool} the path of a file")
    return os.path.expanduser(path)
