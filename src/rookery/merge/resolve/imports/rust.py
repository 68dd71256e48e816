"""Rust's `use a::b;` and `use a::{b, c};` with plain names, and `mod a;`."""

from __future__ import annotations

import re

from rookery.merge.resolve.imports.model import Statement, read_by
from rookery.merge.resolve.regions import Lines

_WHOLE = re.compile(r"^\s*(?:pub(?:\(\w+\))? )?(?:use ([\w:]+?)(?: as (\w+))?|mod (\w+));$")
_FLAT = re.compile(r"^(\s*(?:pub(?:\(\w+\))? )?use [\w:]+::)\{([\w, ]+)\};$")
_OPEN = re.compile(r"^(\s*(?:pub(?:\(\w+\))? )?use [\w:]+::)\{$")
_NAMES = re.compile(r"^\s*([\w, ]+)$")
_CLOSE = re.compile(r"^\s*\};$")


def read(lines: Lines) -> list[Statement] | None:
    """The statements that these lines are."""
    return read_by(lines, lambda at: _statement(lines, at))


def _statement(lines: Lines, at: int) -> Statement | None:
    line = lines[at].rstrip()
    if match := _WHOLE.match(line):
        name = match[2] or match[3] or match[1].rpartition("::")[2]
        return Statement(line.strip(), (name,), (lines[at],), atomic=True)
    if match := _FLAT.match(line):
        return Statement(match[1], _split(match[2]), (lines[at],))
    match = _OPEN.match(line)
    if match is None:
        return None
    names: list[str] = []
    end = at + 1
    while end < len(lines) and (inner := _NAMES.match(lines[end].rstrip())):
        names += _split(inner[1])
        end += 1
    if end == len(lines) or not _CLOSE.match(lines[end].rstrip()):
        return None
    return Statement(match[1], tuple(names), lines[at : end + 1])


def write(_ours: Statement, _theirs: Statement) -> Lines | None:
    """How names are broken into lines is rustfmt's own art."""
    return None


def local(statement: Statement) -> tuple[str, ...]:
    """The names themselves; what is made public is not used here, and a module need not be."""
    if statement.key.lstrip().startswith(("pub", "mod")):
        return ()
    return tuple(name.rpartition(" as ")[2] for name in statement.names if name != "self")


def _split(names: str) -> tuple[str, ...]:
    return tuple(" ".join(name.split()) for name in names.split(",") if name.strip())
