"""What an interactive Claude Code used, from the transcripts that it keeps: it reports usage nowhere else.

A message has a line for each of its blocks, all with the same usage, so it is counted by its id. Reading goes on where
it stopped; a line that is only half written is read the next time. Its own subagents have transcripts beside it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rookery.base.draft import write_whole
from rookery.base.files import read_text
from rookery.runtimes.conversation import copy_files

Entry = dict[str, Any]

_REMEMBERED = 50
"""How many messages of a file are remembered: the last blocks of a message may come after the first were read."""
_STATE = "rook-usage.json"
_KINDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


def usage_of_turn(folder: str, turn_id: str, is_settled: Callable[[str], bool]) -> Sequence[Entry]:
    """What one turn of the session in `folder` used, as usage events say it; nothing where there are no transcripts.

    Call it before the turn is settled. After a kill it returns the same again for a turn that was not settled, and
    nothing twice for one that was: what was read for a turn counts only once `is_settled` says so of it.
    """
    own = os.path.join(folder, "claude")
    if not os.path.isdir(os.path.join(own, "projects")):
        return ()
    path = os.path.join(own, _STATE)
    state = _read_state(path)
    since = state.get("after" if state.get("turn_id") and is_settled(state["turn_id"]) else "before")
    usage, position = read_usage(own, since)
    write_whole(path, json.dumps({"turn_id": turn_id, "before": since, "after": position}))
    return usage


def continue_from(folder: str, earlier: str) -> None:
    """Copy the conversation of an earlier session. All that is in its transcripts was counted there."""
    copy_files(earlier, folder)
    own = os.path.join(folder, "claude")
    if os.path.isdir(os.path.join(own, "projects")):
        _, position = read_usage(own, None)
        write_whole(os.path.join(own, _STATE), json.dumps({"turn_id": "", "before": position, "after": position}))


def usage_since(folder: str, at: str) -> list[Entry]:
    """What the session in `folder` used since a time, by model; nothing is remembered."""
    messages: dict[str, Entry] = {}
    for path in _transcripts(os.path.join(folder, "claude")):
        messages |= _read_file(path, 0, since=at)[0]
    return _sum_up(messages.values())


def read_usage(folder: str, since: Mapping[str, Any] | None) -> tuple[list[Entry], dict[str, Any]]:
    """The usage in the transcripts of a configuration folder beyond a position, and the next position.

    None is the beginning. A position is plain enough for JSON.
    """
    position: dict[str, Any] = dict(since or {})
    fresh: list[Entry] = []
    for path in _transcripts(folder):
        name = os.path.relpath(path, folder)
        offset, seen = position.get(name, (0, []))
        messages, offset = _read_file(path, offset)
        unseen = [message_id for message_id in messages if message_id not in seen]
        fresh += (messages[message_id] for message_id in unseen)
        position[name] = (offset, [*seen, *unseen][-_REMEMBERED:])
    return _sum_up(fresh), position


def _transcripts(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(os.path.join(folder, "projects")):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(files) if name.endswith(".jsonl"))


def _read_file(path: str, offset: int, since: str = "") -> tuple[dict[str, Entry], int]:
    """The messages of the whole lines beyond the offset, by id, and where the next line begins."""
    messages: dict[str, Entry] = {}
    try:
        # The folder is the agent's: a link may lead anywhere, and a pipe would hold us for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return {}, offset
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return {}, offset
        if os.fstat(handle).st_size < offset:
            offset = 0  # it was written again
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                break
            offset += len(line)
            message = _message(line, since)
            if message is not None:
                messages[message["id"]] = message
    return messages, offset


def _message(line: bytes, since: str) -> Entry | None:
    """The message of a line with usage, if it is not older than `since`."""
    if b'"usage"' not in line:
        return None
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or str(entry.get("timestamp", "")) < since:
        return None
    message = entry.get("message") if entry.get("type") == "assistant" else None
    if not isinstance(message, dict) or not isinstance(message.get("usage"), dict):
        return None
    is_named = isinstance(message.get("id"), str) and isinstance(message.get("model"), str)
    return message if is_named and message["model"] != "<synthetic>" else None


def _sum_up(messages: Iterable[Entry]) -> list[Entry]:
    """The usage by model."""
    sums: dict[str, Entry] = {}
    for message in messages:
        model = message["model"]
        entry = sums.setdefault(model, {"model": model, **dict.fromkeys(_KINDS, 0)})
        for kind, name in _KINDS.items():
            count = message["usage"].get(name)
            entry[kind] += count if isinstance(count, int) and count > 0 else 0
    return list(sums.values())


def _read_state(path: str) -> dict[str, Any]:
    """How far was read, and for which turn. An error of the disk is raised: to begin again would count twice."""
    try:
        state = json.loads(read_text(path) or "{}")
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}
