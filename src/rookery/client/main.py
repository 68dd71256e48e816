"""`rook`: hand the words to the project's daemon, pass streams and signals on, and end with its exit status.

Without a project there is no daemon, and with `ROOKERY_DAEMON=off` none is wanted: then the command runs in this very
process. It does so too, and says it, when a daemon cannot be started or does not answer. In a sandbox there is only the
agent's own socket, `ROOKERY_SOCKET`: nothing can be started or run there.
"""

import posix
import sys
import time

from rookery.client import frames
from rookery.client.connection import Broken, Connection, Slow, fill_closed_streams
from rookery.client.place import find_project, read_socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_INTERRUPTED = 130
_BROKEN_PIPE = 141
_FAILED = 1
_RETRY_SECONDS = 3.0
_PAUSE = 0.05
_OFF = b"off"
_PLATFORM = "linux"
"""What the daemon is made for. Elsewhere every command runs in its own process."""
_OWN = ("init", "daemon")
"""Commands that make a project, or look after the daemon itself: no daemon is started for them."""


def run() -> "NoReturn":
    """What the installed `rook` calls."""
    try:
        status = main()
    except KeyboardInterrupt:  # before a daemon had the call; if it just took it, it stops when we are gone
        status = _INTERRUPTED
    _leave(status)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    environ = posix.environ
    if b"ROOKERY_SOCKET" in environ:
        return _run_from_sandbox(words, environ)
    is_off = environ.get(b"ROOKERY_DAEMON", b"") == _OFF or sys.platform != _PLATFORM
    command = words[2:3] if words[:1] == ["-C"] else words[:1]
    if is_off or (command and command[0] in _OWN) or _names_own_files(words):
        return run_here(words)
    deadline = time.monotonic() + _RETRY_SECONDS
    while time.monotonic() < deadline:
        root = find_project(words, environ) or _look_closer(words, environ)
        if root is None:
            return run_here(words)
        try:
            begin = _begin(words, environ)
            status = _call(connect(root), begin, words)
        except Yours:
            return run_here(words)
        except NoDaemon as reason:
            _say(f"rook: {reason}; running in this process instead")
            return run_here(words)
        if status is not None:
            return status
        time.sleep(_PAUSE)
    _say("rook: the daemon is being replaced again and again; running in this process instead")
    return run_here(words)


class NoDaemon(Exception):
    """There is no daemon to take the call, and nothing has been done."""


class Yours(Exception):
    """The daemon leaves the command to the client's own process."""


def _run_from_sandbox(words: list[str], environ: dict[bytes, bytes]) -> int:
    deadline = time.monotonic() + _RETRY_SECONDS
    reason: object = "it is being replaced again and again"
    try:
        while time.monotonic() < deadline:
            begin = _begin(words, environ)
            status = _call(connect_from_sandbox(environ, deadline), begin, words)
            if status is not None:
                return status
            time.sleep(_PAUSE)
    except Yours:
        _say("rook: error: this cannot be done from within a sandbox")
        return _FAILED
    except NoDaemon as error:
        reason = error
    _say(f"rook: error: Rookery does not answer: {reason}")
    _say("hint: the turn is over, or it is being replaced: try again")
    return _FAILED


def connect_from_sandbox(environ: dict[bytes, bytes], deadline: float) -> Connection:
    """A connection through the agent's own socket, which may be bound again at this moment; raises NoDaemon."""
    while True:
        try:
            return Connection(environ[b"ROOKERY_SOCKET"])
        except OSError as error:
            if time.monotonic() > deadline:
                raise NoDaemon(f"nothing listens outside the sandbox ({error.strerror or error})") from error
        time.sleep(_PAUSE)


def connect(root: bytes) -> Connection:
    """A connection to the project's daemon, which is started if there is none; raises NoDaemon or Yours."""
    path = read_socket(root)
    if path is not None:
        try:
            return _checked(Connection(path))
        except (BlockingIOError, TimeoutError) as error:
            raise NoDaemon(f"the daemon does not answer ({error.strerror or error})") from error
        except OSError:
            pass  # it is gone, or something else was written there: the lock tells whether there is one
    start = _load("rookery.daemon.start")
    try:
        return _checked(Connection(start.start_daemon(root)))
    except start.NotServed as error:
        raise Yours(error) from error
    except (OSError, start.CannotStart) as error:
        raise NoDaemon(f"the daemon cannot be started: {error}") from error


