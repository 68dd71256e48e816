"""The loop goes on where nothing tells it of changes: it looks by the clock then."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.config.presence import Presence
from rookery.flows import reactor
from rookery.flows.loop import Assessment
from rookery.flows.loop_process import open_project
from rookery.flows.reactor import Reactor


@pytest.mark.slow
def test_without_watches_it_looks_every_second(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reactor, "watch_folders", lambda _folders: None)
    log: list[str] = []
    looks: list[Assessment] = []

    def is_enough(look: Assessment) -> bool:
        looks.append(look)
        return len(looks) == 3

    loop = Reactor(str(project), lambda: open_project(str(project)), log.append, Presence(str(project)))
    loop.open()
    try:
        loop.run(is_enough)  # else a minute would pass before the second
    finally:
        loop.close()
    assert len(looks) == 3
    assert "every second" in log[0]
