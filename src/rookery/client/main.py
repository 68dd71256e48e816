"""`rook`: hand the words to the project's daemon, pass streams and signals on, and end with its exit status.

Without a project there is no daemon, and with `ROOKERY_DAEMON=off` none is wanted: then the command runs in this
process. It does so too, and says it, when a daemon cannot be started or does not answer. In a sandbox there is only the
agent's own socket, `ROOKERY_SOCKET`: nothing can be started or run there.
"""

import posix
import sys
import time

from rookery.client import frames
from rookery.client.connection import SECONDS_IN_SANDBOX, SECONDS_TO_TAKE, Broken, Connection, Slow, fill_closed_streams
from rookery.client.dialogue import BROKEN_PIPE, FAILED, INTERRUPTED, converse, say, terminal_size
from rookery.client.discovery import find_project, read_socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

RETRY_SECONDS = 3.0
PAUSE = 0.05
_OWN = ("init", "daemon")
"""Commands that make a project, or look after the daemon itself: no daemon is started for them."""


def run() -> "NoReturn":
    """What the installed `rook` calls."""
    try:
        status = main()
    except KeyboardInterrupt:  # before a daemon had the call; if it just took it, it stops when we are gone
        status = INTERRUPTED
    _leave(status)


def main() -> int:
    """Run one command and return its exit status."""
    words, environ = sys.argv[1:], posix.environ
    is_in_sandbox = b"ROOKERY_SOCKET" in environ
    command = words[2:3] if words[:1] == ["-C"] else words[:1]
    is_ours = is_off(environ) or (command and command[0] in _OWN) or _names_own_files(words)
    if is_ours and not is_in_sandbox:
        return run_here(words)
    try:
        return _ask_daemon(words, environ, is_in_sandbox)
    except Yours:
        if is_in_sandbox:
            say("rook: error: this cannot be done from within a sandbox")
            return FAILED
    except NoDaemon as reason:
        if is_in_sandbox:
            say(f"rook: error: Rookery does not answer: {reason}")
            say("hint: the turn is over, or the daemon is being replaced: try again")
            return FAILED
        say(f"rook: {reason}; running in this process instead")
    return run_here(words)


def _ask_daemon(words: list[str], environ: dict[bytes, bytes], is_in_sandbox: bool) -> int:
    """Have a daemon run the command, and return its exit status; raises NoDaemon or Yours."""
    deadline = time.monotonic() + RETRY_SECONDS
    while time.monotonic() < deadline:
        begin = _begin(words, environ)
        if is_in_sandbox:
            connection = connect_from_sandbox(environ, deadline, SECONDS_IN_SANDBOX)
        else:
            connection = connect(_find_root(words, environ))
        status = _call(connection, begin, words)
        if status is not None:
            return status
        time.sleep(PAUSE)
    raise NoDaemon("the daemon is being replaced again and again")


def is_off(environ: dict[bytes, bytes]) -> bool:
    """True if every command runs in its own process: the user wants no daemon, or the system is another than Linux."""
    return environ.get(b"ROOKERY_DAEMON", b"") == b"off" or sys.platform != "linux"


class NoDaemon(Exception):
    """There is no daemon to take the call, and nothing has been done."""


class Yours(Exception):
    """The command runs in the client's own process."""


def connect_from_sandbox(environ: dict[bytes, bytes], deadline: float, seconds: float = SECONDS_TO_TAKE) -> Connection:
    """A connection through the agent's own socket, which may be bound again at this moment; raises NoDaemon."""
    while True:
        try:
            return Connection(environ[b"ROOKERY_SOCKET"], seconds)
        except OSError as error:
            if time.monotonic() > deadline:
                raise NoDaemon(f"nothing listens outside the sandbox ({error.strerror or error})") from error
        time.sleep(PAUSE)


