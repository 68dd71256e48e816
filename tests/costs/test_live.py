"""Costs while agents are at work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Rook
from rookery.runtimes.claude_transcripts import usage_since
from support import child_environ, wait_until

_SPEND = """```rook-script
- spend: {input: 1000, output: 100, model: scripted}
- hang: true
```"""


@pytest.mark.slow
@pytest.mark.parametrize(("by", "name"), [("agent", "bee"), ("model", "scripted"), ("turn", "bee turn 1")])
def test_what_a_running_turn_has_used_is_counted(project: Path, by: str, name: str) -> None:
    (project / ".rookery/config.local.yaml").write_text("provision:\n  ports: 0\nagents:\n  stop_grace: 0.3s\n")
    rook = Rook(project)
    task = rook.json("task", "create", "Spend", "--description", _SPEND).data["id"]
    rook.json("sling", task, "--name", "bee")
    try:
        wait_until(lambda: b"usage" in rook("logs", "bee").out, 60)
        assert rook.json("costs").data["rows"] == []  # nothing is settled yet
        (row,) = _first(project, "--by", by)["rows"]
        assert (row["name"], row["turns"], row["input"], row["output"]) == (name, 1, 1000, 100)
        assert row["dollars"] > 0
        assert _first(project, "--agent", "stranger")["rows"] == []
    finally:
        rook("stop", "bee", "--clean")


def _first(project: Path, *words: str) -> Any:
    """The first thing that `costs --live` says."""
    child = subprocess.Popen(
        [sys.executable, "-m", "rookery", "costs", "--live", "--json", *words],
        cwd=project,
        env=child_environ(),
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    child.terminate()
    child.wait(30)
    child.stdout.close()
    return json.loads(line)["data"]


def test_only_what_is_younger_counts_and_each_message_once(tmp_path: Path) -> None:
    place = tmp_path / "claude/projects/x"
    place.mkdir(parents=True)
    lines = [
        {"timestamp": at, "type": "assistant", "message": {"id": id_, "model": "m", "usage": {"input_tokens": 10}}}
        for at, id_ in (("2026-01-01T00:00:00.000Z", "a"), ("2026-01-02T00:00:00.000Z", "b"))
    ]
    (place / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, lines[1]]))
    (used,) = usage_since(str(tmp_path), "2026-01-01T12:00:00.000Z")
    assert used["input"] == 10
    assert usage_since(str(tmp_path / "nowhere"), "") == []
