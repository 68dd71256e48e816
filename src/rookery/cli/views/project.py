"""How a new project, the hooks of a person's own session and the demo look."""

from __future__ import annotations

from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Cell, Fields, Paragraph, line, text
from rookery.cli.views.doctor import findings
from rookery.demo.stage import Scene
from rookery.hooks.settings import Installed
from rookery.ops.init import Initialised

_WIDTH = 80


def init(project: Initialised, _values: dict[str, Any]) -> list[Block]:
    """What was found, made and kept, and what to do next."""
    fields: dict[str, Cell] = {
        "root": project.root,
        "version control": project.vcs or "none",
        "base branch": project.base or "none",
        "gates": ", ".join(project.gates),
        "made": (", ".join(project.created), "good"),
        "kept": (", ".join(project.kept), "dim"),
    }
    title = "A Rookery project is ready." if project.created else "Nothing was missing."
    notes = [text(note, "busy") for note in project.notes]
    steps = Paragraph([("next:", "dim"), *(f"  {step}" for step in project.next)])
    checks = [findings("gates on the base:", project.checks)] if project.checks else []
    return [text(title, "title"), Fields(fields), *checks, *notes, steps]


def hooks_installed(hooks: Installed, _values: dict[str, Any]) -> list[Block]:
    """Which hooks are there, and whether they call this Rookery."""
    if not hooks.events and hooks.changed:
        return [text(f"Removed the hooks of Rookery from {hooks.path}.", "good")]
    if not hooks.events:
        return [text(f"No hooks of Rookery in {hooks.path}. `rook hooks install` puts them there.", "dim")]
    state = ("in place", "good") if hooks.is_current else ("out of date: `rook hooks install` renews them", "bad")
    return [
        Paragraph([line("Hooks of Rookery are ", state), (hooks.path, "dim")]),
        Paragraph([f"  {event}" for event in hooks.events]),
    ]


def scene(shown: Scene, _values: dict[str, Any]) -> list[Block]:
    """One thing that the demo shows; no line is wider than 80 columns."""
    blocks: list[Block] = [Paragraph(["", (f"# {shown.text}", "title")])] if shown.text else []
    if shown.command:
        blocks.append(Paragraph([line(("$ ", "dim"), one_line(shown.command, _WIDTH - 2))]))
    return [*blocks, Paragraph(shown.output.splitlines())] if shown.output else blocks
