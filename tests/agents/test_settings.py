"""Every setting of agents turns something."""

from __future__ import annotations

from pathlib import Path

import pytest

from den import Den

_WAIT = [{"wait": "mail"}]


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


@pytest.mark.slow
def test_the_caps_are_settings(den: Den) -> None:
    epic = den.task("Lead", _WAIT)
    tasks = [den.task(f"Part {number}", _WAIT, "--parent", epic) for number in range(2)]
    den.sling(epic, "--role", "lead", "--name", "queen")
    den.sling(tasks[0], "--parent", "queen")
    for setting in ("agents.max_concurrent=2", "agents.max_per_lead=1", "agents.max_per_run=2"):
        refused = den.rook.json("sling", tasks[1], "--parent", "queen", "-c", setting).error
        assert refused["code"] == "cap_reached"
        assert setting.partition("=")[0] in refused["hint"]
    refused = den.rook.json("sling", tasks[1], "--parent", "queen", "-c", "agents.max_depth=0").error
    assert refused["code"] == "not_allowed_to_spawn"
    den.rook("stop", "queen")


@pytest.mark.slow
def test_runtime_model_and_mode_are_settings(den: Den) -> None:
    task = den.task("Task", _WAIT)
    assert den.rook.json("sling", task, "-c", "agents.runtime=nothing").error["code"] == "invalid_input"
    slung = den.rook.json("sling", task, "-c", "agents.model=opus", "--name", "bee").data["agents"][0]
    assert (slung["model"], slung["mode"]) == ("opus", "headless")
    den.rook("stop", "bee", "--clean")


@pytest.mark.slow
def test_an_agent_that_is_not_ready_in_time_is_undone(den: Den) -> None:
    task = den.task("Task", _WAIT)
    refused = den.rook.json("sling", task, "-c", "agents.mode=tmux", "-c", "agents.boot_timeout=0.001s").error
    assert "not ready within 0.001 s" in refused["message"]
    assert den.rook.json("task", "get", task).data["state"] == "PENDING"
    den.assert_tidy(worktrees=0, branches=0)
