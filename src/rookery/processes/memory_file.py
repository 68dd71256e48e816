"""Data that is handed to a process that we start, through an open file that no name leads to: it may hold secrets."""

from __future__ import annotations

import os
import sys
from typing import Any

from rookery.base.json import dumps, loads


def write(data: dict[str, Any]) -> int:
    """The data as an open file, which the process is to inherit. The caller closes it."""
    return write_bytes(dumps(data).encode("utf-8", "surrogateescape"))


def write_bytes(content: bytes) -> int:
    """The same of bytes. Needs no room on a disk where the system has files in memory."""
    file = os.memfd_create("handed") if sys.platform == "linux" else _temporary_file()
    with open(file, "wb", closefd=False) as target:
        target.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def read(file: int) -> dict[str, Any]:
    """What was written to an open file. It is closed."""
    with open(file, encoding="utf-8", errors="surrogateescape") as source:
        found: dict[str, Any] = loads(source.read())
    return found


def _temporary_file() -> int:
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
