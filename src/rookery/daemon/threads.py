"""Threads that serve calls, kept for the next one: starting a thread takes longer than many a call."""

from __future__ import annotations

import queue
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Job = Callable[[], None]

_KEEP_SECONDS = 60.0


class Threads:
    """As many threads as there is work, up to a limit; what comes on top waits."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0

    def run(self, job: Job) -> None:
        """Have a thread do it, soon."""
        with self._lock:
            is_new = self._idle == 0 and self._threads < self._most
            if is_new:
                self._threads += 1
            elif self._idle:
                self._idle -= 1
        self._jobs.put(job)
        if is_new:
            threading.Thread(target=self._work, name="call", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_KEEP_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._idle == 0:  # a job that counts on us is on its way
                        continue
                    self._idle -= 1
                    self._threads -= 1
                    return
            job()
            with self._lock:
                self._idle += 1
