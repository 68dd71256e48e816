"""What the doctor asks of the settings: that each holds what it may, and that the runtimes they name are there."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.base.check import ERROR, OK, Check, Finding, Place
from rookery.config.checks import CHECKS as OF_THE_FOLDER
from rookery.config.environ import read_environ
from rookery.config.loader import gather
from rookery.config.sources import Entry
from rookery.config.values import did_you_mean
from rookery.runtimes.registry import RUNTIMES

_CATEGORY = "config"
_RUNTIMES = ("agents.runtime", "merge.runtime")


def check_settings(place: Place) -> Iterator[Finding]:
    """Every file and variable holds only what it may."""
    entries, mistakes = gather(place.root, read_environ(), {})
    hint = "correct it; `rook config explain KEY` shows what a key accepts"
    findings = [Finding(_CATEGORY, "settings", ERROR, mistake, hint) for mistake in mistakes]
    findings += _unknown_runtimes(entries)
    yield from findings or [Finding(_CATEGORY, "settings", OK, "every setting is valid")]


def _unknown_runtimes(entries: dict[str, list[Entry]]) -> Iterator[Finding]:
    """The configuration takes any name of a runtime; which ones there are is known only above it."""
    for key in _RUNTIMES:
        name, origin = entries[key][-1].value, entries[key][-1].origin
        if name and name not in RUNTIMES:
            known = list(RUNTIMES)
            message = f"{origin}: {key} is {name}, and there is no such runtime{did_you_mean(name, known)}"
            hint = f"set it to one of {', '.join(known)}; `rook config explain {key}` shows every place that sets it"
            yield Finding(_CATEGORY, key, ERROR, message, hint)


CHECKS: tuple[Check, ...] = (*OF_THE_FOLDER, check_settings)
