"""A tmux server, a mark and a worktree for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

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
    wait_until(lambda: not mark.carriers())
