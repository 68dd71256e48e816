"""What the doctor asks of tmux."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rookery.base.check import ERROR, OK, WARNING, Check, Finding, Place
from rookery.base.errors import ProgramFailed, RookError
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.processes.process import run

_CATEGORY = "terminal"
_OLDEST = (3, 0)
_TIMEOUT = 5


def check_tmux(place: Place) -> Iterator[Finding]:
    """Tmux is there and not too old; only interactive agents need it."""
    try:
        version = run(["tmux", "-V"], timeout=_TIMEOUT).stdout.strip()
    except ProgramFailed as error:
        hint = "install tmux 3.0 or later to run interactive agents; headless ones do without"
        status = WARNING
        if _is_wanted(place):
            status, hint = ERROR, "install tmux 3.0 or later, or set agents.mode to headless"
        yield Finding(_CATEGORY, "tmux", status, error.message, hint)
        return
    numbers = re.search(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= _OLDEST:
        yield Finding(_CATEGORY, "tmux", OK, version)
        return
    message = f"{version} is too old for interactive agents"
    yield Finding(_CATEGORY, "tmux", WARNING, message, "install tmux 3.0 or later")


def _is_wanted(place: Place) -> bool:
    """True if agents run in tmux unless a sling says otherwise."""
    try:
        return load_config(place.root, read_environ(), {}).config.agents.mode == "tmux"
    except RookError:
        return False  # the configuration's own check says so


CHECKS: tuple[Check, ...] = (check_tmux,)
