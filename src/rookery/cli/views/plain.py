"""Text that is shown as it is."""

from __future__ import annotations

import json
from typing import Any

from rookery.cli.completion import Candidate, as_line
from rookery.cli.document import Block, Paragraph, text
from rookery.ops.schema_ops import OperationSchema


def lines(content: str, _values: dict[str, Any]) -> list[Block]:
    """The text, unchanged."""
    return [text(content.rstrip("\n"))]


def candidates(words: list[Candidate], _values: dict[str, Any]) -> list[Block]:
    """What can be typed next, a line each."""
    return [Paragraph([as_line(word) for word in words])] if words else []


def schema(schemas: list[OperationSchema], _values: dict[str, Any]) -> list[Block]:
    """Schemas, as JSON that a person can read."""
    return [text(json.dumps([schema.to_json() for schema in schemas], indent=2, ensure_ascii=False))]
