"""What differs between databases. SQLite only, for now."""

from __future__ import annotations


def match_words(query: str) -> str:
    """A full-text query for what a person typed: every word must occur, the last one may be unfinished.

    Each word is quoted, so that nothing in it is taken as query syntax.
    """
    words = [word.replace('"', '""') for word in query.split()]
    return " ".join(f'"{word}"' for word in words) + ("*" if words else "")


def marks(count: int) -> str:
    """`?, ?, ?` for a list of values."""
    return ", ".join("?" * count)
