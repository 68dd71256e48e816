"""What comes of an event of an agent's program, in the daemon or in the process that the program has started.

For an agent it fails closed: an error at a tool call is exit status 2, and so is taking too long. In a person's own
session it never blocks anything: an error there prints nothing.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from rookery.config.environ import HUMAN, Environ, read_environ
from rookery.flows.workload import is_needed
from rookery.hooks.service import handle, inform_person
from rookery.ops.state import open_state
from rookery.turns.loop_supervisor import start_loop

DENIED = 2
_ENDS = ("stop", "session-end")


def main(payload: bytes) -> NoReturn:
    """Answer one event, with what its program has said."""
    event = sys.argv[1] if len(sys.argv) > 1 else ""
    environ = read_environ()
    is_agent = is_agents(environ)
    try:
        status, out, err = answer(environ, event, payload)
    except BaseException as error:
        status, out, err = _failed(event, error) if is_agent else (0, "", "")
    if out:
        sys.stdout.write(out + "\n")
    if err:
        sys.stderr.write(err + "\n")
    _leave(status)


def is_agents(environ: Environ) -> bool:
    """True if an agent's program has this environment, not a person's own."""
    return environ.is_agents_process or environ.agent != HUMAN


def answer(environ: Environ, event: str, payload: bytes) -> tuple[int, str, str]:
    """What comes of an event: exit status, output, error output. Whatever goes wrong is answered, too."""
    try:
        return _agents(environ, event, payload) if is_agents(environ) else _persons(environ, event, payload)
    except Exception as error:
        return _failed(event, error) if is_agents(environ) else (0, "", "")


def _agents(environ: Environ, event: str, payload: bytes) -> tuple[int, str, str]:
    if not (environ.root and environ.token and environ.session):
        raise PermissionError("this process does not say whose it is")
    answer = handle(environ.root, environ.session, event, payload, environ.token)
    if event in _ENDS:
        _react(environ.root)
    return answer.status, answer.out, answer.err


def _react(root: str) -> None:
    """Have a process see to what follows from the end of a turn or of the program, where no loop runs.

    Not this one: what follows may be the end of the program, and of all that it has started.
    """
    db = open_state(root)
    try:
        if is_needed(root, db):
            start_loop(root)
    finally:
        db.close()


def _persons(environ: Environ, event: str, payload: bytes) -> tuple[int, str, str]:
    if event not in ("session-start", "prompt", "pre-compact"):
        return 0, "", ""
    return 0, inform_person(environ, event, payload), ""


def _failed(event: str, error: BaseException) -> tuple[int, str, str]:
    message = f"rook: {getattr(error, 'message', '') or error or type(error).__name__}"
    if event == "pre-tool":
        return DENIED, "", f"{message}\n  instead: wait a moment and repeat the call; if it stays so, end your turn"
    return 1, "", message


def _leave(status: int) -> NoReturn:
    """Without the interpreter's own farewell, which takes 3 ms."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
