"""The lines of Go's `import ( … )`, and imports of one line."""

from __future__ import annotations

import re

from rookery.merge.resolve.imports.model import Statement
from rookery.merge.resolve.regions import Lines

_LINE = re.compile(r'^(?:import |\t)(?:([\w.]+) )?"([\w./\-]+)"$')
_VERSION = re.compile(r"^v\d+$")


def statement(lines: Lines, at: int) -> Statement | None:
    """The statement that begins at a line."""
    match = _LINE.match(lines[at].rstrip())
    if match is None:
        return None
    return Statement(match[0].strip(), (_called(match[1], match[2]),), (lines[at],))


def write(_ours: Statement, _theirs: Statement) -> Lines | None:
    """A line has no names that could come and go."""
    return None


def local(statement: Statement) -> tuple[str, ...]:
    """The package's name; an import for its effect alone, or of all names, has none."""
    return tuple(name for name in statement.names if name not in ("_", "."))


def _called(alias: str | None, path: str) -> str:
    if alias:
        return alias
    parts = path.split("/")
    last = parts[-2] if len(parts) > 1 and _VERSION.match(parts[-1]) else parts[-1]
    return last.partition(".")[0].removeprefix("go-").rpartition("-")[2]
