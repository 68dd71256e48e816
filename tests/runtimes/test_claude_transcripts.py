"""Usage from transcripts: each message once, however it is cut, read and killed in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rookery.runtimes.claude_transcripts import read_usage, usage_of_turn


def line(message_id: str, tokens: int = 10, model: str = "opus", **more: Any) -> str:
    usage = {"input_tokens": tokens, "output_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3}
    message = {"id": message_id, "model": model, "usage": usage, "content": [{"type": "text", "text": "x"}]}
    return json.dumps({"type": "assistant", "message": message | more}) + "\n"


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "claude" / "projects" / "-repo" / "1.jsonl"
    path.parent.mkdir(parents=True)
    return path


def inputs(folder: Path, since: Any = None) -> tuple[list[int], Any]:
    usage, position = read_usage(str(folder / "claude"), since)
    return [entry["input"] for entry in usage], json.loads(json.dumps(position))


def test_a_message_with_several_blocks_counts_once(transcript: Path, tmp_path: Path) -> None:
    transcript.write_text(line("a") + line("a") + line("b") + line("c", model="haiku"))
    usage, _ = read_usage(str(tmp_path / "claude"), None)
    assert usage == [
        {"model": "opus", "input": 20, "output": 2, "cache_read": 4, "cache_write": 6},
        {"model": "haiku", "input": 10, "output": 1, "cache_read": 2, "cache_write": 3},
    ]


def test_reading_goes_on_where_it_stopped_also_within_a_message_and_a_line(transcript: Path, tmp_path: Path) -> None:
    whole = line("a") + line("b") + line("b") + line("c")
    for cut in range(len(whole)):
        transcript.write_text(whole[:cut])
        first, position = inputs(tmp_path)
        transcript.write_text(whole)
        second, position = inputs(tmp_path, position)
        assert sum(first) + sum(second) == 30, cut
        assert inputs(tmp_path, position)[0] == []


def test_agents_of_its_own_count_too(transcript: Path, tmp_path: Path) -> None:
    transcript.write_text(line("a"))
    inner = transcript.parent / "1" / "subagents" / "agent-x.jsonl"
    inner.parent.mkdir(parents=True)
    inner.write_text(line("z", 5))
    assert sum(inputs(tmp_path)[0]) == 15


def test_what_is_no_usage_says_nothing(transcript: Path, tmp_path: Path) -> None:
    odd = [
        "{",
        "[]",
        '{"usage": 1}',
        '{"type": "assistant", "message": {"usage": 7}}',
        "[" * 9999 + '"usage"',
        "\udcff",
    ]
    odd += [
        "\udcff",
        line("s", model="<synthetic>").strip(),
        line("", id=None).strip(),
        '{"type":"user","message":{"usage":{}}}',
    ]
    text = "".join(f"{odd_line}\n" for odd_line in odd) + line("a")
    transcript.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert inputs(tmp_path)[0] == [10]


def test_a_file_that_was_rewritten_is_read_from_its_beginning(transcript: Path, tmp_path: Path) -> None:
    transcript.write_text(line("a") + line("b"))
    _, position = inputs(tmp_path)
    transcript.write_text(line("n"))
    assert inputs(tmp_path, position)[0] == [10]


def test_a_turn_that_is_settled_is_never_counted_again(transcript: Path, tmp_path: Path) -> None:
    settled: set[str] = set()

    def used(turn_id: str) -> int:
        return sum(usage["input"] for usage in usage_of_turn(str(tmp_path), turn_id, settled.__contains__))

    transcript.write_text(line("a"))
    assert used("one") == 10
    assert used("one") == 10  # killed before it was settled, and asked again
    settled.add("one")
    assert used("two") == 0  # and killed again
    transcript.write_text(line("a") + line("b", 7))
    assert used("two") == 7
    settled.add("two")
    assert used("three") == 0


def test_a_session_without_transcripts_used_nothing_that_is_known(tmp_path: Path) -> None:
    assert list(usage_of_turn(str(tmp_path), "one", lambda _: True)) == []
    assert list(tmp_path.iterdir()) == []
