"""The process that becomes an agent's program in a terminal: `python … rookery.turns.pane_program PROGRAM WORDS…`.

The program keeps what is set here: whatever it leaves behind stays below it, and is known to be the agent's.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rookery.processes.python import module_command
from rookery.processes.spawning import become, find_program
from rookery.processes.subreaper import adopt_orphans


def adopting(argv: Sequence[str], folder: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """The words that start the program so; raises ProgramFailed if it is not there."""
    find_program(argv[0], folder, env)
    return (*module_command("rookery.turns.pane_program"), *argv)


def main() -> None:
    """Go on as the program."""
    adopt_orphans()
    become(sys.argv[1:])
