"""Our hooks in the settings of a person's own session: put beside what they have there, and taken out without a trace.

Only `.claude/settings.local.json` of the checkout is touched: it is the person's own, and not for others.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState
from rookery.base.json import loads
from rookery.base.record import Record
from rookery.config import layout
from rookery.runtimes.claude_folder import PERSONAL_SETTINGS, event_name, hook_entry
from rookery.runtimes.hooks import HOOKS, MODULE, PRE_COMPACT, PROMPT, SESSION_START, Hook

EVENTS = {event_name(hook.event): hook for hook in HOOKS if hook.event in (SESSION_START, PROMPT, PRE_COMPACT)}
"""What a person's session calls us for; at their tool calls we have nothing to say."""


@dataclass(frozen=True, slots=True)
class Installed(Record):
    """How our hooks stand in a settings file."""

    path: str
    events: tuple[str, ...]
    """Those of the program's events that call us."""
    is_current: bool
    """False if some are missing, or call a Rookery that is not this one."""
    changed: bool = False


def status(root: str) -> Installed:
    """Which of our hooks are there."""
    path = os.path.join(root, PERSONAL_SETTINGS)
    found = _ours(_read(path))
    return Installed(path, tuple(found), found == {name: [_entry(hook)] for name, hook in EVENTS.items()})


def install(root: str) -> Installed:
    """Put our hooks in; what else is in the file stays as it is. Safe to repeat."""
    before = status(root)
    if before.is_current:
        return before
    original = _text(before.path)
    settings = _without_ours(_read(before.path))
    hooks = settings.setdefault("hooks", {})
    for name, hook in EVENTS.items():
        hooks.setdefault(name, []).append(_entry(hook))
    _keep(root, original if not before.events else None)
    _write(before.path, settings)
    return status(root).replace(changed=True)


def uninstall(root: str) -> Installed:
    """Take our hooks out. If nothing else was changed since, the file is what it was to the byte, or gone."""
    before = status(root)
    if not before.events:
        return before
    rest = _without_ours(_read(before.path))
    kept = _kept(root)
    if kept is not None and _parsed(kept) == rest:
        _put_back(before.path, kept)
    elif rest:
        _write(before.path, rest)
    else:
        _put_back(before.path, "")
    _forget(root)
    return status(root).replace(changed=True)


def _entry(hook: Hook) -> dict[str, Any]:
    return {"hooks": [hook_entry(hook)]}


def _ours(settings: dict[str, Any]) -> dict[str, list[Any]]:
    hooks = settings.get("hooks", {})
    found = {name: [each for each in entries if _is_ours(each)] for name, entries in hooks.items()}
    return {name: entries for name, entries in found.items() if entries}


def _without_ours(settings: dict[str, Any]) -> dict[str, Any]:
    hooks = {name: [each for each in given if not _is_ours(each)] for name, given in settings.get("hooks", {}).items()}
    emptied = {name for name in _ours(settings) if not hooks[name]}
    hooks = {name: entries for name, entries in hooks.items() if name not in emptied}
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return rest | ({"hooks": hooks} if hooks or (settings.get("hooks") == {}) else {})


def _is_ours(entry: Any) -> bool:
    return any(MODULE in str(word) for hook in entry.get("hooks", ()) for word in (hook.get("command"), *_args(hook)))


def _args(hook: dict[str, Any]) -> list[Any]:
    found = hook.get("args")
    return found if isinstance(found, list) else []


def _read(path: str) -> dict[str, Any]:
    return _parsed(_text(path), path)


def _parsed(text: str, path: str = "") -> dict[str, Any]:
    """The settings; raises InvalidState, so that nothing of a file that we do not understand is changed."""
    if not text.strip():
        return {}
    try:
        found = loads(text)
        hooks = found.get("hooks", {})
        is_known = all(isinstance(each, dict) for entries in hooks.values() for each in entries)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InvalidState(f"{path} cannot be read: {error}", hint="fix the file first; it was not touched") from error
    if not is_known:
        raise InvalidState(f"the hooks in {path} have a form that is not known", hint="the file was not touched")
    settings: dict[str, Any] = found
    return settings


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _write(path: str, settings: dict[str, Any]) -> None:
    _replace(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def _put_back(path: str, text: str) -> None:
    if text:
        _replace(path, text)
        return
    os.unlink(os.path.realpath(path))
    folder = os.path.dirname(path)
    if not os.listdir(folder):
        os.rmdir(folder)


def _replace(path: str, text: str) -> None:
    target = os.path.realpath(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    write_whole(target, text, mode=os.stat(target).st_mode & 0o777 if os.path.exists(target) else None)


def _copy(root: str) -> str:
    return layout.path(root, layout.SETTINGS_BEFORE)


def _keep(root: str, original: str | None) -> None:
    """Remember the file as it was before us, the first time."""
    if original is not None:
        _replace(_copy(root), original)


def _kept(root: str) -> str | None:
    return _text(_copy(root)) if os.path.exists(_copy(root)) else None


def _forget(root: str) -> None:
    if os.path.exists(_copy(root)):
        os.unlink(_copy(root))
