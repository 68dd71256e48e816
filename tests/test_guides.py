"""The guide to Claude Code, followed word for word: every command in it, with the real program and a scripted model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dev.model_server import ModelServer

from claude import find_claude
from claude import model as model
from conftest import git
from support import child_environ

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[1] / "docs/guides/claude-code.md"
# What a model would answer to the task; the repository's own instructions hold the script.
_CLAUDE_MD = """# Greetings

```model-script
- edit: {path: hello.py, text: "print('hello')\\n"}
- commit: Greet
- mail: {to: "{parent}", type: worker_done, subject: "The greeting is written"}
```
"""


def commands() -> list[str]:
    """The lines of the guide that begin with a dollar sign, in order."""
    return [line[2:] for line in GUIDE.read_text().splitlines() if line.startswith("$ ")]


def test_every_command_of_the_guide_works(repo: Path, model: ModelServer, tmp_path: Path) -> None:
    (repo / "CLAUDE.md").write_text(_CLAUDE_MD)
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Say how to greet")
    env = _environ(tmp_path, model)
    output = {}
    for command in commands():
        done = subprocess.run(
            ["/bin/sh", "-ec", command], cwd=repo, env=env, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        output[command] = done.stdout

    assert len(output) >= 12
    assert "The greeting is written" in output["rook mail wait --timeout 3m"]
    assert "hello.py" in output["rook logs bee"]
    assert "clean" in output["rook merge --branch bee --dry-run"]
    assert "1 of 1 landed" in output["rook merge --branch bee"]
    assert "bee turn 1" in output["rook costs --by turn"]
    assert git(repo, "show", "main:hello.py") == "print('hello')"
    # The hooks gave the person's own session a summary of the project.
    own = str(model.served[-1].request)
    assert "Rookery is at hand" in own
    assert "rook sling" in own


def _environ(tmp_path: Path, model: ModelServer) -> dict[str, str]:
    """A person's own machine: `rook` and `claude` in PATH, a home, and a model that answers."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "claude").symlink_to(find_claude())
    (programs / "rook").write_text(f'#!/bin/sh\nexec {sys.executable} -m rookery "$@"\n')
    (programs / "rook").chmod(0o755)
    return child_environ() | {
        **model.environ,
        "HOME": os.environ["HOME"],
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "CLAUDE_CONFIG_DIR": str(tmp_path / "own"),
        "IS_SANDBOX": "1",
    }
