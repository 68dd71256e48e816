"""Text that is shown as it is."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Paragraph, line


def lines(content: str, _values: dict[str, Any]) -> list[Block]:
    """The text, unchanged."""
    return [Paragraph(tuple(line(each) for each in content.rstrip("\n").split("\n")))]
