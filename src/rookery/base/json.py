"""JSON by the C core of the standard library alone: `import json` takes 6 ms, for regular expressions, at every call.

The same texts and values as `json`, compact; where an interpreter has no such core, `json` itself does it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SPACE = " \t\n\r"
_NAMES = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Rules:
    """What the scanner asks of a decoder."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _NAMES.__getitem__
    memo: dict[str, str] = {}


def loads(text: str | bytes) -> Any:
    """The value that a text stands for; raises ValueError if it is not JSON."""
    if isinstance(text, bytes):
        text = text.decode()
    whole = text.strip(_SPACE)
    try:
        from _json import make_scanner

        value, end = make_scanner(_Rules())(whole, 0)  # type: ignore[arg-type]
    except (ImportError, StopIteration, SystemError):
        # Where a text is wrong, the scanner looks for the error's class in a module that may not be loaded.
        end = -1
    if end != len(whole):
        import json

        value = json.loads(text)
    return value


def dumps(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """The text of a value, on one line, without escapes that are not needed."""
    try:
        from _json import encode_basestring, make_encoder

        encode = make_encoder({}, default or _refuse, encode_basestring, None, ":", ",", False, False, True)
    except (ImportError, TypeError):
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=default)
    return "".join(encode(value, 0))


def _refuse(value: Any) -> Any:
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
