"""`python -m bench`: measure everything and print one table a topic. `--quick` is small enough for every check-in."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable

from bench import (
    agents,
    claude,
    cold,
    daemon,
    hard,
    hooks,
    in_process,
    landing,
    large,
    loop,
    mail,
    project,
    swarm,
    transfer,
    writers,
)
from bench.table import Table, render

Topic = Callable[[str, project.Size], Table]

TOPICS: dict[str, Topic] = {
    "in-process": in_process.measure,
    "hard": hard.measure,
    "cold": cold.measure,
    "daemon": daemon.measure,
    "writers": writers.measure,
    "import": transfer.measure,
    "mail": mail.measure,
    "agents": agents.measure,
    "hooks": hooks.measure,
    "claude": claude.measure,
    "landing": landing.measure,
    "swarm": swarm.measure,
    "loop": loop.measure,
    "large": large.measure,
}

_PLACE = os.path.abspath(".dev")


def main() -> int:
    """Run the topics that are asked for; the status is 1 with `--strict` if an aim is missed by more than half."""
    asked = _arguments()
    size = project.QUICK if asked.quick else project.FULL
    met = True
    # In the working folder and not in /tmp, which is often in memory: durable writes have to reach a real disk.
    os.makedirs(_PLACE, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=_PLACE) as folder:
        started = time.perf_counter()
        root = project.build(os.path.join(folder, "project"), size)
        print(f"{size.tasks:,} tasks, {size.edges:,} blockers, built in {time.perf_counter() - started:.1f} s")
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
        for name, measure in TOPICS.items():
            if asked.topics and name not in asked.topics:
                continue
            table = measure(root, size)
            print(render(table), flush=True)
            met = met and not table.is_far_off
    return 1 if asked.strict and not met else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"one of {', '.join(TOPICS)}; all without one")
    parser.add_argument("--quick", action="store_true", help="a small run of a few seconds")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if an aim is missed by more than half")
    arguments = parser.parse_args()
    for topic in arguments.topics:
        if topic not in TOPICS:
            parser.error(f"no topic {topic!r}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
