"""`rook guard`: a call is tried without being made, and a role is put into words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Rook
from den import Den
from rookery.guard.explanation import explain_role
from rookery.roles.catalog import builtin_roles
from rookery.roles.model import PROFILES
from support import run_rook


@pytest.fixture(autouse=True)
def _home(_own_home: None) -> None:
    """Commands run with the home that every test has."""


def bash(command: str) -> str:
    return json.dumps({"command": command})


def test_a_verdict_is_given_and_nothing_is_done(rook: Rook) -> None:
    ran = rook.json("guard", "test", "builder", "Bash", bash("touch made && git push"))
    assert ran.status == 0
    assert {name: ran.data[name] for name in ("verdict", "rule")} == {"verdict": "deny", "rule": "git-push"}
    assert ran.data["reason"]
    assert "rook merge" in ran.data["hint"]
    assert not (rook.folder / "made").exists()


def test_a_person_reads_it_in_words(rook: Rook) -> None:
    shown = rook("guard", "test", "scout", "Bash", bash("rm -rf src")).out.decode()
    assert "deny" in shown
    assert "a scout changes no files" in shown


def test_the_profile_and_the_alias_count(rook: Rook) -> None:
    call = ("guard", "test", "orchestrator", "WebFetch", "{}")
    assert [rook.json(*call, "--profile", profile).data["verdict"] for profile in PROFILES] == ["deny", "ask", "allow"]


def test_the_input_can_be_read_from_standard_input(project: Path) -> None:
    ran = run_rook(project, "guard", "test", "builder", "Bash", "-", "--json", stdin=bash("ls").encode())
    assert ran.data["verdict"] == "allow"


@pytest.mark.parametrize("text", ["git push", "[]", "7", "{", '"x"'])
def test_what_is_no_tool_input_is_refused_with_an_example(rook: Rook, text: str) -> None:
    ran = rook("guard", "test", "builder", "Bash", text, "--json")
    assert ran.status == 1
    assert ran.error["code"] == "invalid_input"
    assert "command" in ran.error["hint"]


def test_an_unknown_role_is_refused_with_the_known_ones(rook: Rook) -> None:
    ran = rook("guard", "explain", "wizard", "--json")
    assert (ran.status, ran.error["code"]) == (1, "invalid_input")
    assert "builder" in ran.error["hint"]


def test_it_works_in_a_repository_without_a_project_and_says_so_without_one(repo: Path, tmp_path: Path) -> None:
    inside = run_rook(repo, "guard", "test", "builder", "Write", '{"file_path": "x"}', "--json")
    assert inside.data["verdict"] == "allow"
    empty = tmp_path / "empty"
    empty.mkdir()
    outside = run_rook(empty, "guard", "test", "builder", "Write", '{"file_path": "x"}', "--json")
    assert outside.status == 1
    missing = run_rook(repo, "guard", "test", "builder", "Write", "{}", "--json", "--worktree", str(tmp_path / "none"))
    assert missing.error["code"] == "invalid_input"


@pytest.mark.slow
def test_in_an_agents_worktree_its_own_bounds_hold(repo: Path) -> None:
    den = Den(repo)
    task = den.task("work", [{"say": "hello"}])
    agent = den.sling(task, "--name", "bee", "--files", "src/**")
    worktree = agent["worktree"]

    def ask(command: str) -> str:
        answer = den.rook.json("guard", "test", "builder", "Bash", bash(command), "--worktree", worktree).data
        return str(answer["rule"] or answer["verdict"])

    assert ask("touch src/x") == "allow"
    assert ask("touch README.md") == "scope"
    assert ask(f"touch {repo}/x") == "outside"
    assert ask(f"rook task complete {task}") == "allow"
    assert ask(f"rook task complete {den.task('another')}") == "foreign-task"
    assert ask("rook task complete task_01BX5ZZKBKACTAV9WEVGEMMVRZ") == "rook"
    assert ask("git checkout rook/bee/other") == "git-branch"


@pytest.mark.parametrize("role", builtin_roles())
def test_a_role_is_explained(rook: Rook, role: str) -> None:
    data = rook.json("guard", "explain", role).data
    assert data["profile"] == builtin_roles()[role].profile
    shown = rook("guard", "explain", role).out.decode()
    for part in ("allowed", "denied", "~/.ssh", "git that only reads", "AskUserQuestion"):
        assert part in shown


def test_what_is_explained_follows_from_role_and_profile() -> None:
    def names(role: str, profile: str, kind: str) -> str:
        return " ".join(point.what for point in getattr(explain_role(builtin_roles()[role], profile), kind))

    assert "writing in its worktree" in names("builder", "yolo", "allowed")
    assert "changing any file" in names("scout", "yolo", "denied")
    assert "tests" in names("scout", "strict", "denied")
    assert "tests" in names("scout", "relaxed", "asked")
    assert "tests" in names("reviewer", "relaxed", "allowed")
    assert "network" in names("builder", "yolo", "allowed")
    assert "network" in names("builder", "relaxed", "asked")
    assert "`rook` commands on what is not its own" in names("builder", "yolo", "denied")
    assert "not its own or under it" in names("lead", "relaxed", "denied")
    assert "not its own" not in names("coordinator", "strict", "denied")
