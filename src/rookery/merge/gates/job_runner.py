"""What the runners of jobs have in common: the journal, and a loop that settles the job if its merger is gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.config.environ import forget_runner, now
from rookery.processes import holder, memory_file
from rookery.sessions import journal
from rookery.turns.loop_supervisor import start_loop


def run_job(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Do the job that this process was started for. `work` gets the order and returns how it ended."""
    forget_runner()
    file = int(sys.argv[2])
    os.set_inheritable(file, False)
    job = memory_file.read(int(sys.argv[3]))
    writer, me = journal.Writer(file), holder.myself()
    writer.add(journal.RUNNER, at=stamp(now()), pid=me.pid, start=me.text)
    end = work(job["order"])
    writer.add(journal.ENDED, at=stamp(now()), **end)
    writer.finish()
    if holder.is_gone(holder.read(*job["owner"])):  # the merger that started it
        with suppress(RookError, OSError):  # the project is gone
            start_loop(sys.argv[1])
