"""Starting the daemon again if it dies while something is alive or due: at night there is no next call.

The fork server lives as long as the daemon and sees its end. Unless the daemon has said that it leaves for good, the
server's process, which has everything loaded, becomes the next daemon. Runners start one as long as they live.
"""

from __future__ import annotations

from contextlib import suppress

from rookery.base.draft import write_whole
from rookery.config import layout
from rookery.config.environ import now, read_daemon_environ
from rookery.flows.need import is_anything_alive
from rookery.ops.state import open_state
from rookery.processes.proctable import RUNNER
from rookery.processes.python import module_command
from rookery.processes.spawning import become

_MOST_STARTS, _SECONDS = 30, 60.0


def successor_command(root: str) -> list[str]:
    """The words that start the project's daemon if it is needed."""
    return [*module_command("rookery.flows.loop_start", alone=True), root, "--if-needed"]


def start_again(root: str) -> None:
    """Go on as the program that starts the project's daemon if it is needed."""
    become(successor_command(root), read_daemon_environ() | {RUNNER: "keeper"})


def is_wanted(root: str) -> bool:
    """True if anything is alive or due, and daemons have not died too often."""
    db = open_state(root)
    try:
        return is_anything_alive(root, db) and not _is_broken(root)
    finally:
        db.close()


def _is_broken(root: str) -> bool:
    """True if daemons have died too often within a minute; else this death is noted."""
    path = layout.path(root, layout.DAEMON_DEATHS)
    deaths: list[float] = []
    with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        deaths = [float(word) for word in file.read().split()]
    recent = [each for each in deaths if 0 <= now() - each < _SECONDS]
    if len(recent) >= _MOST_STARTS:
        return True
    with suppress(OSError):
        write_whole(path, " ".join(map(str, [*recent, now()])))
    return False
