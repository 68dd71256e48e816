"""When the work of the day is due. Every command may ask, so this loads nothing else of upkeep."""

from __future__ import annotations

import os
from contextlib import suppress

from rookery.base.clock import is_future
from rookery.base.draft import write_whole
from rookery.config import layout
from rookery.config.project import make_state_folders

DAY = 86_400.0


def is_due(root: str, now: float) -> bool:
    """True if the work of the day has to be done: a day after the project was made, then as often as was set."""
    path = layout.path(root, layout.UPKEEP_DUE)
    try:
        with open(path, encoding="ascii") as file:
            due = float(file.read(40) or 0)
        return now >= due or is_future(os.stat(path).st_mtime, now)
    except ValueError:
        return True
    except OSError:
        with suppress(OSError):
            return now >= os.stat(layout.path(root, layout.LOCATION)).st_mtime + DAY
        return False


def put_off(root: str, due: float) -> None:
    """Say when it is due next."""
    make_state_folders(layout.path(root, layout.RUN))
    write_whole(layout.path(root, layout.UPKEEP_DUE), f"{due:.0f}\n", mode=0o600)
