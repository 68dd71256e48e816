"""Compares the result of every operation that the tests run with the schema that its declaration gives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from rookery.base.json import dumps
from rookery.base.record import words_of
from rookery.cli import main
from rookery.ops import index, operation
from rookery.ops.command_line import read_globals
from rookery.ops.context import Context
from rookery.ops.json_schema import result_schema
from rookery.ops.operation import Op

_MOST = 20
"""How much of a list is looked at: the rest has the same shape."""


class WrongResult(AssertionError):
    """An operation gave something else than it declares."""


def install() -> None:
    """Check the result of every command of this process, and of its copies, from now on."""
    validators()

    def call(ctx: Context, op: Op, values: dict[str, Any]) -> Any:
        result = operation.call(ctx, op, values)
        if op.name not in validators():
            return result
        if op.streams:
            return _check_stream(op, result)
        _check_result(op, result)
        return result

    vars(main)["call"] = call


@cache
def validators() -> dict[str, Any]:
    """What checks the results of each operation, by its name."""
    return {op.name: Draft202012Validator(result_schema(op)) for op in index.load_all()}


def check_printed(words: Sequence[str], output: bytes) -> None:
    """Raise WrongResult if a program printed something else than its operation declares."""
    op, _ = index.find(read_globals(list(words))[1])
    for line in output.splitlines() if op is not None else ():
        with suppress(ValueError):  # what a killed program printed last may be cut off
            envelope = json.loads(line)
            if op is not None and envelope.get("ok"):
                _check(op, envelope["data"])


def _check_stream(op: Op, results: Iterator[Any]) -> Iterator[Any]:
    for result in results:
        _check_result(op, result)
        yield result


def _check_result(op: Op, result: Any) -> None:
    if op.changes_state and not isinstance(result, str):
        for word in words_of(result):
            if not word or word.split() != [word]:
                raise WrongResult(f"rook {op.name} --quiet prints {word!r}, which is no word that a command accepts")
    _check(op, json.loads(dumps(result[:_MOST] if isinstance(result, list) else result)))


def _check(op: Op, data: Any) -> None:
    """Raise WrongResult if JSON is not as the schema of the operation's result says."""
    problem = next(validators()[op.name].iter_errors(data[:_MOST] if isinstance(data, list) else data), None)
    if problem is not None:
        place = "/".join(map(str, problem.absolute_path))
        raise WrongResult(f"rook {op.name} at {place or 'the top'}: {problem.message[:500]}")
