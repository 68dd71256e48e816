"""An agent's program is about to use a tool, or has: the guard's verdict before, the record after. The hottest path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rookery.base.errors import Refused
from rookery.db.database import Database
from rookery.guard.decide import decide
from rookery.guard.model import ALLOW, ASK, DENY, Bounds, Call, Verdict
from rookery.guard.ownership import check_owned
from rookery.hooks import model as answers
from rookery.hooks.model import Answer, Caller, refuse
from rookery.ops import model as callers
from rookery.ops.operation import Op
from rookery.roles.catalog import read_role
from rookery.roles.tools import ALL
from rookery.sessions.log import LogEntry
from rookery.sessions.records import write_record

_FILE_TOOLS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}


def before_tool(root: str, db: Database, caller: Caller, payload: dict[str, Any]) -> Answer:
    """The guard's verdict, recorded. Only what is allowed by name runs: silence would leave it to the program."""
    tool, arguments = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        return refuse("the call cannot be read", "repeat it")
    session = caller.session
    bounds = bounds_of(root, db, caller, str(payload.get("cwd") or session.worktree))
    try:
        verdict = decide(read_role(root, session.role), session.profile, bounds, Call(tool, arguments))
    except Refused as error:
        reason = f"your role {session.role} cannot be read: {error.message}"
        verdict = Verdict(DENY, reason, "end your turn: a person has to fix the role", "role")
    data: dict[str, Any] = {"input": arguments, "id": payload.get("tool_use_id")}
    if verdict.verdict == ALLOW:
        write_record(root, session, caller.turn_id, LogEntry("call", tool, data=data))
        return Answer(out=answers.decide("allow"))
    data |= {"verdict": verdict.verdict, "reason": verdict.reason, "hint": verdict.hint, "rule": verdict.rule}
    write_record(root, session, caller.turn_id, LogEntry("denied", tool, is_error=True, data=data))
    if verdict.verdict == ASK and session.mode == "tmux":
        return Answer(out=answers.decide("ask", f"{verdict.reason}. {verdict.hint}"))
    return refuse(verdict.reason, verdict.hint)


def bounds_of(root: str, db: Database, caller: Caller, cwd: str) -> Bounds:
    """What belongs to the agent; who owns a task or another agent is read from the state when it matters."""
    session = caller.session
    who = callers.Caller(session.agent, session.id, session.role, session.task_id, "@lead", session.worktree)

    def check_own(operation: Op, values: Mapping[str, Any], folder: str, reach: str) -> None:
        check_owned(db, who, operation, values, folder, reach)

    return Bounds(
        root=root,
        worktree=session.worktree,
        branch=session.branch,
        base=session.settings.base,
        scope=session.settings.files,
        tools=session.settings.tools or (ALL,),
        task_id=session.task_id,
        agent=session.agent,
        cwd=cwd,
        check_own=check_own,
    )


def after_tool(root: str, caller: Caller, payload: dict[str, Any], *, failed: bool) -> Answer:
    """Record the result of a call, with the time that it took, and the file that it changed."""
    tool, arguments, millis = str(payload.get("tool_name")), payload.get("tool_input"), payload.get("duration_ms")
    output = payload.get("error") if failed else payload.get("tool_response")
    data = {"input": arguments, "id": payload.get("tool_use_id"), "ok": not failed, "output": output}
    millis = round(millis) if isinstance(millis, int | float) else None
    session = caller.session
    write_record(root, session, caller.turn_id, LogEntry("tool", tool, failed, millis, data))
    path = arguments.get(_FILE_TOOLS[tool]) if tool in _FILE_TOOLS and isinstance(arguments, dict) else None
    if isinstance(path, str) and not failed:
        inside = os.path.relpath(os.path.join(session.worktree, path), session.worktree)
        change = {"path": inside, "change": tool.lower()}
        write_record(root, session, caller.turn_id, LogEntry("file", inside, data=change))
    return Answer()
