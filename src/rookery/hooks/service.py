"""What happens at an event of an agent's program: guard, log, heartbeat, mail, the turn's end. One call an event.

At a tool call only what that needs is loaded; the record that it leaves is the agent's sign of life. The answer is
what the program expects of a hook: an exit status (2 keeps a tool from running), standard output and error output.
"""

from __future__ import annotations

from typing import Any

from rookery.base.json import loads
from rookery.base.token import hash_token
from rookery.config.project import from_stored, root_of
from rookery.db.database import Database
from rookery.hooks import tool_events as tool_hooks
from rookery.hooks import turn_events as turn_hooks
from rookery.hooks.model import Answer, Caller, refuse
from rookery.ops.state import open_state
from rookery.roles.tools import ALL

_ABOUT_A_TOOL = ("pre-tool", "post-tool", "post-tool-failure")
_ONLY_TOLD = ("notification", "subagent-stop", "session-end")


def handle(root: str, session_id: str, event: str, payload: bytes, token: str | None = None) -> Answer:
    """Answer one event of an agent. Its token is checked where it is given; who gives none has proved it already."""
    db = open_state(root)
    try:
        caller = find_caller(db, session_id, token)
        if caller is None:
            gone = refuse("this agent's life has ended", "stop here; nothing that you made is lost")
            return gone if event == "pre-tool" else Answer()
        return _answer(root, db, caller, event, _read(payload))
    finally:
        db.close()


def _answer(root: str, db: Database, caller: Caller, event: str, payload: dict[str, Any]) -> Answer:
    if event in _ABOUT_A_TOOL or event in _ONLY_TOLD:
        if event == "pre-tool":
            return tool_hooks.before_tool(root, db, caller, payload)
        if event in _ABOUT_A_TOOL:
            return tool_hooks.after_tool(root, caller, payload, failed=event == "post-tool-failure")
        tool_hooks.write(root, caller, event, data=_told(payload))
        return Answer()
    return turn_hooks.answer(root, db, session_id=caller.session_id, event=event, payload=payload)


def find_caller(db: Database, session_id: str, token: str | None) -> Caller | None:
    """The living agent of a session; raises PermissionError if a token is given that is not its own."""
    row = db.one(
        "SELECT s.token_hash, s.agent, s.role, s.profile, s.worktree, s.branch, s.settings, s.task_id, s.mode, "
        "(SELECT id FROM turns t WHERE t.session_id = s.id AND t.state = 'running') "
        "FROM sessions s WHERE s.id = ? AND s.state <> 'ended'",
        (session_id,),
    )
    if row is None:
        return None
    token_hash, agent, role, profile, worktree, branch, settings, task_id, mode, turn_id = row
    if token is not None and hash_token(token) != token_hash:
        raise PermissionError("that is not this agent's token")
    told = loads(settings)
    scope, tools = tuple(told["files"]), tuple(told.get("tools") or (ALL,))
    worktree = from_stored(root_of(db.path), worktree)
    return Caller(
        session_id, agent, role, profile, worktree, branch, told["base"], scope, tools, task_id, mode, turn_id
    )


def _read(payload: bytes) -> dict[str, Any]:
    found = loads(payload.decode(errors="replace"))
    if not isinstance(found, dict):
        raise TypeError("the program's message is not an object")
    return found


def _told(payload: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key in ("message", "notification_type", "reason")}
