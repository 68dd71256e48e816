"""Who is calling: proved once for each call, by `Context.caller`, for every interface.

In this order:

1. The call came through the socket of an agent in a sandbox: it is that agent, whatever its environment says.
2. It carries a token: it is the living session whose token that is. A name, session or turn beside it that says
   something else is refused.
3. Neither: a person calls, unless the calling process or one above it belongs to an agent. An agent's processes are
   started with `ROOKERY_SESSION`, and a child that drops the variable still has such a parent. What starts an agent's
   program is a subreaper, so that a child whose parent has ended comes back to it and not to init: a runner, which
   carries `ROOKERY_RUNNER`, or in a terminal the program itself.

What this does not prove: a process that drops its variables passes for a person if no agent's process is above it.
That is so when it outlives the agent's program in a terminal or a killed runner, or when another program of the user
(cron, a desktop, the user's own tmux) starts it. The sandbox closes these ways: inside it there is only the socket.
Without `/proc` (macOS) parents cannot be read, so an agent outside a sandbox that drops its variables passes for a
person. A process whose environment we cannot read (another user's) is not taken for an agent's. Before Linux 6.5 we
cannot know whether the process that connected has ended and its number now belongs to another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from rookery.base.call import current
from rookery.base.errors import Refused
from rookery.base.token import hash_token
from rookery.config.environ import HUMAN, Environ
from rookery.db.database import Database
from rookery.ops import store
from rookery.ops.model import PERSON, Caller
from rookery.processes import proctable


class ForgedSender(Refused):
    """The caller cannot prove the name that it gives."""

    code = "forged_sender"
    default_hint = "an agent's own processes carry ROOKERY_AGENT and ROOKERY_TOKEN; do not set or unset them by hand"


def prove(environ: Environ, open_db: Callable[[], Database]) -> Caller:
    """The caller, or ForgedSender. The state is opened for agents alone: a person may call where there is none."""
    call = current()
    if call is not None and call.session_id is not None:
        return _of_session(open_db(), call.session_id)
    if environ.token is not None:
        return _of_token(open_db(), environ, environ.token)
    if environ.agent != HUMAN:
        raise ForgedSender(f"{environ.agent} did not prove who it is: there is no token")
    if environ.is_agents_process or environ.is_confined:
        raise ForgedSender("an agent's process cannot act as a person")
    _check_descent(os.getpid() if call is None else call.pid)
    if call is not None and not call.is_caller_alive():  # and so its number was its own while we looked
        raise ForgedSender("the calling process has ended, so it cannot prove who it was")
    return PERSON


def check_alive(db: Database, caller: Caller) -> None:
    """Within the transaction of a change: raise ForgedSender if the caller's session has ended meanwhile."""
    if caller.session_id is not None and store.caller_of_session(db, caller.session_id) is None:
        raise ForgedSender(f"the session of {caller.name} has ended")


def _of_session(db: Database, session_id: str) -> Caller:
    caller = store.caller_of_session(db, session_id)
    if caller is None:
        raise ForgedSender("the agent whose socket this is has ended")
    return caller


def _of_token(db: Database, environ: Environ, token: str) -> Caller:
    caller = store.caller_of_token(db, hash_token(token))
    if caller is None or caller.session_id is None:
        raise ForgedSender("the token is not that of a living agent")
    if environ.agent != caller.name:
        named = "a person" if environ.agent == HUMAN else environ.agent
        raise ForgedSender(f"{caller.name} cannot act as {named}")
    if environ.session is not None and environ.session != caller.session_id:
        raise ForgedSender(f"that is the token of {caller.name}, in another session than {environ.session}")
    if environ.turn is not None and not store.has_turn(db, caller.session_id, environ.turn):
        raise ForgedSender(f"{caller.name} has no turn {environ.turn}")
    return caller.replace(turn=environ.turn)


def _check_descent(pid: int) -> None:
    """Raise ForgedSender if the process, or one above it, belongs to an agent; or if it is gone, and cannot tell."""
    if not proctable.has_proc():
        return
    line = proctable.lineage(pid)
    if not line:
        raise ForgedSender("the calling process has ended, so it cannot prove who it was")
    for ancestor in line:
        session = proctable.session_of(ancestor)
        if session:
            where = "this process belongs to an agent" if ancestor == pid else "this process was started by an agent"
            raise ForgedSender(
                f"{where} ({session}), and cannot act as a person",
                hint="call `rook` with the environment that the agent was given",
            )
