"""No file work while others wait for the database: a test fails that touches files within a write transaction.

Python tells of every file that is opened, folder that is walked and process that is started. What SQLite does to its
own files goes past Python, and so past this.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from rookery.base import call as calls

_WORK = {
    *("open", "os.listdir", "os.scandir", "os.mkdir", "os.rmdir", "os.rename", "os.remove", "os.link", "os.symlink"),
    *("os.truncate", "os.chmod", "os.utime", "os.fork", "os.exec", "os.posix_spawn", "subprocess.Popen"),
}
_MAY = ("importlib", "/config/environ.py", "/db/commits.py")
"""A module may be loaded where it is first needed, the clock of a test is a file, and so is what tells of a commit."""
_installed: list[None] = []


def install() -> None:
    """Look from now on, in this process and its copies; for good, as Python knows no other way."""
    if not _installed:
        _installed.append(None)
        sys.addaudithook(_look)


def _look(event: str, args: tuple[Any, ...]) -> None:
    if event in _WORK and calls.is_writing() and not _is_allowed():
        raise RuntimeError(f"{event} {args[:1]} inside a write transaction")


def _is_allowed() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if any(folder in frame.f_code.co_filename for folder in _MAY):
            return True
        frame = frame.f_back
    return False
