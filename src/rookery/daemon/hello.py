"""The beginning of a call: who calls, from where, with which words, environment and terminal."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rookery.client.frames import HOOK, LISTEN, PROTOCOL, RUN, pack_call, unpack_fields

_FIELDS = 8
_MOST_COLUMNS = 10_000
_YES = ord("1")


class OtherVersion(ValueError):
    """The client speaks another version of the protocol."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a client says of itself. Nothing of it is proved."""

    kind: bytes
    folder: str
    umask: int
    terminals: tuple[bool, bool, bool]
    """Which of its standard streams lead to a terminal."""
    size: tuple[int, int]
    """Columns and lines of that terminal."""
    encoding: str
    words: list[str]
    environ: dict[str, str]


def read_hello(payload: bytes) -> Hello:
    """What the first frame says; raises ValueError if it makes no sense."""
    fields = unpack_fields(payload)
    if not fields or fields[0] != PROTOCOL:
        raise OtherVersion("another version of the protocol")
    if len(fields) < _FIELDS:
        raise ValueError("something is missing")
    kind, folder, umask, terminals, size, encoding, count = fields[1:_FIELDS]
    if kind not in (RUN, HOOK, LISTEN) or not folder.startswith(b"/") or len(terminals) != len("011"):
        raise ValueError("a field makes no sense")
    end = _FIELDS + int(count)
    if not _FIELDS <= end <= len(fields):
        raise ValueError("words are missing")
    return Hello(
        kind,
        os.fsdecode(folder),
        int(umask, 8) & 0o777,
        (terminals[0] == _YES, terminals[1] == _YES, terminals[2] == _YES),
        read_size(size),
        _known(encoding),
        [os.fsdecode(word) for word in fields[_FIELDS:end]],
        dict(_pair(os.fsdecode(field)) for field in fields[end:]),
    )


@dataclass(frozen=True, slots=True)
class Guest:
    """An agent in a sandbox, as its host outside has described it. What its own calls say of these does not count."""

    session_id: str
    environ: Mapping[str, str]
    folder: str


_SHOWN = {"TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES"}


def as_guest(hello: Hello, guest: Guest) -> Hello:
    """A call from within a sandbox: its words and its terminal are its own, the rest is what its host has said."""
    shown = {name: value for name, value in hello.environ.items() if name in _SHOWN}
    return replace(hello, environ={**guest.environ, **shown}, folder=guest.folder)


def pack_hello(hello: Hello) -> bytes:
    """The frame from whose payload `read_hello` reads the same."""
    return pack_call(
        hello.kind,
        os.fsencode(hello.folder),
        hello.umask,
        hello.terminals,
        hello.size,
        hello.encoding,
        [os.fsencode(word) for word in hello.words],
        {os.fsencode(name): os.fsencode(value) for name, value in hello.environ.items()},
    )


def read_size(text: bytes) -> tuple[int, int]:
    """`120x40` as columns and lines; raises ValueError if it is something else."""
    columns, _, lines = text.partition(b"x")
    return min(max(int(columns), 1), _MOST_COLUMNS), min(max(int(lines), 1), _MOST_COLUMNS)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError("a variable without a name or a value")
    return name, value


def _known(encoding: bytes) -> str:
    try:
        return codecs.lookup(encoding.decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return "utf-8"
