"""The script: where it stands in a text, which steps it has, and what is wrong with one that is not right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.runtimes.scripted_agent.steps import STEPS

_HINT = "docs/guides/scripted-runtime.md has every step"
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*rook-script[ \t]*$")
_MOST_STEPS = 100_000

DEFAULT = """
- say: "I am {agent}, and I work on {task}."
- edit: {path: "{agent}.md", text: "A note by {agent}, for {task}.\\n"}
- commit: "Add a note by {agent}"
- mail:
    to: "{parent}"
    type: worker_done
    subject: "{agent} is done"
    body: "I wrote {agent}.md and committed it."
"""


@dataclass(frozen=True, slots=True)
class Step(Record):
    """One step of a script."""

    label: str
    """Its number in the script; `4.2` is the second step of those that step 4 repeats."""
    kind: str
    value: Any

    def __str__(self) -> str:
        return f"step {self.label} ({self.kind})"


def find_script(text: str) -> str | None:
    """The first fenced block of a Markdown text that is called `rook-script`."""
    fence, body = "", []
    for line in text.splitlines():
        bare = line.strip()
        opened = _FENCE.match(line)
        if fence and len(bare) >= len(fence) and not bare.strip(fence[0]):
            break
        if fence:
            body.append(line)
        elif opened is not None:
            fence = opened["fence"]
    return "\n".join(body) if fence else None


def parse_script(text: str) -> tuple[Step, ...]:
    """The steps in order, repetitions written out; raises InvalidInput with the step's number."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidInput(f"the script is not YAML: {error}", hint=_HINT) from error
    if not isinstance(content, list):
        raise InvalidInput("the script is not a list of steps", hint=_HINT)
    return tuple(_parse_steps(content, ""))


def _parse_steps(items: list[Any], prefix: str) -> list[Step]:
    steps: list[Step] = []
    for number, item in enumerate(items, 1):
        label = f"{prefix}{number}"
        if not isinstance(item, dict) or not all(isinstance(key, str) for key in item):
            raise InvalidInput(f"step {label}: {item!r} is no step", hint="a step is written as `say: hello`")
        steps += _parse_repeat(item, label) if "repeat" in item else [_parse_step(item, label)]
        if len(steps) > _MOST_STEPS:
            raise InvalidInput(f"step {label}: with it the script has more than {_MOST_STEPS:,} steps")
    return steps


def _parse_repeat(item: dict[str, Any], label: str) -> list[Step]:
    times, inner = item["repeat"], item.get("steps")
    if set(item) != {"repeat", "steps"} or type(times) is not int or not 0 <= times <= _MOST_STEPS:
        raise InvalidInput(f"step {label} (repeat): it is written as `repeat: 3` with `steps:` below", hint=_HINT)
    if not isinstance(inner, list):
        raise InvalidInput(f"step {label} (repeat): `steps` must be a list", hint=_HINT)
    once = _parse_steps(inner, f"{label}.")
    if len(once) * times > _MOST_STEPS:
        raise InvalidInput(f"step {label} (repeat): that is more than {_MOST_STEPS:,} steps")
    return once * times


def _parse_step(item: dict[str, Any], label: str) -> Step:
    if len(item) != 1:
        raise InvalidInput(f"step {label}: one key is wanted, not {', '.join(item) or 'none'}", hint=_HINT)
    ((kind, value),) = item.items()
    if kind not in STEPS:
        raise InvalidInput(f"step {label}: there is no step `{kind}`", hint="one of " + ", ".join(STEPS))
    find_problem, _do = STEPS[kind]
    problem = find_problem(value)
    if problem:
        raise InvalidInput(f"step {label} ({kind}): {problem}", hint=_HINT)
    return Step(label, kind, value)