def connect(root: bytes) -> Connection:
    """A connection to the project's daemon, which is started if there is none; raises NoDaemon or Yours."""
    path = read_socket(root)
    if path is not None:
        try:
            return _checked(Connection(path))
        except (BlockingIOError, TimeoutError) as error:
            raise NoDaemon(f"the daemon does not answer ({error.strerror or error})") from error
        except OSError:
            pass  # it is gone, or the file is not the daemon's: the lock says whether there is one
    start = load("rookery.daemon.start")
    try:
        return _checked(Connection(start.start_daemon(root)))
    except start.NotServed as error:
        raise Yours(error) from error
    except (OSError, start.CannotStart) as error:
        raise NoDaemon(f"the daemon cannot be started: {error}") from error


def hello(kind: bytes, words: list[str], environ: dict[bytes, bytes]) -> bytes:
    """The frame that begins a call."""
    sizes = [terminal_size(number) for number in (0, 1, 2)]
    umask = posix.umask(0o77)
    posix.umask(umask)
    return frames.pack_call(
        kind,
        posix.getcwdb(),
        umask,
        tuple([size is not None for size in sizes]),
        sizes[1] or sizes[2] or sizes[0] or (80, 24),
        sys.stdout.encoding if sys.stdout is not None else "utf-8",
        [word.encode("utf-8", "surrogateescape") for word in words],
        environ,
    )


def run_here(words: list[str]) -> int:
    """Run the command in this process."""
    fill_closed_streams()
    if "site" not in sys.modules:  # we were started without it: nothing but ourselves could be imported
        load("site").main()
    status: int = load("rookery.cli.main").main(words)
    return status


def _names_own_files(words: list[str]) -> bool:
    """True if words name a file that is another one in another process: `/dev/stdin`, or what `<(…)` makes."""
    return any("/dev/" in word or "/proc/" in word for word in words)


def _begin(words: list[str], environ: dict[bytes, bytes]) -> bytes:
    """The first frame of the call. It is ready before we connect: the daemon need not wait for it."""
    try:
        return hello(frames.RUN, words, environ)
    except OSError:
        raise Yours from None  # our folder is gone, and the command says so


def _call(connection: Connection, begin: bytes, words: list[str]) -> int | None:
    """Have the daemon run the command; None if we have to ask another daemon, Yours if no daemon runs it."""
    try:
        kind, about = connection.offer(begin)
    except Slow as reason:
        raise NoDaemon(f"the daemon does not answer ({reason})") from reason
    except Broken as reason:
        return _cut_off(reason, words)
    if kind == frames.AGAIN:
        return None
    if kind == frames.YOURSELF:
        raise Yours
    if kind != frames.TAKEN:
        connection.close()
        raise NoDaemon("the daemon is of another version")
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
        sys.stdout.write(load("json").dumps({"v": 1, "ok": False, "error": error}, separators=(",", ":")) + "\n")
    else:
        say(f"rook: error: {message}")
        say(f"hint: {hint}")
    return FAILED


def _checked(connection: Connection) -> Connection:
    if not connection.is_ours():
        connection.close()
        raise NoDaemon("the daemon belongs to another user")
    return connection


def _find_root(words: list[str], environ: dict[bytes, bytes]) -> bytes:
    """The project of the call; raises Yours if there is none, or the words are unusual."""
    root = find_project(words, environ)
    if root is not None:
        return root
    if (words and words[0] in ("-C", "--directory")) or b"ROOKERY_ROOT" in environ:
        raise Yours
    project = load("rookery.config.project")  # a checkout that leads to another one
    try:
        path: str = project.find_root(posix.getcwd())
    except (OSError, project.NotInitialised, project.UntrustedState) as error:  # the command says so
        raise Yours from error
    return path.encode("utf-8", "surrogateescape")


def load(name: str):  # type: ignore[no-untyped-def]
    """A module, by name: the client imports nothing but itself."""
    from importlib import import_module

    return import_module(name)


def _leave(status: int) -> "NoReturn":
    """Without the interpreter's own clean-up, which takes 3 ms."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            status = status or BROKEN_PIPE
        except OSError as error:
            if stream is sys.stdout and not status:
                say(f"rook: error: cannot write the output: {error.strerror}")
                status = FAILED
    posix._exit(status)
