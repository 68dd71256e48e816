"""The parser of shell scripts, loaded in 4 ms instead of 30.

The two packages are a C module each, and load `typing`, `re`, `enum` and `importlib.resources` for what we do not use:
queries, and the log's names. In a process that has none of these yet, the C modules are loaded by themselves.
"""

from __future__ import annotations

import _imp
import os
import sys
from _frozen_importlib import ModuleSpec
from types import ModuleType

import tree_sitter_bash
from tree_sitter import Parser


def load_parser() -> Parser:
    """A parser for bash."""
    if "re" not in sys.modules and "tree_sitter" not in sys.modules:
        try:
            return _load_alone()
        except (ImportError, AttributeError, TypeError, OSError):
            pass  # another version, laid out differently: the ordinary way still works
    import tree_sitter

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _load_alone() -> Parser:
    stand_ins = {"re": _Patterns(), "enum": _Enumerations()}
    missing = [name for name in stand_ins if name not in sys.modules]
    for name in missing:
        sys.modules[name] = stand_ins[name]  # type: ignore[assignment]
    try:
        core = _load("tree_sitter")
        grammar = _load("tree_sitter_bash")
        parser: Parser = core.Parser(core.Language(grammar.language()))
    finally:
        for name in missing:
            del sys.modules[name]
    return parser


def _load(package: str) -> ModuleType:
    for place in sys.path:
        folder = os.path.join(place, package)
        names = os.listdir(folder) if os.path.isdir(folder) else ()
        for name in sorted(names):
            if name.startswith("_binding.") and name.endswith((".so", ".pyd")):
                spec = ModuleSpec(f"{package}._binding", None, origin=os.path.join(folder, name))
                module: ModuleType = _imp.create_dynamic(spec)
                _imp.exec_dynamic(module)
                return module
    raise ImportError(f"{package} is not where it should be")


class _Patterns:
    """In place of `re`: only queries would call it."""

    def compile(self, *_words: object) -> None:
        raise NotImplementedError("queries are not loaded here")


class _Enumerations:
    """In place of `enum`: the kinds of a log that nobody reads."""

    def IntEnum(self, name: str, *_words: object, **_named: object) -> type:  # noqa: N802
        return type(name, (int,), {})
