"""`import … from '…'` of JavaScript and TypeScript, on one line or with one name a line."""

from __future__ import annotations

import re

from rookery.merge.resolve.imports.model import Statement, ordered, read_by
from rookery.merge.resolve.regions import Lines

_FLAT = re.compile(r"^(import(?: type)?|export(?: type)?) (?:(\w+), )?\{ ?([\w$, ]*?) ?\} from (['\"][^'\"]+['\"]);?$")
_OTHER = re.compile(r"^(?:import|export)(?: type)? (?:(\* as )?([\w$]+) from )?(?:\* from )?(['\"][^'\"]+['\"]);?$")
_OPEN = re.compile(r"^(import(?: type)?|export(?: type)?) (?:(\w+), )?\{$")
_NAME = re.compile(r"^\s+((?:type )?[\w$]+(?: as [\w$]+)?),?$")
_CLOSE = re.compile(r"^\} from (['\"][^'\"]+['\"]);?$")


def read(lines: Lines) -> list[Statement] | None:
    """The statements that these lines are."""
    return read_by(lines, lambda at: _statement(lines, at))


def _statement(lines: Lines, at: int) -> Statement | None:
    line = lines[at].rstrip()
    if match := _FLAT.match(line):
        return Statement(_key(match[1], match[2], match[4]), _split(match[3]), (lines[at],))
    if match := _OTHER.match(line):
        return Statement(line.rstrip(";"), (match[2],) if match[2] else (), (lines[at],), atomic=True)
    match = _OPEN.match(line)
    if match is None:
        return None
    names = []
    end = at + 1
    while end < len(lines) and (inner := _NAME.match(lines[end].rstrip())):
        names.append(inner[1])
        end += 1
    last = _CLOSE.match(lines[end].rstrip()) if end < len(lines) else None
    if last is None:
        return None
    return Statement(_key(match[1], match[2], last[1]), tuple(names), lines[at : end + 1])


def write(ours: Statement, theirs: Statement) -> Lines | None:
    """One name a line, if both are such and end their lines alike."""
    if len(ours.lines) == 1 or len(theirs.lines) == 1:
        return None
    inner, names = ours.lines[1], ordered(ours.names, theirs.names)
    indent = inner[: len(inner) - len(inner.lstrip())]
    comma = "," if ours.lines[-2].rstrip().endswith(",") else ""
    listed = [f"{indent}{name}," for name in names]
    listed[-1] = listed[-1][:-1] + comma
    return (ours.lines[0], *listed, ours.lines[-1])


def local(statement: Statement) -> tuple[str, ...]:
    """The last word of `type a as b`; what is exported is not used here."""
    if statement.key.startswith("export"):
        return ()
    return tuple(name.rpartition(" ")[2] for name in statement.names)


def _key(head: str, default: str | None, source: str) -> str:
    return f"{head}{f' {default},' if default else ''}\0{source}"


def _split(names: str) -> tuple[str, ...]:
    return tuple(" ".join(name.split()) for name in names.split(",") if name.strip())
