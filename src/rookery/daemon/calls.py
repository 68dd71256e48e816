"""Serving one call: run the command, or answer the hook, as if it were a process of its own."""

from __future__ import annotations

from rookery.base.call import Call, serving
from rookery.client.frames import ERR, OUT
from rookery.daemon.connection import Became, Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.daemon.hello import Hello

_BROKEN_PIPE = 141
_INTERRUPTED = 130
_CHUNK = 65536


def run_command(connection: Connection, call: Call, words: list[str]) -> None:
    """Run the command for its caller and tell it the exit status."""
    from rookery.cli.main import main

    with serving(call):
        try:
            status = main(words)
            call.stdout.flush()
            call.stderr.flush()
        except Became:
            return
        except KeyboardInterrupt:
            status = _INTERRUPTED
        except (OSError, ValueError):  # the caller reads no more
            status = _BROKEN_PIPE
    connection.end(status)


def answer_hook(connection: Connection, call: Call, event: str, message: bytes) -> None:
    """Answer one event of an agent's program."""
    from rookery.cli.hook import answer
    from rookery.config.environ import read_environ

    with serving(call):
        status, out, err = answer(read_environ(), event, message)
    for stream, text in ((OUT, out), (ERR, err)):
        data = (text + "\n").encode("utf-8", "replace") if text else b""
        for at in range(0, len(data), _CHUNK):
            connection.send(stream, data[at : at + _CHUNK])
    connection.end(status)


def prove_session(root: str, hello: Hello) -> str | None:
    """The living session whose token the environment holds; None if it holds none."""
    from rookery.base.token import hash_token
    from rookery.ops.state import open_state

    session_id, token = hello.environ.get("ROOKERY_SESSION"), hello.environ.get("ROOKERY_TOKEN")
    if not session_id or not token:
        return None
    db = open_state(root)
    try:
        known = db.value("SELECT token_hash FROM sessions WHERE id = ? AND state <> 'ended'", (session_id,))
    finally:
        db.close()
    return session_id if known == hash_token(token) else None
