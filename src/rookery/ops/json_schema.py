"""JSON Schemas of operations: what each takes and what it gives, derived from its declaration by pydantic.

Loaded only where a schema is needed: pydantic takes 75 ms to import.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from rookery.base.errors import InvalidInput
from rookery.ops.operation import FLAG, INTEGER, Op, Param


def input_schema(operation: Op) -> dict[str, Any]:
    """The JSON Schema of an object with a value for each parameter."""
    closed: dict[str, Any] = _closed(_input_model(operation).model_json_schema())
    return closed


def result_schema(operation: Op) -> dict[str, Any]:
    """The JSON Schema of `data` in the envelope; of each envelope if the operation streams."""
    closed: dict[str, Any] = _closed(TypeAdapter(operation.result).json_schema(mode="serialization"))
    return closed


def read_input(operation: Op, values: dict[str, Any]) -> dict[str, Any]:
    """Values from outside, checked against the declaration; raises InvalidInput that names every wrong one."""
    try:
        return _input_model(operation).model_validate(values).model_dump(exclude_unset=True)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}" for mistake in error.errors()]
        raise InvalidInput("; ".join(problems), hint=f"`rook schema {operation.name}` shows what it takes") from error


def _input_model(operation: Op) -> type[BaseModel]:
    fields: dict[str, Any] = {param.name: (_type(param), _field(param)) for param in operation.params}
    return create_model("Input", __config__=ConfigDict(extra="forbid", strict=True, protected_namespaces=()), **fields)


def _type(param: Param) -> Any:
    kind: Any = {FLAG: bool, INTEGER: int}.get(param.kind, str)
    if param.choices:
        kind = Literal[param.choices]
    if param.many:
        return list[kind]
    return kind if param.required or param.default is not None else kind | None


def _field(param: Param) -> Any:
    if param.required:
        return Field(description=param.help)
    return Field(default=list(param.default) if param.many else param.default, description=param.help)


def _closed(part: Any) -> Any:
    """The schema with objects that have no other properties than those they name."""
    if isinstance(part, list):
        return [_closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    # pydantic's titles only say each name again.
    closed = {name: _closed(value) for name, value in part.items() if name != "title" or not isinstance(value, str)}
    if closed.get("type") == "object" and isinstance(part.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed
