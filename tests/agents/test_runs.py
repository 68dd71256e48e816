"""Runs: everything that was slung for one goal, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import Rook
from den import Den
from support import start_rook

pytestmark = pytest.mark.slow

_WAIT = [{"wait": "mail"}]


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def _rows(rook: Rook, table: str = "runs") -> list[tuple[Any, ...]]:
    db = rook.open()
    try:
        return [tuple(row) for row in db.all(f"SELECT * FROM {table} ORDER BY seq")]
    finally:
        db.close()


def _runs(den: Den) -> dict[str, str]:
    """The run of every agent, by the rows."""
    db = den.rook.open()
    try:
        return dict(db.all("SELECT agent, run_id FROM sessions"))
    finally:
        db.close()


def test_each_sling_of_a_person_is_a_run_unless_it_joins_one(den: Den) -> None:
    first = den.sling(den.task("First goal", _WAIT), "--name", "ada")["run_id"]
    second = den.sling(den.task("Second goal", _WAIT), "--name", "bob")["run_id"]
    assert first != second
    joined = den.sling(den.task("Third", _WAIT), "--name", "cat", "--run", first[:24])
    assert joined["run_id"] == first
    assert _runs(den) == {"ada": first, "bob": second, "cat": first}
    listed = den.rook.json("run", "list").data
    assert [(run["id"], run["title"], run["agents"], run["alive"]) for run in listed] == [
        (second, "Second goal", 1, 1),
        (first, "First goal", 2, 2),
    ]
    page = den.rook.json("run", "list", "--limit", "1")
    assert [run["id"] for run in page.data] == [second]
    assert [run["id"] for run in den.rook.json("run", "list", "--cursor", page.envelope["next"]).data] == [first]
    assert {agent["agent"] for agent in den.rook.json("run", "show", first).data["agents"]} == {"ada", "cat"}


def test_a_run_that_there_is_not_changes_nothing(den: Den) -> None:
    den.sling(den.task("Goal", _WAIT), "--name", "ada")
    den.wait_for("ada", "waiting")
    task = den.task("Task", _WAIT)
    before = [_rows(den.rook, table) for table in ("runs", "sessions", "tasks", "events")]
    for text, code in (("run_7ZZZZZZZZZ", "not_found"), ("-x", "invalid_id"), ("run_\n", "invalid_id")):
        error = den.rook.json("sling", task, f"--run={text}").error
        assert error["code"] == code
        assert error["hint"]
    assert [_rows(den.rook, table) for table in ("runs", "sessions", "tasks", "events")] == before
    assert not list((den.folder / ".rookery" / "worktrees").glob("builder*"))


def test_an_agent_of_an_agent_is_in_its_run_and_cannot_choose(den: Den) -> None:
    other = den.sling(den.task("Other", _WAIT), "--name", "ada")["run_id"]
    epic = den.task("Lead", [])
    part, second = (den.task(name, _WAIT, "--parent", epic) for name in ("Part", "Second"))
    steps = [{"sling": {"task": part, "name": "bee", "role": "builder"}}, *_WAIT]
    script = den.rook.json("task", "get", den.task("Script", steps)).data["description"]
    den.rook("task", "update", epic, "--description", script)
    own = den.sling(epic, "--role", "lead", "--name", "queen")["run_id"]
    den.wait_for("bee", "waiting")
    assert _runs(den) == {"ada": other, "queen": own, "bee": own}
    # Nor can a person put an agent of a lead elsewhere.
    refused = den.rook.json("sling", second, "--parent", "queen", "--run", other).error
    assert (refused["code"], refused["hint"]) == ("invalid_input", "leave --run out")
    assert den.sling(second, "--parent", "queen", "--name", "cat", "--run", own)["run_id"] == own
    capped = den.rook.json("sling", den.task("More", _WAIT), "--run", own, "-c", "agents.max_per_run=3").error
    assert capped["code"] == "cap_reached"
    assert den.rook("sling", den.task("Alone", _WAIT), "--name", "dan", "-c", "agents.max_per_run=1").status == 0


def test_the_cap_of_a_run_holds_however_many_join_at_once(den: Den) -> None:
    run = den.sling(den.task("Goal", _WAIT), "--name", "ada")["run_id"]
    tasks = [den.task(f"Task {number}", _WAIT) for number in range(5)]
    words = ("--run", run, "-c", "agents.max_per_run=3")
    started = [start_rook(den.folder, "sling", task, *words) for task in tasks]
    statuses = sorted(child.wait(120) for child in started)
    for child in started:
        child.communicate()
    assert statuses == [0, 0, 1, 1, 1]
    assert sum(own == run for own in _runs(den).values()) == 3


def test_a_run_ends_with_its_last_agent_and_goes_on_until_it_is_completed(den: Den) -> None:
    first = den.sling(den.task("First goal", _WAIT), "--name", "ada")["run_id"]
    assert "still alive: ada" in den.rook.json("run", "complete").error["message"]
    second = den.sling(den.task("Second goal", _WAIT), "--name", "bob")["run_id"]
    den.rook("stop", "bob")
    report = den.rook.json("run", "show").data["run"]
    assert (report["id"], report["alive"], report["ended_at"]) == (first, 1, None)  # the newest that is under way
    ended = den.rook.json("run", "show", second).data["run"]
    assert (ended["alive"], ended["completed_at"]) == (0, None)
    assert ended["ended_at"] in _rows(den.rook, "sessions")[1]
    # Which one is meant has to be said, and the error helps to say it.
    ambiguous = den.rook.json("run", "complete").error
    assert ambiguous["code"] == "invalid_input"
    assert all(text in ambiguous["message"] for text in (first, "First goal", second, "Second goal"))
    assert den.rook.json("run", "complete", second).data["completed_at"]
    assert den.rook.json("run", "complete", second).error["code"] == "invalid_state"
    # What is completed stays so, and the hint works.
    task = den.task("Again", _WAIT)
    den.wait_for("ada", "waiting")
    before = [_rows(den.rook, table) for table in ("runs", "sessions", "tasks")]
    refused = den.rook.json("sling", task, "--run", second).error
    assert (refused["code"], refused["message"]) == ("invalid_state", f"{second} is completed")
    assert "leave --run out" in refused["hint"]
    assert [_rows(den.rook, table) for table in ("runs", "sessions", "tasks")] == before
    assert den.sling(task, "--name", "cat")["run_id"] not in (first, second)
    # One that has only ended is still open, and goes on with an agent that joins it.
    den.rook("stop", "ada")
    assert den.rook.json("run", "show", first).data["run"]["ended_at"]
    assert den.sling(den.task("More", _WAIT), "--name", "dan", "--run", first)["run_id"] == first
    again = den.rook.json("run", "show", first).data["run"]
    assert (again["alive"], again["ended_at"]) == (1, None)


def test_a_resumed_agent_counts_once(den: Den) -> None:
    run = den.sling(den.task("Goal", _WAIT), "--name", "ada")["run_id"]
    den.wait_for("ada", "waiting")
    den.rook("stop", "ada")
    assert den.rook.json("resume", "ada").data["session"]["run_id"] == run
    shown = den.rook.json("run", "show", run).data["run"]
    assert (shown["agents"], shown["alive"]) == (1, 1)
    den.rook("stop", "ada")
