"""An agent's program dies, hangs or prints too little: Rookery reports the real cause, and nothing is left behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from den import Den
from rookery.terminal.tmux import Tmux, socket_path


@pytest.fixture
def den(repo: Path) -> Iterator[Den]:
    yield Den(repo)
    Tmux(socket_path(str(repo))).kill_server()


def play(den: Den, body: str) -> None:
    """Let agents run on a program that does this."""
    program = den.folder.parent / "program"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    settings = {
        "agents": {"runtime": "claude", "stop_grace": "0.3s", "boot_timeout": "3s"},
        "claude": {"program": str(program)},
        "provision": {"ports": 0},
    }
    (den.folder / ".rookery" / "config.local.yaml").write_text(yaml.safe_dump(settings))


INIT = json.dumps({"type": "system", "subtype": "init", "session_id": "abc"})
RESULT = json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "fine"})


@pytest.mark.slow
def test_one_that_dies_before_it_reads_its_prompt(den: Den) -> None:
    play(den, "echo 'no such model' >&2; exit 7")
    den.sling(den.task("Die"), "--name", "bee")
    assert den.wait_for("bee", "crashed")["reason"] == "exited with status 7: no such model"
    den.assert_no_process()


@pytest.mark.slow
def test_one_that_dies_in_its_terminal(den: Den) -> None:
    play(den, "echo 'no such model'; exit 7")
    task = den.task("Die")
    refused = den.rook.json("sling", task, "--name", "bee", "--tmux").error
    assert "no such model" in refused["message"]
    assert "7" in refused["message"]
    den.assert_tidy(worktrees=0, branches=0)
    play(den, "sleep 0.3; echo 'no such key'; exit 8")
    refused = den.rook.json("sling", task, "--name", "bee", "--tmux").error
    assert "no such key" in refused["message"]
    assert "8" in refused["message"]
    assert Tmux(socket_path(str(den.folder))).list() == {}


@pytest.mark.slow
def test_a_terminal_without_tmux(den: Den, tmp_path: Path) -> None:
    play(den, "exit 0")
    (tmp_path / "bin").mkdir()
    for program in ("git", "sh"):
        (tmp_path / "bin" / program).symlink_to(str(shutil.which(program)))
    refused = den.rook.json("sling", den.task("Sit"), "--tmux", env={"PATH": str(tmp_path / "bin")}).error
    assert refused["message"] == "tmux is not installed"
    den.assert_tidy(worktrees=0, branches=0)


@pytest.mark.slow
def test_one_whose_hooks_never_tell_of_the_prompt(den: Den) -> None:
    play(den, "printf '\\342\\235\\257 '; exec cat >/dev/null")
    refused = den.rook.json("sling", den.task("Sit"), "--name", "bee", "--tmux").error
    assert "did not take its task" in refused["message"]
    assert "hooks" in refused["hint"]
    den.assert_tidy(worktrees=0, branches=0)


@pytest.mark.slow
def test_standard_input_ends_with_the_result(den: Den) -> None:
    play(den, f"read prompt; echo '{INIT}'; echo '{RESULT}'; cat >/dev/null; exit 0")
    den.sling(den.task("Say"), "--name", "bee")
    assert den.wait_for("bee", "waiting")["turns"] == 1
    den.rook("stop", "bee")


def test_one_that_is_not_there_is_refused_before_anything_is_made(den: Den) -> None:
    play(den, "exit 0")
    (den.folder.parent / "program").unlink()
    refused = den.rook.json("sling", den.task("Nothing"), "--name", "bee").error
    assert refused["code"] == "program_missing"
    assert "claude.program" in refused["hint"]
    den.assert_tidy(worktrees=0, branches=0)
