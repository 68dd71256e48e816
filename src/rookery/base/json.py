"""JSON as we write it: on one line, without escapes that are not needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from json import loads as loads
from typing import Any


def dumps(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """The text of a value; `default` turns what JSON does not know into something that it does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=default)
