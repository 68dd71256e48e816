"""What the words of a script expand to, as far as that is certain before it runs.

A piece of a word is literal (braces, `~` and patterns still count), quoted, or the value of an expansion.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from itertools import pairwise, takewhile

from tree_sitter import Node

from rookery.base.record import Record
from rookery.guard.command import UNKNOWN, Word, names
from rookery.guard.judge import WRITE_IT_OUT, Judge
from rookery.guard.paths import MARKS
from rookery.guard.shell.quoting import decode_ansi_c, unescape
from rookery.guard.shell.syntax import Tree

LITERAL, QUOTED, EXPANDED = "literal", "quoted", "expanded"
EXPANSIONS = ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
_MOST_FIELDS = 256
_LONGEST = 2_000_000
_LITERALS = names("word number extglob_pattern variable_name test_operator $")


@dataclass(frozen=True, slots=True)
class Piece(Record):
    """A part of a word; in a literal piece, a character with a meaning stands alone."""

    kind: str
    word: Word


class Expander:
    """Expands words, with the values that the script's expansions have by the way they are written."""

    def __init__(self, judge: Judge, tree: Tree, values: Mapping[str, Word]) -> None:
        self.judge = judge
        self.tree = tree
        self.values = values

    def fields(self, node: Node) -> list[Word]:
        """The words that one word of a command becomes."""
        fields = [field for pieces in self._braces(self._pieces(node)) for field in _join(_tilde(pieces), splits=True)]
        self._check_count(fields)
        return fields

    def single(self, node: Node) -> Word:
        """The word where a shell neither splits nor expands braces: a value, a here-document, a redirection."""
        return next(iter(_join(_tilde(self._pieces(node)), splits=False)), Word(""))

    def _check_count(self, fields: Sized) -> None:
        if len(fields) > _MOST_FIELDS:
            self.judge.deny("syntax", "the braces make too many words", WRITE_IT_OUT)

    def _value(self, node: Node) -> Word:
        return self.values.get(self.tree.text(node), UNKNOWN)

    def _pieces(self, node: Node) -> list[Piece]:
        kind = node.type
        text = self.tree.text(node)
        if kind in ("command_name", "translated_string", "concatenation"):
            parts = node.children if kind == "concatenation" else node.named_children
            return [piece for part in parts for piece in self._pieces(part)]
        if kind in _LITERALS and not node.children:
            return _literal(text)
        if kind == "raw_string":
            return [Piece(QUOTED, Word(text[1:-1]))]
        if kind == "ansi_c_string":
            return [Piece(QUOTED, Word(decode_ansi_c(text[2:-1])))]
        if kind == "string":
            return [Piece(QUOTED, Word("")), *self._around(node, '$`"\\', node.start_byte + 1, node.end_byte - 1)]
        if kind == "heredoc_body":
            return self._around(node, "$`\\", node.start_byte, node.end_byte)
        return [Piece(EXPANDED, self._value(node) if kind in EXPANSIONS else UNKNOWN)]

    def _around(self, node: Node, escapes: str, start: int, end: int) -> list[Piece]:
        """Quoted text with expansions in it. The text is cut from the source: the grammar leaves blanks out."""
        pieces, at = [], start
        for child in node.children:
            if child.type in EXPANSIONS:
                pieces += [self._quoted(at, child.start_byte, escapes), Piece(QUOTED, self._value(child))]
                at = child.end_byte
        return [*pieces, self._quoted(at, end, escapes)]

    def _quoted(self, start: int, end: int, escapes: str) -> Piece:
        return Piece(QUOTED, Word(unescape(self.tree.source[start:end].decode(), escapes)))

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
        before = pieces[:opening]
        if closing is None or len(commas) == 1:
            inner = "".join(piece.word.text for piece in pieces[opening:closing] if piece.kind == LITERAL)
            if closing is not None and ".." in inner:
                return [[*before, Piece(EXPANDED, UNKNOWN), *pieces[closing + 1 :]]]
            return [[*before, pieces[opening], *rest] for rest in self._braces(pieces[opening + 1 :])]
        choices = [pieces[start + 1 : end] for start, end in pairwise([*commas, closing])]
        tails = self._braces(pieces[closing + 1 :])
        words = [[*before, *inner, *tail] for choice in choices for inner in self._braces(choice) for tail in tails]
        self._check_count(words)
        return words


def _literal(text: str) -> list[Piece]:
    if not any(character in text for character in "\\{},~"):
        return [Piece(LITERAL, Word(text))]
    pieces = []
    for match in re.finditer(r"\\(.?)|.", text, re.DOTALL):
        if match[1] is None:
            pieces.append(Piece(LITERAL, Word(match[0])))
        elif match[1] != "\n":
            pieces.append(Piece(QUOTED, Word(match[1] or "\\")))
    return pieces


def _is(piece: Piece, character: str) -> bool:
    return piece.kind == LITERAL and piece.word.text == character


def _tilde(pieces: list[Piece]) -> list[Piece]:
    if not pieces or not _is(pieces[0], "~"):
        return pieces
    name = list(takewhile(lambda piece: not _is(piece, "/"), pieces))
    written = "".join(piece.word.text for piece in name)
    home = os.path.expanduser(written)
    if home == written or any(piece.kind != LITERAL for piece in name):  # `~+`, `~-`, `~2`, or no user's
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
        glob = glob or word.glob or (splits and piece.kind != QUOTED and any(mark in word.text for mark in MARKS))
        known = known and word.known
        if piece.kind == EXPANDED and splits and word.known and word.text[-1:].isspace():
            close()
    close()
    return fields
