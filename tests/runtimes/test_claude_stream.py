"""What lines of Claude Code say: recorded from version 2.1.197 and cut, and lines that are bent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.runtimes.claude_stream import read_line
from rookery.runtimes.model import (
    DENIED,
    ERROR,
    FILE,
    LIMIT,
    RESULT,
    SESSION,
    TEXT,
    TOOL,
    USAGE,
)


def parsed(line: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(event.kind, event.data) for event in read_line(json.dumps(line))]


def message(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "msg_1", "model": "m", "content": list(blocks), **more}}


RESULT_LINE: dict[str, Any] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "api_error_status": None,
    "result": "bye",
    "session_id": "abc",
    "total_cost_usd": 0.0099,
    "usage": {"input_tokens": 1300, "output_tokens": 80},
    "modelUsage": {
        "opus": {
            "inputTokens": 1300,
            "outputTokens": 80,
            "cacheReadInputTokens": 300,
            "cacheCreationInputTokens": 200,
            "costUSD": 0.0095,
        },
        "haiku": {"inputTokens": 10, "outputTokens": 1, "costUSD": 0.0004},
    },
    "permission_denials": [],
    "terminal_reason": "completed",
}


def test_a_conversation_says_its_name() -> None:
    assert parsed({"type": "system", "subtype": "init", "session_id": "abc"}) == [(SESSION, {"id": "abc"})]


def test_words_and_calls() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    assert parsed(message({"type": "text", "text": "hi"}, call, {"type": "thinking", "thinking": "hm"})) == [
        (TEXT, {"text": "hi"}),
        (TOOL, {"id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}),
    ]


def test_the_end_of_a_call_and_the_file_that_it_made() -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "made"}]}
    change = {"type": "create", "filePath": "/w/a.txt", "content": "x", "structuredPatch": []}
    assert parsed({"type": "user", "message": {"content": [result]}, "tool_use_result": change}) == [
        (TOOL, {"id": "toolu_1", "ok": True, "output": "made"}),
        (FILE, {"path": "/w/a.txt", "change": "created"}),
    ]
    edited = {"filePath": "/w/a.txt", "oldString": "x", "newString": "y", "structuredPatch": [{}]}
    assert parsed({"type": "user", "message": {"content": []}, "tool_use_result": edited}) == [
        (FILE, {"path": "/w/a.txt", "change": "modified"})
    ]


def test_a_call_that_failed_and_one_that_says_too_much() -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": "x" * 50_000, "is_error": True}
    ((kind, data),) = parsed({"type": "user", "message": {"content": [block]}, "tool_use_result": "Error: x"})
    assert (kind, data["ok"], len(data["output"])) == (TOOL, False, 10_000)


def test_usage_and_cost_come_by_model_and_once() -> None:
    assert parsed(RESULT_LINE) == [
        (
            USAGE,
            {
                "model": "opus",
                "input": 1300,
                "output": 80,
                "cache_read": 300,
                "cache_write": 200,
                "cost_micros": 9500,
            },
        ),
        (USAGE, {"model": "haiku", "input": 10, "output": 1, "cache_read": 0, "cache_write": 0, "cost_micros": 400}),
        (RESULT, {"text": "bye", "ok": True}),
    ]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (
            {"is_error": True, "api_error_status": 401, "result": "bad key"},
            {"message": "bad key", "status": 401, "kind": "auth"},
        ),
        (
            {"is_error": True, "api_error_status": 429, "result": "slower"},
            {"message": "slower", "status": 429, "kind": "limit"},
        ),
        (
            {"is_error": True, "api_error_status": 529, "result": "busy"},
            {"message": "busy", "status": 529, "kind": "overloaded"},
        ),
        ({"is_error": True, "api_error_status": 400, "result": "odd"}, {"message": "odd", "status": 400}),
        (
            {"is_error": True, "result": "You've hit your limit · resets 3pm"},
            {"message": "You've hit your limit · resets 3pm", "kind": "limit"},
        ),
        (
            {"subtype": "error_max_turns", "result": None, "terminal_reason": "max_turns"},
            {"message": "max turns", "kind": "turns"},
        ),
        (
            {"subtype": "error_during_execution", "result": None, "errors": ["no such conversation"]},
            {"message": "no such conversation"},
        ),
        (
            {
                "subtype": "error_during_execution",
                "result": None,
                "terminal_reason": "aborted_tools",
                "errors": ["[ede_diagnostic] result_type=user"],
            },
            {"message": "interrupted"},
        ),
    ],
)
def test_what_went_wrong_is_no_success(changes: dict[str, Any], error: dict[str, Any]) -> None:
    events = parsed(RESULT_LINE | {"modelUsage": {}} | changes)
    assert events[0] == (ERROR, error)
    assert [data["ok"] for kind, data in events if kind == RESULT] == [False]


def test_what_was_not_let_through() -> None:
    denial = {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "rm"}}
    assert parsed(RESULT_LINE | {"permission_denials": [denial]})[0] == (
        DENIED,
        {"name": "Bash", "input": {"command": "rm"}, "id": "t"},
    )


def test_a_plan_says_when_it_is_used_up() -> None:
    info = {"status": "rejected", "resetsAt": 1794790000, "rateLimitType": "five_hour"}
    assert parsed({"type": "rate_limit_event", "rate_limit_info": info}) == [
        (LIMIT, {"status": "rejected", "window": "five_hour", "resets_at": 1794790000})
    ]


def test_an_api_that_is_asked_again_is_seen() -> None:
    retry = {"type": "system", "subtype": "api_retry", "attempt": 2, "max_retries": 10, "error_status": 529}
    ((kind, data),) = parsed(retry | {"error": "overloaded"})
    assert kind == TEXT
    assert "529 overloaded; attempt 2 of 10" in data["text"]


def test_its_own_words_for_an_error_are_not_the_agents() -> None:
    assert parsed(message({"type": "text", "text": "API Error"}, model="<synthetic>")) == []


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KEYS = ("subtype", "message", "session_id", "tool_use_result", "rate_limit_info", "result", "modelUsage", "errors")
_TYPES = ("system", "assistant", "user", "result", "rate_limit_event", "stream_event", "control_response")


@pytest.mark.slow
@given(
    st.sampled_from(_TYPES),
    st.dictionaries(st.sampled_from(_KEYS), _anything | st.fixed_dictionaries({"content": _anything})),
)
def test_bent_lines_never_fail(kind: str, rest: dict[str, Any]) -> None:
    for event in read_line(json.dumps({"type": kind, **rest})):
        assert event.kind
