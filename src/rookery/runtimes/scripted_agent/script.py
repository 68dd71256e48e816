"""The script: where it is found, what its steps are, and what is wrong with one that is not right."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from rookery.base.errors import InvalidInput
from rookery.base.record import Record

Rule = Callable[[Any], str]

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
    """One thing to do."""

    label: str
    """Its number in the script; `4.2` is the second step of what step 4 repeats."""
    kind: str
    value: Any

    def __str__(self) -> str:
        return f"step {self.label} ({self.kind})"


def find_script(text: str) -> str | None:
    """The first block of a Markdown text that is fenced and called `rook-script`."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        opened = _FENCE.match(line)
        if opened is None:
            continue
        fence = opened["fence"]
        body = []
        for inner in lines[at + 1 :]:
            bare = inner.strip()
            if len(bare) >= len(fence) and not bare.strip(fence[0]):
                break
            body.append(inner)
        return "\n".join(body)
    return None


def parse_script(text: str) -> tuple[Step, ...]:
    """The steps in order, repetitions written out; raises InvalidInput with the step's number."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidInput(f"the script is no YAML: {error}", hint=_HINT) from error
    if not isinstance(found, list):
        raise InvalidInput("the script is no list of steps", hint=_HINT)
    return tuple(_parse_steps(found, ""))


def _parse_steps(found: list[Any], prefix: str) -> list[Step]:
    steps: list[Step] = []
    for number, each in enumerate(found, 1):
        label = f"{prefix}{number}"
        if not isinstance(each, dict) or not all(isinstance(key, str) for key in each):
            raise InvalidInput(f"step {label}: {each!r} is no step", hint="a step is written as `say: hello`")
        if "repeat" in each:
            steps += _parse_repeat(each, label)
        else:
            steps.append(_parse_step(each, label))
        if len(steps) > _MOST_STEPS:
            raise InvalidInput(f"step {label}: with it the script has more than {_MOST_STEPS:,} steps")
    return steps


def _parse_repeat(found: dict[str, Any], label: str) -> list[Step]:
    times, inner = found["repeat"], found.get("steps")
    if set(found) != {"repeat", "steps"} or type(times) is not int or not 0 <= times <= _MOST_STEPS:
        raise InvalidInput(f"step {label} (repeat): it is written as `repeat: 3` with `steps:` beneath", hint=_HINT)
    if not isinstance(inner, list):
        raise InvalidInput(f"step {label} (repeat): `steps` must be a list", hint=_HINT)
    once = _parse_steps(inner, f"{label}.")
    if len(once) * times > _MOST_STEPS:
        raise InvalidInput(f"step {label} (repeat): that is more than {_MOST_STEPS:,} steps")
    return once * times


def _parse_step(found: dict[str, Any], label: str) -> Step:
    if len(found) != 1:
        raise InvalidInput(f"step {label}: one key is wanted, not {', '.join(found) or 'none'}", hint=_HINT)
    ((kind, value),) = found.items()
    if kind not in RULES:
        raise InvalidInput(f"step {label}: there is no step `{kind}`", hint="one of " + ", ".join(RULES))
    problem = RULES[kind](value)
    if problem:
        raise InvalidInput(f"step {label} ({kind}): {problem}", hint=_HINT)
    return Step(label, kind, value)


def _text(value: Any) -> str:
    return "" if isinstance(value, str) and value else "a text is wanted"


def _true(value: Any) -> str:
    return "" if value is True else "it is written with `true`"


def _words(value: Any) -> str:
    is_list = isinstance(value, list) and value
    is_plain = is_list and all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in value)
    return "" if is_plain else "a list of words is wanted"


def _seconds(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if is_number and value >= 0 else "a number of seconds is wanted"


def _status(value: Any) -> str:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return "" if is_number and 0 <= value <= 255 else "an exit status from 0 to 255 is wanted"


def _signal(value: Any) -> str:
    return "" if isinstance(value, str) and signal_number(value) is not None else "a signal's name is wanted, as TERM"


def _mail_word(value: Any) -> str:
    return "" if value == "mail" else "it is written as `wait: mail`"


def _keys(value: Any, needed: tuple[str, ...], allowed: tuple[str, ...]) -> str:
    if not isinstance(value, dict):
        return "keys with values are wanted"
    missing = [key for key in needed if key not in value]
    unknown = [str(key) for key in value if key not in needed + allowed]
    if missing:
        return f"`{missing[0]}` is missing"
    return f"there is no `{unknown[0]}`" if unknown else ""


def _edit(value: Any) -> str:
    ways = ("text", "append", "replace")
    problem = _keys(value, ("path",), ways)
    if problem:
        return problem
    given = [way for way in ways if way in value]
    if len(given) != 1 or not isinstance(value["path"], str):
        return "`path` and one of `text`, `append`, `replace` are wanted"
    change = value[given[0]]
    if given[0] != "replace":
        return "" if isinstance(change, str) else f"`{given[0]}` must be a text"
    is_pair = isinstance(change, list) and len(change) == 2 and all(isinstance(each, str) for each in change)
    return "" if is_pair and change[0] else "`replace` is a list of the old and the new text"


def _mail(value: Any) -> str:
    problem = _keys(value, ("to",), ("type", "subject", "body", "payload", "priority"))
    if problem:
        return problem
    odd = [key for key, each in value.items() if key != "payload" and not isinstance(each, str)]
    if odd:
        return f"`{odd[0]}` must be a text"
    return "" if isinstance(value.get("payload", {}), dict) else "`payload` has keys with values"


def _sling(value: Any) -> str:
    return "" if isinstance(value, dict) and "task" in value else "`task` is missing"


def _spend(value: Any) -> str:
    counts = ("input", "output", "cache_read", "cache_write")
    problem = _keys(value, (), (*counts, "model"))
    if problem:
        return problem
    odd = [key for key in counts if not isinstance(value.get(key, 0), int) or value.get(key, 0) < 0]
    return f"`{odd[0]}` must be a number of tokens" if odd else ""


def _until(value: Any) -> str:
    problem = _keys(value, (), ("mail_from", "mail_type"))
    return problem or ("" if value else "`mail_from` or `mail_type` is wanted")


def signal_number(name: str) -> int | None:
    """The number of a signal, by its name with or without `SIG`."""
    full = name if name.startswith("SIG") else f"SIG{name}"
    return signal.Signals[full].value if full in signal.Signals.__members__ else None


RULES: dict[str, Rule] = {
    "say": _text,
    "edit": _edit,
    "commit": _text,
    "run": _text,
    "mail": _mail,
    "reply": _text,
    "task": _words,
    "rook": _words,
    "sling": _sling,
    "wait": _mail_word,
    "until": _until,
    "sleep": _seconds,
    "spend": _spend,
    "crash": _status,
    "signal": _signal,
    "hang": _true,
    "stubborn": _true,
    "child": _text,
    "fail": _text,
}
"""Every step but `repeat`: what its value has to be. A rule says what is wrong, or nothing."""
