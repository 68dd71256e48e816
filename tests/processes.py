"""What tests of real processes share: waiting with a deadline, and a mark that finds whatever a test left running."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rookery.base.proctree import Identity, end_tree, identify, marked


def wait_until(holds: Callable[[], object], seconds: float = 20) -> None:
    """Return as soon as it holds; fail at the deadline."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.005)


class Mark:
    """A variable that everything a test starts carries."""

    name = "ROOKERY_SESSION"

    def __init__(self, value: str) -> None:
        self.value = value
        self.pair = (self.name, value)
        self.env = {**os.environ, self.name: value}

    def carriers(self) -> list[Identity]:
        """Everything alive that the test started."""
        return marked(*self.pair)


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> Iterator[Mark]:
    """A mark of this test's own; the test fails if anything that carries it is left at the end."""
    own = Mark(f"{request.node.name}-{os.getpid()}-{time.monotonic_ns()}".replace(" ", "_"))
    yield own
    left = own.carriers()
    end_tree(None, own.pair, 0)
    assert left == []


def written_pid(path: Path) -> Identity:
    """The process that writes its number into the file, once it has."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    found = identify(int(path.read_text()))
    assert found is not None
    return found
