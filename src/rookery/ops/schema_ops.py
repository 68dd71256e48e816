"""`rook schema`: operations as programs need to know them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from rookery.base.errors import UsageError
from rookery.base.record import Record
from rookery.ops import index
from rookery.ops.context import Context
from rookery.ops.operation import Doc, Op, op


@dataclass(frozen=True, slots=True)
class OperationSchema(Record):
    """One operation, as programs need to know it."""

    name: str
    summary: str
    needs: str
    """The permission."""
    touches: str
    """read, write (rows alone) or process."""
    long: bool
    streams: bool
    """It gives its results one by one; `result` is the schema of each."""
    follows: bool
    """It goes on until it is interrupted."""
    pages: bool
    """It takes a cursor: the `next` of the envelope before, which is null at the end."""
    input: dict[str, Any]
    result: dict[str, Any]


@op("schema", needs="project.read", view="plain.schema")
def schema(
    ctx: Context,
    operation: Annotated[tuple[str, ...], Doc("The operation, such as `task get`; without one, all.")] = (),
) -> list[OperationSchema]:
    """Print the JSON Schemas of an operation's input and result."""
    name = " ".join(operation)
    operations = [candidate for candidate in index.load_all() if name in ("", candidate.name)]
    if not operations:
        raise UsageError(f"no operation {name!r}", hint="`rook --help` lists the commands")
    return [describe(operation) for operation in operations]


def describe(operation: Op) -> OperationSchema:
    """What a program has to know to call the operation."""
    from rookery.ops.json_schema import input_schema, result_schema  # pydantic takes 75 ms to import

    return OperationSchema(
        operation.name,
        operation.summary,
        operation.needs,
        operation.touches,
        operation.long,
        operation.streams,
        operation.follows,
        operation.pages,
        input_schema(operation),
        result_schema(operation),
    )
