"""What backslashes stand for, in the different quotes of a shell."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.?)|(.))", re.DOTALL
)
_LETTERS = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def decode_ansi_c(text: str) -> str:
    """The content of `$'…'`, decoded."""
    parts, at = [], 0
    for match in _ESCAPE.finditer(text):
        hexadecimal, octal, control, letter = match[1] or match[2] or match[3], match[4], match[5], match[6]
        parts.append(text[at : match.start()])
        at = match.end()
        if hexadecimal or octal:
            number = int(hexadecimal or octal, 16 if hexadecimal else 8)
            if not number:
                return "".join(parts)  # a shell ends the string here
            parts.append(chr(number & (0x1FFFFF if hexadecimal else 255)))
        elif control is not None:
            parts.append(chr(ord(control or "@") & 31))
        elif letter == "x" and text[at : at + 1] == "{":
            raise ValueError("shells differ on this escape")
        else:
            parts.append(_LETTERS.get(letter, match[0]))
    return "".join(parts) + text[at:]


def unescape(text: str, escapes: str) -> str:
    """The text where a backslash only counts before certain characters, and joins lines."""
    return re.sub(rf"\\(?:\n|([{re.escape(escapes)}]))", lambda match: match[1] or "", text)
