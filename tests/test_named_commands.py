"""Every `rook` command that documentation, help or a message names exists, with the options that it is shown with."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from guide_blocks import PAGES, ROOT, read_blocks
from rookery.ops import index
from rookery.ops.command_line import GLOBALS

_SPAN = re.compile(r"`rook ([^`]+)`")
_OPTION = re.compile(r"(?:^|[\s\[])(--[a-z][a-z-]*)")
_INNER = re.compile(r"\$\([^)]*\)")
_PLACEHOLDER = re.compile(r"[A-Z…{<\[]")
_PROSE = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_ALWAYS = {f"--{param.name.replace('_', '-')}" for param in GLOBALS} | {"--help", "--version", "--all"}


def problem_of(command: str) -> str:
    """What is wrong with a command as it is written after `rook`; empty if nothing is."""
    command = _INNER.sub("NAME", command)
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    options = {option.partition("=")[0] for option in _OPTION.findall(command.partition(" #")[0])}
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] in ("-c", "-C") else 1]
    if not words or _PLACEHOLDER.match(words[0]) or words[0] == "help":
        return ""
    operation, _ = index.find([words[0], *words[1:2]])
    if operation is None:
        group = index.expand(words[:1])[0]
        in_group = len(words) == 1 or words[1].startswith("-") or _PLACEHOLDER.match(words[1]) or "|" in words[1]
        return "" if group in index.GROUPS and in_group else f"no command {' '.join(words[:2])}"
    unknown = options - _ALWAYS - {param.flag for param in operation.params}
    return f"{operation.name} has no {', '.join(sorted(unknown))}" if unknown else ""


def _in_documents() -> Iterator[tuple[str, str]]:
    for page in (*PAGES, *_PROSE):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for match in _SPAN.finditer(line):
                yield f"{page.relative_to(ROOT)}:{number}", match[1]
        for block in read_blocks(page):
            for line in block.commands:
                if line.startswith("rook "):
                    yield str(block), line.removeprefix("rook ")


def _in_code() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr | ast.Constant) and (text := _text_of(node)):
                for match in _SPAN.finditer(text):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", match[1]


def _in_prompts() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "src").rglob("*.md")):
        for match in _SPAN.finditer(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), match[1]


def _text_of(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(
        _text_of(part) if isinstance(part, ast.Constant) else " {" for part in node.values if isinstance(part, ast.expr)
    )


@pytest.mark.parametrize("read", [_in_documents, _in_code, _in_prompts])
def test_what_is_named_is_there(read: Callable[[], Iterator[tuple[str, str]]]) -> None:
    commands = list(read())
    assert len(commands) > 10
    assert [f"{place}: {command}: {problem}" for place, command in commands if (problem := problem_of(command))] == []


@pytest.mark.parametrize(
    "command", ["agnet show", "task frobnicate", "merge --branch bee --hard", "stop bee --all-of-it"]
)
def test_what_is_not_there_is_found(command: str) -> None:
    assert problem_of(command)
