"""The host by itself: signals and the exit status go through, and without an agent's token nothing is served."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.sandbox.model import Plan
from rookery.sandbox.probe import probe
from sandbox.cell import needs_bubblewrap
from support import child_environ

pytestmark = needs_bubblewrap

_TRAP = "trap 'echo asked; exit 5' {name}; echo ready; while :; do sleep 0.02; done"


def start(folder: Path, script: str, token: str = "secret") -> subprocess.Popen[str]:
    """A host with a shell script as its agent."""
    packed = folder / "packed-refs"
    packed.touch()
    plan = Plan(
        cage=(*probe().words, "--tmpfs", "/run", "--bind", str(folder), str(folder)),
        argv=("/bin/sh", "-c", script),
        names=(),
        home=str(folder),
        worktree=str(folder),
        sockets=str(folder / "s"),
        packed=(str(folder / "none"), str(packed)),
    )
    (folder / "plan.json").write_text(json.dumps(plan.as_dict()))
    argv = [sys.executable, "-m", "rookery.sandbox.host", str(folder), "ses_x", str(folder / "plan.json")]
    env = child_environ({"ROOKERY_TOKEN": token})
    return subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_program(tmp_path: Path, number: signal.Signals) -> None:
    host = start(tmp_path, _TRAP.format(name=number.name.removeprefix("SIG")))
    assert host.stdout is not None
    assert host.stdout.readline() == "ready\n"
    host.send_signal(number)
    assert host.communicate(timeout=20)[0] == "asked\n"
    assert host.returncode == 5
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 42", 42), ("kill -9 $$", 137)])
def test_the_exit_status_is_the_programs_own(tmp_path: Path, script: str, status: int) -> None:
    host = start(tmp_path, script)
    assert host.communicate(timeout=20) == ("", "")
    assert host.returncode == status


def test_a_host_that_was_killed_leaves_no_obstacle(tmp_path: Path) -> None:
    host = start(tmp_path, "echo ready; sleep 1000")
    assert host.stdout is not None
    assert host.stdout.readline() == "ready\n"
    host.kill()
    host.communicate(timeout=20)
    assert (tmp_path / "s" / "rook").exists()
    again = start(tmp_path, "echo fine")
    assert again.communicate(timeout=20)[0] == "fine\n"


def test_no_agent_acts_for_a_person(tmp_path: Path) -> None:
    host = start(tmp_path, "echo ready", token="")
    out, err = host.communicate(timeout=20)
    assert (out, host.returncode) == ("", 1)
    assert "without an agent's token" in err
