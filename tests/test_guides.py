"""The guide to Claude Code, followed word for word: every command in it, with the real program and a scripted model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dev.model_script import BUILT_IN
from dev.model_server import ModelServer

from claude import find_claude
from conftest import git
from support import child_environ

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[1] / "docs/guides/claude-code.md"


def commands() -> list[str]:
    """The lines of the guide that begin with a dollar sign, in order."""
    return [line[2:] for line in GUIDE.read_text().splitlines() if line.startswith("$ ")]


def test_every_command_of_the_guide_works(repo: Path, tmp_path: Path) -> None:
    with ModelServer(built_in=BUILT_IN) as model:  # as `./rook-dev model-server` is: nothing says what to answer
        _follow(repo, model, _environ(tmp_path, model))


def _follow(repo: Path, model: ModelServer, env: dict[str, str]) -> None:
    output = {}
    for command in commands():
        done = subprocess.run(
            ["/bin/sh", "-ec", command], cwd=repo, env=env, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        output[command] = done.stdout

    assert len(output) >= 12
    assert "bee has written a note" in output["rook mail wait --timeout 3m"]
    assert "bee.md" in output["rook logs bee"]
    assert "clean" in output["rook merge --branch bee --dry-run"]
    assert "1 of 1 landed" in output["rook merge --branch bee"]
    assert "bee turn 1" in output["rook costs --by turn"]
    assert git(repo, "show", "main:bee.md") == "What bee did."
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
