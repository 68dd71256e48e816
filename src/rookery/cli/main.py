"""`rook`: find the operation, import its module alone, run it, print its result. The one edge where errors become text.

Exit status: 0 done, 1 refused or nothing came, 2 wrong usage, 3 our bug (with the path of a log), 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rookery import __version__
from rookery.base.call import ClosedStream, confirm, current, current_folder, stderr, stdin, stdout
from rookery.base.errors import BUG, INTERRUPTED, REFUSED, RookError, UsageError
from rookery.base.json import dumps
from rookery.base.page import Page
from rookery.base.text import visible
from rookery.cli.bug import write_log
from rookery.cli.help import show_help
from rookery.cli.parse import parse_operation
from rookery.cli.render import print_error, print_ids, print_view, redraw_views
from rookery.config.environ import read_environ
from rookery.flows.workload import is_needed
from rookery.guard.permits import check_confined, check_permitted
from rookery.ops import index
from rookery.ops.command_line import Globals, read_globals
from rookery.ops.context import Context
from rookery.ops.operation import FOLLOWS, Op, call

_BROKEN_PIPE = 141
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
"""What the disk may say, or the stream that the output goes to. It is no fault of ours."""


def main(argv: list[str] | None = None) -> int:
    """Run one command, for this thread's call or for the process itself, and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    try:
        return _run(words)
    except RookError as error:
        _report(error.code, error.message, error.hint, words)
        return error.exit_status
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as leaving:  # after help was shown
        return leaving.code if isinstance(leaving.code, int) else 0
    except BrokenPipeError:
        if current() is None:
            # The reader went away. Python would complain once more when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception as error:
        if isinstance(error, ClosedStream) or (isinstance(error, OSError) and error.errno in _NO_ROOM):
            place = f" {error.filename}" if error.filename else ""
            _report("io", f"cannot write{place}: {error.strerror}", "make room, or write elsewhere", words)
            return REFUSED
        path = write_log(error, words)
        _report("bug", f"Rookery failed: {type(error).__name__}: {error}", f"please report it with {path}", words, path)
        return BUG


def _run(words: list[str]) -> int:
    settings, rest = read_globals(words)
    if settings.version:
        print(f"rook {__version__}", file=stdout())
        return 0
    operation, length = index.find(rest)
    if operation is None:
        return show_help(rest, settings)
    values, settings = parse_operation(operation, rest[length:], settings)
    context = _context(settings)
    context.only_reads = not operation.changes_state
    context.confirm = lambda shown, question: _confirm(operation, shown, question, settings, context, values)
    try:
        if context.environ.is_confined:
            check_confined(operation, values, settings.directory, settings.config)
        check_permitted(context, operation, values)
        result = call(context, operation, values)
        if _redraws(operation, context, settings, values):
            redraw_views(operation.view, result, values, no_color=settings.no_color or context.environ.no_color)
        else:
            for one in result if operation.streams else [result]:
                _print_result(operation, one, settings, context, values)
        if context.has_database and operation.changes_state:
            _react(context, words)
        return int(getattr(result, "exit_status", REFUSED if operation.waits and result is None else 0))
    finally:
        context.close()


def _redraws(op: Op, context: Context, settings: Globals, values: dict[str, Any]) -> bool:
    follows = any(values.get(param.name) for param in op.params if FOLLOWS in param.marks)
    return op.redraws and follows and context.is_interactive and not settings.quiet


def _react(context: Context, words: list[str]) -> None:
    """See to what follows from the command, and to what was left behind. The command itself is done."""
    try:
        if is_needed(context.root, context.db):
            from rookery.flows.loop_process import react  # half of all modules, which most commands need not load

            react(context)
    except Exception as error:
        write_log(error, words)


def _context(settings: Globals) -> Context:
    environ = read_environ()
    cwd = os.path.normpath(os.path.join(_current_folder(), settings.directory or ""))
    if not os.path.isdir(cwd):
        raise UsageError(f"no folder {cwd}", hint="-C takes an existing folder")
    context = Context(cwd=cwd, environ=environ, flags=settings.config)
    context.react = lambda: None if context.only_reads else _react(context, [])
    # An agent in a sandbox never gets a program of ours in its terminal.
    is_person = not settings.json and not environ.is_confined
    context.is_interactive = is_person and stdin().isatty() and stdout().isatty()
    if not settings.json and not settings.quiet and stderr().isatty():
        context.progress = _show_progress
        context.follow = _follow
    return context


def _show_progress(label: str, total: int) -> Callable[[int], None]:
    from rookery.cli.rich_output import show_progress  # rich takes 25 ms to import

    return show_progress(label, total)


def _follow(text: str) -> None:
    stderr().buffer.write(visible(text.replace("\r\n", "\n")).encode(errors="backslashreplace"))
    stderr().flush()


def _current_folder() -> str:
    try:
        return current_folder()
    except FileNotFoundError as error:
        raise UsageError("the current folder is gone", hint="cd to one that exists") from error


def _print_result(op: Op, result: Any, settings: Globals, context: Context, values: dict[str, Any]) -> None:
    if settings.json:
        more = {"next": result.next} if isinstance(result, Page) else {}
        _print_envelope({"v": 1, "ok": True, "data": result, **more})
    elif not settings.quiet:
        print_view(op.view, result, values, no_color=settings.no_color or context.environ.no_color)
    else:
        print_ids(result)


def _confirm(op: Op, shown: Any, question: str, settings: Globals, context: Context, values: dict[str, Any]) -> bool:
    """Show what an operation is about to do and ask; also a closed terminal says no."""
    if not context.is_interactive:
        return False
    print_view(op.view, shown, values, no_color=settings.no_color or context.environ.no_color)
    return confirm(question)


def _report(code: str, message: str, hint: str, words: list[str], log: str = "") -> None:
    options = words[: words.index("--")] if "--" in words else words
    if "--json" in options:
        error = {"code": code, "message": message, "hint": hint} | ({"log": log} if log else {})
        with suppress(OSError):  # if it cannot be written, it is said below
            _print_envelope({"v": 1, "ok": False, "error": error})
            return
    with suppress(OSError):  # there is nowhere to say it
        print_error(message, hint, no_color="--no-color" in options or read_environ().no_color)


def _print_envelope(envelope: dict[str, Any]) -> None:
    try:
        data = dumps(envelope).encode()
    except UnicodeEncodeError:  # a file name that is not UTF-8: escaped, it survives the trip
        data = dumps(envelope, ascii=True).encode()
    out = stdout()
    out.flush()
    out.buffer.write(data + b"\n")
    out.buffer.flush()
