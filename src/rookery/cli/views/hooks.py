"""How hooks in a person's session look."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Paragraph, line, text
from rookery.hooks.settings import Installed


def installed(found: Installed, _values: dict[str, Any]) -> list[Block]:
    """Which hooks are there, and what that means."""
    if not found.events:
        return [text(f"No hooks of Rookery in {found.path}. `rook hooks install` puts them there.", "dim")]
    state = ("in place", "good") if found.is_current else ("out of date: `rook hooks install` renews them", "bad")
    return [
        Paragraph((line("Hooks of Rookery are ", state), line((found.path, "dim")))),
        Paragraph(tuple(line(f"  {each}") for each in found.events)),
    ]
