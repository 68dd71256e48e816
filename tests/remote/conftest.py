"""Fixtures for tests of the remote."""

from __future__ import annotations

from pathlib import Path

import pytest

from merge.yard import Yard

from .team import Team


@pytest.fixture
def team(repo: Path, tmp_path: Path) -> Team:
    return Team(Yard(repo), tmp_path)


@pytest.fixture
def own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's own configuration file."""
    path = tmp_path / "xdg" / "rookery" / "config.yaml"
    path.parent.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return path
