"""Fixtures for tests of landing."""

from __future__ import annotations

from pathlib import Path

import pytest

from .yard import Yard


@pytest.fixture(autouse=True)
def _no_child_while_writing(_own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is started inside a write transaction of the database is a bug."""
    monkeypatch.setenv("ROOKERY_TEST_NO_CHILD_WHILE_WRITING", "1")


@pytest.fixture
def yard(repo: Path) -> Yard:
    return Yard(repo)
