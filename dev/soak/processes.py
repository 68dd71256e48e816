"""The processes of one soak, found in `/proc`: those with its home in their environment, and what they started."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rookery.daemon import forkserver

DAEMON, FORKSERVER, RUNNER, WORKER, AGENT, TOOL, CLIENT, GIT, OTHER = (
    *("daemon", "fork server", "runner", "worker", "agent", "tool", "client", "git", "other"),
)

# The words by which a process is known; the first that fits counts.
_WORDS = (
    ("rookery.daemon.main", DAEMON),
    ("rookery.daemon.worker", WORKER),
    ("rookery.turns.runner", RUNNER),
    ("rookery.runtimes.scripted_agent", AGENT),
    ("rookery.client.main", CLIENT),
    ("bin/rook", CLIENT),
)
# Copies of a daemon have its words, and a name of their own.
_NAMES = {forkserver.WORKER_NAME: WORKER, forkserver.SPARE_NAME: WORKER, forkserver.NAME: FORKSERVER}
_SESSION = "ROOKERY_SESSION="


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment. Its start makes sure that a number given out again is not mistaken for it."""

    pid: int
    start: int
    parent: int
    state: str
    kind: str
    words: str
    session: str = ""

    @property
    def is_zombie(self) -> bool:
        """True if it has ended, and its parent has not taken note yet."""
        return self.state in "ZX"


def of_site(home: Path) -> list[Process]:
    """Every process of the soak with this home: never this one, or one above it."""
    mark = f"HOME={home}"
    table: dict[int, tuple[Process, bool]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError, ValueError):
                table[int(name)] = _read(int(name), mark)
    spared = _self_and_above({pid: process.parent for pid, (process, _) in table.items()})
    members = {pid for pid, (_, is_marked) in table.items() if is_marked and pid not in spared}
    is_growing = True
    while is_growing:
        fresh = {
            pid for pid, (process, _) in table.items() if process.parent in members and pid not in members | spared
        }
        members |= fresh
        is_growing = bool(fresh)
    return [table[pid][0] for pid in sorted(members)]


def named(home: Path, name: str) -> list[Process]:
    """Those of them whose program has this name, by their environment alone: for processes that end within a moment."""
    running = []
    for pid in os.listdir("/proc"):
        if pid.isdecimal():
            with suppress(OSError, ValueError):
                if Path("/proc", pid, "comm").read_text() == f"{name}\n":
                    process, is_marked = _read(int(pid), f"HOME={home}")
                    running += [process] if is_marked else []
    return running


def _read(pid: int, mark: str) -> tuple[Process, bool]:
    folder = Path("/proc", str(pid))
    stat = (folder / "stat").read_bytes()
    fields = stat[stat.rindex(b")") + 2 :].split()
    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    environ: list[str] = []
    with suppress(OSError):
        environ = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
    session = next((variable.removeprefix(_SESSION) for variable in environ if variable.startswith(_SESSION)), "")
    kind = _NAMES.get((folder / "comm").read_text(errors="replace").rstrip("\n")) or classify(words, session)
    return Process(pid, int(fields[19]), int(fields[1]), fields[0].decode(), kind, words, session), mark in environ


def classify(words: str, session: str) -> str:
    """What a process is, by its words and whether it belongs to an agent."""
    for text, kind in _WORDS:
        if text in words:
            return kind
    if os.path.basename(words.partition(" ")[0]).startswith("git"):
        return GIT
    return TOOL if session else OTHER


def _self_and_above(parents: dict[int, int]) -> set[int]:
    spared = {0, 1}
    pid = os.getpid()
    while pid not in spared:
        spared.add(pid)
        pid = parents.get(pid, 0)
    return spared


def send(process: Process, number: int) -> bool:
    """Send a signal to this very process; False if it is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        stat = Path("/proc", str(process.pid), "stat").read_bytes()
        if int(stat[stat.rindex(b")") + 2 :].split()[19]) != process.start:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def end_all(home: Path, patience: float = 10.0) -> set[int]:
    """Kill everything that is left of the soak, and wait until it is gone; the numbers of what that was."""
    deadline = time.monotonic() + patience
    ended: set[int] = set()
    while (alive := [process for process in of_site(home) if not process.is_zombie]) and time.monotonic() < deadline:
        for process in alive:
            send(process, signal.SIGKILL)
        ended |= {process.pid for process in alive}
        time.sleep(0.05)
    return ended
