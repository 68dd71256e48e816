"""Several agents by one command: slung on several tasks, on the next ones, on free text; stopped together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from den import Den
from support import run_real_rook
from terminals import Terminal

_WAIT = [{"wait": "mail"}]


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


@pytest.mark.slow
def test_each_of_several_tasks_gets_an_agent_and_all_are_in_one_run(den: Den) -> None:
    tasks = [den.task(f"Task {number}", _WAIT) for number in range(3)]
    slung = den.rook.json("sling", *tasks).data
    assert [agent["task_id"] for agent in slung["agents"]] == tasks
    assert len({agent["run_id"] for agent in slung["agents"]}) == 1
    assert slung["failed"] == []
    shown = den.rook("status").out.decode()
    assert all(f"builder-{number}" in shown for number in (1, 2, 3))


@pytest.mark.slow
def test_one_that_fails_leaves_the_others(den: Den) -> None:
    first, taken, last = (den.task(f"Task {number}", _WAIT) for number in range(3))
    den.sling(taken, "--name", "bee")
    ran = den.rook.json("sling", first, taken, last)
    assert ran.status == 1
    assert [agent["task_id"] for agent in ran.envelope["data"]["agents"]] == [first, last]
    assert [(failed["task"], failed["code"]) for failed in ran.envelope["data"]["failed"]] == [(taken, "task_taken")]
    assert den.rook("sling", first, last, "-q").out == b""
    shown = den.rook("sling", den.task("More", _WAIT), taken).out.decode()
    assert "not started" in shown
    assert "bee is at work on" in shown


def test_a_mistyped_id_refuses_them_all(den: Den) -> None:
    task = den.task("Task", _WAIT)
    for wrong in ("task_0ZZZ", "nothing", "task_0ZZZ abc", f"{task} {task}", f"{task}\n{task}"):
        refused = den.rook.json("sling", task, wrong)
        assert refused.status in (1, 2), wrong
        assert refused.error
    assert den.rook.json("status").data["agents"] == []
    assert len(den.rook.json("task", "list").data) == 1


@pytest.mark.slow
def test_a_word_that_is_no_task_is_refused_with_what_it_may_mean(den: Den) -> None:
    den.sling(den.task("Task", _WAIT), "--name", "drone")
    assert "`rook sling --new cleanup`" in den.rook.json("sling", "cleanup").error["hint"]
    assert "--new" not in den.rook.json("sling", "abcd1").error["hint"]
    assert "`rook resume drone`" in den.rook.json("sling", "drone").error["hint"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("{task}", "--next"),
        ("{task}", "-n", "2"),
        ("--next", "-n", "0"),
        ("--next", "-n", "-1"),
        ("--next", "--number", "2", "--name", "bee"),
        ("{task}", "{other}", "--name", "bee"),
        ("{task}", "--epic", "{task}"),
    ],
)
def test_words_that_contradict_each_other_are_refused(den: Den, words: tuple[str, ...]) -> None:
    names = {"task": den.task("Task", _WAIT), "other": den.task("Other", _WAIT)}
    refused = den.rook.json("sling", *(word.format(**names) for word in words))
    assert refused.error["code"] == "invalid_input"
    assert den.rook.json("status").data["agents"] == []


@pytest.mark.slow
def test_free_text_becomes_the_task(den: Den) -> None:
    slung = den.sling("Fix the login bug\n\nIt says 500.")
    task = den.rook.json("task", "get", slung["task_id"]).data
    assert (task["title"], task["description"], task["kind"]) == ("Fix the login bug", "It says 500.", "epic")
    one = den.sling("Refactor", "--new", "--name", "wasp")
    assert den.rook.json("task", "get", one["task_id"]).data["title"] == "Refactor"


@pytest.mark.slow
def test_free_text_whose_sling_fails_leaves_no_task(den: Den) -> None:
    assert den.rook.json("sling", "Fix the login bug", "-c", "provision.setup=exit 7").error["code"] == (
        "provision_failed"
    )
    assert den.rook.json("task", "list").data == []
    den.assert_tidy(worktrees=0, branches=0)


@pytest.mark.slow
def test_the_next_tasks_that_are_ready(den: Den) -> None:
    urgent, later = den.task("Later", _WAIT), den.task("Urgent", _WAIT, "--priority", "1")
    den.task("Blocked", _WAIT, "--blocked-by", urgent)
    slung = den.rook.json("sling", "--next", "-n", "5").data["agents"]
    assert [agent["task_id"] for agent in slung] == [later, urgent]
    assert den.rook.json("sling", "--next").error["code"] == "not_ready"


@pytest.mark.slow
def test_two_who_take_the_next_never_get_the_same(den: Den) -> None:
    tasks = {den.task(f"Task {number}", _WAIT) for number in range(4)}
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: run_real_rook(den.folder, "sling", "--next", "-q"), range(4)))
    assert [ran.status for ran in done] == [0] * 4
    assert {agent["task_id"] for agent in den.rook.json("status").data["agents"]} == tasks


@pytest.mark.slow
def test_quiet_prints_names_that_stop_accepts(den: Den) -> None:
    tasks = [den.task(f"Task {number}", _WAIT) for number in range(2)]
    names = den.rook("sling", *tasks, "-q").out.decode().split()
    assert names == ["builder-1", "builder-2"]
    assert den.rook("stop", *names, "-q").out.decode().split() == names
    created = den.rook("task", "create", "One", "-q").out.decode().split()
    assert den.rook("task", "get", *created).status == 0


@pytest.mark.slow
def test_stop_takes_several_names_and_an_unknown_one_stops_none(den: Den) -> None:
    den.rook("sling", *(den.task(f"Task {number}", _WAIT) for number in range(3)))
    assert den.rook.json("stop", "builder-1", "wasp").error["code"] == "no_such_agent"
    assert len(den.rook.json("status").data["agents"]) == 3
    stopped = den.rook.json("stop", "builder-1", "builder-2", "builder-1", "--clean").data
    assert [session["agent"] for session in stopped["ended"]] == ["builder-1", "builder-2"]
    assert len(stopped["cleaned"]) == 2
    assert [agent["agent"] for agent in den.rook.json("status").data["agents"]] == ["builder-3"]


@pytest.mark.slow
def test_stop_all_asks_first_and_an_agent_stops_only_those_below_it(den: Den) -> None:
    epic = den.task("Epic", _WAIT)
    assert den.rook.json("stop", "--all").error["code"] == "invalid_input"
    assert den.rook.json("stop", "--all", "bee").error["code"] == "invalid_input"
    assert den.rook.json("stop").error["code"] == "invalid_input"
    assert den.rook.json("stop", "--all", "--yes").data["ended"] == []
    den.sling(den.task("Task", _WAIT), "--name", "bee")
    den.sling(epic, "--role", "lead", "--name", "queen")
    below = den.task("Part", _WAIT, "--parent", epic)
    den.sling(below, "--name", "drone", "--parent", "queen")
    stop = [{"rook": ["stop", "--all", "--yes"]}]
    den.sling(den.task("Other epic", stop), "--role", "lead", "--name", "king")
    den.wait_for("king", "waiting")
    assert {agent["agent"] for agent in den.rook.json("status").data["agents"]} == {"bee", "queen", "drone", "king"}
    stopped = den.rook.json("stop", "--all", "--yes").data["ended"]
    assert {session["agent"] for session in stopped} == {"bee", "queen", "drone", "king"}
    den.assert_no_process()


@pytest.mark.slow
def test_stop_all_shows_on_a_terminal_who_would_be_stopped(den: Den) -> None:
    den.sling(den.task("Task", _WAIT), "--name", "bee")
    den.wait_for("bee", "waiting")
    asked = Terminal(den.folder, "stop", "--all")
    asked.wait_for_question(question="Stop 1 agent? [y/N]: ")
    assert asked.shown.startswith("bee is waiting ")
    asked.type("y\n")
    assert asked.end() == 0
    assert "stopped bee " in asked.shown
    den.assert_no_process()
