"""Which language a path is in, and its syntax tree. Grammars are loaded when the first file asks for them."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tree_sitter import Language, Parser, Tree

_ENDINGS = {
    **{"python": "py pyi", "javascript": "js jsx mjs cjs", "typescript": "ts mts cts", "tsx": "tsx", "go": "go"},
    **{"rust": "rs", "json": "json", "yaml": "yaml yml", "toml": "toml", "bash": "sh bash"},
}
_BY_ENDING = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
_GRAMMARS = {
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
}


def language_of(path: str) -> str | None:
    """The language by the ending of the path; None for what is not parsed here."""
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    return _BY_ENDING.get(ending.lower()) if dot else None


def tree_of(language: str, content: bytes) -> Tree:
    """The syntax tree of a file. A text with faults has one too."""
    return _parser(language).parse(content)


@cache
def _parser(language: str) -> Parser:
    module, function = _GRAMMARS.get(language, (f"tree_sitter_{language}", "language"))
    return Parser(Language(getattr(import_module(module), function)()))
