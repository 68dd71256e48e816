"""`rook` without the start of an interpreter: one process per pytest worker has everything loaded and copies itself.

Each copy has the arguments, folder, environment and streams that it is given, runs `rook` as `python -m rookery` does
without a daemon,
and is gone. Two things differ from a process of its own: /proc shows the arguments and the environment of the server,
and every module is loaded already. Tests about these (marks of agents, what a command imports, the entry script) start
the real program.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

_CHUNK = 1 << 16
_SIZE = 4


# The side of the tests.


class ForkServer:
    """A running server; it goes when this process does."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._settled = _settled(env)
        ours, theirs = socket.socketpair()
        self._line = ours
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=dict(env),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
            )
        atexit.register(self.close)

    def can_run(self, env: Mapping[str, str]) -> bool:
        """False if something of the environment has its effect only at the start of an interpreter."""
        return _settled(env) == self._settled

    def run(
        self, words: Sequence[str], cwd: str, env: Mapping[str, str], stdin: bytes, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run `rook` to its end: how it ended (minus the number of the signal), and what it printed."""
        pipes = [os.pipe() for _ in range(4)]
        (to_read, giving), (out, to_out), (err, to_err), (report, to_report) = pipes
        message = json.dumps({"words": list(words), "cwd": cwd, "env": dict(env)}).encode()
        message = len(message).to_bytes(_SIZE, "big") + message
        sent = socket.send_fds(self._line, [message], [to_read, to_out, to_err, to_report])
        self._line.sendall(message[sent:])
        for fd in (to_read, to_out, to_err, to_report):
            os.close(fd)
        pid = int.from_bytes(os.read(report, _SIZE), "big")
        try:
            outputs = _converse(giving, stdin, (out, err), time.monotonic() + timeout)
            (ended, _, _) = select.select([report], [], [], timeout)
            if outputs is None or not ended:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(words), timeout)
            return int.from_bytes(os.read(report, _SIZE), "big", signed=True), *outputs
        finally:
            for fd in (out, err, report):
                os.close(fd)

    def close(self) -> None:
        """Let it go."""
        self._line.close()
        self._server.wait()


def _settled(env: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter reads at its start alone."""
    return {name: value for name, value in env.items() if name.startswith(("PYTHON", "LC_", "LANG", "TZ"))}


def _converse(giving: int, stdin: bytes, sources: tuple[int, int], deadline: float) -> tuple[bytes, bytes] | None:
    """Write the input and read both outputs to their ends; None if that takes too long."""
    outputs = {source: bytearray() for source in sources}
    left = memoryview(stdin)
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN)
    os.set_blocking(giving, False)
    if left:
        poll.register(giving, select.POLLOUT)
    else:
        os.close(giving)
    is_open = set(sources)
    while is_open:
        events = poll.poll(max(0, deadline - time.monotonic()) * 1000)
        if not events:
            return None
        for fd, _ in events:
            if fd == giving:
                try:
                    left = left[os.write(giving, left) :]
                except BrokenPipeError:
                    left = left[:0]
                if not left:
                    poll.unregister(giving)
                    os.close(giving)
            elif chunk := os.read(fd, _CHUNK):
                outputs[fd] += chunk
            else:
                poll.unregister(fd)
                is_open.discard(fd)
    if left:
        os.close(giving)
    return bytes(outputs[sources[0]]), bytes(outputs[sources[1]])


# The server.


def _serve(line: socket.socket) -> None:
    """Make a copy for every request, and tell its number and its end by the pipe that came with it."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    reports: dict[int, int] = {}
    poll = select.poll()
    poll.register(line, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if woken in ready:
            os.read(woken, _CHUNK)
            _collect(reports)
        if line.fileno() in ready:
            request = _receive(line)
            if request is None:
                return
            asked, files = request
            pid = os.fork()
            if pid == 0:
                _run(asked, files)
            os.write(files[3], pid.to_bytes(_SIZE, "big"))
            reports[pid] = files[3]
            for file in files[:3]:
                os.close(file)


def _collect(reports: dict[int, int]) -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        report = reports.pop(pid)
        with suppress(BrokenPipeError):
            os.write(report, os.waitstatus_to_exitcode(status).to_bytes(_SIZE, "big", signed=True))
        os.close(report)


def _receive(line: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    data, files, _, _ = socket.recv_fds(line, _SIZE, 4)
    while 0 < len(data) < _SIZE:
        data += line.recv(_SIZE - len(data))
    if not data:
        return None
    size, body = int.from_bytes(data, "big"), bytearray()
    while len(body) < size:
        body += line.recv(min(size - len(body), _CHUNK))
    return json.loads(body), files


def _run(asked: dict[str, Any], files: list[int]) -> None:
    """What `python -m rookery` does without a daemon, in the copy."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    os.closerange(3, 1024)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.path[0] = asked["cwd"]
    main = sys.modules["rookery.cli.main"]
    sys.argv = [str(sys.modules["rookery.__main__"].__file__), *asked["words"]]
    _open_streams()
    try:
        status = main.main()
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _open_streams() -> None:
    """The interpreter's own, on what now are the standard streams."""
    encoding = sys.stdout.encoding
    sys.stdin = open(0, encoding=encoding, errors=sys.stdin.errors, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, errors=sys.stdout.errors, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding=encoding, errors=sys.stderr.errors, closefd=False)  # noqa: SIM115


def _load_everything() -> None:
    import rookery

    for module in pkgutil.walk_packages(rookery.__path__, "rookery."):
        if module.name == "rookery.__main__" or not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("rich.console", "rich.table", "rich.tree", "rich.progress", "yaml", "json", "subprocess", "traceback"):
        importlib.import_module(name)
    importlib.import_module("writing").install()
    importlib.import_module("results").install()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        _load_everything()
        _serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
