"""An agent's program is about to use a tool, or has: the guard's word before, the record after. The hottest path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rookery.base.clock import stamp
from rookery.base.errors import Refused
from rookery.base.json import dumps
from rookery.config.environ import now
from rookery.db.database import Database
from rookery.guard.decide import decide
from rookery.guard.model import ALLOW, ASK, DENY, Bounds, Call, Verdict
from rookery.guard.ownership import check_owned
from rookery.hooks.model import Answer, Caller, refuse
from rookery.ops import model as callers
from rookery.ops.operation import Op
from rookery.roles.catalog import read_role
from rookery.roles.tools import ALL
from rookery.sessions.records import write_record

_FILE_TOOLS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}


def before_tool(root: str, db: Database, caller: Caller, payload: dict[str, Any]) -> Answer:
    """The guard's word, written down. Only what is allowed by name runs: silence would leave it to the program."""
    tool, given = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(tool, str) or not isinstance(given, dict):
        return refuse("the call cannot be read", "repeat it")
    session = caller.session
    bounds = bounds_of(root, db, caller, str(payload.get("cwd") or session.worktree))
    try:
        verdict = decide(read_role(root, session.role), session.profile, bounds, Call(tool, given))
    except Refused as error:
        reason = f"your role {session.role} cannot be read: {error.message}"
        verdict = Verdict(DENY, reason, "end your turn: a person has to fix the role", "role")
    data: dict[str, Any] = {"input": given, "id": payload.get("tool_use_id")}
    if verdict.verdict == ALLOW:
        write(root, caller, "call", tool, data=data)
        return Answer(out=_decision("allow"))
    data |= {"verdict": verdict.verdict, "reason": verdict.reason, "rule": verdict.rule}
    write(root, caller, "denied", tool, is_error=True, data=data)
    if verdict.verdict == ASK and caller.session.mode == "tmux":
        return Answer(out=_decision("ask", f"{verdict.reason}. {verdict.hint}"))
    return refuse(verdict.reason, verdict.hint)


def bounds_of(root: str, db: Database, caller: Caller, cwd: str) -> Bounds:
    """What the agent has of its own; whose a task or another agent is, the state is asked when it matters."""
    return Bounds(
        root=root,
        worktree=caller.session.worktree,
        branch=caller.session.branch,
        base=caller.session.settings.base,
        scope=caller.session.settings.files,
        tools=caller.session.settings.tools or (ALL,),
        task_id=caller.session.task_id,
        agent=caller.session.agent,
        cwd=cwd,
        check_own=lambda operation, values, folder, reach: _check_own(db, caller, operation, values, folder, reach),
    )


def _check_own(db: Database, caller: Caller, operation: Op, values: Mapping[str, Any], folder: str, reach: str) -> None:
    session = caller.session
    who = callers.Caller(session.agent, session.id, session.role, session.task_id, "@lead", session.worktree)
    check_owned(db, who, operation, values, folder, reach)


def after_tool(root: str, caller: Caller, payload: dict[str, Any], *, failed: bool) -> Answer:
    """What came of a call, with the time that it took, and the file that it changed."""
    tool = str(payload.get("tool_name"))
    given = payload.get("tool_input")
    output = payload.get("error") if failed else payload.get("tool_response")
    millis = payload.get("duration_ms")
    data = {"input": given, "id": payload.get("tool_use_id"), "ok": not failed, "output": output}
    write(root, caller, "tool", tool, is_error=failed, millis=_whole(millis), data=data)
    path = given.get(_FILE_TOOLS[tool]) if tool in _FILE_TOOLS and isinstance(given, dict) else None
    if isinstance(path, str) and not failed:
        inside = os.path.relpath(os.path.join(caller.session.worktree, path), caller.session.worktree)
        write(root, caller, "file", inside, data={"path": inside, "change": tool.lower()})
    return Answer()


def write(root: str, caller: Caller, kind: str, name: str = "", **more: Any) -> None:
    """Write down one thing that the agent did; `more` as `write_record` takes it."""
    session = caller.session
    who: dict[str, Any] = {"agent": session.agent, "session_id": session.id, "turn_id": caller.turn_id}
    write_record(root, at=stamp(now()), kind=kind, name=name, **who, **more)


def _whole(value: Any) -> int | None:
    return round(value) if isinstance(value, int | float) else None


def _decision(decision: str, reason: str = "") -> str:
    told = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    return dumps({"hookSpecificOutput": told | ({"permissionDecisionReason": reason} if reason else {})})
