"""JSON as we write it: on one line, without escapes that are not needed, records included."""

from __future__ import annotations

import json
from json import loads as loads
from typing import Any


def dumps(value: Any, *, ascii: bool = False) -> str:
    """The text of a value; `ascii` escapes everything else, so that names that are not UTF-8 survive."""
    return json.dumps(value, ensure_ascii=ascii, separators=(",", ":"), default=_to_json)


def _to_json(value: Any) -> Any:
    """What a record, at any depth, is as JSON."""
    if not hasattr(value, "to_json"):
        raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
    return value.to_json()
