"""Real daemons and real clients, as users have them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from daemons import background_of
from rookery.daemon import address
from rookery.processes.proctable import Identity, pids_with
from rookery.processes.proctree import is_alive
from rookery.runtimes.hooks import hook_command
from support import SOURCE, Ran, child_environ, wait_until

_CLIENT = "import sys; sys.path.insert(0, {!r}); from rookery.client.main import run; run()"


def client_argv(*words: str, source: str = SOURCE) -> list[str]:
    """The words that start the client as agents have it: without `site`."""
    return [sys.executable, "-I", "-S", "-c", _CLIENT.format(source), *words]


class Live:
    """A project with a daemon of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = str(folder)
        self._callers: list[subprocess.Popen[bytes]] = []

    def environ(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a caller has."""
        return child_environ({"ROOKERY_DAEMON": "on"} | dict(env or {}))

    def run(
        self,
        *words: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        source: str = SOURCE,
    ) -> Ran:
        """Run `rook` to its end."""
        done = subprocess.run(
            client_argv(*words, source=source),
            cwd=folder or self.folder,
            env=self.environ(env),
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start `rook` and leave it running."""
        pipe = subprocess.PIPE
        caller = subprocess.Popen(
            client_argv(*words), cwd=self.folder, env=self.environ(env), stdin=pipe, stdout=pipe, stderr=pipe
        )
        self._callers.append(caller)
        return caller

    def hook(self, event: str, message: bytes, env: Mapping[str, str]) -> Ran:
        """What an agent's program gets for an event."""
        done = subprocess.run(
            hook_command(event),
            cwd=self.folder,
            env=self.environ(env),
            input=message,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    @property
    def place(self) -> address.Address:
        """Where the daemon is; of one that has just begun, as soon as it says so."""
        wait_until(lambda: address.read_address(self.root) is not None)
        place = address.read_address(self.root)
        assert place is not None
        return place

    @property
    def identity(self) -> Identity:
        """The daemon's process."""
        process = self.place.process
        assert process is not None
        return process

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the daemon; after one that ends it, wait for that."""
        daemon = self.identity
        os.kill(daemon.pid, number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            wait_until(lambda: not is_alive(daemon))

    def log(self) -> str:
        """The daemon's log."""
        return Path(address.log_path(self.root)).read_text()

    def close(self) -> None:
        """End the callers that still run, and the daemon, also one that is stopped."""
        for caller in self._callers:
            if caller.poll() is None:
                caller.kill()
            caller.wait()
            for stream in (caller.stdin, caller.stdout, caller.stderr):
                if stream is not None:
                    with suppress(BrokenPipeError):
                        stream.close()
        # All of them at once: runners and keepers start a daemon that was killed again.
        wait_until(lambda: not self._end_all())

    def _end_all(self) -> bool:
        """Kill whatever runs for the project; False if nothing did."""
        pids = [*background_of(self.folder), *pids_with("ROOKERY_ROOT", self.root)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(pids)


def processes_of(folder: str) -> list[str]:
    """The command lines of the daemon's processes that name a folder, with their numbers."""
    lines = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(b"rookery.daemon" in word for word in words) and any(folder.encode() in word for word in words):
                lines.append(f"{name} {b' '.join(words)!r}")
    return lines


def wait_for_dialogue(caller: subprocess.Popen[bytes]) -> None:
    """Wait until the daemon has taken the call: from then on the client notices when its terminal changes its size."""

    def listens() -> bool:
        status = Path(f"/proc/{caller.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1]
        return bool(int(caught, 16) & (1 << (signal.SIGWINCH - 1)))

    wait_until(listens)
    assert caller.poll() is None


@pytest.fixture
def live(project: Path) -> Iterator[Live]:
    """A project whose commands go through its daemon, which is ended by its number; nothing may be left of it."""
    running = Live(project)
    yield running
    running.close()
    wait_until(lambda: processes_of(str(project)) == [])  # a daemon that was asked to leave may still run
