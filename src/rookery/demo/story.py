"""What the demo's agents do: scripts in the texts of tasks, so that no model and no key is needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rookery.vcs.ref_names import branch_name

FILES = {
    "CHANGES.md": "# What is new\n\n",
    "shop.py": "def total(prices):\n    return sum(prices)\n",
    "check.sh": "grep -q 'def total' shop.py && echo 'all is well'\n",
    ".gitignore": "__pycache__/\n",
}
SETTINGS = "gates:\n  - {name: check, run: sh check.sh}\n"
EPIC = "A better shop"
TASKS = {"ann": "Take a discount off", "bob": "Ship parcels", "cat": "Show prices"}
ANSWER = "In euros."
PRACTICE = {
    "ann": "Take a discount off the total",
    "bob": "Add the tax to the total",
    "cat": "Show prices",
    "dan": "Ship parcels",
    "eve": "Count the stock",
}
"""The tasks of the exercise: ann and bob change the same line in two ways that only a person can bring together."""

_DONE = {"mail": {"to": "{parent}", "type": "worker_done", "subject": "{agent} is done"}}


def scripts() -> dict[str, str]:
    """What each builder does: ann and bob change the same line of a file, cat asks a person."""
    return {
        "ann": script(
            [
                {"say": "A discount is one more argument."},
                {"edit": {"path": "discount.py", "text": "def take(total, off):\n    return max(0, total - off)\n"}},
                _note("A total takes a discount off."),
                {"commit": "Take a discount off"},
                _DONE,
            ]
        ),
        "bob": script(
            [
                {"edit": {"path": "shipping.py", "text": "def cost(parcels):\n    return parcels * 5\n"}},
                _note("Parcels are shipped."),
                {"commit": "Ship parcels"},
                _DONE,
            ]
        ),
        "cat": script(
            [
                {"mail": {"to": "human", "type": "question", "subject": "In which currency are prices?"}},
                {"until": {"mail_from": "human"}},
                {"edit": {"path": "show.py", "text": "def show(price):\n    return f'{price:.2f}'  # {mail.body}\n"}},
                {"commit": "Show prices"},
                _DONE,
            ]
        ),
    }


def lead_script(tasks: Mapping[str, str]) -> str:
    """The lead slings the builders, waits for them, and says of each branch that it may land."""
    count = len(tasks)
    return script(
        [
            {"say": "No part waits for another: all at once."},
            *({"sling": {"task": task, "name": name}} for name, task in tasks.items()),
            *({"until": {"mail_from": name}} for name in tasks),
            *(_hand_over(name, task) for name, task in tasks.items()),
            {
                "mail": {
                    "to": "{parent}",
                    "type": "worker_done",
                    "subject": f"The shop is better: {count} branches wait",
                }
            },
        ]
    )


def script(steps: list[Any]) -> str:
    """A script as it stands in a task; JSON is YAML."""
    return f"```rook-script\n{json.dumps(steps, indent=1)}\n```"


def practice_scripts() -> dict[str, str]:
    """What each builder of the exercise does, and what a person has to settle of it."""
    return {
        "ann": script(
            [_total("discount=0", "max(0, sum(prices) - discount)"), {"commit": "Take a discount off"}, _DONE]
        ),
        "bob": script([_total("tax=0", "sum(prices) * (1 + tax)"), {"commit": "Add the tax"}, _DONE]),
        "cat": scripts()["cat"],
        "dan": script(
            [
                {"edit": {"path": "shipping.py", "text": "def cost(parcels):\n    return parcels *"}},
                {"crash": 3},
                {"edit": {"path": "shipping.py", "text": "def cost(parcels):\n    return parcels * 5\n"}},
                {"commit": "Ship parcels"},
                _DONE,
            ]
        ),
        "eve": script(
            [
                {"edit": {"path": "stock.py", "text": "def left(stock, sold):\n    return stock - sold\n"}},
                {"commit": "Count what is left"},
                _DONE,
                {"wait": "mail"},
                {"edit": {"path": "stock.py", "text": "def left(stock, sold):\n    return max(0, stock - sold)\n"}},
                {"commit": "Never count below zero"},
                _DONE,
            ]
        ),
    }


def _total(parameter: str, result: str) -> dict[str, Any]:
    return {"edit": {"path": "shop.py", "text": f"def total(prices, {parameter}):\n    return {result}\n"}}


def _note(text: str) -> dict[str, Any]:
    return {"edit": {"path": "CHANGES.md", "text": f"{FILES['CHANGES.md']}- {text}\n"}}


def _hand_over(name: str, task: str) -> dict[str, Any]:
    payload = {"branch": branch_name(name, task), "task_id": task}
    return {"mail": {"to": "{parent}", "type": "merge_ready", "subject": f"{name} is ready", "payload": payload}}
