"""Reads the standard output of Claude Code (`--output-format stream-json`), line by line, as events of a turn.

Nothing is remembered between lines. Usage and cost come from the `result` alone: the events before it repeat what
their message began with. As version 2.1.197 writes it; fields that are missing or odd are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rookery.runtimes import model
from rookery.runtimes.model import TurnEvent

Object = dict[str, Any]

_OUTPUT = 10_000
_DIAGNOSTIC = "[ede_diagnostic]"
_LIMITED = (402, 429)
_FORBIDDEN = (401, 403)
_OVERLOADED = range(500, 600)
_COUNTS = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadInputTokens",
    "cache_write": "cacheCreationInputTokens",
}
# A plan's limits come without a status of their own.
_LIMIT_WORDS = ("usage limit", "rate limit", "limit reached", "hit your limit", "out of credit", "credit balance")


def read_line(line: str) -> Sequence[TurnEvent]:
    """The events of a line; anything that is no event of the program's own is ignored."""
    try:
        event = _dict(json.loads(line))
    except (ValueError, RecursionError):
        return ()
    read = _READERS.get(str(event.get("type")))
    return () if read is None else tuple(read(event))


def user_line(text: str) -> str:
    """A prompt, as the program reads it on standard input."""
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n"


INTERRUPT_LINE = (
    json.dumps({"type": "control_request", "request_id": "interrupt", "request": {"subtype": "interrupt"}}) + "\n"
)


def _read_system(event: Object) -> Iterator[TurnEvent]:
    if event.get("subtype") == "init" and isinstance(event.get("session_id"), str):
        yield TurnEvent(model.SESSION, {"id": event["session_id"]})
    elif event.get("subtype") == "api_retry":
        what = f"{event.get('error_status') or ''} {event.get('error') or ''}".strip()
        count = f"attempt {event.get('attempt')} of {event.get('max_retries')}"
        yield TurnEvent(model.TEXT, {"text": f"[the API refused: {what}; {count}]"})


def _read_assistant(event: Object) -> Iterator[TurnEvent]:
    message = _dict(event.get("message"))
    if message.get("model") == "<synthetic>":
        return  # the program's own words for an error, which the result tells too
    for block in _blocks(message):
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            yield TurnEvent(model.TEXT, {"text": block["text"]})
        elif block.get("type") == "tool_use" and isinstance(block.get("name"), str):
            call = {"id": str(block.get("id", "")), "name": block["name"], "input": _dict(block.get("input"))}
            yield TurnEvent(model.TOOL, call)


def _read_user(event: Object) -> Iterator[TurnEvent]:
    for block in _blocks(_dict(event.get("message"))):
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str):
            is_ok = not block.get("is_error")
            output = _text(block.get("content"))[:_OUTPUT]
            yield TurnEvent(model.TOOL, {"id": block["tool_use_id"], "ok": is_ok, "output": output})
    changed = _dict(event.get("tool_use_result"))
    # What was read has a path too, but no patch.
    if isinstance(changed.get("filePath"), str) and "structuredPatch" in changed:
        change = "created" if changed.get("type") == "create" else "modified"
        yield TurnEvent(model.FILE, {"path": changed["filePath"], "change": change})


def _read_limit(event: Object) -> Iterator[TurnEvent]:
    info = _dict(event.get("rate_limit_info"))
    if isinstance(info.get("status"), str):
        limit = {"status": info["status"], "window": info.get("rateLimitType"), "resets_at": info.get("resetsAt")}
        yield TurnEvent(model.LIMIT, {key: value for key, value in limit.items() if value is not None})


def _read_result(event: Object) -> Iterator[TurnEvent]:
    if not isinstance(event.get("subtype"), str):
        return
    for denial in map(_dict, _list(event.get("permission_denials"))):
        if isinstance(denial.get("tool_name"), str):
            call = {"name": denial["tool_name"], "input": _dict(denial.get("tool_input"))}
            yield TurnEvent(model.DENIED, call | {"id": str(denial.get("tool_use_id", ""))})
    yield from _usage(event)
    is_ok = event["subtype"] == "success" and not event.get("is_error")
    text = event["result"] if isinstance(event.get("result"), str) else ""
    if not is_ok:
        yield TurnEvent(model.ERROR, _error(event, text))
    yield TurnEvent(model.RESULT, {"text": text, "ok": is_ok})


def _usage(event: Object) -> Iterator[TurnEvent]:
    """One event a model. A child runs one turn, so what it counts from its start is what the turn used."""
    for name, used in _dict(event.get("modelUsage")).items():
        cost = _dict(used).get("costUSD")
        data: Object = {"model": name} | {kind: _count(_dict(used).get(field)) for kind, field in _COUNTS.items()}
        if isinstance(cost, int | float):
            data["cost_micros"] = round(cost * 1_000_000)
        yield TurnEvent(model.USAGE, data)


def _error(event: Object, text: str) -> Object:
    subtype, status = event["subtype"], event.get("api_error_status")
    errors = [error for error in _list(event.get("errors")) if isinstance(error, str)]
    shown = [error for error in errors if not error.startswith(_DIAGNOSTIC)][:3]
    reason = str(event.get("terminal_reason") or subtype)
    words = "interrupted" if reason.startswith("aborted") else reason.replace("_", " ")
    message = text or "\n".join(shown) or words
    data: Object = {"message": message}
    if isinstance(status, int):
        data["status"] = status
    kind = "turns" if subtype == "error_max_turns" else _kind(status, message)
    return data | ({"kind": kind} if kind else {})


def _kind(status: object, message: str) -> str:
    if status in _LIMITED or (status is None and any(word in message.lower() for word in _LIMIT_WORDS)):
        return "limit"
    if status in _FORBIDDEN:
        return "auth"
    return "overloaded" if isinstance(status, int) and status in _OVERLOADED else ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = (_dict(block) for block in _list(content))
    return "\n".join(str(block.get("text") or f"[{block.get('type')}]") for block in blocks)


def _blocks(message: Object) -> list[Object]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in _list(content) if isinstance(block, dict)]


def _dict(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


_READERS: dict[str, Callable[[Object], Iterator[TurnEvent]]] = {
    "system": _read_system,
    "assistant": _read_assistant,
    "user": _read_user,
    "rate_limit_event": _read_limit,
    "result": _read_result,
}
