"""What the words of a script expand to, as far as that is certain before it runs.

A piece of a word is literal (braces, `~` and patterns still count), quoted, or the value of an expansion.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from tree_sitter import Node

from rookery.base.record import Record
from rookery.guard.command import UNKNOWN, Word
from rookery.guard.judge import WRITE_IT_OUT, Judge

LITERAL, QUOTED, EXPANDED = "literal", "quoted", "expanded"
EXPANSIONS = ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
_MOST_FIELDS = 256
_LONGEST = 2_000_000
_MARKS = "*?["


@dataclass(frozen=True, slots=True)
class Piece(Record):
    """A part of a word; what has a meaning in a literal piece stands there alone."""

    kind: str
    word: Word


class Expander:
    """Expands words with `value`, which says what an expansion stands for."""

    def __init__(self, judge: Judge, source: bytes, value: Callable[[Node], Word]) -> None:
        self.judge = judge
        self.source = source
        self.value = value

    def fields(self, node: Node) -> list[Word]:
        """The words that one word of a command becomes."""
        found = []
        for pieces in self._braces(self._pieces(node)):
            found += _join(_tilde(pieces), splits=True)
            if len(found) > _MOST_FIELDS:
                self.judge.deny("syntax", "the braces make too many words", WRITE_IT_OUT)
        return found

    def single(self, node: Node | None) -> Word:
        """The word where a shell neither splits nor expands braces: a value, a here-document, a redirection."""
        if node is None:
            return Word("")
        words = _join(_tilde(self._pieces(node)), splits=False)
        return words[0] if words else Word("")

    def _pieces(self, node: Node) -> list[Piece]:
        kind = node.type
        text = self.source[node.start_byte : node.end_byte].decode()
        if kind in ("command_name", "translated_string"):
            return [piece for child in node.children if child.is_named for piece in self._pieces(child)]
        if kind == "concatenation":
            return [piece for child in node.children for piece in self._pieces(child)]
        if kind in ("word", "number", "extglob_pattern", "variable_name", "test_operator", "$") and not node.children:
            return _literal(text)
        if kind == "raw_string":
            return [Piece(QUOTED, Word(text[1:-1]))]
        if kind == "ansi_c_string":
            return [Piece(QUOTED, Word(decode_ansi_c(text[2:-1])))]
        if kind == "string":
            return [Piece(QUOTED, Word("")), *self._around(node, '$`"\\\n', node.start_byte + 1, node.end_byte - 1)]
        if kind == "heredoc_body":
            return self._around(node, "$`\\\n", node.start_byte, node.end_byte)
        if kind in EXPANSIONS:
            return [Piece(EXPANDED, self.value(node))]
        return [Piece(EXPANDED, UNKNOWN)]

    def _around(self, node: Node, escapes: str, start: int, end: int) -> list[Piece]:
        """Quoted text with expansions in it. The text is cut from the source: the grammar leaves blanks out."""
        pieces, at = [], start
        for child in [each for each in node.children if each.type in EXPANSIONS] + [None]:
            until = end if child is None else child.start_byte
            text = self.source[at:until].decode()
            if text:
                pieces.append(Piece(QUOTED, Word(_unescape(text, escapes))))
            if child is not None:
                pieces.append(Piece(QUOTED, self.value(child)))
                at = child.end_byte
        return pieces

    def _braces(self, pieces: list[Piece]) -> list[list[Piece]]:
        """`{a,b}` as the shell takes it apart, before anything else is expanded."""
        opening = next((i for i, piece in enumerate(pieces) if _is(piece, "{")), None)
        if opening is None:
            return [pieces]
        depth, commas, closing = 0, [opening], None
        for i in range(opening, len(pieces)):
            depth += _is(pieces[i], "{") - _is(pieces[i], "}")
            if depth == 1 and _is(pieces[i], ","):
                commas.append(i)
            if not depth:
                closing = i
                break
        if closing is None or len(commas) == 1:
            dots = closing and "".join(p.word.text for p in pieces[opening:closing] if p.kind == LITERAL)
            if dots and ".." in dots:
                pieces = [*pieces[:opening], Piece(EXPANDED, UNKNOWN), *pieces[(closing or 0) + 1 :]]
                return [pieces]
            rest = self._braces(pieces[opening + 1 :])
            return [[*pieces[: opening + 1], *each] for each in rest]
        commas.append(closing)
        choices = [pieces[a + 1 : b] for a, b in pairwise(commas)]
        tails = self._braces(pieces[closing + 1 :])
        found = [
            [*pieces[:opening], *inner, *tail] for choice in choices for inner in self._braces(choice) for tail in tails
        ]
        if len(found) > _MOST_FIELDS:
            self.judge.deny("syntax", "the braces make too many words", WRITE_IT_OUT)
        return found


def _literal(text: str) -> list[Piece]:
    if not any(each in text for each in "\\{},~"):
        return [Piece(LITERAL, Word(text))]
    pieces, characters = [], iter(text)
    for character in characters:
        if character != "\\":
            pieces.append(Piece(LITERAL, Word(character)))
            continue
        escaped = next(characters, "\\")
        if escaped != "\n":
            pieces.append(Piece(QUOTED, Word(escaped)))
    return pieces


def _unescape(text: str, escapes: str) -> str:
    if "\\" not in text:
        return text
    found, characters = [], iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following == "\n" and "\n" in escapes:
                continue
            character = following if following and following in escapes else character + following
        found.append(character)
    return "".join(found)


def _is(piece: Piece, character: str) -> bool:
    return piece.kind == LITERAL and piece.word.text == character


def _tilde(pieces: list[Piece]) -> list[Piece]:
    if not pieces or not _is(pieces[0], "~"):
        return pieces
    name = []
    for piece in pieces:
        if piece.kind != LITERAL:
            return [Piece(QUOTED, UNKNOWN)]
        if piece.word.text == "/":
            break
        name.append(piece.word.text)
    written = "".join(name)
    home = os.path.expanduser(written)
    if home == written:  # `~+`, `~-`, `~2`, or nobody's
        return [Piece(QUOTED, UNKNOWN)]
    return [Piece(QUOTED, Word(home)), *pieces[len(name) :]]


def _join(pieces: list[Piece], *, splits: bool) -> list[Word]:
    fields: list[Word] = []
    text, known, glob, quoted = "", True, False, False

    def close() -> None:
        nonlocal text, known, glob, quoted
        if text or quoted or not known:
            fields.append(Word(text, known, glob))
        text, known, glob, quoted = "", True, False, False

    for piece in pieces:
        word = piece.word
        quoted = quoted or piece.kind == QUOTED
        parts = [word.text]
        if piece.kind == EXPANDED and splits and not word.glob:
            parts = word.text.split() or [""]
            if word.text[:1].isspace():
                close()
        for i, part in enumerate(parts):
            if i:
                close()
            text = text + part if known else text
            known = known and len(text) < _LONGEST
        glob = glob or word.glob or (splits and piece.kind != QUOTED and any(m in word.text for m in _MARKS))
        known = known and word.known
        if piece.kind == EXPANDED and splits and word.known and word.text[-1:].isspace():
            close()
    close()
    return fields


_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_DIGITS = {"x": (16, 2), "u": (16, 4), "U": (16, 8)}


def decode_ansi_c(text: str) -> str:
    """What stands in `$'…'`, decoded."""
    found, at = [], 0
    while at < len(text):
        character = text[at]
        at += 1
        if character != "\\" or at == len(text):
            found.append(character)
            continue
        escape = text[at]
        if text[at : at + 2] == "x{":
            raise ValueError("shells differ on this escape")
        base, longest = _DIGITS.get(escape, (8, 3))
        start = at + 1 if escape in _DIGITS else at
        end = start
        while (
            end < min(len(text), start + longest) and text[end] in "0123456789abcdefABCDEF"[: 22 if base == 16 else 8]
        ):
            end += 1
        if end > start and not int(text[start:end], base):
            break  # a shell ends the string here
        if end > start:
            found.append(chr(int(text[start:end], base) & 0x1FFFFF if base == 16 else int(text[start:end], 8) & 255))
            at = end
        elif escape == "c":
            found.append(chr(ord(text[at + 1 : at + 2] or "@") & 31))
            at += 2
        else:
            found.append(_ESCAPES.get(escape, "\\" + escape))
            at += 1
    return "".join(found)
