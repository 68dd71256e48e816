"""How a project looks when it is made."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Fields, Paragraph, line, text
from rookery.ops.init import Initialised


def init(made: Initialised, _values: dict[str, Any]) -> list[Block]:
    """What was found, made and kept, and what to do next."""
    rows = [
        ("root", line(made.root)),
        ("version control", line(made.vcs or "none")),
        ("base branch", line(made.base or "none")),
        ("gates", line(", ".join(made.gates))),
        ("made", line((", ".join(made.created), "good"))),
        ("kept", line((", ".join(made.kept), "dim"))),
    ]
    title = "A Rookery project is ready." if made.created else "Nothing was missing."
    blocks: list[Block] = [text(title, "title"), Fields(tuple(row for row in rows if row[1]))]
    blocks += [text(note, "busy") for note in made.notes]
    blocks.append(Paragraph((line(("next:", "dim")), *(line(f"  {each}") for each in made.next))))
    return blocks
