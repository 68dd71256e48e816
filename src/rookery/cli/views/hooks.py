"""How hooks in a person's session look."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Paragraph, line, text
from rookery.hooks.settings import Installed


def installed(hooks: Installed, _values: dict[str, Any]) -> list[Block]:
    """Which hooks are there, and whether they call this Rookery."""
    if not hooks.events:
        return [text(f"No hooks of Rookery in {hooks.path}. `rook hooks install` puts them there.", "dim")]
    state = ("in place", "good") if hooks.is_current else ("out of date: `rook hooks install` renews them", "bad")
    return [
        Paragraph([line("Hooks of Rookery are ", state), (hooks.path, "dim")]),
        Paragraph([f"  {event}" for event in hooks.events]),
    ]
