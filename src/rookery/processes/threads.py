"""Threads that serve calls, kept for the next one: starting a thread takes longer than many a call."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]

_KEEP_SECONDS = 60.0


class Threads:
    """As many threads as there are jobs, up to a limit; further jobs wait."""

    def __init__(self, most: int, keep: float = _KEEP_SECONDS) -> None:
        self._most = most
        self._keep = keep
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting = 0
        """Threads without a job."""
        self._queued = 0
        """Jobs without a thread."""

    def run(self, job: Job) -> None:
        """Have a thread do it, soon; raises RuntimeError if there is none and none can be started."""
        with self._lock:
            self._queued += 1
            is_new = self._queued > self._waiting and self._threads < self._most
            self._threads += is_new
        self._jobs.put(job)
        if is_new:
            try:
                threading.Thread(target=self._work, name="call", daemon=True).start()
            except RuntimeError:
                with self._lock:
                    self._threads -= 1
                    if self._threads:
                        return  # another one does it later
                raise

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except BaseException:
                with self._lock:
                    self._threads -= 1
                raise

    def _next(self) -> Job | None:
        """Wait for a job; None, and the thread is no longer counted, if none has come for a while."""
        with self._lock:
            self._waiting += 1
        while True:
            try:
                job = self._jobs.get(timeout=self._keep)
            except queue.Empty:
                with self._lock:
                    if self._queued:
                        continue  # one is on its way
                    self._waiting -= 1
                    self._threads -= 1
                    return None
            with self._lock:
                self._waiting -= 1
                self._queued -= 1
            return job
