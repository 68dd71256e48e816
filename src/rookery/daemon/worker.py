"""A process that serves one call: it gets the client's connection from the daemon.

Here the call has a process to itself, so that Ctrl-C interrupts it anywhere. It goes on when the daemon leaves.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from rookery.base.call import Call, serving
from rookery.client.frames import HEAD, TAKEN
from rookery.daemon import calls
from rookery.daemon.client_connection import Connection
from rookery.daemon.forkserver import ForkServer
from rookery.daemon.hello import pack_hello, read_hello
from rookery.db.pool import KeptConnection
from rookery.ops.state import open_if_ready
from rookery.processes import limits, memory_file
from rookery.processes.python import module_command
from rookery.processes.spawning import start_detached

_UMASK = 0o077
_NONE = "-"
"""Instead of the session of an agent in a sandbox, for every other caller."""


def hand_over(connection: Connection, env: Mapping[str, str], server: ForkServer | None) -> bool:
    """Let another process serve the call, which sends TAKEN itself; False if there is a fork server, and it is gone.

    Its own environment is the daemon's: what the caller's says (where to look for modules, what to load first) counts
    for the children that work for it, and not for the process that checks what it may do.
    """
    session_id = connection.session_id or _NONE
    described = memory_file.write_bytes(pack_hello(connection.hello))
    try:
        files = (connection.fileno(), described)
        if server is not None:
            return server.start(session_id, files)
        argv = [*module_command("rookery.daemon.worker", alone=True), session_id, *map(str, files)]
        start_detached(argv, cwd="/", env=env, output=os.devnull, keep=files)
        return True
    finally:
        os.close(described)


def main() -> None:
    """Serve a call in a process that was started for it."""
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))


def prepare_copy(root: str) -> Callable[[str, int, int], None]:
    """What serves a call in a copy of the fork server. Most calls need the database, so we open it before."""
    kept = KeptConnection()
    call = Call(environ={}, cwd=root, umask=_UMASK, pid=os.getpid(), connections=kept)
    with suppress(Exception), serving(call):  # the call itself reports what is wrong with it
        db = open_if_ready(root)
        if db is not None:
            db.close()

    return lambda session_id, line, described: _serve(session_id, line, described, kept)


def _serve(session_id: str, line: int, described: int, kept: KeptConnection | None = None) -> None:
    connection = Connection(socket.socket(fileno=line))
    connection.session_id = None if session_id == _NONE else session_id
    with open(described, "rb") as file:
        connection.hello = hello = read_hello(file.read()[HEAD:])
    if not connection.is_agents:
        limits.pass_on(connection.pid, os.getpid())
    connection.send(TAKEN)
    with suppress(OSError):  # it is gone, and the command says so
        os.chdir(hello.folder)
    os.umask(hello.umask)
    call = connection.make_call(kept)
    signal.signal(signal.SIGINT, lambda _number, _frame: call.check())
    connection.can_be_stopped = True
    connection.on_interrupt = lambda: _interrupt(call)
    try:
        threading.Thread(target=_listen, args=(connection,), daemon=True).start()
        calls.run_command(connection, call)
    except KeyboardInterrupt:  # before the command had begun
        connection.end(calls.INTERRUPTED)
    os._exit(0)


def _interrupt(call: Call) -> None:
    """Interrupt the call wherever it is.

    The signal ends a computation. A wait may have begun just before the signal, and would not end by it: the call's own
    interrupt does that. The one that comes first raises KeyboardInterrupt.
    """
    call.interrupt()
    os.kill(os.getpid(), signal.SIGINT)


def _listen(connection: Connection) -> None:
    while connection.feed(0):
        pass
