"""Where a soak happens: a folder with a small disk, a repository and a home, and the calls of `rook` there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_DISK_MEGABYTES = 128
_MEGABYTES_PER_MINUTE = 48
"""A minute of work takes about 20."""
_LONGEST_CALL = 120.0
_PASSED_ON = ("PYTHONPATH", "LANG")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `rook` by the person or a merger."""

    words: tuple[str, ...]
    status: int
    seconds: float
    out: str = field(repr=False)
    err: str
    is_hung: bool = False

    @property
    def is_ok(self) -> bool:
        """True if it did what it was asked."""
        return self.status == 0

    @property
    def is_killed(self) -> bool:
        """True if the client itself was killed, so that the result of the call is unknown."""
        return self.status == -signal.SIGKILL and not self.is_hung

    @property
    def data(self) -> Any:
        """What it gave; None if it was refused or cut off."""
        if not self.is_ok:
            return None
        try:
            return json.loads(self.out)["data"]
        except (ValueError, KeyError):
            return None


class Site:
    """The folder of one soak. Everything that the product touches lies on `disk`, what the soak knows beside it."""

    def __init__(self, folder: Path, *, mode: str = "on", minutes: float = 1.0) -> None:
        self.folder = folder
        self.mode = mode
        self.disk = folder / "disk"
        self.repo = self.disk / "acme"
        self.home = self.disk / "home"
        self.temporary = self.disk / "tmp"
        self.ledger = folder / "ledger"
        self.clock = folder / "clock"
        self.calls: list[Call] = []
        self.is_closed = False
        """Allow no call from now on: a thread that tries one ends."""
        self.no_disk = ""
        """Why the disk cannot be filled; empty if it can."""
        self._size = f"{_DISK_MEGABYTES + round(_MEGABYTES_PER_MINUTE * minutes)}m"
        self._is_mounted = False
        self._path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
        self._rook = shutil.which("rook", path=self._path) or sys.exit("rook is not installed: run ./rook-dev soak")

    @classmethod
    def make(cls, *, mode: str, minutes: float) -> Site:
        """A new one below the folder for temporary files."""
        folder = Path(tempfile.gettempdir(), f"rook-soak-{os.urandom(4).hex()}")
        site = cls(folder, mode=mode, minutes=minutes)
        folder.mkdir(0o700)
        site.open()
        return site

    def open(self) -> None:
        """Make the folders, the small disk among them if this user may mount one."""
        self.disk.mkdir()
        self.no_disk = self._mount()
        self.ledger.mkdir()
        for folder in (self.home, self.temporary, self.repo):
            folder.mkdir()
        self.set_clock(0.0)

    def _mount(self) -> str:
        argv = ["mount", "-t", "tmpfs", "-o", f"size={self._size}", "none", str(self.disk)]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"mount cannot be started: {error.strerror}"
        self._is_mounted = done.returncode == 0
        return "" if self._is_mounted else f"no filesystem can be mounted here: {done.stderr.strip()}"

    def environ(self) -> dict[str, str]:
        """What a person's shell would have here, and nothing of ours but where the programs are."""
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        env |= {"HOME": str(self.home), "TMPDIR": str(self.temporary), "ROOKERY_TEST_CLOCK": str(self.clock)}
        env |= {"PATH": self._path, "GIT_CONFIG_NOSYSTEM": "1", "TERM": "dumb"}
        return env | ({"ROOKERY_DAEMON": "off"} if self.mode == "off" else {})

    def rook(self, *words: str, timeout: float = _LONGEST_CALL) -> Call:
        """Call `rook … --json` in the repository. One that does not end in time is killed and counts as hung."""
        if self.is_closed:
            raise SystemExit
        begun = time.monotonic()
        child = subprocess.Popen(
            [self._rook, *words, "--json"],
            cwd=self.repo,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        is_hung = False
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            is_hung = True
            child.kill()
            out, err = child.communicate()
        call = Call(words, child.returncode, time.monotonic() - begun, out, err, is_hung)
        self.calls.append(call)
        with (self.folder / "calls.log").open("a") as log:
            shown = " ".join(word[:80].replace("\n", " ") for word in words)
            log.write(
                f"{time.strftime('%H:%M:%S')} {call.seconds:7.2f} s, status {call.status}: {shown} {err.strip()}\n"
            )
        return call

    def ask(self, *words: str, tries: int = 5) -> Any:
        """What a call gives, tried again where it was cut off; raises RuntimeError if it is refused every time."""
        for _ in range(tries):
            call = self.rook(*words)
            if call.data is not None:
                return call.data
            time.sleep(0.5)
        raise RuntimeError(f"rook {' '.join(words)} failed {tries} times: {call.err.strip() or call.out.strip()}")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """Plain git; raises CalledProcessError."""
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.repo, env=self.environ(), check=True, capture_output=True, text=True
        )
        return done.stdout

    def set_clock(self, seconds: float) -> None:
        """Let the product's clock be so many seconds off, in one step: it may read the file at any moment."""
        draft = self.clock.with_suffix(".new")
        draft.write_text(f"{seconds}\n")
        draft.replace(self.clock)

    def free(self) -> int:
        """How many bytes of the disk are left."""
        disk = os.statvfs(self.disk)
        return disk.f_bavail * disk.f_frsize

    def keep(self) -> Path:
        """Take everything off the small disk into the folder itself, so that it can be looked at later."""
        if self._is_mounted:
            kept = self.folder / "kept"
            with suppress(shutil.Error):  # something vanished while it was copied: the rest is there
                shutil.copytree(self.disk, kept, symlinks=True, ignore=_ignore_sockets, dirs_exist_ok=True)
            self._unmount()
            self.disk.rmdir()
            kept.rename(self.disk)
        return self.folder

    def remove(self) -> None:
        """Leave nothing behind."""
        self._unmount()
        shutil.rmtree(self.folder)

    def _unmount(self) -> None:
        if self._is_mounted:
            subprocess.run(["umount", "-l", str(self.disk)], check=True)
            self._is_mounted = False


def _ignore_sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not os.path.islink(path := os.path.join(folder, name)) and _is_special(path)]


def _is_special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
