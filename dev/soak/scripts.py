"""What the agent of a job does: a script of the scripted runtime, most of whose steps call `hand`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import yaml

from dev.soak.plan import Job

_HAND = Path(__file__).with_name("hand.py")
_WAIT = {"wait": "mail"}
_TRIES = 6
"""How often the last message is tried: whatever says it may be killed, and the next turn says it again."""


def describe_job(job: Job, ledger: Path) -> str:
    """The description of the job's task, with the script in it."""
    steps = [*_STEPS[job.kind](_Writer(job, ledger)), *_finish(_Writer(job, ledger))]
    return f"Job {job.key}, {job.kind}.\n\n```rook-script\n{yaml.safe_dump(steps, sort_keys=False)}```\n"


class _Writer:
    """Writes steps for one job."""

    def __init__(self, job: Job, ledger: Path) -> None:
        self.key = job.key
        self._start = [sys.executable, "-I", "-S", str(_HAND), str(ledger), job.key]
        self._needs = ",".join(job.needs)

    def hand(self, verb: str, *words: str) -> dict[str, Any]:
        """A step that does something with its own hand."""
        return {"run": shlex.join([*self._start, verb, *words])}

    def begin(self) -> list[dict[str, Any]]:
        """The first commit: registered, and not yet whole, so that no gate passes it."""
        return [self.hand("begin", self._needs)]

    def note(self, number: int) -> list[dict[str, Any]]:
        """A commit by the runtime's own steps. Done twice it is still the same."""
        path = f"notes/{self.key}-{number}.txt"
        return [
            {"edit": {"path": path, "text": f"Note {number} of {self.key}.\n"}},
            {"commit": f"{self.key}: note {number}"},
            self.hand("record"),
        ]


def _finish(write: _Writer) -> list[dict[str, Any]]:
    spent = {"spend": {"input": 1000, "output": 100, "model": "scripted"}}
    done = {"repeat": _TRIES, "steps": [write.hand("done", write._needs, "{parent}"), _WAIT]}
    return [write.hand("finish", write._needs), spent, done]


def _plain(write: _Writer) -> list[dict[str, Any]]:
    return [{"say": f"Working on {write.key}."}, *write.begin(), *write.note(1), *write.note(2)]


def _asks(write: _Writer) -> list[dict[str, Any]]:
    return [*write.begin(), write.hand("ask"), _WAIT, write.hand("answer"), *write.note(1)]


def _turns(write: _Writer) -> list[dict[str, Any]]:
    woken = [step for number in (1, 2, 3) for step in (write.hand("wake", str(number)), _WAIT, *write.note(number))]
    return [*write.begin(), *woken]


def _late(write: _Writer) -> list[dict[str, Any]]:
    """Ask for a landing of work that the gate must refuse, and complete the work after the refusal."""
    return [*write.begin(), *write.note(1), write.hand("try"), write.hand("check")]


def _crashes(write: _Writer) -> list[dict[str, Any]]:
    return [*write.begin(), {"child": "sleep 600"}, write.hand("crash"), *write.note(1)]


def _gossip(write: _Writer) -> list[dict[str, Any]]:
    return [
        *write.begin(),
        write.hand("gossip"),
        {"sleep": 1},
        write.hand("check"),
        *write.note(1),
        write.hand("gossip"),
    ]


_STEPS = {
    "plain": _plain,
    "asks": _asks,
    "turns": _turns,
    "late": _late,
    "crashes": _crashes,
    "gossip": _gossip,
}
