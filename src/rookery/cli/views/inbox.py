"""How the inbox looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.base.clock import length, seconds_of
from rookery.base.text import one_line, plural
from rookery.cli.document import Block, Line, Paragraph, line, named, some, text
from rookery.config.environ import now
from rookery.inbox import model
from rookery.inbox.model import ACKNOWLEDGED, OPEN, SNOOZED, Item
from rookery.inbox.opened import Opened
from rookery.inbox.ops import Inbox

_NAMES = {
    model.DECISION: "decision",
    model.BASE: "broken base",
    model.IDLE: "waiting",
    model.ACTION: "given up",
    model.LANDING: "blocked",
}
"""What people read instead of a kind."""
_BAD = (model.ESCALATION, model.ACTION, model.BASE, model.CONFLICT, model.GATE, model.CRASH, model.FAILED, model.ERROR)
_MOST_FILES = 10
_ABOUT_WIDTH = 100
_ROUNDING = 59.0
"""So that what was just snoozed for 2h is back in 2h, not in 1h."""


def listing(result: Inbox, _values: dict[str, Any]) -> Iterator[Block]:
    """What waits, each with its reason and the command for it."""
    at = now()
    if result.open:
        waits = "waits" if result.open == 1 else "wait"
        yield text(f"{plural(result.open, 'thing')} {waits} for you.", "bold")
    else:
        away = (
            f"{plural(len(result.items), 'thing')} {'is' if len(result.items) == 1 else 'are'} put away; nothing else"
        )
        yield text(f"{away if result.items else 'Nothing'} waits for you.", "good")
        names = some(result.working, _MOST_FILES)
        yield text(f"At work: {names}." if names else "No agent is at work.", "dim")
    for item in result.items:
        yield text("")
        yield Paragraph([_heading(item, at)], hang=2)
        yield Paragraph([item.why, (item.command, "id")], indent=2)
    hidden = result.put_away - sum(item.state != OPEN for item in result.items)
    if hidden:
        yield text("")
        yield text(f"{plural(hidden, 'more thing')} acknowledged or snoozed: `rook inbox --all`", "dim")


def _heading(item: Item, at: float) -> Line:
    name = _NAMES.get(item.kind, item.kind)
    style = "bad" if item.kind in _BAD else "note"
    urgency = f"  {item.urgency}" if item.urgency in ("urgent", "low") else ""
    mark = "" if item.state == OPEN else f"  {_state(item, at)}"
    return line(
        (item.handle, "id"),
        "  ",
        (name, style),
        (urgency, "bad" if item.urgency == "urgent" else "dim"),
        (f"  {one_line(item.who)}" if item.who else "", "title"),
        (f"  {length(at - seconds_of(item.since))}", "dim"),
        f"  {one_line(item.about, _ABOUT_WIDTH)}" if item.about else "",
        (mark, "dim"),
    )


def _state(item: Item, at: float) -> str:
    if item.state == SNOOZED and item.until is not None:
        return f"snoozed, back in {length(seconds_of(item.until) - at + _ROUNDING)}"
    return item.state


def opened(results: list[Opened], _values: dict[str, Any]) -> Iterator[Block]:
    """Items at length."""
    at = now()
    for number, result in enumerate(results):
        item = result.item
        if number:
            yield text("")
        yield Paragraph([_heading(item, at)], hang=2)
        if item.why not in result.text:
            yield Paragraph([item.why], indent=2)
        yield text(result.text.strip("\n"), indent=2)
        if result.thread:
            yield text("thread", "dim")
            for message in result.thread:
                age = length(at - seconds_of(message.created_at))
                who = f"{one_line(message.sender)} to {one_line(message.recipient)}"
                yield Paragraph([line(named(message.id), f"  {who}", (f"  {age} ago", "dim"))], indent=2)
                yield text((message.body or message.subject).strip("\n"), indent=4)
        if result.files:
            yield text(f"files: {some(result.files, _MOST_FILES)}")
        if result.output:
            yield text("last lines of output", "dim")
            yield text(result.output.strip("\n"), indent=2)
        if result.log:
            yield text(f"all of it: {result.log}", "dim")
        if result.branch:
            yield text(f"branch: {result.branch}", "dim")
        if result.worktree:
            yield text(f"worktree: {result.worktree}", "dim")
        yield text("commands", "dim")
        yield Paragraph([(command, "id") for command in item.commands], indent=2)


def marked(items: list[Item], _values: dict[str, Any]) -> Iterator[Block]:
    """What was put away, or opened again."""
    at = now()
    for item in items:
        done = {OPEN: "open again", ACKNOWLEDGED: "acknowledged"}.get(item.state) or _state(item, at)
        who = f"  {one_line(item.who)}" if item.who else ""
        yield Paragraph(
            [line((item.handle, "id"), f"  {done}", (who, "title"), f"  {one_line(item.why, _ABOUT_WIDTH)}")]
        )
