"""A part of a list, with the cursor that the next part begins after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, get_args

T = TypeVar("T")


class Page(list[T]):
    """Items of a list. `next` names the last of them if there are more, and is None at the end.

    `left_out` is how many a reader may miss, which only a wider list shows.
    """

    def __init__(self, items: Iterable[T] = (), next: str | None = None, left_out: int = 0) -> None:
        super().__init__(items)
        self.next = next
        self.left_out = left_out

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Its JSON is a list; the envelope has `next`."""
        return handler.generate_schema(list[get_args(source)[0]])  # type: ignore[misc]


def rows_for(limit: int) -> int:
    """How many rows to read for a page of so many (0 for all): one more, which tells whether the page is the last."""
    return limit + 1 if limit else -1
