"""One declaration is enough: what every interface knows of an operation comes from its signature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
from jsonschema import Draft202012Validator

import results
from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.ops import index, operation
from rookery.ops.command_line import Globals, build_parser, read_words
from rookery.ops.context import Context
from rookery.ops.json_schema import input_schema, read_input, result_schema
from rookery.ops.operation import FOLLOWS, LONG_TEXT, TASKS, Choices, Doc, Op, Owns, Ref, Short, call, declared, op
from rookery.ops.schema_ops import describe


@dataclass(frozen=True, slots=True)
class Painted(Record):
    """What was painted."""

    HIDDEN = ("secret",)
    SHOWN = ("size",)
    task: str
    colours: tuple[str, ...]
    secret: str = "x"

    @property
    def size(self) -> int:
        return len(self.colours)


@pytest.fixture
def paint() -> Iterator[Op]:
    @op("paint", needs="task.write", view="plain.lines")
    def paint(
        ctx: Context,
        task: Annotated[str, Owns(TASKS), Doc("The task to paint.")],
        *,
        colour: Annotated[tuple[str, ...], Choices(("red", "green")), Doc("A colour; several may be given.")] = (),
        from_: Annotated[str | None, Ref(TASKS), Short("f"), Doc("Whose colours to take.")] = None,
        coats: Annotated[int, Doc("How many.")] = 1,
        note: Annotated[str | None, LONG_TEXT, Doc("What to say of it.")] = None,
        watch: Annotated[bool, FOLLOWS, Doc("Look on while it dries.")] = False,
    ) -> Painted:
        """Paint a task.

        It takes a while to dry.
        """
        return Painted(task, (*colour, *([from_] if from_ else [])) * coats)

    yield declared()["paint"]
    del declared()["paint"]


def test_parameters_come_from_the_signature(paint: Op) -> None:
    by_name = {param.name: param for param in paint.params}
    assert list(by_name) == ["task", "colour", "from", "coats", "note", "watch"]
    task, colour, source = by_name["task"], by_name["colour"], by_name["from"]
    assert (task.positional, task.required, task.names) == (True, True, TASKS)
    assert (colour.many, colour.choices, colour.default, colour.flag) == (True, ("red", "green"), (), "--colour")
    assert (source.short, source.names, source.required) == ("f", TASKS, False)
    assert by_name["coats"].kind == operation.INTEGER
    assert by_name["note"].long_text
    assert by_name["watch"].kind == operation.FLAG
    assert (paint.owns, paint.touches, paint.streams, paint.pages) == ({"task": TASKS}, operation.WRITE, False, False)
    assert (paint.summary, paint.documentation.splitlines()[-1]) == ("Paint a task.", "It takes a while to dry.")


def test_words_become_values_and_a_call(paint: Op, tmp_path: Path) -> None:
    words = ["task_1", "--colour", "red", "-f", "task_2", "--coats", "2"]
    values, _ = read_words(paint, words, Globals())
    painted = call(Context(cwd=str(tmp_path)), paint, values)
    assert painted == Painted("task_1", ("red", "task_2", "red", "task_2"))
    assert "Whose colours to take." in build_parser(paint).format_help()


def test_schemas_describe_input_and_result(paint: Op) -> None:
    taken = input_schema(paint)
    assert taken["required"] == ["task"]
    assert taken["properties"]["colour"]["items"] == {"enum": ["red", "green"], "type": "string"}
    assert taken["properties"]["from"]["description"] == "Whose colours to take."
    result = Painted("task_1", ("red",)).to_json()
    assert result == {"task": "task_1", "colours": ("red",), "size": 1}
    validator = Draft202012Validator(result_schema(paint))
    validator.validate(result | {"colours": ["red"]})
    for wrong in ({"task": "t"}, {"task": "t", "colours": [], "size": "1"}, {**result, "colours": [], "more": 1}):
        assert not validator.is_valid(wrong)


def test_values_from_outside_are_checked(paint: Op) -> None:
    assert read_input(paint, {"task": "t", "colour": ["red"]}) == {"task": "t", "colour": ["red"]}
    with pytest.raises(InvalidInput, match=r"colour\.0"):
        read_input(paint, {"task": "t", "colour": ["blue"]})
    with pytest.raises(InvalidInput, match=r"coats.*; .*nonsense"):
        read_input(paint, {"task": "t", "coats": "2", "nonsense": 1})


@pytest.mark.parametrize("declaration", index.load_all(), ids=lambda declaration: declaration.name)
def test_every_operation_has_schemas(declaration: Op) -> None:
    schemas = describe(declaration)
    Draft202012Validator.check_schema(schemas.input)
    Draft202012Validator.check_schema(schemas.result)
    assert all(param.help.endswith((".", ")", "`")) for param in declaration.params), declaration.name
    assert schemas.result, "it says nothing of its result"


def test_names_in_results_are_snake_case() -> None:
    def names(part: object) -> Iterator[str]:
        if isinstance(part, dict):
            yield from part.get("properties", {})
            for value in part.values():
                yield from names(value)
        elif isinstance(part, list):
            for value in part:
                yield from names(value)

    wrong = {
        (declaration.name, name)
        for declaration in index.load_all()
        for name in names(result_schema(declaration))
        if name.lower() != name
    }
    assert wrong == set()


def test_what_a_program_prints_is_compared_with_its_schema() -> None:
    results.check_printed(["completion", "bash", "--json"], b'{"v": 1, "ok": true, "data": "text"}\n')
    with pytest.raises(results.WrongResult, match="rook completion at the top"):
        results.check_printed(["completion", "bash", "--json"], b'{"v": 1, "ok": true, "data": 3}\n')
