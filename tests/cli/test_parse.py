from __future__ import annotations

import io
import sys

import pytest

from rookery.base.errors import UsageError
from rookery.cli.help import show_help
from rookery.cli.main import _context
from rookery.cli.parse import parse_operation
from rookery.ops import index
from rookery.ops.command_line import Globals, read_globals
from rookery.ops.operation import Op


def _op(name: str) -> Op:
    operation, _ = index.find(name.split())
    assert operation is not None
    return operation


def _parse(name: str, *words: str, before: Globals | None = None) -> tuple[dict[str, object], Globals]:
    return parse_operation(_op(name), list(words), before or Globals())


def test_options_before_and_after_the_command() -> None:
    before, rest = read_globals(["--json", "-C", "/x", "-c", "a=1", "--config=b=2", "task", "list", "-q"])
    assert rest == ["task", "list", "-q"]
    assert (before.json, before.directory, before.config) == (True, "/x", {"a": "1", "b": "2"})
    _, settings = _parse("task list", "-q", "-c", "a=3", "--no-color", before=before)
    assert (settings.json, settings.quiet, settings.no_color) == (True, True, True)
    assert settings.config == {"a": "3", "b": "2"}
    assert settings.directory == "/x"


@pytest.mark.parametrize(
    "words",
    [
        ["t", "--blocked-by", "A", "B"],
        ["t", "--blocked-by", "A", "--blocked-by", "B"],
        ["--blocked-by", "A", "--blocked-by", "B", "t"],
        ["--blocked-by=A", "t", "--blocked-by=B"],
        ["t", "--blocked-by", "A", "B", "--json"],
        ["--blocked-by", "A", "B", "--", "t"],
    ],
)
def test_several_values_with_and_without_repeating_the_option(words: list[str]) -> None:
    values, _ = _parse("task create", *words)
    assert (values["title"], list(values["blocked_by"])) == ("t", ["A", "B"])  # type: ignore[call-overload]


def test_one_value_does_not_take_the_title() -> None:
    values, _ = _parse("task create", "--blocked-by", "A", "t")
    assert values == {"blocked_by": ["A"], "title": "t"}


@pytest.mark.parametrize(
    "words",
    [[], ["a", "b"], ["t", "--prio", "1"], ["t", "--blocked-by"], ["t", "-c", "=x"], ["t", "--priority", "1.5"]],
)
def test_what_does_not_fit_is_refused_with_a_hint(words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        _parse("task create", *words)
    assert caught.value.hint


def test_a_value_of_several_words_without_quotes_is_shown_in_quotes() -> None:
    with pytest.raises(UsageError) as caught:
        _parse("diff", "bee", "--since", "turn", "1", "--stat")
    assert caught.value.hint == 'put a value of several words in quotes: --since "turn 1"'
    with pytest.raises(UsageError) as caught:
        _parse("task create", "a", "--priority", "1", "b")
    assert "quotes" not in caught.value.hint


@pytest.mark.parametrize("words", [["-C"], ["--nonsense"], ["-c", "x"], ["--json=1x", "-z"]])
def test_wrong_options_before_the_command(words: list[str]) -> None:
    with pytest.raises(UsageError):
        read_globals(words)


def test_standard_input_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rookery.cli.parse._MOST_INPUT", 10)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 10)))
    assert _parse("task create", "t", "--description", "-")[0]["description"] == "x" * 10
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 11)))
    with pytest.raises(UsageError, match="longer than 10 bytes"):
        _parse("task create", "t", "--description", "-")


@pytest.mark.parametrize("is_confined", [False, True])
def test_no_sandboxed_agent_may_attach_to_a_program(monkeypatch: pytest.MonkeyPatch, is_confined: bool) -> None:
    """`rook attach` becomes tmux for a person at a terminal: run for an agent, that would be a way out."""
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True)
    if is_confined:
        monkeypatch.setenv("ROOKERY_CONFINED", "1")
    assert _context(Globals()).is_interactive is not is_confined


def test_a_group_can_be_a_command_by_itself() -> None:
    assert _op("merge --branch x").name == "merge"
    assert _op("merge list").name == "merge list"
    assert index.find(["merge", "lst"]) == (None, 0)
    with pytest.raises(UsageError) as caught:
        show_help(["merge", "lst"], Globals())
    assert caught.value.hint == "did you mean `rook merge list`?"


def test_its_help_names_the_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_help(["merge"], Globals(help=True)) == 0
    output = capsys.readouterr().out
    assert "--dry-run" in output
    assert "rook merge undo" in output


@pytest.mark.parametrize("words", [["bee", "--json", "hello"], ["--json", "bee", "hello"], ["bee", "hello", "--json"]])
def test_options_may_stand_between_arguments(words: list[str]) -> None:
    values, settings = _parse("nudge", *words)
    assert (values, settings.json) == ({"name": "bee", "message": "hello"}, True)
