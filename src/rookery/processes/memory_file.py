"""Data for a process that we start, in an open file without a name, which it inherits: the data may hold secrets."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from rookery.base.json import dumps, loads


def write(data: dict[str, Any]) -> int:
    """The data as an open file, for the process to inherit. The caller closes it."""
    return write_bytes(dumps(data).encode("utf-8", "surrogateescape"))


def write_bytes(content: bytes) -> int:
    """The same for bytes. Needs no room on a disk where the system has files in memory."""
    file = os.memfd_create("rookery") if sys.platform == "linux" else _temporary_file()
    with open(file, "wb", closefd=False) as target:
        target.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def read(file: int) -> dict[str, Any]:
    """The data of an open file, which is closed."""
    with open(file, encoding="utf-8", errors="surrogateescape") as source:
        data: dict[str, Any] = loads(source.read())
    return data


def _temporary_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
