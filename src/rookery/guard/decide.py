"""The decision on one tool call. Pure: it may look at where paths lead, and does nothing else.

It never raises and never lets pass what it does not understand: the answer to anything odd is a denial.
"""

from __future__ import annotations

import os
from typing import Any

from rookery.guard.case import Case, Denied
from rookery.guard.model import DENY, Bounds, Call, Verdict
from rookery.guard.paths import check_read, check_write
from rookery.guard.shell.judge import judge_script
from rookery.guard.shell.syntax import is_one_command
from rookery.guard.shell.word import Word
from rookery.roles import tools
from rookery.roles.model import PROFILES, Role


def decide(role: Role, profile: str, bounds: Bounds, call: Call) -> Verdict:
    """Whether an agent of that role may make the call."""
    case = Case(role, profile, bounds)
    try:
        _judge(case, call)
    except Denied as denied:
        return denied.verdict
    except Exception as error:
        reason = f"the guard cannot judge this call ({type(error).__name__})"
        return Verdict(DENY, reason, "write it plainly, in smaller steps", "broken")
    return case.verdict()


def _judge(case: Case, call: Call) -> None:
    tool, given = call.tool, call.input
    if not isinstance(tool, str) or not isinstance(given, dict) or case.profile not in PROFILES:
        case.deny("broken", "the call has not the form of a tool call", "call a tool with its parameters")
    if not os.path.isabs(case.bounds.worktree) or not os.path.isabs(case.bounds.root):
        case.deny("broken", "it is not known where the agent works", "report it by mail")
    if tool in tools.HARMLESS:
        return
    if not case.has_tool(tool) and not tools.why_no_tool(tool) and not _is_plain_rook(case, tool, given):
        case.deny("tool", f"{tool} is not among your tools", "do without it, or ask by mail: `rook` itself still works")
    if tool in tools.SHELL:
        _judge_shell(case, given)
    elif tool in tools.READERS:
        _judge_reader(case, tool, given)
    elif tool in tools.WRITERS:
        check_write(case, _path(case, tool, given, tools.WRITERS[tool]), (_cwd(case),))
    elif tool in tools.FORBIDDEN:
        rule, hint = tools.FORBIDDEN[tool]
        case.deny(rule, f"agents do not use {tool}", hint)
    elif tool in tools.OUTSIDE:
        case.doubt("outside-tool", f"{tool} reaches beyond the project", "work with what is in the repository")
    elif tool.startswith(tools.SERVER):
        _judge_server(case, tool)
    else:
        case.deny("unknown-tool", f"the guard does not know {tool[:80]}", "use Bash, Read, Edit, Write, Grep or Glob")


def _is_plain_rook(case: Case, tool: str, given: dict[str, Any]) -> bool:
    """True for one call of `rook` and nothing beside it: an agent without Bash reports by it, too."""
    command = given.get("command")
    return tool in tools.SHELL and isinstance(command, str) and is_one_command(case, command, "rook")


def _judge_shell(case: Case, given: dict[str, Any]) -> None:
    command = given.get("command")
    if not isinstance(command, str):
        case.deny("broken", "there is no command", "give Bash a command")
    if given.get("dangerouslyDisableSandbox"):
        case.deny("sandbox", "the sandbox is not an agent's to leave", "run it within, or ask by mail")
    judge_script(case, command, _cwd(case), in_background=bool(given.get("run_in_background")))


def _judge_reader(case: Case, tool: str, given: dict[str, Any]) -> None:
    searches = tool in ("Glob", "Grep", "LS")
    if searches and not any(given.get(name) for name in tools.READERS[tool]):
        path = _cwd(case)
    else:
        path = _path(case, tool, given, tools.READERS[tool])
    check_read(case, path, (_cwd(case),), deep=tool == "Grep")
    pattern = given.get("pattern")
    if tool == "Glob" and isinstance(pattern, str):
        check_read(case, Word(os.path.join(path, os.path.expanduser(pattern)), glob=True), (_cwd(case),))


def _judge_server(case: Case, tool: str) -> None:
    if tool.startswith(tools.OWN_SERVERS):
        return
    case.doubt("mcp", f"{tool[:80]} belongs to another program", "use `rook` and Bash")


def _path(case: Case, tool: str, given: dict[str, Any], names: tuple[str, ...]) -> str:
    path = next((given[name] for name in names if given.get(name)), None)
    if not isinstance(path, str):
        case.deny("broken", f"{tool} was given no path", f"give {tool} the path of a file")
    return os.path.expanduser(path) if path.startswith("~") else path


def _cwd(case: Case) -> str:
    return case.bounds.cwd or case.bounds.worktree
