"""How a new project looks."""

from __future__ import annotations

from typing import Any

from rookery.cli.document import Block, Fields, Paragraph, line, text
from rookery.ops.init import Initialised


def init(project: Initialised, _values: dict[str, Any]) -> list[Block]:
    """What was found, made and kept, and what to do next."""
    rows = [
        ("root", line(project.root)),
        ("version control", line(project.vcs or "none")),
        ("base branch", line(project.base or "none")),
        ("gates", line(", ".join(project.gates))),
        ("made", line((", ".join(project.created), "good"))),
        ("kept", line((", ".join(project.kept), "dim"))),
    ]
    title = "A Rookery project is ready." if project.created else "Nothing was missing."
    blocks: list[Block] = [text(title, "title"), Fields(tuple(row for row in rows if row[1]))]
    blocks += [text(note, "busy") for note in project.notes]
    blocks.append(Paragraph((line(("next:", "dim")), *(line(f"  {step}") for step in project.next))))
    return blocks
