"""What the command line reads besides words: long texts, where `-` says that they come from standard input."""

from __future__ import annotations

from typing import Any

from rookery.base.call import stdin
from rookery.base.errors import Refused, UsageError
from rookery.ops.command_line import Globals, HelpAsked, print_help, read_words
from rookery.ops.operation import Op

_MOST_INPUT = 64 * 1024 * 1024
"""An agent may pipe anything into us, without end."""


def parse_operation(op: Op, words: list[str], before: Globals) -> tuple[dict[str, Any], Globals]:
    """Values for the operation's parameters, and the options of every command. Help is shown, and ends the command."""
    try:
        values, settings = read_words(op, words, before)
    except HelpAsked:
        print_help(op)
        raise SystemExit(0) from None
    return _read_long_texts(op, values), settings


def _read_long_texts(op: Op, values: dict[str, Any]) -> dict[str, Any]:
    """Where a long text is `-`, it comes from standard input: an argument cannot hold a megabyte."""
    asking = [param.name for param in op.params if param.long_text and values.get(param.name) == "-"]
    if len(asking) > 1:
        raise UsageError(f"only one of {' and '.join(asking)} can come from standard input")
    for name in asking:
        try:
            data = stdin().buffer.read(_MOST_INPUT + 1)
        except OSError as error:
            raise Refused(f"cannot read standard input: {error.strerror}", hint="pipe the text into it") from error
        if len(data) > _MOST_INPUT:
            raise UsageError(f"standard input is longer than {_MOST_INPUT} bytes", hint="give a shorter text")
        try:
            values[name] = data.decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input is not UTF-8 (byte {error.start})") from error
    return values
