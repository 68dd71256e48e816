"""A tiny process that starts the daemon again if it dies while something is to be done: at night there is no next call.

The keeper is a shell that waits for the end of a pipe, which comes when the daemon's process ends, and goes on as the
program that starts a daemon. It is told if it is not needed any more. Runners do the same as long as they live.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rookery.base.detach import start_detached
from rookery.base.errors import RookError
from rookery.base.proctable import RUNNER
from rookery.base.proctree import is_alive
from rookery.base.python import module_command
from rookery.config.environ import now, read_daemon_environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rookery.base.proctable import Identity

# A line on the pipe means that the daemon left because it was not needed.
_SCRIPT = 'read -r word <"/dev/fd/$1" && exit; shift; exec "$@"'
_MOST_STARTS, _SECONDS = 30, 60.0


class Keeper:
    """At most one for a daemon."""

    def __init__(self, root: str, log: Callable[[str], None]) -> None:
        self._root = root
        self._log = log
        self._pipe = -1
        self._process: Identity | None = None

    def set(self, is_needed: bool) -> None:
        """Have a keeper, or none."""
        if not is_needed:
            self.dismiss()
        elif (self._process is None or not is_alive(self._process)) and not self._is_broken():
            self.dismiss()
            self._start()

    def dismiss(self) -> None:
        """Let the keeper end."""
        if self._pipe >= 0:
            with suppress(OSError):
                os.write(self._pipe, b"\n")
            os.close(self._pipe)
            self._pipe, self._process = -1, None

    def _start(self) -> None:
        read, self._pipe = os.pipe2(os.O_CLOEXEC)
        try:
            self._process = start_detached(
                ["/bin/sh", "-c", _SCRIPT, "sh", str(read), *module_command("rookery.flows.start"), self._root],
                cwd=self._root,
                env=read_daemon_environ() | {RUNNER: "keeper"},
                output=os.path.join(self._root, ".rookery", "logs", "loop.log"),
                keep=[read],
            )
        except (RookError, OSError) as error:
            self._log(f"nothing would start the daemon again if it died: {error}")
        finally:
            os.close(read)

    def _is_broken(self) -> bool:
        """True if daemons have died too often of late; else this one's start is noted."""
        path = os.path.join(self._root, ".rookery", "run", "keeper")
        starts: list[float] = []
        with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            starts = [float(word) for word in file.read().split()]
        late = [each for each in starts if 0 <= now() - each < _SECONDS]
        if len(late) >= _MOST_STARTS:
            return True
        with suppress(OSError), open(path, "w", encoding="ascii") as file:
            file.write(" ".join(map(str, [*late, now()])))
        return False
