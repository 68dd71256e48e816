"""The hook of an agent that resolves conflicts: reading and writing in its folder, and nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rookery.merge.tiers.bounds import FOLDER, judge
from rookery.runtimes.hooks import hook_command
from support import child_environ


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree" / ".git").mkdir(parents=True)
    (tmp_path / "tree" / "out").symlink_to(tmp_path)
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("name", "tool_input", "allowed"),
    [
        ("Read", {"file_path": "a.py"}, True),
        ("Edit", {"file_path": "{folder}/a.py"}, True),
        ("Write", {"file_path": "new/deep.py"}, True),
        ("Grep", {"pattern": "x", "path": "."}, True),
        ("Glob", {"pattern": "**/*.py"}, True),
        ("Write", {"file_path": "/etc/passwd"}, False),
        ("Read", {"file_path": "../private"}, False),
        ("Write", {"file_path": "out/escaped"}, False),
        ("Write", {"file_path": ".git/config"}, False),
        ("Glob", {"pattern": "/etc/*"}, False),
        ("Glob", {"pattern": "a/../../*"}, False),
        ("Bash", {"command": "ls"}, False),
        ("Task", {}, False),
        (None, {}, False),
    ],
)
def test_what_may_be_done(folder: Path, name: str | None, tool_input: dict[str, Any], allowed: bool) -> None:
    filled = {key: value.replace("{folder}", str(folder)) for key, value in tool_input.items()}
    assert (judge({"tool_name": name, "tool_input": filled}, str(folder)) == "") is allowed


def test_without_a_folder_nothing_may_be_done() -> None:
    assert judge({"tool_name": "Read", "tool_input": {"file_path": "a"}}, "")


@pytest.mark.parametrize(
    ("event", "payload", "status"),
    [
        ("pre-tool", {"tool_name": "Read", "tool_input": {"file_path": "a.py"}}, 0),
        ("pre-tool", {"tool_name": "Bash", "tool_input": {"command": "ls"}}, 2),
        ("pre-tool", ["no", "mapping"], 2),
        ("pre-tool", None, 2),
        ("stop", {}, 0),
    ],
)
def test_as_a_program_calls_it(folder: Path, event: str, payload: Any, status: int) -> None:
    done = subprocess.run(
        hook_command(event, module="rookery.merge.tiers.bounds"),
        input=b"" if payload is None else json.dumps(payload).encode(),
        env=child_environ({FOLDER: str(folder)}),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert (b'"permissionDecision": "allow"' in done.stdout) is (status == 0 and event == "pre-tool")
