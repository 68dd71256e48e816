"""What the doctor asks of tmux."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rookery.base.check import OK, WARNING, Check, Finding, Place
from rookery.base.errors import ProgramFailed
from rookery.processes.process import run

_CATEGORY = "terminal"
_OLDEST = (3, 0)
_TIMEOUT = 5


def check_tmux(_place: Place) -> Iterator[Finding]:
    """Tmux is there and not too old; only interactive agents need it."""
    try:
        said = run(["tmux", "-V"], timeout=_TIMEOUT).stdout.strip()
    except ProgramFailed as error:
        hint = "install tmux 3.0 or later to run interactive agents; headless ones do without"
        yield Finding(_CATEGORY, "tmux", WARNING, error.message, hint)
        return
    version = re.search(r"(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) >= _OLDEST:
        yield Finding(_CATEGORY, "tmux", OK, said)
        return
    yield Finding(_CATEGORY, "tmux", WARNING, f"{said} is too old for interactive agents", "install tmux 3.0 or later")


CHECKS: tuple[Check, ...] = (check_tmux,)
