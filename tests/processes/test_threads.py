"""Threads that come and go with the work, and lose none of it."""

from __future__ import annotations

import threading

from rookery.processes.threads import Threads
from support import wait_until


def test_more_jobs_than_threads_are_all_done_and_later_ones_too() -> None:
    threads = Threads(2, keep=0.05)
    go = threading.Event()
    done: list[int] = []

    def job(number: int) -> None:
        go.wait(20)
        done.append(number)

    for number in range(10):
        threads.run(lambda number=number: job(number))  # type: ignore[misc]
    go.set()
    wait_until(lambda: len(done) == 10)
    wait_until(lambda: threads._threads == 0)
    threads.run(lambda: job(10))
    wait_until(lambda: len(done) == 11)


def test_a_thread_is_used_again() -> None:
    threads = Threads(8)
    names: set[int] = set()
    for number in range(5):
        threads.run(lambda: names.add(threading.get_ident()))
        wait_until(lambda number=number: threads._waiting == 1 and threads._queued == 0)  # type: ignore[misc]
    assert len(names) == 1
