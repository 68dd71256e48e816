from __future__ import annotations

from typing import Any

import pytest

from rookery.events.telemetry import Entry
from rookery.mail.model import Message
from rookery.status.last_action import last_action

_AT = "2026-01-01T12:00:00.000Z"


def _entry(kind: str, name: str = "", data: dict[str, Any] | None = None, *, failed: bool = False) -> Entry:
    return Entry(1, "evt", _AT, "bee", "ses", None, kind, name, failed, None, data or {})


def _command(command: str) -> dict[str, Any]:
    return {"input": {"command": command}}


def _sent(type: str, at: str) -> Message:
    return Message("m", "m", None, "bee", "human", None, type, "normal", "s", "", None, "ses", None, at, None)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (_entry("file", "src/app.py", {"change": "modified"}), "edited src/app.py"),
        (_entry("file", "a\x1b[31m.py", {"change": "created"}), "created a\\x1b[31m.py"),
        (_entry("tool", "Bash", _command("pytest -q")), "ran pytest -q"),
        (_entry("tool", "Bash", _command("pytest -q"), failed=True), "ran pytest -q (failed)"),
        (_entry("call", "Bash", _command("pytest -q")), "running pytest -q"),
        (_entry("denied", "Bash", _command("git push")), "was denied git push"),
        (_entry("tool", "Read", {"input": {"file_path": "/w/src/a.py"}}), "read src/a.py"),
        (_entry("tool", "Edit", {"input": {"file_path": "/elsewhere/a.py"}}), "edited /elsewhere/a.py"),
        (_entry("tool", "rook", {"input": {"args": ["task", "list"]}}), "ran rook task list"),
        (_entry("tool", "WebSearch", {"input": "odd"}), "used WebSearch"),
        (_entry("text", data={"text": "I look\nat it"}), "said: I look at it"),
        (_entry("error", data={"message": "no credit"}), "reported an error: no credit"),
    ],
)
def test_a_record_in_words(entry: Entry, words: str) -> None:
    action = last_action([entry], None, "/w")
    assert action is not None
    assert (action.text, action.at, action.is_going_on) == (words, _AT, entry.kind == "call")


def test_records_that_say_nothing_are_passed_over() -> None:
    edited = _entry("file", "a", {"change": "modified"})
    quiet = [
        _entry("usage"),
        _entry("result", data={"text": "x"}),
        _entry("tool", "Bash", _command("rook mail send x")),
    ]
    action = last_action([*quiet, edited], None, "/w")
    assert action is not None
    assert action.text == "edited a"
    assert last_action(quiet, None, "/w") is None


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (_sent("question", "2026-01-01T13:00:00.000Z"), "asked human"),
        (_sent("worker_done", "2026-01-01T13:00:00.000Z"), "wrote to human"),
        (_sent("question", "2026-01-01T11:00:00.000Z"), "ran make"),
    ],
)
def test_a_message_counts_if_it_is_newer(sent: Message, words: str) -> None:
    action = last_action([_entry("tool", "Bash", _command("make"))], sent, "/w")
    assert action is not None
    assert action.text == words
