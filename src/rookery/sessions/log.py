"""The log of a session as files: NDJSON for programs and text for people, without secrets, long texts cut."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from typing import Any

from rookery.base.files import read_text
from rookery.base.json import dumps, loads
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.config import layout
from rookery.environment import service as environment
from rookery.events.redact import redact_all

LONGEST = 20_000
_LINE_WIDTH = 300
_LAST_LINES = 3


@dataclass(frozen=True, slots=True)
class LogEntry(Record):
    """One thing that an agent's program did or said."""

    kind: str
    name: str = ""
    is_error: bool = False
    millis: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


def append(folder: str, record: dict[str, Any]) -> None:
    """Add an entry, with its time and whose it is, to the session's two files."""
    mark = "! " if record["is_error"] else ""
    text = f"{mark}{record['kind']:<6} {record['name']} {one_line(describe(record['data']), _LINE_WIDTH)}"
    why = explain(record["data"])
    text += f"  [{one_line(why, _LINE_WIDTH)}]" if why else ""
    for name, line in ((layout.SESSION_EVENTS, dumps(record)), (layout.SESSION_LOG, f"{record['at']}  {text}")):
        handle = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(handle, "wb", buffering=0) as file:
            file.write((line + "\n").encode(errors="backslashreplace"))


def describe(data: dict[str, Any]) -> str:
    """The data of a record in short."""
    for key in ("text", "message", "command", "change"):
        if isinstance(data.get(key), str):
            return str(data[key])
    values = data.get("input", data)
    if isinstance(values, dict) and isinstance(values.get("args"), list):
        return shlex.join(map(str, values["args"]))
    if isinstance(values, dict):
        return ", ".join(f"{key}={value}" for key, value in values.items())
    return str(values)


def explain(data: dict[str, Any]) -> str:
    """Why a call was denied, and what to do instead; or how a failed one ended. Empty for all others."""
    if data.get("verdict"):
        hint = data.get("hint")
        return f"{data.get('reason', '')}\ninstead: {hint}" if hint else str(data.get("reason", ""))
    if data.get("ok") is not False:
        return ""
    status, output = data.get("status"), data.get("output")
    refusal = _refusal(output)
    if refusal:
        return refusal
    first, *rest = (output if isinstance(output, str) else dumps(output)).strip().splitlines() or ["no output"]
    # The first line names the exit status where the program tells it; what went wrong stands at the end.
    lines = [first, *rest] if len(rest) <= _LAST_LINES else [first, "…", *rest[-_LAST_LINES:]]
    return "\n".join([f"exit status {status}", *lines] if status else lines)


def _refusal(output: object) -> str:
    """Why a `rook` call was refused that was asked for JSON; empty for any other output."""
    try:
        error = loads(output)["error"] if isinstance(output, str) and output.startswith("{") else {}
        hint = f"\ninstead: {error['hint']}" if error.get("hint") else ""
        return f"{error['message']}{hint}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def clean(data: dict[str, Any], secrets: tuple[str, ...]) -> dict[str, Any]:
    """The data without secrets, long texts cut."""
    cleaned: dict[str, Any] = _bounded(redact_all(data, secrets))
    return cleaned


def _bounded(value: Any) -> Any:
    """Cut long texts, so that one `cat` of a big file does not fill the disk."""
    if isinstance(value, str):
        value = value.encode(errors="replace").decode()  # JSON can name halves of characters, which no database keeps
        return value if len(value) <= LONGEST else value[:LONGEST] + f"… [{len(value) - LONGEST:,} more]"
    if isinstance(value, dict):
        return {_bounded(key): _bounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_bounded(item) for item in value]
    return value


def read_secrets(root: str, folder: str) -> tuple[str, ...]:
    """The secrets that we know: the agent's token, those in the files that it was provided with, credentials."""
    token = read_text(os.path.join(folder, layout.SESSION_TOKEN))
    provided = read_text(os.path.join(folder, layout.SESSION_MANIFEST), errors="surrogateescape")
    return (*([token] if token else []), *(loads(provided)["secrets"] if provided else ()), *environment.secrets(root))
