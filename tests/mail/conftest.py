"""A hive for every test of mail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .hive import Agent, Hive


@pytest.fixture
def hive(tmp_path: Path) -> Iterator[Hive]:
    """A project without agents."""
    project = Hive(tmp_path / "project")
    yield project
    project.db.close()


@pytest.fixture
def queen(hive: Hive) -> Agent:
    """A living lead."""
    return hive.add("queen", "lead")


@pytest.fixture
def bee(hive: Hive, queen: Agent) -> Agent:
    """A living builder of the queen's."""
    return hive.add("bee", "builder", queen.name)


@pytest.fixture
def drone(hive: Hive, queen: Agent) -> Agent:
    """Another one."""
    return hive.add("drone", "builder", queen.name)