def hello(kind: bytes, words: list[str], environ: dict[bytes, bytes], folder: bytes) -> bytes:
    """The frame that begins a call; `daemon.hello` reads it."""
    sizes = [_size(number) for number in (0, 1, 2)]
    terminal = b"".join([b"1" if size else b"0" for size in sizes])
    umask = posix.umask(0o77)
    posix.umask(umask)
    encoding = sys.stdout.encoding if sys.stdout is not None else "utf-8"
    return frames.pack(
        frames.CALL,
        frames.pack_fields(
            [
                frames.PROTOCOL,
                kind,
                folder,
                b"%o" % umask,
                terminal,
                sizes[1] or sizes[2] or sizes[0] or b"80x24",
                encoding.encode(),
                b"%d" % len(words),
                *[word.encode("utf-8", "surrogateescape") for word in words],
                *[name + b"=" + value for name, value in environ.items()],
            ]
        ),
    )


def run_here(words: list[str]) -> int:
    """Run the command in this process."""
    fill_closed_streams()
    if "site" not in sys.modules:  # we were started without it: nothing but ourselves could be imported
        _load("site").main()
    status: int = _load("rookery.cli.main").main(words)
    return status


def _names_own_files(words: list[str]) -> bool:
    """True if words name what means something else in another process: `/dev/stdin`, or what `<(…)` makes."""
    return any("/dev/" in word or "/proc/" in word for word in words)


def _begin(words: list[str], environ: dict[bytes, bytes]) -> bytes:
    """The first frame of the call. It is ready before we connect: the daemon need not wait for it."""
    try:
        return hello(frames.RUN, words, environ, posix.getcwdb())
    except OSError:
        raise Yours from None  # it says that the folder is gone


def _call(connection: Connection, begin: bytes, words: list[str]) -> int | None:
    """Have the daemon run the command; None if another daemon has to be asked, Yours if none."""
    try:
        connection.send(begin)
        kind, about = connection.receive()
    except Broken as reason:
        if not connection.give_up():
            return _cut_off(reason, words)
        if isinstance(reason, Slow):
            raise NoDaemon(f"the daemon does not answer ({reason})") from reason
        return None  # it has just left
    if kind == frames.AGAIN:
        return None
    if kind == frames.YOURSELF:
        raise Yours
    if kind != frames.TAKEN:
        connection.close()
        raise NoDaemon("the daemon is of another version")
    connection.wait_on()
    from rookery.client.dialogue import converse

    try:
        return converse(connection)
    except Broken as reason:
        if about == frames.ONLY_READS and not connection.has_answered:
            return None  # it has changed nothing, and we have shown nothing
        return _cut_off(reason, words)


def _cut_off(reason: Broken, words: list[str]) -> int:
    message = f"the daemon stopped while it ran this ({reason})"
    hint = "perhaps it is done: `rook events --limit 5` shows the last changes; if it is not there, run it again"
    if "--json" in (words[: words.index("--")] if "--" in words else words):
        error = {"code": "daemon_stopped", "message": message, "hint": hint}
        sys.stdout.write(_load("json").dumps({"v": 1, "ok": False, "error": error}, separators=(",", ":")) + "\n")
    else:
        _say(f"rook: error: {message}")
        _say(f"hint: {hint}")
    return _FAILED


def _checked(connection: Connection) -> Connection:
    if not connection.is_ours():
        connection.close()
        raise NoDaemon("the daemon belongs to another user")
    return connection


def _look_closer(words: list[str], environ: dict[bytes, bytes]) -> bytes | None:
    """The project of a checkout that leads to another one; None if there is none, or the words are unusual."""
    if (words and words[0] in ("-C", "--directory")) or b"ROOKERY_ROOT" in environ:
        return None
    project = _load("rookery.config.project")
    try:
        root: str = project.find_root(posix.getcwd())
    except (OSError, project.NotInitialised, project.UntrustedState):  # the command says so
        return None
    return root.encode("utf-8", "surrogateescape")


def _load(name: str):  # type: ignore[no-untyped-def]  # a module of ours, by name: it is another program to us
    from importlib import import_module

    return import_module(name)


def _size(number: int) -> bytes:
    """The size of the terminal that a stream leads to; nothing if it leads elsewhere."""
    try:
        if not posix.isatty(number):
            return b""
        columns, lines = posix.get_terminal_size(number)
    except OSError:
        return b"80x24" if posix.isatty(number) else b""
    return b"%dx%d" % (columns or 80, lines or 24)


def _say(text: str) -> None:
    try:
        posix.write(2, text.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        return


def _leave(status: int) -> "NoReturn":
    """Without the interpreter's own clean-up, which takes 3 ms."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            status = status or _BROKEN_PIPE
        except OSError as error:
            if stream is sys.stdout and not status:
                _say(f"rook: error: cannot write the output: {error.strerror}")
                status = _FAILED
    posix._exit(status)
