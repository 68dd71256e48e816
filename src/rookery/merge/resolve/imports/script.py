"""`import … from '…'` of JavaScript and TypeScript, on one line or with one name a line."""

from __future__ import annotations

import re

from rookery.merge.resolve.imports.model import Statement, read_bracket, split, write_bracket
from rookery.merge.resolve.regions import Lines

_FLAT = re.compile(r"^(import(?: type)?|export(?: type)?) (?:(\w+), )?\{ ?([\w$, ]*?) ?\} from (['\"][^'\"]+['\"]);?$")
_OTHER = re.compile(r"^(?:import|export)(?: type)? (?:(\* as )?([\w$]+) from )?(?:\* from )?(['\"][^'\"]+['\"]);?$")
_OPEN = re.compile(r"^(import(?: type)?|export(?: type)?) (?:(\w+), )?\{$")
_NAME = re.compile(r"^\s+((?:type )?[\w$]+(?: as [\w$]+)?),?$")
_CLOSE = re.compile(r"^\} from (['\"][^'\"]+['\"]);?$")


def statement(lines: Lines, at: int) -> Statement | None:
    """The statement that begins at a line."""
    line = lines[at].rstrip()
    if match := _FLAT.match(line):
        return Statement(_key(match[1], match[2], match[4]), split(match[3]), (lines[at],))
    if match := _OTHER.match(line):
        return Statement(line.rstrip(";"), (match[2],) if match[2] else (), (lines[at],))
    match, bracket = _OPEN.match(line), read_bracket(lines, at, _NAME, _CLOSE)
    if match is None or bracket is None:
        return None
    names, last, whole = bracket
    return Statement(_key(match[1], match[2], last[1]), tuple(names), whole)


def write(ours: Statement, theirs: Statement) -> Lines | None:
    """One name a line, if both are such and end their lines alike."""
    is_flat = len(ours.lines) == 1
    return None if is_flat else write_bracket(ours, theirs, "," if ours.lines[-2].rstrip().endswith(",") else "")


def local(statement: Statement) -> tuple[str, ...]:
    """The last word of `type a as b`; what is exported is not used here."""
    if statement.key.startswith("export"):
        return ()
    return tuple(name.rpartition(" ")[2] for name in statement.names)


def _key(head: str, default: str | None, source: str) -> str:
    return f"{head}{f' {default},' if default else ''}\0{source}"
