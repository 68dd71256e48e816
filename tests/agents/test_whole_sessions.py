"""Whole sessions of scripted agents, as a person or a lead starts them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import git
from den import DONE, Den
from fake_secrets import SECRETS
from rookery.base.ids import handle
from rookery.events.redact import HIDDEN
from support import wait_until


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


@pytest.mark.slow
def test_a_builder_does_its_task_and_is_done(den: Den) -> None:
    secret = SECRETS["Anthropic"]
    task = den.task(
        "Say hello",
        [
            {"say": f"{secret} is my key"},
            {"edit": {"path": "hello.txt", "text": "Hello\n"}},
            {"commit": "Say hello"},
            {"edit": {"path": "scratch.txt", "text": "not committed\n"}},
            {"spend": {"input": 1000, "output": 200, "model": "scripted"}},
            DONE,
        ],
    )
    slung = den.sling(task, "--name", "bee", "--files", "hello.txt")
    assert (slung["agent"], slung["branch"]) == ("bee", f"rook/bee/{handle(task)}")

    ended = den.wait_for("bee", "completed")

    assert ended["turns"] == 1
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:hello.txt") == "Hello"
    assert git(den.folder, "log", "-1", "--format=%an", "main") == "Test"
    row = den.rook.json("task", "get", task).data
    assert (row["state"], row["commit"]) == ("PENDING_REVIEW", git(den.folder, "rev-parse", f"rook/bee/{handle(task)}"))
    snapshots = den.rook.json("worktree", "snapshots", "bee").data
    assert [snapshot["turn"] for snapshot in snapshots] == [1]
    assert git(den.folder, "show", f"{snapshots[0]['commit']}:scratch.txt") == "not committed"
    costs = den.rook.json("costs").data["total"]
    assert (costs["input"], costs["output"]) == (1000, 200)
    assert costs["dollars"] == pytest.approx(0.006)
    output = den.rook("logs", "bee").out.decode()
    assert f"{HIDDEN} is my key" in output
    assert secret[-20:] not in output
    assert "AGENTS.md" not in git(den.folder, "ls-tree", "-r", "--name-only", f"rook/bee/{handle(task)}")
    assert [message["type"] for message in den.mail(to="human")] == ["worker_done"]
    identity = den.folder / ".rookery/agents/bee/identity.yaml"  # it follows the end of the session
    wait_until(lambda: identity.exists() and "sessions_completed: 1" in identity.read_text(), 30)
    assert git(den.folder, "status", "--porcelain") == ""
    den.assert_tidy(worktrees=1, branches=1)


@pytest.mark.slow
def test_a_lead_dispatches_waits_is_woken_and_ends_with_its_last_message(den: Den) -> None:
    epic = den.task(
        "Build it",
        [
            {"sling": {"task": "{epic}", "name": "bee", "role": "builder"}},
            {"wait": "mail"},
            {"reply": "Green"},
            {"until": {"mail_type": "worker_done"}},
            {
                "mail": {
                    "to": "{parent}",
                    "type": "merge_ready",
                    "subject": "Part",
                    "payload": {"branch": "rook/bee/{handle}", "task_id": "{epic}"},
                }
            },
            DONE,
        ],
    )
    part = den.task(
        "Part",
        [
            {"mail": {"to": "{parent}", "type": "question", "subject": "Which colour?"}},
            {"until": {"mail_from": "queen"}},
            {"edit": {"path": "colour.txt", "text": "{mail.body}\n"}},
            {"commit": "Paint"},
            DONE,
        ],
        "--parent",
        epic,
    )
    script = (
        den.rook.json("task", "get", epic).data["description"].replace("{epic}", part).replace("{handle}", handle(part))
    )
    den.rook.json("task", "update", epic, "--description", script)
    den.sling(epic, "--role", "lead", "--name", "queen")

    den.wait_for("queen", "completed")

    assert den.agent("bee")["outcome"] == "completed"
    assert den.agent("bee")["parent"] == "queen"
    assert git(den.folder, "show", f"rook/bee/{handle(part)}:colour.txt") == "Green"
    kinds = [(message["from"], message["to"], message["type"]) for message in den.mail()]
    assert kinds == [
        ("bee", "queen", "question"),
        ("queen", "bee", "status"),
        ("bee", "queen", "worker_done"),
        ("queen", "human", "merge_ready"),
        ("queen", "human", "worker_done"),
    ]
    waits = [line for line in den.rook("events", "--limit", "0").out.decode().splitlines() if "agent.waiting" in line]
    assert waits
    assert all(message["read_at"] for message in den.mail(to="queen"))
    den.assert_no_process()


@pytest.mark.slow
def test_a_turn_that_ends_without_the_last_message_leaves_the_agent_waiting_and_nothing_running(den: Den) -> None:
    task = den.task("Ask", [{"mail": {"to": "human", "type": "question", "subject": "Well?"}}, {"wait": "mail"}, DONE])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "waiting")
    den.assert_no_process()
    question = den.mail(type="question")[0]

    den.rook.json("mail", "reply", question["id"], "--body", "Go on")

    den.wait_for("bee", "completed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([{"crash": 3}], "exited with status 3"),
        ([{"signal": "SIGKILL"}], "killed (exit status 137, often out of memory); no output"),
        ([{"fail": "overloaded"}], "overloaded"),
    ],
)
def test_however_a_child_dies_its_parent_gets_a_message(den: Den, steps: list[object], reason: str) -> None:
    epic = den.task("Lead", [{"until": {"mail_type": "worker_died"}}, DONE])
    den.sling(epic, "--role", "lead", "--name", "queen")
    den.wait_for("queen", "waiting")
    task = den.task("Die", [{"edit": {"path": "half.txt", "text": "half\n"}}, *steps], "--parent", epic)
    den.sling(task, "--name", "bee", "--parent", "queen")

    den.wait_for("queen", "completed")

    assert den.agent("bee")["outcome"] == "crashed"
    assert reason in den.agent("bee")["reason"]
    message = den.mail(type="worker_died")[0]
    assert (message["from"], message["to"], message["payload"]["agent"]) == ("rook", "queen", "bee")
    assert den.rook.json("task", "get", task).data["state"] == "PENDING"
    snapshot = den.rook.json("worktree", "snapshots", "bee").data[0]["commit"]
    assert git(den.folder, "show", f"{snapshot}:half.txt") == "half"


@pytest.mark.slow
def test_thirty_slings_at_once_with_a_cap_of_ten(den: Den) -> None:
    with (den.folder / ".rookery/config.local.yaml").open("a") as file:
        file.write("tasks:\n  lease: 30m\n")
    tasks = [den.task(f"Task {number}", [{"hang": True}]) for number in range(30)]
    with ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda task: den.rook.json("sling", task), tasks))

    refused = [ran.error for ran in done if ran.status]
    assert [error for error in refused if error["code"] != "cap_reached"] == []
    assert len(refused) == 20
    assert len(den.rook.json("status").data["agents"]) == 10
    assert len(list((den.folder / ".rookery/sessions").iterdir())) == 10
    den_branches = git(den.folder, "branch", "--list", "rook/*").splitlines()
    assert len(den_branches) == 10
    assert len(git(den.folder, "worktree", "list").splitlines()) == 11
    states = [task["state"] for task in den.rook.json("task", "list").data]
    assert (states.count("IN_PROGRESS"), states.count("PENDING")) == (10, 20)

    for agent in den.rook.json("status").data["agents"]:
        assert den.rook("stop", agent["agent"], "--clean").status == 0
    den.assert_tidy(worktrees=0, branches=0)


@pytest.mark.slow
def test_a_failing_setup_undoes_everything_and_says_why(den: Den) -> None:
    (den.folder / ".rookery/config.local.yaml").write_text("provision:\n  setup: echo no luck >&2; exit 7\n")
    task = den.task("Never")
    refused = den.rook.json("sling", task, "--name", "bee").error
    assert "7" in refused["message"]
    assert "no luck" in refused["message"]
    assert den.rook.json("status").data["agents"] == []
    assert den.rook.json("task", "get", task).data["state"] == "PENDING"
    den.assert_tidy(worktrees=0, branches=0)


@pytest.mark.slow
def test_stop_ends_the_whole_tree_and_keeps_the_work(den: Den) -> None:
    task = den.task(
        "Stubborn",
        [
            {"edit": {"path": "work.txt", "text": "kept\n"}},
            {"stubborn": True},
            {"child": "sleep 1000"},
            {"hang": True},
        ],
    )
    den.sling(task, "--name", "bee")
    wait_until(lambda: "work.txt" in den.rook("logs", "bee").out.decode(), 60)

    assert den.rook("stop", "bee", "--clean").status == 0

    assert den.agent("bee")["outcome"] == "stopped"
    den.assert_no_process()
    rescued = git(den.folder, "for-each-ref", "--format=%(refname)", "refs/rookery").splitlines()
    assert any(git(den.folder, "show", f"{ref}:work.txt") == "kept" for ref in rescued)
    assert den.rook.json("task", "get", task).data["state"] == "PENDING"


@pytest.mark.slow
def test_stopping_a_lead_stops_its_agents(den: Den) -> None:
    epic = den.task("Lead", [{"wait": "mail"}])
    part = den.task("Hang", [{"hang": True}], "--parent", epic)
    den.sling(epic, "--role", "lead", "--name", "queen")
    den.wait_for("queen", "waiting")
    den.sling(part, "--name", "bee", "--parent", "queen")

    den.rook("stop", "queen")

    assert (den.agent("queen")["outcome"], den.agent("bee")["outcome"]) == ("stopped", "stopped")
    den.assert_no_process()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--role", "wizard"), "invalid_input"),
        (("--role", "scout", "--profile", "yolo"), "invalid_input"),
        (("--tools", "Raed"), "invalid_input"),
        (("--tools", "Read,Task"), "invalid_input"),
        (("--name", "../evil"), "invalid_input"),
        (("--name", "human"), "invalid_input"),
        (("--parent", "stranger"), "no_such_agent"),
        (("--headless", "--tmux"), "invalid_input"),
        (("--spec", "missing.md"), "invalid_input"),
        (("--base", "no-such-branch"), "unknown_revision"),
        (("--runtime", "nothing"), "usage"),
    ],
)
def test_a_bad_sling_changes_nothing(den: Den, more: tuple[str, ...], code: str) -> None:
    task = den.task("Task")
    before = den.rook.count_events()
    assert den.rook.json("sling", task, *more).error["code"] == code
    assert den.rook.count_events() == before
    den.assert_tidy(worktrees=0, branches=0)


@pytest.mark.slow
def test_an_agent_may_not_do_what_its_role_does_not_allow(den: Den) -> None:
    task = den.task("Scout", [{"rook": ["task", "create", "Mischief"]}, {"rook": ["sling", "{task}"]}, DONE])
    den.sling(task, "--role", "scout", "--name", "eye")
    den.wait_for("eye", "completed")
    assert [entry["title"] for entry in den.rook.json("task", "list").data] == ["Scout"]
    refused = den.rook("errors", "--agent", "eye").out.decode()
    assert refused.count("a scout may not `rook ") == 2
    assert den.rook.json("task", "get", task).data["state"] == "COMPLETED"


@pytest.mark.slow
def test_depth_and_spawning_are_bounded(den: Den) -> None:
    epic = den.task("Lead", [{"wait": "mail"}])
    part, other = (den.task(title, [{"wait": "mail"}], "--parent", epic) for title in ("Part", "Other"))
    den.sling(epic, "--role", "lead", "--name", "queen", "--max-agents", "1")
    den.wait_for("queen", "waiting")
    den.sling(part, "--name", "bee", "--parent", "queen")
    assert den.rook.json("sling", other, "--parent", "bee").error["code"] == "not_allowed_to_spawn"
    assert den.rook.json("sling", other, "--parent", "queen").error["code"] == "cap_reached"
    assert den.rook.json("sling", part, "--name", "second").error["code"] == "task_taken"
    assert den.rook.json("sling", other, "--name", "bee").error["code"] == "name_taken"
    den.rook("stop", "queen")


@pytest.mark.slow
def test_a_turn_that_takes_too_long_is_ended(den: Den) -> None:
    (den.folder / ".rookery/config.local.yaml").write_text("agents:\n  turn_timeout: 1s\n  stop_grace: 0.3s\n")
    den.sling(den.task("Hang", [{"hang": True}]), "--name", "bee")
    assert "turn_timeout" in den.wait_for("bee", "crashed")["reason"]
    den.assert_no_process()
