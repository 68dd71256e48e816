"""What a soak does, from its seed alone: which jobs there are, and when what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

KILL, FREEZE, FILL, JUMP, STOP, CLEAN, LAND = "kill", "freeze", "fill", "jump", "stop", "clean", "land"

JOB_KINDS = ("plain", "asks", "turns", "late", "crashes", "gossip")
JOBS_PER_EPIC = 6

PROCESS_KINDS = ("daemon", "fork server", "runner", "worker", "agent", "tool", "client", "git", "any")
_KILL_WEIGHTS = (3, 2, 4, 5, 2, 2, 3, 5, 2)
_DEED_WEIGHTS = {KILL: 78, FREEZE: 13, JUMP: 9}
_PER_MINUTE = {FILL: 1, STOP: 2, CLEAN: 1, LAND: 3}
"""What happens so often, at any moment; at least once, however short the soak is."""
_PAUSE = (0.3, 1.7)
_JUMPS = (-7200.0, -3600.0, -90.0, -2.0, 2.0, 90.0, 3600.0, 86_400.0)


@dataclass(frozen=True, slots=True)
class Deed:
    """One failure, at so many seconds after the start."""

    at: float
    kind: str
    target: str = ""
    """The kind of process, for those that strike one."""
    amount: float = 0.0
    """Seconds that it lasts, or seconds that the clock is off afterwards."""


@dataclass(frozen=True, slots=True)
class Job:
    """One task: its name, what its agent does, and which earlier jobs have to land first."""

    number: int
    key: str
    kind: str
    needs: tuple[str, ...]
    priority: int
    epic: str


def make_deeds(seed: int, seconds: float, *, can_fill: bool) -> list[Deed]:
    """Every failure of a soak, in order."""
    dice = random.Random(f"deeds {seed}")
    deeds = []
    at = 3.0 + dice.uniform(*_PAUSE)
    while at < seconds:
        kind = dice.choices(list(_DEED_WEIGHTS), list(_DEED_WEIGHTS.values()))[0]
        target = dice.choices(PROCESS_KINDS, _KILL_WEIGHTS)[0]
        amount = dice.choice(_JUMPS) if kind == JUMP else dice.uniform(0.5, 6.0)
        deeds.append(Deed(round(at, 2), kind, target if kind in (KILL, FREEZE) else "", round(amount, 2)))
        at += dice.uniform(*_PAUSE)
    for kind, often in _PER_MINUTE.items():
        count = max(1, round(seconds / 60 * often))
        for number in range(count):
            moment = seconds * (number + dice.uniform(0.2, 0.8)) / count
            deed = Deed(round(moment, 2), kind, "", round(dice.uniform(2.0, 4.0), 2))
            if kind != FILL or can_fill:
                deeds.append(deed)
    return sorted(deeds, key=lambda deed: deed.at)


def make_jobs(seed: int) -> Iterator[Job]:
    """Jobs without end. Each may need a few of those shortly before it."""
    dice = random.Random(f"jobs {seed}")
    keys: list[str] = []
    while True:
        number = len(keys)
        recent = keys[-8:]
        needs = tuple(sorted(dice.sample(recent, min(len(recent), dice.choice((0, 0, 0, 1, 1, 2))))))
        key = f"k{number:04d}"
        kind = JOB_KINDS[number % len(JOB_KINDS)] if number < len(JOB_KINDS) else dice.choice(JOB_KINDS)
        epic = f"Epic {number // JOBS_PER_EPIC}"
        yield Job(number, key, kind, needs, dice.randint(1, 5), epic)
        keys.append(key)
