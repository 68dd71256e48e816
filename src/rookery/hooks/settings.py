"""Our hooks in the settings of a person's own session: added beside their own, and removed without a trace.

Only `.claude/settings.local.json` of the checkout is touched: it is the person's own, and not for others.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import filterfalse
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState
from rookery.base.files import read_text
from rookery.base.json import loads
from rookery.base.record import Record
from rookery.config import layout
from rookery.runtimes.claude_folder import PERSONAL_SETTINGS, event_name, hook_entry
from rookery.runtimes.hooks import HOOKS, MODULE, PRE_COMPACT, PROMPT, SESSION_START

EVENTS = {event_name(hook.event): hook for hook in HOOKS if hook.event in (SESSION_START, PROMPT, PRE_COMPACT)}
"""The events at which a person's session calls us; at their tool calls we have nothing to say."""


@dataclass(frozen=True, slots=True)
class Installed(Record):
    """Which of our hooks are in a settings file."""

    path: str
    events: tuple[str, ...]
    """Those of the program's events that call us."""
    is_current: bool
    """False if some are missing, or call a Rookery that is not this one."""
    changed: bool = False


def status(root: str) -> Installed:
    """Which of our hooks are there."""
    path = os.path.join(root, PERSONAL_SETTINGS)
    ours, _ = _split(_parse(read_text(path), path))
    return Installed(path, tuple(ours), ours == {name: [_entry(name)] for name in EVENTS})


def install(root: str) -> Installed:
    """Add our hooks; everything else in the file stays as it is. Safe to repeat."""
    before = status(root)
    if before.is_current:
        return before
    original = read_text(before.path)
    _, rest = _split(_parse(original, before.path))
    hooks = rest.setdefault("hooks", {})
    for name in EVENTS:
        hooks.setdefault(name, []).append(_entry(name))
    if not before.events:  # keep the file as it was before us
        _write(layout.path(root, layout.SETTINGS_BEFORE), original or "")
    _write(before.path, _format(rest))
    return status(root).replace(changed=True)


def uninstall(root: str) -> Installed:
    """Remove our hooks. If nothing else was changed since, the file is what it was to the byte, or gone."""
    before = status(root)
    if not before.events:
        return before
    _, rest = _split(_parse(read_text(before.path), before.path))
    copy = layout.path(root, layout.SETTINGS_BEFORE)
    original = read_text(copy)
    is_original = original is not None and _parse(original, copy) == rest
    text = original if is_original else _format(rest) if rest else ""
    if text:
        _write(before.path, text)
    else:
        os.unlink(os.path.realpath(before.path))
        with suppress(OSError):  # the folder has other files
            os.rmdir(os.path.dirname(before.path))
    with suppress(FileNotFoundError):
        os.unlink(copy)
    return status(root).replace(changed=True)


def _entry(name: str) -> dict[str, Any]:
    return {"hooks": [hook_entry(EVENTS[name])]}


def _split(settings: dict[str, Any]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Our hooks, by event, and the settings without them: an event that had only ours is left out."""
    hooks: dict[str, list[Any]] = settings.get("hooks", {})
    ours = {name: own for name, entries in hooks.items() if (own := list(filter(_is_ours, entries)))}
    others = {name: list(filterfalse(_is_ours, entries)) for name, entries in hooks.items()}
    others = {name: entries for name, entries in others.items() if entries or name not in ours}
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return ours, rest | ({"hooks": others} if others or settings.get("hooks") == {} else {})


def _is_ours(entry: dict[str, Any]) -> bool:
    return any(MODULE in f"{hook.get('command')} {hook.get('args')}" for hook in entry.get("hooks", ()))


def _parse(text: str | None, path: str) -> dict[str, Any]:
    """The settings; raises InvalidState, so that nothing of a file that we do not understand is changed."""
    if text is None or not text.strip():
        return {}
    try:
        settings: dict[str, Any] = loads(text)
        hooks = settings.get("hooks", {})
        is_known = all(isinstance(entry, dict) for entries in hooks.values() for entry in entries)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InvalidState(f"{path} cannot be read: {error}", hint="fix the file first; it was not touched") from error
    if not is_known:
        raise InvalidState(f"the hooks in {path} have a form that is not known", hint="the file was not touched")
    return settings


def _format(settings: dict[str, Any]) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _write(path: str, text: str) -> None:
    target = os.path.realpath(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    write_whole(target, text, mode=os.stat(target).st_mode & 0o777 if os.path.exists(target) else None)
