"""The command behind every hook: it passes the event's message to the daemon, and its answer back.

For an agent it fails closed: without an answer in time, or with one that makes no sense, `pre-tool` ends with 2, which
keeps the tool from running. Other events of an agent's program (its turn has ended) must not be lost: if no daemon
takes one, this process answers it. A person's own session does not wait.
"""

import _signal  # type: ignore[import-not-found]
import posix
import sys
import time

from rookery.client import frames
from rookery.client.connection import Broken, Connection, Slow
from rookery.client.dialogue import say, write
from rookery.client.discovery import find_project
from rookery.client.main import PAUSE, RETRY_SECONDS, NoDaemon, connect, connect_from_sandbox, hello, is_off, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

DENIED = 2
SECONDS = 8
"""Programs wait for ten seconds, and then let the tool run."""
_MOST_TRIES = 3
_CAN_BE_REPEATED = ("stop", "session-end")
"""Events that change nothing the second time."""
_MOST_BYTES = 60 * 1024 * 1024
_AGENTS = (b"ROOKERY_TOKEN", b"ROOKERY_SESSION", b"ROOKERY_TURN", b"ROOKERY_AGENT", b"ROOKERY_SOCKET")
"""An agent's program has one of these variables."""


def main() -> "NoReturn":
    """Answer the event in `sys.argv[1]`, whose message is on standard input."""
    event = sys.argv[1] if len(sys.argv) > 1 else ""
    environ = posix.environ
    is_agents = any(name in environ for name in _AGENTS)
    is_in_sandbox = b"ROOKERY_SOCKET" in environ
    must_answer = event == "pre-tool" and is_agents
    if must_answer:
        _signal.signal(_signal.SIGALRM, lambda *_: _fail("the guard did not answer in time"))
        _signal.alarm(SECONDS)
    try:
        message = _read_all()
        if is_off(environ) and not is_in_sandbox:
            _answer_here(message)
        status = _ask(event, message, environ, must_answer)
    except NoDaemon as error:
        if must_answer:
            _fail(f"the guard does not answer: {error}")
        if is_agents and not is_in_sandbox:
            _answer_here(message)
        status = 0
    except BaseException as error:  # no error may let a tool run
        if must_answer:
            _fail(f"the guard does not answer: {error}")
        status = 0
    posix._exit(status)


def _answer_here(message: bytes) -> None:
    """Answer the event in this process, and end it."""
    if "site" not in sys.modules:  # we were started without it: nothing but ourselves could be imported
        load("site").main()
    load("rookery.cli.hook_edge").main(message)


def _ask(event: str, message: bytes, environ: dict[bytes, bytes], must_answer: bool) -> int:
    root = None if b"ROOKERY_SOCKET" in environ else find_project([], environ)
    if root is None and b"ROOKERY_SOCKET" not in environ:
        if must_answer or b"ROOKERY_ROOT" in environ:
            raise Broken("the project is gone")
        return 0  # a person's own session, elsewhere
    begin = hello(frames.HOOK, [event], environ) + frames.pack(frames.INPUT, message)
    deadline = time.monotonic() + RETRY_SECONDS
    tries = 0
    while True:
        connection = connect_from_sandbox(environ, deadline) if root is None else _connect(root, deadline)
        try:
            kind, _ = connection.offer(begin)
        except Slow as reason:
            raise NoDaemon(reason) from reason
        if kind == frames.TAKEN:
            try:
                return _answer(connection)
            except Broken:  # it was killed, and may have handled the event or not
                tries += 1
                if event not in _CAN_BE_REPEATED or tries == _MOST_TRIES:
                    raise
        connection.close()
        if kind not in (frames.AGAIN, frames.TAKEN):
            raise Broken("its answer makes no sense")
        if time.monotonic() > deadline:
            raise NoDaemon("the daemon is being replaced again and again")
        time.sleep(PAUSE)


def _connect(root: bytes, deadline: float) -> Connection:
    while True:
        try:
            return connect(root)
        except NoDaemon:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


def _answer(connection: Connection) -> int:
    """The exit status; the output is printed only when the answer is complete."""
    printed: list[tuple[int, bytes]] = []
    while True:
        kind, payload = connection.receive()
        if kind == frames.EXIT:
            for number, data in printed:
                write(number, data)
            return int(payload)
        if kind not in (frames.OUT, frames.ERR):
            raise Broken("its answer makes no sense")
        printed.append((1 if kind == frames.OUT else 2, payload))


def _read_all() -> bytes:
    parts = []
    size = 0
    while size < _MOST_BYTES and (chunk := posix.read(0, 1 << 16)):
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts)


def _fail(reason: str) -> "NoReturn":
    say(f"rook: {reason}\n  instead: repeat the call; if it stays so, end your turn")
    posix._exit(DENIED)
