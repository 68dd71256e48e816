"""What is left of an error that should not have been: a log that a person can send."""

from __future__ import annotations

import os
import platform
import tempfile
import threading
import time
import traceback

from rookery import __version__
from rookery.base.call import current_folder, stderr
from rookery.base.errors import RookError
from rookery.config import layout
from rookery.config.environ import read_environ
from rookery.ops.state_owner import find_project


def write_log(error: BaseException, words: list[str]) -> str:
    """Write down what happened and return the path."""
    name = f"bug-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}-{threading.get_native_id()}.log"
    text = "\n".join(
        [
            f"rook {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {' '.join(words[:2])} ({len(words)} words)",
            "".join(traceback.format_exception(error)),
        ]
    )
    for folder in _folders():
        try:
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return path
    stderr().write(text)
    return "the text above"


def _folders() -> list[str]:
    try:
        root = find_project(current_folder(), read_environ().root)
    except (RookError, OSError):
        return [tempfile.gettempdir()]
    return [layout.path(root, layout.LOGS), tempfile.gettempdir()]
