"""How mail looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rookery.base.clock import length, seconds_of
from rookery.base.json import dumps
from rookery.base.text import one_line, plural
from rookery.cli.document import (
    Block,
    Cell,
    Fields,
    Line,
    Paragraph,
    Span,
    Table,
    line,
    moment,
    named,
    next_page,
    text,
    unstyled,
)
from rookery.config.environ import now
from rookery.mail.group_ops import Group
from rookery.mail.model import Checked, Message, Opened, Purged, Sent

_NORMAL = "normal"
_PRIORITIES = {"urgent": "bad", "high": "busy", _NORMAL: "", "low": "dim"}


def sent(result: Sent, _values: dict[str, Any]) -> Iterator[Block]:
    """What was sent, and to whom."""
    yield Paragraph([line("sent ", named(message.id), f" to {message.to}") for message in result.messages])
    if result.not_alive:
        have = "has" if len(result.not_alive) == 1 else "have"
        yield text(f"{', '.join(result.not_alive)} {have} ended; the mail is kept", "busy")
        yield Paragraph([(_start_again(name, result), "dim") for name in result.not_alive])
    if result.held:
        yield Paragraph([(f"{name} reads it after `rook handback {name}`", "dim") for name in result.held])


def _start_again(name: str, result: Sent) -> str:
    if name in result.done:
        return f'its task is completed: `rook sling "…" --name {name}` gives it a new one, with this mail'
    return f"`rook resume {name}` starts it again, with this mail"


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
            yield text(f"{plural(result.waiting, 'more message')}: see `rook mail check`.", "dim")


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
    columns: dict[str, list[Cell]] = {
        "": [("●", "busy") if message.read_at is None else " " for message in messages],
        "id": [named(message.id) for message in messages],
        "from": [one_line(message.sender) for message in messages],
        "to": [_recipient(message) for message in messages],
        "type": [_kind(message) for message in messages],
        "age": [(length(at - seconds_of(message.created_at)), "dim") for message in messages],
        "subject": [(one_line(message.subject), "title" if message.read_at is None else "") for message in messages],
    }
    if len({unstyled(cell) for cell in columns["to"]}) < 2 and len(messages) > 1:
        del columns["to"]
    rows = list(zip(*columns.values(), strict=True))
    return [Table(tuple(columns), rows, empty="No mail."), *next_page(messages)]


def purged(result: Purged, _values: dict[str, Any]) -> list[Block]:
    """How much was deleted."""
    return [text(f"deleted {plural(result.deleted, 'message')}")]


def group(result: Group, _values: dict[str, Any]) -> list[Block]:
    """One group."""
    return [Paragraph([line((f"@{result.name}", "id"), f"  {', '.join(result.members)}")])]


def groups(results: list[Group], _values: dict[str, Any]) -> list[Block]:
    """Every group."""
    rows = [((f"@{group.name}", "id"), ", ".join(group.members)) for group in results]
    return [Table(("group", "members"), rows, empty="No groups. `rook group create NAME MEMBER…` makes one.")]


def group_deleted(result: Group, _values: dict[str, Any]) -> list[Block]:
    """What was deleted."""
    return [text(f"deleted @{result.name}: {', '.join(result.members)}")]


def _one(message: Message) -> Iterator[Block]:
    fields: dict[str, Cell] = {
        "subject": (one_line(message.subject), "title"),
        "id": named(message.id),
        "from": one_line(message.sender),
        "to": _recipient(message),
        "type": message.type,
        "priority": _priority(message),
        "sent": (moment(message.created_at), "dim"),
        "reply to": named(message.reply_to),
        "payload": one_line(dumps(message.payload)) if message.payload else "",
    }
    yield Fields(fields)
    if message.body:
        yield text(message.body.rstrip("\n"), indent=2)
    yield text("")


def _recipient(message: Message) -> Line:
    return line(message.recipient, (f" {message.audience}" if message.audience else "", "dim"))


def _kind(message: Message) -> Line:
    """The type, and the priority where it is not the usual one."""
    is_usual = message.priority == _NORMAL
    return line(message.type) if is_usual else line(message.type, " ", _priority(message))


def _priority(message: Message) -> Span:
    return message.priority, _PRIORITIES.get(message.priority, "")


def _step(message: Message, current: str) -> Line:
    mark = "▸ " if message.id == current else "  "
    return line(
        mark,
        named(message.id),
        f"  {one_line(message.sender)} → {message.recipient}  ",
        (one_line(message.subject), "dim"),
    )
