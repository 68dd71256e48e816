"""The commands in README and guides: their blocks, and what each line asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs/guides").glob("*.md")))
_LANGUAGES = ("", "sh", "console")
_MARKER = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True, slots=True)
class CommandBlock:
    """A fenced block of commands."""

    page: Path
    number: int
    """Of its first line."""
    lines: tuple[str, ...]
    reason: str = ""
    """Why no test runs it, as the comment before it says."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.number}"

    @property
    def commands(self) -> list[str]:
        """Its lines without prompts and blank lines."""
        return [line.removeprefix("$ ") for line in self.lines if line.strip()]


def read_blocks(page: Path) -> list[CommandBlock]:
    """The blocks of a page that hold commands, in order."""
    blocks, inside = [], False
    language, begin, before = "", 0, ""
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            before = before if inside else line
            continue
        if inside and language in _LANGUAGES:
            marker = _MARKER.fullmatch(before)
            blocks.append(CommandBlock(page, begin, tuple(lines[begin - 1 : number - 1]), marker[1] if marker else ""))
        inside = not inside
        language, begin = line.removeprefix("```"), number + 1
    return blocks
