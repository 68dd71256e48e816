"""Text that is shown as it is."""

from __future__ import annotations

from rookery.cli.document import Paragraph, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rookery.cli.document import Block


def lines(content: str, _values: dict[str, Any]) -> list[Block]:
    """The text, unchanged."""
    return [Paragraph(tuple(line(each) for each in content.rstrip("\n").split("\n")))]
