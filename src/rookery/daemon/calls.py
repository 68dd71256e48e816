"""Serving one call: run the command, or answer the hook, as if it were a process of its own."""

from __future__ import annotations

from contextlib import closing, suppress

from rookery.base.call import Call, serving
from rookery.cli.hook_edge import answer
from rookery.cli.main import main
from rookery.client.frames import ERR, OUT
from rookery.config.environ import read_environ
from rookery.daemon.client_connection import Became, Connection
from rookery.daemon.hello import Hello
from rookery.ops.caller import ForgedSender, prove
from rookery.ops.state import open_state

_BROKEN_PIPE = 141
INTERRUPTED = 130
_CHUNK = 65536


def run_command(connection: Connection, call: Call) -> None:
    """Run the command for its caller and tell it the exit status."""
    with serving(call):
        try:
            status = main(connection.hello.words)
            call.stdout.flush()
            call.stderr.flush()
        except Became:
            return
        except KeyboardInterrupt:
            status = INTERRUPTED
        except (OSError, ValueError):  # the caller reads no more
            status = _BROKEN_PIPE
    connection.end(status)


def answer_hook(connection: Connection, call: Call, message: bytes) -> None:
    """Answer one event of an agent's program."""
    with serving(call):
        status, out, err = answer(read_environ(), "".join(connection.hello.words), message)
    for stream, text in ((OUT, out), (ERR, err)):
        data = (text + "\n").encode("utf-8", "replace") if text else b""
        for at in range(0, len(data), _CHUNK):
            connection.send(stream, data[at : at + _CHUNK])
    connection.end(status)


def prove_session(root: str, hello: Hello) -> str | None:
    """The living session that the environment proves by its token; None if it proves none."""
    environ = read_environ(hello.environ)
    if environ.token is None:
        return None
    with closing(open_state(root)) as db, suppress(ForgedSender):
        return prove(environ, lambda: db).session_id
    return None
