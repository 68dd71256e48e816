"""Signs that a file is not done: conflict markers in it, or a text that its own language cannot read."""

from __future__ import annotations

import re

from rookery.merge.resolve.languages import language_of, tree_of

_MARKERS = re.compile(rb"^(?:<{7,}(?: .*)?|>{7,}(?: .*)?|\|{7,}(?: .*)?)\r?$", re.MULTILINE)
_DIVIDER = re.compile(rb"^={7,}\r?$", re.MULTILINE)


def has_markers(content: bytes) -> bool:
    """True if a line looks like the begin, the middle or the end of a conflict.

    A lone row of `=` is a heading in many kinds of text, and no sign.
    """
    signs = {match.group()[:1] for match in _MARKERS.finditer(content)}
    return bool(signs & {b"<", b">"}) or (b"|" in signs and bool(_DIVIDER.search(content)))


def parses(path: str, content: bytes) -> bool | None:
    """Whether a file's own language can read it; None if there is no parser for that kind of file."""
    language = language_of(path)
    if language is None:
        return None
    return not tree_of(language, content).root_node.has_error
