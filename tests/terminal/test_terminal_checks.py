"""What the doctor asks of tmux, with programs of our own in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.base.check import OK, WARNING, Place
from rookery.terminal.checks import check_tmux


@pytest.mark.parametrize(
    ("version", "status"),
    [("tmux 3.3a", OK), ("tmux next-3.5", OK), ("tmux master", OK), ("tmux 2.9", WARNING), ("tmux 1.8", WARNING)],
)
def test_the_version_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, status: str) -> None:
    program = tmp_path / "tmux"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (finding,) = check_tmux(Place(None, "/"))
    assert finding.status == status
    assert version in finding.message


def test_without_tmux_there_is_a_warning_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (finding,) = check_tmux(Place(None, "/"))
    assert (finding.status, finding.message) == (WARNING, "tmux is not installed")
    assert "headless" in finding.hint
