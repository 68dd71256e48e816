"""The second act of the demo: a lead and four agents build a small program at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import yaml

from rookery.vcs.ref_names import branch_name

if TYPE_CHECKING:
    from dev.demo import Stage


_DEADLINE_SECONDS = 120
_DONE = {"mail": {"to": "{parent}", "type": "worker_done", "subject": "{agent} is done"}}


def play(stage: Stage) -> None:
    """Sling a lead, watch it work, answer a question, and look at the result."""
    stage.say("Now many at once: a lead gets an epic, and slings four agents")
    epic = stage.ask("epic", "create", "A small calculator", "--context", "Plain Python, no dependencies.")["id"]
    parts = _parts(stage, epic)
    stage.ask("epic", "update", epic, "--description", script(_lead(parts)))
    stage.rook("sling", epic, "--role", "lead", "--name", "queen")

    stage.say("Who does what? Each in a worktree and on a branch of its own")
    wait(stage, lambda: _question(stage) is not None)
    stage.rook("status")

    stage.say("One of them asks the person; the answer wakes it")
    question = _question(stage)
    stage.rook("mail", "check")
    stage.rook("mail", "reply", str(question), "--body", "Raise an error.", "--quiet")

    stage.say("All agents go on; one crashes, and its lead hears of it and reports it")
    wait(stage, lambda: _outcome(stage, "queen") is not None)
    stage.rook("status", "--all")
    stage.rook("errors")

    stage.say("What the lead reported, what they did, and what it cost")
    stage.rook("mail", "check")
    stage.rook("logs", "--limit", "12")
    stage.rook("costs")
    stage.rook("task", "tree", epic)

    stage.say(
        "Nothing is lost: every turn of every agent can be looked at, also what the crashed one had not committed"
    )
    stage.rook("worktree", "snapshots", "mul")
    stage.rook("worktree", "clean")
    stage.rook("doctor", "--category", "agents")


def _parts(stage: Stage, epic: str) -> dict[str, str]:
    scripts: dict[str, list[Any]] = {
        "add": [
            {"say": "Adding is easy."},
            {"edit": {"path": "add.py", "text": "def add(a, b):\n    return a + b\n"}},
            {"run": "python3 -c 'import add; assert add.add(1, 2) == 3'"},
            {"commit": "Add numbers"},
            {"spend": {"input": 12_000, "output": 900, "model": "scripted"}},
            _DONE,
        ],
        "sub": [
            {"edit": {"path": "sub.py", "text": "def sub(a, b):\n    return a - b\n"}},
            {"commit": "Subtract numbers"},
            {"spend": {"input": 9_000, "output": 700, "model": "scripted"}},
            _DONE,
        ],
        "mul": [
            {"edit": {"path": "mul.py", "text": "def mul(a, b):\n    return a *"}},
            {"spend": {"input": 4_000, "output": 200, "model": "scripted"}},
            {"crash": 3},
        ],
        "div": [
            {"mail": {"to": "human", "type": "question", "subject": "What is one divided by nothing?"}},
            {"until": {"mail_from": "human"}},
            {"say": "The answer was: {mail.body}"},
            {"edit": {"path": "div.py", "text": "def div(a, b):\n    return a / b  # {mail.body}\n"}},
            {"commit": "Divide numbers"},
            {"spend": {"input": 15_000, "output": 1_100, "model": "scripted"}},
            _DONE,
        ],
    }
    return {
        name: stage.ask("task", "create", f"Part: {name}", "--parent", epic, "--description", script(steps))["id"]
        for name, steps in scripts.items()
    }


def _lead(parts: dict[str, str]) -> list[Any]:
    return [
        {"say": "Four parts, no file in common: all at once."},
        *({"sling": {"task": task, "name": name, "files": f"{name}.py"}} for name, task in parts.items()),
        {"until": {"mail_from": "add"}},
        {"until": {"mail_from": "sub"}},
        {"until": {"mail_type": "worker_died"}},
        {"until": {"mail_from": "div"}},
        *(_hand_over(name, task) for name, task in parts.items() if name != "mul"),
        {"spend": {"input": 20_000, "output": 1_500, "model": "scripted"}},
        {
            "mail": {
                "to": "{parent}",
                "type": "worker_done",
                "subject": "The calculator: three of four",
                "body": "add, sub and div are ready on their branches. mul crashed; its half is in the snapshot.",
            }
        },
    ]


def _hand_over(name: str, task: str) -> dict[str, Any]:
    """A lead says of each branch that it may land: without that it cannot end."""
    payload = {"branch": branch_name(name, task), "task_id": task}
    return {"mail": {"to": "{parent}", "type": "merge_ready", "subject": f"{name} is ready", "payload": payload}}


def script(steps: list[Any]) -> str:
    """A script as it stands in a task."""
    return f"```rook-script\n{yaml.safe_dump(steps, sort_keys=False)}```"


def _question(stage: Stage) -> str | None:
    questions = stage.ask("mail", "list", "--to", "human", "--type", "question")
    return questions[0]["id"] if questions else None


def _outcome(stage: Stage, name: str) -> str | None:
    outcome: str | None = next(agent["outcome"] for agent in stage.agents() if agent["agent"] == name)
    return outcome


def wait(stage: Stage, holds: Any) -> None:
    """Wait until it holds, or give up and show where things are."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            stage.rook("status", "--all")
            raise SystemExit("the demo did not get on; see above")
        time.sleep(0.2)
