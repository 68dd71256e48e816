"""Rust's `use a::b;` and `use a::{b, c};` with plain names, and `mod a;`."""

from __future__ import annotations

import re

from rookery.merge.resolve.imports.model import Statement, read_bracket, split
from rookery.merge.resolve.regions import Lines

_WHOLE = re.compile(r"^\s*(?:pub(?:\(\w+\))? )?(?:use ([\w:]+?)(?: as (\w+))?|mod (\w+));$")
_FLAT = re.compile(r"^(\s*(?:pub(?:\(\w+\))? )?use [\w:]+::)\{([\w, ]+)\};$")
_OPEN = re.compile(r"^(\s*(?:pub(?:\(\w+\))? )?use [\w:]+::)\{$")
_NAMES = re.compile(r"^\s*([\w, ]+)$")
_CLOSE = re.compile(r"^\s*\};$")


def statement(lines: Lines, at: int) -> Statement | None:
    """The statement that begins at a line."""
    line = lines[at].rstrip()
    if match := _WHOLE.match(line):
        name = match[2] or match[3] or match[1].rpartition("::")[2]
        return Statement(line.strip(), (name,), (lines[at],))
    if match := _FLAT.match(line):
        return Statement(match[1], split(match[2]), (lines[at],))
    match, bracket = _OPEN.match(line), read_bracket(lines, at, _NAMES, _CLOSE)
    return None if match is None or bracket is None else Statement(match[1], tuple(bracket[0]), bracket[2])


def write(_ours: Statement, _theirs: Statement) -> Lines | None:
    """How names are broken into lines is rustfmt's own art."""
    return None


def local(statement: Statement) -> tuple[str, ...]:
    """The names themselves; what is made public is not used here, and a module need not be."""
    if statement.key.lstrip().startswith(("pub", "mod")):
        return ()
    return tuple(name.rpartition(" as ")[2] for name in statement.names if name != "self")
