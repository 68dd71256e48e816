"""What starts behind every hook: it imports the module that its first word names, and has it answer the event.

It runs as `python -I -S hook_start.py MODULE EVENT`, so it knows no folder of Python's but the standard library.
`pre-tool` fails closed: exit status 2 is the only one that keeps a tool from running.
"""

import _signal  # type: ignore[import-not-found] # `signal` loads enum
import posix
import sys

SECONDS = 10
"""Programs let the tool run when the hook is slow."""


def start(module: str, event: str) -> None:
    """Have the module answer the event, and end with its status."""
    if event == "pre-tool":
        _signal.signal(_signal.SIGALRM, _refuse)
        _signal.alarm(SECONDS)
    sys.path.append(__file__.rsplit("/", 3)[0])
    try:
        status = __import__(module, fromlist=["main"]).main()
    except SystemExit:
        raise
    except BaseException as error:
        sys.stderr.write(f"rook: the hook cannot start: {error}\n")
        sys.stderr.flush()
        posix._exit(2 if event == "pre-tool" else 1)
    sys.exit(status)


def _refuse(*_: object) -> None:
    posix.write(2, b"rook: the hook had no answer in time")
    posix._exit(2)


if __name__ == "__main__":
    start(sys.argv.pop(1), sys.argv[1])
