"""Reading small files that may not be there."""

from __future__ import annotations


def read_text(path: str, *, errors: str = "strict") -> str | None:
    """The content of a text file, its line ends as they are; None if it is not there."""
    try:
        with open(path, encoding="utf-8", errors=errors, newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
