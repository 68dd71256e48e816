"""`rook bug-report`: one file that helps to repair Rookery, without code, mail or secrets.

Everything is text that went through `events/redact.py`. Nothing is sent anywhere.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import apsw

from rookery import __version__
from rookery.base.check import OK, Place
from rookery.base.draft import write_whole
from rookery.base.errors import InvalidInput, RookError, StorageFailed
from rookery.base.json import dumps
from rookery.base.record import Record
from rookery.base.text import plural, visible
from rookery.config import layout
from rookery.config.model import Config
from rookery.config.schema import keys
from rookery.config.values import show_value
from rookery.db.migrate import SCHEMA_VERSION
from rookery.doctor import service
from rookery.environment import service as environment
from rookery.events.model import Event
from rookery.events.redact import redact
from rookery.events.store import read
from rookery.ops.context import Context
from rookery.sessions import store as sessions

_EVENTS = 200
_ERRORS = 50
_LOGS = 5
_LINES = 200
_SHOWN = {
    *("state", "step", "outcome", "role", "runtime", "mode", "model", "profile", "kind", "type", "priority", "cause"),
    *("verdict", "tier", "strategy", "sandbox", "ends_with", "agent", "parent", "assignee", "from", "to"),
}
"""Fields of events whose values are words of Rookery's own. All other texts may be what people and agents wrote."""
_OURS = re.compile(r"[a-z]+_[0-9A-Z]{26}|[0-9a-f]{40}|\d{4}-\d\d-\d\dT[\d:.]+Z|")
"""What shows that a text is an id, a commit, a time, or nothing."""
_HIDDEN = "[left out]"
_QUOTED = re.compile(r"(?<!\w)(?:'[^'\n]*'|\"[^\"\n]*\")(?!\w)")


@dataclass(frozen=True, slots=True)
class BugReport(Record):
    """Where the report is, and what it has."""

    PRINTS = "path"
    path: str
    size: int
    sections: tuple[str, ...]


def write_report(ctx: Context, place: Place, path: str) -> BugReport:
    """Write the report; a file that is there is never written over."""
    if os.path.lexists(path):
        raise InvalidInput(f"{path} already exists", hint="choose another name: `rook bug-report --output FILE`")
    sections = list(_sections(ctx, place))
    head = "# Rookery: bug report\n\nSecrets, titles, mail and code are left out. Read it before you send it.\n"
    text = head + "".join(f"\n## {title}\n\n```\n{_safe(ctx, place.root, body)}\n```\n" for title, body in sections)
    try:
        write_whole(path, text, mode=0o600)
    except OSError as error:
        raise StorageFailed(f"{path} cannot be written: {error.strerror}", hint="choose a folder of yours") from error
    return BugReport(path, len(text.encode()), tuple(title for title, _ in sections))


def _sections(ctx: Context, place: Place) -> Iterator[tuple[str, str]]:
    yield "Versions", _versions()
    yield "Doctor", _doctor(place)
    if place.root is None:
        return
    yield "Settings that differ from the defaults", _attempt(lambda: _settings(ctx))
    yield "Agents", _attempt(lambda: _agents(ctx))
    yield f"Last {_ERRORS} errors", _attempt(lambda: _events(ctx, errors=True))
    yield f"Last {_EVENTS} events", _attempt(lambda: _events(ctx, errors=False))
    for name in _logs(place.root):
        yield name, _end_of(layout.path(place.root, layout.LOGS, name))


def _versions() -> str:
    return "\n".join(
        [
            f"rookery {__version__}, schema {SCHEMA_VERSION}",
            f"Python {platform.python_version()} ({platform.python_implementation()})",
            f"{platform.system()} {platform.release()} {platform.machine()}",
            f"SQLite {apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}",
        ]
    )


def _doctor(place: Place) -> str:
    report = service.examine(place)
    rows = [finding for finding in report.checks if finding.status != OK or finding.category == "install"]
    lines = [f"{finding.status}: {finding.category}, {finding.name}: {_unquoted(finding.message)}" for finding in rows]
    return "\n".join([report.status, *lines])


def _settings(ctx: Context) -> str:
    lines = []
    for section, values in ctx.config.__class__.__dataclass_fields__.items():
        own, default = getattr(ctx.config, section), getattr(Config(), section)
        if own == default:
            continue
        if not hasattr(values.type, "__dataclass_fields__") and isinstance(own, tuple):
            lines.append(f"{section}: {plural(len(own), 'entry', 'entries')}")
            continue
        for name in type(own).__dataclass_fields__:
            value = getattr(own, name)
            if value != getattr(default, name):
                lines.append(f"{section}.{name}: {_setting(f'{section}.{name}', value)}")
    return "\n".join(lines) or "none"


def _setting(name: str, value: object) -> str:
    """A number, or a choice among ours; of texts only that there are some: they name commands, files and hosts."""
    if isinstance(value, dict):
        return plural(len(value), "variable")
    if isinstance(value, tuple) and not keys()[name].choices:
        return plural(len(value), "entry", "entries")
    return show_value(value) if not isinstance(value, str) or keys()[name].choices else _HIDDEN


def _agents(ctx: Context) -> str:
    rows = sessions.newest(ctx.db, _ERRORS)
    lines = [
        f"{row.agent}: {row.role}, {row.runtime}, {row.mode}, {row.outcome or row.state}, step {row.step}, "
        f"created {row.created_at}, ended {row.ended_at}"
        for row in rows
    ]
    return "\n".join(lines) or "none"


def _events(ctx: Context, *, errors: bool) -> str:
    limit = _ERRORS if errors else _EVENTS
    rows = read(ctx.db, errors=errors, limit=limit, newest=True)
    return "\n".join(map(_line, rows)) or "none"


def _line(event: Event) -> str:
    data = _without_texts(event.data)
    return f"{event.seq} {event.at} {event.type} {event.actor} {event.subject} {dumps(data)}"


def _without_texts(value: object, key: str = "") -> object:
    if isinstance(value, dict):
        return {name: _without_texts(content, name) for name, content in value.items()}
    if isinstance(value, list):
        return [_without_texts(item, key) for item in value]
    return _HIDDEN if isinstance(value, str) and key not in _SHOWN and not _OURS.fullmatch(value) else value


def _logs(root: str) -> list[str]:
    """The newest reports of bugs, and the logs of the daemon and of the loop."""
    folder = layout.path(root, layout.LOGS)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    bugs = [name for name in names if name.startswith("bug-")][-_LOGS:]
    return [*bugs, *(name for name in names if not name.startswith("bug-"))]


def _end_of(path: str) -> str:
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-_LINES:]).rstrip("\n")
    return "it cannot be read"


def _attempt(make: Callable[[], str]) -> str:
    """A section that may fail: a report is written when something is broken."""
    try:
        return make()
    except (RookError, OSError) as error:
        return f"this cannot be read: {_unquoted(str(error))}"


def _unquoted(message: str) -> str:
    """A message without what it quotes: a value or a name that is wrong in a setting may be a secret."""
    return _QUOTED.sub(f"'{_HIDDEN}'", message)


def _safe(ctx: Context, root: str | None, body: str) -> str:
    """The text without secrets, without the name of the user's home, and without what ends a block of code."""
    home = ctx.environ.home
    known: tuple[str, ...] = ()
    if root is not None:
        with suppress(RookError, OSError):
            known = environment.secrets(root)
    text = redact(body, known)
    if len(home) > 1:
        text = text.replace(home, "~")
    return visible(text).replace("```", "'''")
