"""How a program ended, in words, from its exit status."""

from __future__ import annotations

import signal


def killed_by(status: int | None) -> str:
    """The signal that ended a program (-9 and 137 are both SIGKILL), or nothing if it ended by itself."""
    number = 0 if status is None else -status if status < 0 else status - 128
    if number == signal.SIGKILL:
        return f"killed (exit status {128 + number}, often out of memory)"
    if number in signal.valid_signals():
        return f"ended by {signal.Signals(number).name} (exit status {128 + number})"
    return ""


def how_it_ended(status: int | None, output: str = "") -> str:
    """How a program ended and the end of its output: `exited with status 3, no output`."""
    if killed := killed_by(status):
        return f"{killed}: {output}" if output else f"{killed}; no output"
    return f"exited with status {status}: {output}" if output else f"exited with status {status}, no output"
