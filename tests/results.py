"""Compares the result of every operation that the tests run with the schema that its declaration gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from rookery.base.json import dumps
from rookery.cli import main
from rookery.ops import index, operation
from rookery.ops.context import Context
from rookery.ops.json_schema import result_schema
from rookery.ops.operation import Op

_MOST = 20
"""How much of a list is looked at: the rest has the same shape."""


class WrongResult(AssertionError):
    """An operation gave something else than it declares."""


def install() -> None:
    """From now on every command of this process, and of its copies, is looked at."""
    validators = {each.name: Draft202012Validator(result_schema(each)) for each in index.load_all()}

    def call(ctx: Context, op: Op, values: dict[str, Any]) -> Any:
        result = operation.call(ctx, op, values)
        validator = validators.get(op.name)
        if validator is None:
            return result
        if op.streams:
            return _each(op, validator, result)
        check(op, validator, result)
        return result

    vars(main)["call"] = call


def _each(op: Op, validator: Any, results: Iterator[Any]) -> Iterator[Any]:
    for result in results:
        check(op, validator, result)
        yield result


def check(op: Op, validator: Any, result: Any) -> None:
    """Raise WrongResult if the JSON of a result is not as its schema says."""
    shown = result[:_MOST] if isinstance(result, list) else result
    data = json.loads(dumps(shown))
    problem = next(validator.iter_errors(data), None)
    if problem is not None:
        place = "/".join(map(str, problem.absolute_path))
        raise WrongResult(f"rook {op.name} at {place or 'the top'}: {problem.message[:500]}")
