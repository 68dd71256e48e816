"""Fixtures for tests of landing."""

from __future__ import annotations

from pathlib import Path

import pytest

from .yard import Yard


@pytest.fixture
def yard(repo: Path) -> Yard:
    return Yard(repo)
