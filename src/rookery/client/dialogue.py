"""A call that the daemon runs: its output goes to our streams, its input comes from them, signals go to it."""

import _signal  # type: ignore[import-not-found]
import posix
import sys

from rookery.client import frames
from rookery.client.connection import Broken, Connection

FAILED, INTERRUPTED, BROKEN_PIPE = 1, 130, 141
"""Exit statuses."""
_MOST_INTERRUPTS = 3


def converse(connection: Connection) -> int:
    """Serve the daemon until the call ends, and return its exit status; raises Broken if there is none."""
    _listen_for_signals(connection)
    wanted = 0
    while True:
        if wanted and not connection.has_more() and _wait(0, connection.fileno()):
            frame = _read(wanted)
            if frame is not None:
                connection.send(frame)
                wanted = 0
            continue
        kind, payload = connection.receive()
        connection.has_answered = True
        if kind == frames.OUT or kind == frames.ERR:
            failed = write(1 if kind == frames.OUT else 2, payload)
            if failed is not None:
                connection.close()
                return failed
        elif kind == frames.EXIT:
            return int(payload)
        elif kind == frames.WANT:
            wanted = int(payload)
        elif kind == frames.BECOME:
            _become(frames.unpack_fields(payload))
        else:
            raise Broken("its answer makes no sense")


def write(number: int, data: bytes) -> int | None:
    """Write all of it; the exit status if that cannot be done."""
    while data:
        try:
            data = data[posix.write(number, data) :]
        except BlockingIOError:  # the stream does not block, and belongs to others too: wait instead
            _wait(number, for_input=False)
        except BrokenPipeError:
            return BROKEN_PIPE
        except OSError as error:
            if number == 1:
                say(f"rook: error: cannot write the output: {error.strerror}")
                return FAILED
            return None  # there is nowhere to say it
    return None


def say(text: str) -> None:
    """Write a line to the error output."""
    write(2, text.encode("utf-8", "backslashreplace") + b"\n")


def terminal_size(number: int) -> tuple[int, int] | None:
    """Columns and lines of the terminal that a stream leads to; None if it leads elsewhere."""
    if not posix.isatty(number):
        return None
    try:
        columns, lines = posix.get_terminal_size(number)
    except OSError:
        return 80, 24
    return columns or 80, lines or 24


def _listen_for_signals(connection: Connection) -> None:
    interrupts = 0

    def interrupt(number: int, _frame: object) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts >= _MOST_INTERRUPTS:  # a daemon that hangs does not hold us
            posix._exit(INTERRUPTED)
        connection.send_from_signal(frames.pack(frames.SIGNAL, bytes([number])))

    def resize(_number: int, _frame: object) -> None:
        size = terminal_size(1) or terminal_size(2) or terminal_size(0)
        if size is not None:
            connection.send_from_signal(frames.pack(frames.SIZE, b"%dx%d" % size))

    def stop(number: int, _frame: object) -> None:
        connection.send_from_signal(frames.pack(frames.SIGNAL, bytes([number])))
        _signal.signal(number, _signal.SIG_DFL)
        posix.kill(posix.getpid(), number)
        _signal.signal(number, stop)  # we have been continued
        connection.send_from_signal(frames.pack(frames.SIGNAL, bytes([_signal.SIGCONT])))

    # A shell lets what it starts in the background ignore interrupts; one without job control, stops.
    for number, handler in ((_signal.SIGINT, interrupt), (_signal.SIGTSTP, stop)):
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, handler)
    _signal.signal(_signal.SIGWINCH, resize)


def _read(most: int) -> bytes | None:
    """A frame with some of standard input, or with why it cannot be read; None if there is none yet."""
    try:
        return frames.pack(frames.INPUT, posix.read(0, most))
    except BlockingIOError:
        return None
    except OSError as error:
        return frames.pack(frames.NO_INPUT, (error.strerror or str(error)).encode())


def _wait(number: int, other: int = -1, *, for_input: bool = True) -> bool:
    """Wait until a stream is ready; False if the other one is first."""
    import select

    watch = select.poll()
    watch.register(number, select.POLLIN if for_input else select.POLLOUT)
    if other >= 0:
        watch.register(other, select.POLLIN)
    return any(ready == number for ready, _ in watch.poll())


def _become(words: list[bytes]) -> None:
    """Go on as another program, which we look for as a shell does."""
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    folders = [b""] if b"/" in words[0] else posix.environ.get(b"PATH", b"/usr/bin:/bin").split(b":")
    for folder in folders:
        try:
            posix.execv(folder + b"/" * bool(folder) + words[0], words)
        except OSError:
            continue
    write(2, b"rook: error: cannot start " + words[0] + b"\n")
    sys.stdout.flush()
    posix._exit(FAILED)
