"""A project whose agents are sandboxed: tests run something in the sandbox, and look at its effects outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from den import DONE, Den
from rookery.sandbox.probe import probe
from rookery.terminal.tmux import Tmux, socket_path

_FOUND = probe()
needs_bubblewrap = pytest.mark.skipif(not _FOUND.works, reason=f"no sandbox here: {_FOUND.reason}")


class Cell(Den):
    """A Den with the sandbox on. `rook` on the path within is the code under test."""

    def __init__(self, repo: Path, **settings: Any) -> None:
        super().__init__(repo)
        self.local = repo / ".rookery" / "config.local.yaml"
        self.configure(sandbox=settings)

    def configure(self, **sections: dict[str, Any]) -> None:
        """Settings of the checkout, besides those that every test here has."""
        own: dict[str, dict[str, Any]] = {
            "agents": {"stop_grace": "0.3s"},
            "provision": {"ports": 0},
            "sandbox": {"mode": "on", "credentials": ["PYTHONPATH"]},
        }
        whole = {name: own.get(name, {}) | sections.get(name, {}) for name in own | sections}
        self.local.write_text(yaml.safe_dump(whole))

    def run(self, *steps: Any, name: str = "bee", role: str = "builder") -> list[str]:
        """Let an agent do steps (a text is a shell command) and end; return the output of each tool call."""
        done = [{"run": step} if isinstance(step, str) else step for step in steps]
        self.sling(self.task(f"For {name}", [*done, DONE]), "--name", name, "--role", role)
        self.wait_for(name, "completed")
        return self.outputs(name)[:-1]

    def outputs(self, name: str) -> list[str]:
        """The outputs of the tool calls of an agent's last session."""
        text = (self.session_folder(name) / "events.ndjson").read_text()
        events = [json.loads(line) for line in text.splitlines()]
        return [str(event["data"].get("output", "")) for event in events if event["kind"] == "tool"]

    def close(self) -> None:
        """Stop the agents that a failed test left at work."""
        for agent in self.rook.json("status").data["agents"]:
            self.rook("stop", agent["agent"])
        Tmux(socket_path(str(self.folder))).kill_server()

    def session_folder(self, name: str) -> Path:
        """The private folder of an agent's last session."""
        return self.folder / ".rookery" / "sessions" / str(self.agent(name)["session_id"])

    def worktree(self, name: str) -> Path:
        """Where an agent works."""
        return self.folder / ".rookery" / "worktrees" / name
