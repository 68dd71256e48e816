"""How mail looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rookery.base.clock import length, seconds_of
from rookery.base.json import dumps
from rookery.base.text import one_line
from rookery.cli.document import Block, Cell, Fields, Line, Paragraph, Span, Table, line, next_page, text
from rookery.config.environ import now
from rookery.mail.group_ops import Group
from rookery.mail.model import Checked, Message, Opened, Purged, Sent

_PRIORITIES = {"urgent": "bad", "high": "busy", "normal": "", "low": "dim"}
_SUBJECT_WIDTH = 100


def sent(result: Sent, _values: dict[str, Any]) -> Iterator[Block]:
    """What was sent, and to whom."""
    yield Paragraph([line("sent ", (message.id, "id"), f" to {message.to}") for message in result.messages])
    if result.not_alive:
        ended = ", ".join(result.not_alive)
        yield text(f"{ended} ended before; the mail is kept", "busy")
        yield Paragraph([(f"`rook resume {name}` starts it again, with this mail", "dim") for name in result.not_alive])


def checked(result: Checked, _values: dict[str, Any]) -> Iterator[Block]:
    """New mail at length, or the text for a prompt as it is."""
    if result.text:
        yield text(result.text.rstrip("\n"))
    elif result.text is None and not result.messages:
        yield text("No mail.", "dim")
    elif result.text is None:
        for message in result.messages:
            yield from _one(message)
        if result.waiting:
            yield text(f"{result.waiting} more: `rook mail check` shows them", "dim")


def opened(messages: list[Opened], _values: dict[str, Any]) -> Iterator[Block]:
    """Messages at length, each with its thread."""
    for message in messages:
        yield from _one(message)
        if len(message.messages) > 1:
            yield text("thread", "dim")
            yield Paragraph([_step(step, message.id) for step in message.messages], indent=2)


def waited(message: Message | None, _values: dict[str, Any]) -> Iterable[Block]:
    """The message that came, if one did."""
    return [text("No mail came.", "dim")] if message is None else _one(message)


def table(messages: list[Message], values: dict[str, Any]) -> list[Block]:
    """Mail in a table."""
    at = now()
    rows = [
        (
            ("●", "busy") if message.read_at is None else " ",
            (message.id, "id"),
            one_line(message.sender),
            _recipient(message),
            message.type,
            _priority(message),
            (length(at - seconds_of(message.created_at)), "dim"),
            (one_line(message.subject, _SUBJECT_WIDTH), "title" if message.read_at is None else ""),
        )
        for message in messages
    ]
    headings = ("", "id", "from", "to", "type", "priority", "age", "subject")
    return [Table(headings, rows, stretch=7, empty="No mail."), *next_page(messages)]


def purged(result: Purged, _values: dict[str, Any]) -> list[Block]:
    """How much was deleted."""
    count = result.deleted
    return [text(f"deleted {count} message{'' if count == 1 else 's'}")]


def group(result: Group, _values: dict[str, Any]) -> list[Block]:
    """One group."""
    return [Paragraph([line((f"@{result.name}", "id"), f"  {', '.join(result.members)}")])]


def groups(results: list[Group], _values: dict[str, Any]) -> list[Block]:
    """Every group."""
    rows = [((f"@{group.name}", "id"), ", ".join(group.members)) for group in results]
    return [Table(("group", "members"), rows, empty="No groups: `rook group create NAME MEMBER…` makes one.")]


def group_deleted(result: Group, _values: dict[str, Any]) -> list[Block]:
    """What was deleted."""
    return [text(f"deleted @{result.name}: {', '.join(result.members)}")]


def _one(message: Message) -> Iterator[Block]:
    fields: dict[str, Cell] = {
        "subject": (one_line(message.subject), "title"),
        "id": (message.id, "id"),
        "from": one_line(message.sender),
        "to": _recipient(message),
        "type": message.type,
        "priority": _priority(message),
        "at": (message.created_at, "dim"),
        "answers": (message.reply_to, "id"),
        "payload": one_line(dumps(message.payload)) if message.payload else "",
    }
    yield Fields(fields)
    if message.body:
        yield text(message.body.rstrip("\n"), indent=2)
    yield text("")


def _recipient(message: Message) -> Line:
    return line(message.recipient, (f" {message.audience}" if message.audience else "", "dim"))


def _priority(message: Message) -> Span:
    return message.priority, _PRIORITIES.get(message.priority, "")


def _step(message: Message, current: str) -> Line:
    mark = "▸ " if message.id == current else "  "
    return line(
        mark,
        (message.id, "id"),
        f"  {one_line(message.sender)} → {message.recipient}  ",
        (one_line(message.subject, _SUBJECT_WIDTH), "dim"),
    )
