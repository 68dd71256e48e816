"""What a decision loads: the parser for shell commands alone, and nothing that is slow to import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tree_sitter

from support import SOURCE

_DECIDE = """
import sys
sys.path[:0] = sys.argv[1:3]
from rookery.guard.decide import decide
from rookery.guard.model import Bounds, Call
from rookery.roles.model import ROLES
bounds = Bounds("/srv/main", "/srv/main/.rookery/worktrees/bee", "b", "main")
tool, name, value = sys.argv[3:]
verdict = decide(ROLES["builder"], "yolo", bounds, Call(tool, {name: value}))
loaded = sorted(sys.modules)
import json
print(json.dumps([verdict.verdict, loaded]))
"""
HEAVY = {"typing", "dataclasses", "importlib.resources", "tempfile", "subprocess", "pathlib", "inspect", "contextlib"}


def decide_alone(tool: str, name: str, value: str) -> tuple[str, set[str]]:
    """The verdict, and the modules of a process that decides one call."""
    libraries = str(Path(tree_sitter.__file__).parents[1])
    words = [sys.executable, "-I", "-S", "-c", _DECIDE, SOURCE, libraries, tool, name, value]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found[0], set(found[1])


@pytest.mark.parametrize(
    ("tool", "name", "value", "verdict"),
    [("Write", "file_path", "src/x", "allow"), ("Write", "file_path", "../x", "deny"), ("Task", "prompt", "x", "deny")],
)
def test_without_a_shell_there_is_no_parser(tool: str, name: str, value: str, verdict: str) -> None:
    said, loaded = decide_alone(tool, name, value)
    assert said == verdict
    assert not {each for each in loaded if each.startswith("tree_sitter") or each.endswith("guard.shell.judge")}
    assert loaded & (HEAVY | {"re", "json", "enum", "collections"}) == set()


@pytest.mark.parametrize(("command", "verdict"), [("git add -A && git commit -m x", "allow"), ("git push", "deny")])
def test_a_shell_command_loads_the_parser_and_nothing_heavy(command: str, verdict: str) -> None:
    said, loaded = decide_alone("Bash", "command", command)
    assert said == verdict
    assert "rookery.guard.shell.judge" in loaded
    assert loaded & HEAVY == set()
