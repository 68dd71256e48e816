"""Time as text: UTC, milliseconds, sorted as it reads. A clock is a function, so that tests can pass their own."""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable
from datetime import datetime, tzinfo

from rookery.base.errors import InvalidInput

Clock = Callable[[], float]

_SKEW = 30.0
"""Clocks differ by less than that, and are corrected by less while they run well."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def stamp(seconds: float) -> str:
    """Seconds since the epoch as `2026-01-31T12:00:00.000Z`."""
    millis = round(seconds * 1000)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(millis // 1000))
    return f"{whole}.{millis % 1000:03d}Z"


def seconds_of(text: str) -> float:
    """The seconds since the epoch that a text of `stamp` stands for."""
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + int(text[20:23]) / 1000


def has_passed(length: float, since: float, now: float) -> bool:
    """True if so many seconds have passed since a recorded time, or the clock was set back, so that none can know.

    Ends of leases are set back instead (`flows/deadlines.py`): their holders may be alive.
    """
    return now - since >= length or is_future(since, now)


def is_future(recorded: float, now: float) -> bool:
    """True if a recorded time is so far in the future that the clock was set back since."""
    return recorded - now > _SKEW


def is_stamp(text: str) -> bool:
    """True if the text is a time as `stamp` writes it."""
    try:
        return stamp(seconds_of(text)) == text
    except ValueError:
        return False


def length(seconds: float) -> str:
    """A length of time for people, in its largest unit: `45s`, `12m`, `3h`, `2d`."""
    whole = max(0, int(seconds))
    unit = next((unit for unit in reversed(_UNITS) if whole >= _UNITS[unit]), "s")
    return f"{whole // _UNITS[unit]}{unit}"


def when(at: str, now: float, zone: tzinfo) -> str:
    """A recorded time for people: `12m ago`, `in 3h`; beyond a day the date and time in their time zone."""
    seconds = now - seconds_of(at)
    if abs(seconds) >= _UNITS["d"]:
        local = datetime.fromtimestamp(seconds_of(at), zone)
        return local.strftime("%Y-%m-%d %H:%M") + _zone_if_utc(local)
    if abs(seconds) < 1:
        return "now"
    return f"{length(seconds)} ago" if seconds > 0 else f"in {length(-seconds)}"


def time_of_day(at: str, now: float, zone: tzinfo) -> str:
    """A recorded time to the second, in people's time zone: `14:05:12`, with the date if that is not today."""
    local, today = (datetime.fromtimestamp(seconds, zone) for seconds in (seconds_of(at), now))
    is_today = local.date() == today.date()
    return local.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S") + _zone_if_utc(local)


def _zone_if_utc(local: datetime) -> str:
    """UTC is named: people may have another time zone that is not known here."""
    return " UTC" if local.tzname() == "UTC" else ""


def parse_duration(text: str) -> float:
    """`90`, `90s`, `30m`, `2h` or `1d` in seconds; it must be more than nothing."""
    number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        seconds = 0
    if not 0 < seconds < 1e9:
        raise InvalidInput(f"{text!r} is not a duration", hint="write it as 90s, 30m, 2h or 1d")
    return seconds
