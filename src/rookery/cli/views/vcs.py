"""How version control looks."""

from __future__ import annotations

from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Paragraph, Table, line, text
from rookery.ops.vcs import Committed, Detected, Difference
from rookery.tasks.cleanup import Branch
from rookery.vcs.model import LogEntry, Status

_SHORT = 12
_KINDS = {"added": "good", "untracked": "good", "deleted": "bad", "conflicted": "bad"}
_VERDICTS = {"kept": "", "removable": "busy", "deleted": "good"}


def detect(found: Detected, _values: dict[str, Any]) -> list[Block]:
    """Which version control is here."""
    if found.kind == "none":
        return [text("No repository here.", "dim")]
    return [Fields(tuple((name.replace("_", " "), line(value)) for name, value in found.as_dict().items() if value))]


def status(found: Status, _values: dict[str, Any]) -> list[Block]:
    """What is changed in a checkout."""
    place = line("on ", (found.branch or "no branch", "bold"), f" at {(found.commit or 'no commit')[:_SHORT]}")
    if found.is_clean:
        return [Paragraph((place, line(("clean", "good"))))]
    rows = tuple(
        (line((each.kind, _KINDS.get(each.kind, "busy"))), line(_moved(each.path, each.old_path)))
        for each in found.changes
    )
    return [Paragraph((place,)), Table(("change", "path"), rows)]


def log(entries: list[LogEntry], _values: dict[str, Any]) -> list[Block]:
    """Commits, newest first."""
    if not entries:
        return [text("No commits yet.", "dim")]
    rows = tuple(
        (line((each.commit[:_SHORT], "id")), line((each.at, "dim")), line(one_line(each.message.partition("\n")[0])))
        for each in entries
    )
    return [Table(("commit", "at", "message"), rows, stretch=2)]


def diff(found: Difference, _values: dict[str, Any]) -> list[Block]:
    """Files that differ from a base."""
    if found.patch is not None:
        return [text(found.patch.rstrip("\n"))]
    if not found.files:
        return [text("No difference.", "dim")]
    rows = tuple(
        (
            line((each.kind, _KINDS.get(each.kind, "busy"))),
            line(("binary" if each.added is None else f"+{each.added}", "good")),
            line(("" if each.deleted is None else f"-{each.deleted}", "bad")),
            line(_moved(each.path, each.old_path)),
        )
        for each in found.files
    )
    return [Table(("change", "added", "deleted", "path"), rows)]


def commit(made: Committed, _values: dict[str, Any]) -> list[Block]:
    """A commit that was made."""
    return [Paragraph((line((made.commit, "id"), f" on {made.branch or 'no branch'}"),))]


def cleanup(branches: list[Branch], values: dict[str, Any]) -> list[Block]:
    """What becomes of the branches of tasks."""
    if not branches:
        return [text("No branches of tasks.", "dim")]
    rows = tuple(
        (line((each.verdict, _VERDICTS[each.verdict])), line(each.branch), line((each.reason, "dim")))
        for each in branches
    )
    blocks: list[Block] = [Table(("verdict", "branch", "why"), rows)]
    if any(each.verdict == "removable" for each in branches) and not values.get("delete"):
        blocks.append(text("`rook vcs cleanup --delete` deletes the removable ones", "dim"))
    return blocks


def _moved(path: str, old_path: str | None) -> str:
    return one_line(path) if old_path is None else f"{one_line(old_path)} → {one_line(path)}"
