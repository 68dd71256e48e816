"""Calls that threads serve, as in the daemon: what each of them did, and how it ended."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rookery.base.call import Call, serving


def make_call(cwd: Path | str = "/", environ: Mapping[str, str] | None = None, umask: int = 0o022, **more: Any) -> Call:
    """A call from that folder, with that environment and umask, and with streams in memory."""
    whole = {"PATH": os.environ["PATH"], **(environ or {})}
    streams = more.pop("streams", None) or (io.StringIO(), io.StringIO(), io.StringIO())
    return Call(environ=whole, cwd=str(cwd), umask=umask, pid=os.getpid(), streams=streams, **more)


class Served:
    """A function that runs in a thread of its own for a call."""

    def __init__(self, call: Call, run: Callable[[], object]) -> None:
        self.call = call
        self.result: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, args=(run,), daemon=True)
        self._thread.start()

    def _serve(self, run: Callable[[], object]) -> None:
        try:
            with serving(self.call):
                self.result = run()
        except BaseException as error:
            self.error = error

    @property
    def has_ended(self) -> bool:
        """True once it has returned or raised."""
        return not self._thread.is_alive()

    def end(self, seconds: float = 20) -> BaseException | None:
        """Wait for its end, and give what it raised."""
        self._thread.join(seconds)
        assert self.has_ended, "it did not end"
        return self.error

    def value(self) -> Any:
        """What it returns."""
        error = self.end()
        if error is not None:
            raise error
        return self.result
