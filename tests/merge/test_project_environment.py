"""Gates, setup commands, lock-file programs and agents that resolve conflicts run in the project's environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from conftest import git

from .yard import Yard

pytestmark = pytest.mark.slow

KEY = "HIVE_KEY"
A, B = "first-value-of-the-hive", "other-value-of-the-hive"
RECORDED, OTHER = {KEY: A, "PLACE": "here"}, {KEY: B, "PLACE": "there", "STRAY": "x", "TERM": "vt52"}


def refresh(yard: Yard) -> None:
    assert yard.rook("env", "refresh", env=RECORDED).status == 0


def writes(path: Path) -> str:
    return f'echo "${KEY} $PLACE [$STRAY] $TERM" >> {path}'


@pytest.mark.parametrize("env", [{}, OTHER], ids=["without", "with another"])
def test_a_gate(yard: Yard, tmp_path: Path, env: dict[str, str]) -> None:
    out = tmp_path / "out"
    yard.settings("", writes(out))
    yard.branch("work", a_txt="a\n")
    refresh(yard)
    ran = yard.rook.json("merge", "--branch", "work", env=env)
    assert (ran.status, ran.err) == (0, b""), ran
    assert out.read_text() == f"{A} here [] dumb\n"


def test_without_a_record_a_gate_has_the_caller_s_and_says_so(yard: Yard, tmp_path: Path) -> None:
    out = tmp_path / "out"
    yard.settings("", writes(out))
    yard.branch("work", a_txt="a\n")
    ran = yard.rook.json("merge", "--branch", "work", env=OTHER)
    assert ran.status == 0
    assert ran.err.count(b"rook env refresh") == 1
    assert out.read_text() == f"{B} there [x] dumb\n"


BROKEN = {"gone": lambda path: path.unlink(), "broken": lambda path: path.write_text("{")}


@pytest.mark.parametrize("daemon", ["on", "off"])
@pytest.mark.parametrize("way", BROKEN)
def test_no_gate_runs_without_a_usable_record(
    yard: Yard, tmp_path: Path, way: str, daemon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOKERY_DAEMON", daemon)
    out = tmp_path / "out"
    yard.settings("", writes(out))
    yard.branch("work", a_txt="a\n")
    refresh(yard)
    before = git(yard.folder, "rev-parse", "main")
    BROKEN[way](yard.folder / ".rookery/environment.json")
    ran = yard.rook.json("merge", "--branch", "work", env=OTHER)
    assert (ran.status, ran.error["code"]) == (1, "environment_unusable"), ran
    assert "rook env refresh" in ran.error["hint"]
    assert not out.exists()
    assert git(yard.folder, "rev-parse", "main") == before
    refresh(yard)
    assert yard.rook.json("merge", "--branch", "work", env=OTHER).status == 0
    assert out.read_text() == f"{A} here [] dumb\n"


def test_no_setup_command_runs_without_a_usable_record(yard: Yard, tmp_path: Path) -> None:
    out = tmp_path / "out"
    setup = writes(out).replace("'", "''")
    yard.settings(f"  setup: '{setup}'\nsandbox:\n  mode: off\n")
    refresh(yard)
    (yard.folder / ".rookery/environment.json").write_text("{")
    ran = yard.rook.json("sling", yard.task("Work", []), env=OTHER)
    assert ran.error["code"] == "environment_unusable"
    assert not out.exists()


def test_no_agent_resolves_conflicts_without_a_usable_record(yard: Yard, tmp_path: Path) -> None:
    out = tmp_path / "out"
    roles = yard.folder / ".rookery" / "roles"
    roles.mkdir(exist_ok=True)
    steps = [{"run": writes(out)}, {"edit": {"path": "a.txt", "text": "1\nours\ntheirs\n3\n"}}]
    (roles / "resolver.md").write_text(f"```rook-script\n{yaml.safe_dump(steps)}```\n")
    yard.settings("merge:\n  tiers: [agent]\n")
    yard.commit(a_txt="1\n2\n3\n")
    yard.branch("work", a_txt="1\ntheirs\n3\n")
    yard.commit(a_txt="1\nours\n3\n")
    refresh(yard)
    (yard.folder / ".rookery/environment.json").unlink()
    ran = yard.rook.json("merge", "--branch", "work", env=OTHER)
    assert (ran.status, ran.error["code"]) == (1, "environment_unusable"), ran
    assert not out.exists()
    refresh(yard)
    assert yard.rook.json("merge", "--branch", "work", env=OTHER).status == 0
    assert set(out.read_text().splitlines()) == {f"{A} here [] dumb"}


def test_a_gate_s_output_shows_no_credential(yard: Yard) -> None:
    yard.settings("", f"echo it is ${KEY}; printenv {KEY} >&2; exit 1")
    yard.branch("work", a_txt="a\n")
    refresh(yard)
    ran = yard.rook.json("merge", "--branch", "work", env=OTHER)
    assert ran.status == 1
    holding = [
        path for path in (yard.folder / ".rookery").rglob("*") if path.is_file() and A.encode() in path.read_bytes()
    ]
    assert holding == []
    logs = [path.read_text() for path in (yard.folder / ".rookery/gates").rglob("*.log")]
    assert logs == ["it is [redacted]\n[redacted]\n"] * 2  # the branch's, and the base's
    for words in (["merge", "list"], ["mail", "list"], ["events"]):
        assert A.encode() not in yard.rook.json(*words).out


def test_a_setup_command(yard: Yard, tmp_path: Path) -> None:
    out = tmp_path / "out"
    setup = writes(out).replace("'", "''")
    yard.settings(f"  setup: '{setup}'\nsandbox:\n  mode: off\n")
    task = yard.task("Work", [{"hang": True}])
    assert yard.rook("sling", task, "--name", "bee", env=RECORDED).status == 0
    # An agent's, by an agent's call: the mark and the token of that one are not handed on either.
    lead = yard.task("Lead", [{"run": f"PLACE=there {KEY}={B} rook sling {yard.task('More', [])} --name ant"}])
    assert yard.rook("sling", lead, "--role", "coordinator", "--name", "cora", env={"PLACE": "here"}).status == 0
    yard.wait_for("cora", "waiting")
    assert out.read_text() == f"{A} here [] \n" * 3
    yard.settings(f"  setup: 'printenv {KEY}; exit 3'\nsandbox:\n  mode: off\n")
    ran = yard.rook.json("sling", yard.task("Fails", []))
    assert "exited with 3:\n[redacted]" in ran.error["message"]
    for name in ("bee", "cora"):
        yard.rook("stop", name)


def test_an_agent_that_resolves_conflicts(yard: Yard, tmp_path: Path) -> None:
    out = tmp_path / "out"
    roles = yard.folder / ".rookery" / "roles"
    roles.mkdir(exist_ok=True)
    steps = [{"run": f"{writes(out)}; echo it is ${KEY}"}, {"edit": {"path": "a.txt", "text": "1\nours\ntheirs\n3\n"}}]
    (roles / "resolver.md").write_text(f"```rook-script\n{yaml.safe_dump(steps)}```\n")
    yard.settings("merge:\n  tiers: [agent]\n")
    yard.commit(a_txt="1\n2\n3\n")
    yard.branch("work", a_txt="1\ntheirs\n3\n")
    yard.commit(a_txt="1\nours\n3\n")
    refresh(yard)
    yard.merge("--branch", "work")
    yard.rook.json("merge", "--branch", "work", env=OTHER)
    assert set(out.read_text().splitlines()) == {f"{A} here [] dumb"}
    logs = list((yard.folder / ".rookery/merges").glob("*.log"))
    assert logs
    assert all(A not in log.read_text() for log in logs)
    assert any("it is [redacted]" in log.read_text() for log in logs)


def test_a_lock_file_s_program_is_looked_for_in_the_recorded_path(yard: Yard, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    out = tmp_path / "out"
    program = programs / "cargo"
    program.write_text(f'#!/bin/sh\n{writes(out)}\nprintf "# made by cargo\\nversion = 3\\n" > Cargo.lock\n')
    program.chmod(0o755)
    lock = '# made by cargo\nversion = 3\n[[package]]\nname = "{}"\n'
    yard.commit(Cargo_toml="[package]\n", Cargo_lock=lock.format("base"))
    yard.branch("work", Cargo_lock=lock.format("theirs"))
    yard.commit(Cargo_lock=lock.format("ours"))
    assert yard.rook("env", "refresh", env=RECORDED | {"PATH": f"{programs}:{os.environ['PATH']}"}).status == 0
    ran = yard.rook.json("merge", "--branch", "work", "--dry-run", env=OTHER)
    assert ran.data["predicted"][0]["predicted_tier"] == "mechanical", ran
    ran = yard.rook.json("merge", "--branch", "work", env=OTHER)
    assert ran.status == 0, ran
    assert out.read_text() == f"{A} here [] dumb\n"
    assert git(yard.folder, "show", "main:Cargo.lock").startswith("# made by cargo")
