"""What happens at an event of an agent's program: guard, log, mail, the turn's beginning and end. One call an event.

The answer is what the program expects of a hook: an exit status (2 keeps a tool from running), output and error output.
A person's own session gets its mail and the state of the project.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from rookery.base.errors import NotInitialised
from rookery.base.json import dumps, loads
from rookery.base.token import hash_token
from rookery.config.environ import LONGEST_SESSION, UNKNOWN_SESSION, Environ
from rookery.db.database import Database
from rookery.hooks.model import Answer, Caller, refuse
from rookery.hooks.prime import prime
from rookery.hooks.tool_events import after_tool, before_tool
from rookery.mail.ops import check
from rookery.mail.readers import register
from rookery.ops.context import Context
from rookery.ops.state import open_state
from rookery.ops.state_owner import find_project
from rookery.runtimes.hooks import (
    NOTIFICATION,
    POST_TOOL,
    POST_TOOL_FAILURE,
    PRE_COMPACT,
    PRE_TOOL,
    PROMPT,
    SESSION_END,
    SESSION_START,
    STOP,
    SUBAGENT_STOP,
)
from rookery.runtimes.model import TMUX
from rookery.sessions import store
from rookery.sessions.log import LogEntry
from rookery.sessions.records import write_record
from rookery.turns.interactive import begin_turn, end_turn, take_mail


def handle(root: str, session_id: str, event: str, payload: bytes, token: str | None = None) -> Answer:
    """Answer one event of an agent. Without a token, the caller has proved who it is in another way."""
    with closing(open_state(root)) as db:
        caller = find_caller(db, session_id, token)
        if caller is None:
            ended = refuse("this agent's session has ended", "stop here; none of your work is lost")
            return ended if event == PRE_TOOL else Answer()
        return _answer(root, db, caller, event, _read(payload))


def find_caller(db: Database, session_id: str, token: str | None) -> Caller | None:
    """The living agent of a session; raises PermissionError if the token is another one's."""
    row = store.living_in_turn(db, session_id)
    if row is None:
        return None
    caller = Caller(*row)
    if token is not None and hash_token(token) != caller.session.token_hash:
        raise PermissionError("that is not this agent's token")
    return caller


def _read(payload: bytes) -> dict[str, Any]:
    message = loads(payload.decode(errors="replace"))
    if not isinstance(message, dict):
        raise TypeError("the program's message is not an object")
    return message


def _answer(root: str, db: Database, caller: Caller, event: str, payload: dict[str, Any]) -> Answer:
    if event == PRE_TOOL:
        return before_tool(root, db, caller, payload)
    if event in (POST_TOOL, POST_TOOL_FAILURE):
        return after_tool(root, caller, payload, failed=event == POST_TOOL_FAILURE)
    if event in (NOTIFICATION, SUBAGENT_STOP, SESSION_END):
        data = {key: value for key, value in payload.items() if key in ("message", "notification_type", "reason")}
        write_record(root, caller.session, caller.turn_id, LogEntry(event, data=data))
        return Answer()
    return _answer_turn(Context.at(root, db), caller, event, payload)


def _answer_turn(ctx: Context, caller: Caller, event: str, payload: dict[str, Any]) -> Answer:
    session = caller.session
    # At a startup its instructions are fresh; later it may have forgotten them.
    if event == PRE_COMPACT or (event == SESSION_START and payload.get("source") != "startup"):
        return Answer(out=prime(ctx, session.agent, compact=True))
    if event == PROMPT and session.mode == TMUX:  # for a headless turn its runner did that
        return Answer(out=begin_turn(ctx, session.id, payload.get("session_id"))[1])
    if event == STOP:
        mail_text = take_mail(ctx, session)
        if mail_text:
            return Answer(out=dumps({"decision": "block", "reason": mail_text}))
        if session.mode == TMUX:
            end_turn(ctx, session.id)
    return Answer()


def inform_person(environ: Environ, event: str, payload: bytes) -> str:
    """What to add to a person's own session at the event; nothing outside of a project.

    Its mail is shown to the session once, and stays unread for the person.
    """
    message = _read(payload)
    try:
        root = find_project(str(message.get("cwd") or "."), environ.root)
    except NotInitialised:
        return ""
    own = str(message.get("session_id") or environ.own_session or UNKNOWN_SESSION)[:LONGEST_SESSION]
    with closing(open_state(root)) as db:
        ctx = Context.at(root, db)
        if event != PROMPT:
            register(ctx, own)
            return prime(ctx, None, compact=event == PRE_COMPACT)
        ctx.environ = environ.replace(own_session=own)
        inbox = check(ctx, inject=True)
        return inbox.text or "" if inbox.messages else ""
