"""A tmux server for each test, gone at its end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from process_tools import Mark, wait_until
from process_tools import mark as mark
from rookery.terminal.tmux import Tmux


@pytest.fixture
def tmux(mark: Mark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    """A server on a socket of this test's own."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    server = Tmux(str(tmp_path_factory.mktemp("t") / "s"))
    yield server
    server.kill_server()
    wait_until(lambda: not mark.carriers())  # it hangs up, and they end a moment later


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """A program that turns bracketed paste on, says that it is up, and keeps what it reads, byte by byte."""
    program = tmp_path / "reader.py"
    program.write_text(
        "import os, sys, termios, tty\n"
        "tty.setraw(0)\n"
        "os.write(1, b'\\x1b[?2004hup')\n"
        "out = open(sys.argv[1], 'wb', buffering=0)\n"
        "while True:\n"
        "    out.write(os.read(0, 65536))\n"
    )
    return program
