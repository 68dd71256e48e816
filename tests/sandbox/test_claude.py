"""The real Claude Code in the sandbox, against a scripted model: its hooks are answered, and it cannot change them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from dev.model_server import ModelServer

from claude import model as model
from claude import settings_for
from conftest import git
from den import DONE
from sandbox.cell import Cell, needs_bubblewrap

pytestmark = [pytest.mark.slow, needs_bubblewrap]


@pytest.fixture
def cell(repo: Path, model: ModelServer) -> Iterator[Cell]:
    cell = Cell(repo)
    settings = settings_for(model)
    config = yaml.safe_load(cell.local.read_text())
    config["agents"] |= {"runtime": "claude", "stop_grace": "1s"}
    config["claude"] = {"program": settings["program"], "env": settings["env"], "share_login": False}
    cell.local.write_text(yaml.safe_dump(config))
    yield cell
    cell.close()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["--headless", "--tmux"])
def test_a_life(cell: Cell, where: str) -> None:
    spoil = "import os; open(os.environ['CLAUDE_CONFIG_DIR'] + '/rook-" + where[2:] + ".json', 'w')"
    spoil_hook = "import os; os.unlink(os.environ['CLAUDE_CONFIG_DIR'] + '/rook-hook')"
    steps = [
        {"edit": {"path": "work.txt", "text": "done\n"}},
        {"commit": "Work"},
        {"run": f'python3 -c "{spoil}"'},
        {"run": f'python3 -c "{spoil_hook}"'},
        {"run": "git push origin HEAD"},
        DONE,
    ]
    cell.sling(cell.task("Work", steps), "--name", "bee", where)
    cell.wait_for("bee", "completed")
    assert cell.agent("bee")["sandbox"] == "bubblewrap"
    assert git(cell.folder, "log", "-1", "--format=%s", cell.agent("bee")["branch"]) == "Work"
    settings = cell.session_folder("bee") / "runtime" / "claude" / f"rook-{where[2:]}.json"
    assert "pre-tool" in settings.read_text()
    log = cell.rook("logs", "bee", "--limit", "0", "--json").out.decode()
    assert "Read-only file system" in log
    assert "Device or resource busy" in log
    assert "hook_start.py" in (settings.parent / "rook-hook").read_text()
    assert "push" in log
    cell.assert_no_process()
