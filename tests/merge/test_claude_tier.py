"""The agent tier on the real Claude Code, against a scripted model: it edits its folder, and gets no further."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from dev.model_server import ModelServer

from claude import model as model
from claude import settings_for
from rookery.merge.model import Entry

from . import standin
from .test_tiers import clash, land  # noqa: F401 - `land` is a fixture
from .yard import Yard

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    standin.install(monkeypatch)


def test_claude_resolves_a_conflict_and_cannot_leave_its_folder(
    yard: Yard,
    land: Callable[..., Entry],  # noqa: F811
    model: ModelServer,
    tmp_path: Path,
) -> None:
    settings = settings_for(model)
    config = {
        "merge": {"tiers": ["agent"], "runtime": "claude", "agent_timeout": "60s"},
        "claude": {"program": settings["program"], "env": settings["env"], "share_login": False},
        "provision": {"ports": 0},
    }
    (yard.folder / ".rookery" / "config.local.yaml").write_text(yaml.safe_dump(config))
    clash(yard)
    outside = tmp_path / "outside.txt"
    steps = [
        {"tool": "Write", "input": {"file_path": str(outside), "content": "escaped"}},
        {"tool": "Bash", "input": {"command": f"touch {outside}", "description": "escape"}},
        {"tool": "Read", "input": {"file_path": "a.txt"}},
        {"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "<<<<<<<", "new_string": "<<<<<<<"}},
        {"tool": "Write", "input": {"file_path": "a.txt", "content": "1\nours\ntheirs\n3\n"}},
        {"say": "Both lines are kept."},
    ]
    roles = yard.folder / ".rookery" / "roles"
    roles.mkdir()
    (roles / "resolver.md").write_text(f"You resolve.\n\n```model-script\n{yaml.safe_dump(steps)}```\n")
    entry = land("work")
    log = (yard.folder / ".rookery" / "merges" / f"{entry.id}-agent.log").read_text()
    assert (entry.state, entry.tier) == ("landed", "agent"), (entry.reason, log)
    assert yard.show("a.txt") == "1\nours\ntheirs\n3"
    assert not outside.exists()
    assert "outside of the folder" in log
    yard.assert_tidy()
