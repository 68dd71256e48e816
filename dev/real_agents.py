"""The demo on the real Claude Code: the same swarm, with a scripted model on loopback instead of the real one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

import yaml

from dev import swarm
from dev.model_server import ModelServer

if TYPE_CHECKING:
    from dev.demo import Stage

_OURS = os.path.abspath(".dev/claude/node_modules/.bin/claude")
_GET_IT = "Claude Code is not here: `npm install -g @anthropic-ai/claude-code`, then again"


def play(stage: Stage) -> None:
    """Your session is the orchestrator, and its agents are real programs, guarded at every call."""
    from dev.demo import make_repository

    program = _OURS if os.path.exists(_OURS) else shutil.which("claude")
    if program is None:
        sys.exit(_GET_IT)
    with ModelServer() as server:
        make_repository(stage)
        stage.say("A project, and Rookery in your own Claude Code session: it is told how things stand, and gets mail")
        stage.rook("init", "--yes")
        stage.rook("hooks", "install")
        config = {
            "agents": {"runtime": "claude"},
            "claude": {"program": program, "env": dict(server.environ), "share_login": False},
        }
        (stage.repo / ".rookery" / "config.local.yaml").write_text(yaml.safe_dump(config))

        stage.say("What an agent may do is decided before every call, from its role and its bounds")
        for role, call in (
            ("builder", {"command": "git add -A && git commit -m 'Add numbers'"}),
            ("builder", {"command": "echo done && git push"}),
            ("lead", {"command": "sed -i s/a/b/ add.py"}),
        ):
            stage.rook("guard", "test", role, "Bash", json.dumps(call))

        swarm.play(stage)
        stage.say("Every call of every agent was asked for, answered and written down")
        stage.rook("logs", "add", "--limit", "12")
        stage.rook("costs", "--by", "turn")
        stage.rook("doctor", "--category", "sandbox")
        stage.rook("hooks", "uninstall")
