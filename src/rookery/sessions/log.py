"""The log of a session as files: NDJSON for programs and text for people, without secrets, long texts cut."""

from __future__ import annotations

import os
from typing import Any

from rookery.base.json import dumps, loads
from rookery.base.text import one_line
from rookery.config import layout
from rookery.environment import service as environment
from rookery.events.redact import redact_all

LONGEST = 20_000
_LINE_WIDTH = 300


def append(folder: str, record: dict[str, Any]) -> None:
    """Add a record to the session's two files."""
    _append(folder, layout.SESSION_EVENTS, dumps(record))
    line = text_line(record["at"], record["kind"], record["name"], record["is_error"], record["data"])
    _append(folder, layout.SESSION_LOG, line)


def text_line(at: str, kind: str, name: str, is_error: bool, data: dict[str, Any]) -> str:
    """A record as people read it."""
    return f"{at}  {'! ' if is_error else ''}{kind:<6} {name} {one_line(describe(data), _LINE_WIDTH)}"


def describe(data: dict[str, Any]) -> str:
    """The gist of a record on a line."""
    for key in ("text", "message", "command", "change"):
        if isinstance(data.get(key), str):
            return str(data[key])
    told = data.get("input", data)
    if isinstance(told, dict):
        return ", ".join(f"{key}={value}" for key, value in told.items())
    return str(told)


def clean(data: dict[str, Any], secrets: tuple[str, ...]) -> dict[str, Any]:
    """The data without secrets, long texts cut."""
    text = dumps(data)
    if not _is_unicode(text):
        text = text.encode(errors="replace").decode()
        data = loads(text)
    found: dict[str, Any] = bounded(redact_all(data, secrets))
    return found


def _is_unicode(text: str) -> bool:
    """False for halves of characters, which JSON can name and no database keeps."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def bounded(value: Any) -> Any:
    """Long texts are cut, so that one `cat` of a big file does not fill the disk."""
    if isinstance(value, str) and len(value) > LONGEST:
        return value[:LONGEST] + f"… [{len(value) - LONGEST} more characters]"
    if isinstance(value, dict):
        return {key: bounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [bounded(each) for each in value]
    return value


def read_secrets(root: str, folder: str) -> tuple[str, ...]:
    """What we know to be secret: the agent's token, what is in the files that it was given, credentials."""
    token = _content(folder, layout.SESSION_TOKEN)
    provided = _content(folder, layout.SESSION_MANIFEST)
    return (*([token] if token else []), *(loads(provided)["secrets"] if provided else ()), *environment.secrets(root))


def _content(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read().decode(errors="surrogateescape")
    except FileNotFoundError:
        return ""


def _append(folder: str, name: str, line: str) -> None:
    handle = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (line + "\n").encode(errors="backslashreplace"))
    finally:
        os.close(handle)
