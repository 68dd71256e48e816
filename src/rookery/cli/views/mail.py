"""How mail looks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rookery.base.json import dumps
from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Line, Paragraph, Table, line, next_page, text
from rookery.config.environ import now
from rookery.mail.groups import Group
from rookery.mail.inbox import Checked, Opened, Purged
from rookery.mail.model import Message, Sent

_PRIORITIES = {"urgent": "bad", "high": "busy", "normal": "", "low": "dim"}
_SUBJECT_WIDTH = 100
_AGES = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def sent(result: Sent, _values: dict[str, Any]) -> list[Block]:
    """What was sent, and to whom."""
    blocks: list[Block] = [
        Paragraph(tuple(line("sent ", (each.id, "id"), f" to {each.recipient}") for each in result.messages))
    ]
    if result.not_alive:
        names = ", ".join(result.not_alive)
        blocks.append(text(f"not alive: {names}; the mail is kept, and nobody reads it for now", "busy"))
    return blocks


def checked(result: Checked, _values: dict[str, Any]) -> list[Block]:
    """New mail at length, or the text for a prompt as it is."""
    if result.text is not None:
        return [text(result.text.rstrip("\n"))] if result.text else []
    if not result.messages:
        return [text("No mail.", "dim")]
    blocks = [block for each in result.messages for block in _one(each)]
    if result.waiting:
        blocks.append(text(f"{result.waiting} more: `rook mail check` shows them", "dim"))
    return blocks


def opened(found: list[Opened], _values: dict[str, Any]) -> list[Block]:
    """Messages at length, each with its thread."""
    blocks: list[Block] = []
    for each in found:
        blocks += _one(each)
        if len(each.messages) > 1:
            blocks += [text("thread", "dim"), Paragraph(tuple(_step(one, each.id) for one in each.messages), 2)]
    return blocks


def waited(message: Message | None, _values: dict[str, Any]) -> list[Block]:
    """The message that came, if one did."""
    return [text("No mail came.", "dim")] if message is None else _one(message)


def table(messages: list[Message], values: dict[str, Any]) -> list[Block]:
    """Mail in a table."""
    if not messages:
        return [text("No mail.", "dim")]
    at = now()
    rows = tuple(
        (
            line(("●", "busy") if each.read_at is None else " "),
            line((each.id, "id")),
            line(one_line(each.sender)),
            line(each.recipient, (f" {each.audience}" if each.audience else "", "dim")),
            line(each.type),
            line((each.priority, _PRIORITIES.get(each.priority, ""))),
            line((_age(each.created_at, at), "dim")),
            line((one_line(each.subject, _SUBJECT_WIDTH), "title" if each.read_at is None else "")),
        )
        for each in messages
    )
    blocks: list[Block] = [Table(("", "id", "from", "to", "type", "priority", "age", "subject"), rows, stretch=7)]
    return blocks + next_page(messages)


def purged(result: Purged, _values: dict[str, Any]) -> list[Block]:
    """How much is gone."""
    count = result.deleted
    return [text(f"deleted {count} message{'' if count == 1 else 's'}")]


def group(found: Group, _values: dict[str, Any]) -> list[Block]:
    """One group."""
    return [Paragraph((line((f"@{found.name}", "id"), f"  {', '.join(found.members)}"),))]


def groups(found: list[Group], _values: dict[str, Any]) -> list[Block]:
    """Every group."""
    if not found:
        return [text("No groups: `rook group create NAME MEMBER…` makes one.", "dim")]
    return [Table(("group", "members"), tuple((line((f"@{g.name}", "id")), line(", ".join(g.members))) for g in found))]


def group_deleted(found: Group, _values: dict[str, Any]) -> list[Block]:
    """What is gone."""
    return [text(f"deleted @{found.name}: {', '.join(found.members)}")]


def _one(message: Message) -> list[Block]:
    rows = [
        ("subject", line((one_line(message.subject), "title"))),
        ("id", line((message.id, "id"))),
        ("from", line(one_line(message.sender))),
        ("to", line(message.recipient, (f" {message.audience}" if message.audience else "", "dim"))),
        ("type", line(message.type)),
        ("priority", line((message.priority, _PRIORITIES.get(message.priority, "")))),
        ("at", line((message.created_at, "dim"))),
        ("answers", line((message.reply_to or "", "id"))),
        ("payload", line(_payload(message))),
    ]
    blocks: list[Block] = [Fields(tuple(row for row in rows if row[1]))]
    if message.body:
        blocks.append(text(message.body.rstrip("\n"), indent=2))
    return [*blocks, text("")]


def _payload(message: Message) -> str:
    return one_line(dumps(message.payload)) if message.payload else ""


def _step(message: Message, current: str) -> Line:
    mark = "▸ " if message.id == current else "  "
    return line(
        mark,
        (message.id, "id"),
        f"  {one_line(message.sender)} → {message.recipient}  ",
        (one_line(message.subject, _SUBJECT_WIDTH), "dim"),
    )


def _age(created_at: str, at: float) -> str:
    seconds = max(0, int(at - datetime.fromisoformat(created_at).timestamp()))
    name, size = next(((name, size) for name, size in _AGES if seconds >= size), ("s", 1))
    return f"{seconds // size}{name}"
