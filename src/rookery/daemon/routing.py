"""Where a command runs: in a thread of the daemon, in a process of its own, or in the client's process.

Threads are for what is short: it reads or writes rows, and at most asks git. What computes, waits, lands or writes
files into a checkout says `long` in its declaration and gets a process of its own, which a new daemon does not cut
off, and whose crash, memory and speed affect no other call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from rookery.base.errors import NotInitialised, UntrustedState, UsageError
from rookery.config.project import find_root
from rookery.ops import index
from rookery.ops.command_line import read_globals
from rookery.ops.operation import FOLLOWS, Op

THREAD, PROCESS, CLIENT = "thread", "process", "client"

_IN_CLIENT = ("init", "daemon")
_HELP = frozenset({"-h", "--help"})
_DIRECTORY = ("-C", "--directory")


def route(words: list[str], folder: str, root: str) -> tuple[str, bool]:
    """Where the command runs; and whether it only reads, so that its client may ask again if this daemon dies."""
    try:
        settings, rest = read_globals(words)
    except UsageError:
        return THREAD, True  # it says what is wrong
    if rest[:1] and rest[0] in _IN_CLIENT:
        return CLIENT, False
    if any(word in _DIRECTORY or word.startswith("--directory=") for word in rest):
        return CLIENT, False
    if settings.directory and not _is_here(os.path.join(folder, settings.directory), root):
        return CLIENT, False
    operation, _ = index.find(rest)
    if operation is None:
        return THREAD, True  # help
    is_help = not _HELP.isdisjoint(rest[: rest.index("--")] if "--" in rest else rest)
    is_short = is_help or not (operation.long or _goes_on(operation, rest))
    return THREAD if is_short else PROCESS, not operation.changes_state


def _goes_on(operation: Op, words: list[str]) -> bool:
    """True if the operation runs until it is interrupted."""
    return operation.follows or any(FOLLOWS in param.marks and param.flag in words for param in operation.params)


def is_of(environ: Mapping[str, str], folder: str, root: str) -> bool:
    """True if the call is for this project: the client's path to it may lead to another one since."""
    return _is_here(folder, root, environ.get("ROOKERY_ROOT") or None)


def _is_here(folder: str, root: str, named: str | None = None) -> bool:
    try:
        return os.path.realpath(find_root(folder, named)) == os.path.realpath(root)
    except (NotInitialised, UntrustedState):
        return False
