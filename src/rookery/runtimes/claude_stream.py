"""What Claude Code says on its standard output, line by line (`--output-format stream-json`), as events of a turn.

Nothing is remembered between lines. Usage and cost come from the `result` alone: the events before it repeat what
their message began with. Seen on version 2.1.197; fields that are missing or odd say nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rookery.runtimes import model
from rookery.runtimes.model import TurnEvent

Said = dict[str, Any]

_OUTPUT = 10_000
_DIAGNOSTIC = "[ede_diagnostic]"
_LIMITED = (402, 429)
_FORBIDDEN = (401, 403)
_OVERLOADED = range(500, 600)
# A plan's limits come without a status of their own.
_LIMIT_WORDS = ("usage limit", "rate limit", "limit reached", "hit your limit", "out of credit", "credit balance")


def read_line(line: str) -> Sequence[TurnEvent]:
    """What a line tells of; anything that is no event of the program's own says nothing."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    read = _READERS.get(str(said.get("type"))) if isinstance(said, dict) else None
    return () if read is None else tuple(read(said))


def user_line(text: str) -> str:
    """A prompt, as the program reads it on standard input."""
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n"


INTERRUPT_LINE = (
    json.dumps({"type": "control_request", "request_id": "interrupt", "request": {"subtype": "interrupt"}}) + "\n"
)


def _read_system(said: Said) -> Iterator[TurnEvent]:
    if said.get("subtype") == "init" and isinstance(said.get("session_id"), str):
        yield TurnEvent(model.SESSION, {"id": said["session_id"]})
    elif said.get("subtype") == "api_retry":
        what = f"{said.get('error_status') or ''} {said.get('error') or ''}".strip()
        count = f"attempt {said.get('attempt')} of {said.get('max_retries')}"
        yield TurnEvent(model.TEXT, {"text": f"[the API refused: {what}; {count}]"})


def _read_assistant(said: Said) -> Iterator[TurnEvent]:
    message = _dict(said.get("message"))
    if message.get("model") == "<synthetic>":
        return  # the program's own words for an error, which the result tells too
    for block in _blocks(message):
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            yield TurnEvent(model.TEXT, {"text": block["text"]})
        elif block.get("type") == "tool_use" and isinstance(block.get("name"), str):
            call = {"id": str(block.get("id", "")), "name": block["name"], "input": _dict(block.get("input"))}
            yield TurnEvent(model.TOOL, call)


def _read_user(said: Said) -> Iterator[TurnEvent]:
    for block in _blocks(_dict(said.get("message"))):
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str):
            is_ok = not block.get("is_error")
            output = _text(block.get("content"))[:_OUTPUT]
            yield TurnEvent(model.TOOL, {"id": block["tool_use_id"], "ok": is_ok, "output": output})
    changed = _dict(said.get("tool_use_result"))
    # What was read has a path too, but no patch.
    if isinstance(changed.get("filePath"), str) and "structuredPatch" in changed:
        change = "created" if changed.get("type") == "create" else "modified"
        yield TurnEvent(model.FILE, {"path": changed["filePath"], "change": change})


def _read_limit(said: Said) -> Iterator[TurnEvent]:
    info = _dict(said.get("rate_limit_info"))
    if isinstance(info.get("status"), str):
        told = {"status": info["status"], "window": info.get("rateLimitType"), "resets_at": info.get("resetsAt")}
        yield TurnEvent(model.LIMIT, {key: value for key, value in told.items() if value is not None})


def _read_result(said: Said) -> Iterator[TurnEvent]:
    if not isinstance(said.get("subtype"), str):
        return
    for denial in _list(said.get("permission_denials")):
        found = _dict(denial)
        if isinstance(found.get("tool_name"), str):
            told = {"name": found["tool_name"], "input": _dict(found.get("tool_input"))}
            yield TurnEvent(model.DENIED, told | {"id": str(found.get("tool_use_id", ""))})
    yield from _usage(said)
    is_ok = said["subtype"] == "success" and not said.get("is_error")
    text = said["result"] if isinstance(said.get("result"), str) else ""
    if not is_ok:
        yield TurnEvent(model.ERROR, _error(said, text))
    yield TurnEvent(model.RESULT, {"text": text, "ok": is_ok})


def _usage(said: Said) -> Iterator[TurnEvent]:
    """One event a model. A child runs one turn, so what it counts from its start is what the turn used."""
    for name, found in _dict(said.get("modelUsage")).items():
        used = _dict(found)
        cost = used.get("costUSD")
        data: Said = {
            "model": name,
            "input": _count(used.get("inputTokens")),
            "output": _count(used.get("outputTokens")),
            "cache_read": _count(used.get("cacheReadInputTokens")),
            "cache_write": _count(used.get("cacheCreationInputTokens")),
        }
        if isinstance(cost, int | float):
            data["cost_micros"] = round(cost * 1_000_000)
        yield TurnEvent(model.USAGE, data)


def _error(said: Said, text: str) -> Said:
    subtype, status = said["subtype"], said.get("api_error_status")
    told = [each for each in _list(said.get("errors")) if isinstance(each, str) and not each.startswith(_DIAGNOSTIC)]
    reason = str(said.get("terminal_reason") or subtype)
    words = "interrupted" if reason.startswith("aborted") else reason.replace("_", " ")
    message = text or "\n".join(told[:3]) or words
    data: Said = {"message": message}
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


def _blocks(message: Said) -> list[Said]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in _list(content) if isinstance(block, dict)]


def _dict(value: object) -> Said:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


_READERS: dict[str, Callable[[Said], Iterator[TurnEvent]]] = {
    "system": _read_system,
    "assistant": _read_assistant,
    "user": _read_user,
    "rate_limit_event": _read_limit,
    "result": _read_result,
}
