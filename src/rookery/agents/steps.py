"""The places between two steps at which a process can die. Tests stop a real process at each of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _go_on(_step: str) -> None:
    pass


reached: Callable[[str], None] = _go_on
"""Called after every step that cannot be undone by a rollback; a test replaces it."""
