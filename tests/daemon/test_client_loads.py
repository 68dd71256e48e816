"""What the client loads: it starts cold at every call of every agent, so the list is short and complete."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from live import Live
from live import live as live

from support import SOURCE

OURS = {f"rookery.client.{name}" for name in ("connection", "dialogue", "frames", "main", "discovery")}
OURS |= {"rookery", "rookery.client"}
HOOKS = {"rookery.client.hook"}
BUILT_IN = {"_socket"}
"""What Python loads besides what it has loaded before its first line."""

_REPORT = """
import sys
before = set(sys.modules)
sys.path.insert(0, sys.argv.pop(1))
import posix
leave = posix._exit
def report(status):
    posix._exit = leave
    loaded = sorted(set(sys.modules) - before)
    posix.write(2, repr(loaded).replace("'", '"').encode())
    leave(status)
posix._exit = report
"""
_RUN = _REPORT + "from rookery.client.main import run; run()"
_HOOK = _REPORT + "from rookery.client.hook import main; main()"

pytestmark = pytest.mark.slow


def loaded(live: Live, script: str, *words: str, stdin: bytes = b"") -> set[str]:
    """The modules that a client loads beyond a bare interpreter's own."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, SOURCE, *words],
        cwd=live.folder,
        env=live.environ(),
        input=stdin,
        capture_output=True,
        timeout=60,
        check=True,
    )
    return set(json.loads(done.stderr))


def test_a_command_loads_the_client_alone(live: Live) -> None:
    live.run("task", "create", "one")
    assert loaded(live, _RUN, "task", "list", "--json") == OURS | BUILT_IN
    assert loaded(live, _RUN, "task", "list") == OURS | BUILT_IN


def test_a_hook_loads_the_client_alone(live: Live) -> None:
    live.run("task", "list")
    assert loaded(live, _HOOK, "prompt", stdin=b"{}") == OURS | HOOKS | BUILT_IN


def test_the_list_can_fail(live: Live) -> None:
    live.run("task", "list")
    assert "rookery.cli.main" in loaded(live, _RUN, "daemon", "status")
