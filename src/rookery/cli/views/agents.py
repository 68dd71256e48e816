"""How agents look."""

from __future__ import annotations

from typing import Any

from rookery.agents.ops import Nudged, Stopped
from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Line, Paragraph, Span, Table, Tree, line, text
from rookery.sessions.model import BOOTING, COMPLETED, CRASHED, FAILED, STOPPED, SUPERSEDED, WAITING, WORKING, Session
from rookery.status.feed import Moment
from rookery.status.ops import Attached, RoleSummary
from rookery.status.service import AgentStatus, Identity, Inspection, Metric
from rookery.turns.interrupt_ops import Interrupted

_STATES: dict[str, Span] = {
    BOOTING: ("◌", "dim"),
    WORKING: ("◐", "busy"),
    WAITING: ("◇", "note"),
    "stalled": ("!", "bad"),
    COMPLETED: ("●", "good"),
    STOPPED: ("⊘", "dim"),
    FAILED: ("✕", "bad"),
    CRASHED: ("✕", "bad"),
    SUPERSEDED: ("⊘", "dim"),
}
_TITLE_WIDTH = 60
_DOING_WIDTH = 60
_TEXT_WIDTH = 160


def slung(session: Session, _values: dict[str, Any]) -> list[Block]:
    """An agent that was brought to life."""
    rows = [
        ("task", line((session.task_id or "", "id"))),
        ("answers to", line(session.parent)),
        ("branch", line(session.branch)),
        ("worktree", line(session.worktree)),
        ("runs on", line(f"{session.runtime}, {session.mode}")),
    ]
    title = Paragraph((line(("◐ ", "busy"), (session.agent, "title"), f" is a {session.role} and at work"),))
    return [title, Fields(tuple(rows)), text(f"`rook inspect {session.agent} --follow` shows what it does", "dim")]


def stopped(result: Stopped, _values: dict[str, Any]) -> list[Block]:
    """Who was stopped."""
    lines: list[Line] = [line((each.agent, "title"), f" has ended: {each.outcome}") for each in result.ended]
    lines += [line(("removed ", "dim"), path) for path in result.cleaned]
    return [Paragraph(tuple(lines))]


def nudged(result: Nudged, _values: dict[str, Any]) -> list[Block]:
    """A reminder."""
    return [text(f"{result.agent} was reminded ({result.message_id})")]


def interrupted(result: Interrupted, _values: dict[str, Any]) -> list[Block]:
    """A turn that was asked to end."""
    return [text(f"turn {result.turn} of {result.agent} is interrupted; it stays alive and waits for mail")]


def status(agents: list[AgentStatus], _values: dict[str, Any]) -> list[Block]:
    """Agents beneath those that slung them."""
    if not agents:
        return [text("No agents. `rook sling TASK` brings one to life.", "dim")]
    names = {each.agent for each in agents}
    roots = [each for each in agents if each.parent not in names]
    return [_branch(each, agents) for each in roots]


def _branch(agent: AgentStatus, agents: list[AgentStatus]) -> Tree:
    shown = agent.outcome or agent.state
    label = line(
        _STATES[shown],
        " ",
        (agent.agent, "title"),
        f"  {agent.role}, {shown}",
        (f"  {agent.turns} turn{'' if agent.turns == 1 else 's'}", "dim"),
        (f"  ${agent.dollars:.2f}" if agent.dollars else "", "dim"),
        (f"  {agent.unread} unread" if agent.unread else "", "note"),
        f"  {one_line(agent.task_title or '', _TITLE_WIDTH)}",
        (f"  {one_line(agent.doing, _DOING_WIDTH)}" if agent.doing and not agent.outcome else "", "dim"),
    )
    return Tree(label, tuple(_branch(each, agents) for each in agents if each.parent == agent.agent))


def inspection(found: Inspection | Moment, values: dict[str, Any]) -> list[Block]:
    """An agent at length, and then what it did."""
    if not isinstance(found, Inspection):
        return moment(found, values)
    session = found.session
    rows = [
        ("state", line(session.outcome or session.state)),
        ("reason", line(one_line(session.reason or "", _TEXT_WIDTH))),
        ("task", line((session.task_id or "", "id"), f"  {one_line(found.status.task_title or '')}")),
        ("answers to", line(session.parent)),
        ("agents", line(", ".join(found.children))),
        ("branch", line(session.branch)),
        ("worktree", line(session.worktree)),
        ("files", line(", ".join(session.settings.files))),
        ("runs on", line(f"{session.runtime}, {session.mode}, {session.model}, {session.profile}")),
        ("sandbox", line(session.settings.sandbox)),
        ("cost", line(f"${found.status.dollars:.4f} in {found.status.turns} turns")),
    ]
    blocks: list[Block] = [
        Paragraph((line((session.agent, "title"), f", a {session.role}"),)),
        Fields(tuple(row for row in rows if row[1])),
    ]
    if found.turns:
        turns = tuple(
            (
                line(str(turn.number)),
                line(turn.cause),
                line(turn.state),
                line(turn.started_at),
                line(one_line(turn.last_words or "", 60)),
            )
            for turn in found.turns
        )
        blocks.append(Table(("turn", "cause", "state", "began", "last words"), turns, stretch=4))
    if found.screen:
        blocks += [text("screen", "dim"), text(found.screen.rstrip(), indent=2)]
    return blocks


def moment(found: Moment, _values: dict[str, Any]) -> list[Block]:
    """One thing that happened, on a line."""
    style = "bad" if found.is_error else ""
    return [
        Paragraph(
            (
                line(
                    (found.at[11:23], "dim"),
                    (f"  {found.agent:<14}", "note"),
                    (f" {found.kind:<15} ", style),
                    (one_line(found.text, _TEXT_WIDTH), style),
                    (f"  {found.millis} ms" if found.millis else "", "dim"),
                ),
            )
        )
    ]


def attach(found: Attached, _values: dict[str, Any]) -> list[Block]:
    """How to get into a terminal."""
    return [text(" ".join(found.command))]


def metrics(lives: list[Metric], _values: dict[str, Any]) -> list[Block]:
    """Lives in a table."""
    if not lives:
        return [text("No agents yet.", "dim")]
    rows = tuple(
        (
            line((each.agent, "bold")),
            line(each.role),
            line(each.outcome or "alive"),
            line(str(each.turns)),
            line("" if each.seconds is None else f"{each.seconds:.1f} s"),
            line(f"{each.tokens:,}"),
            line(f"${each.dollars:.4f}"),
        )
        for each in lives
    )
    return [Table(("agent", "role", "outcome", "turns", "lived", "tokens", "cost"), rows)]


def discovered(roles: list[RoleSummary], _values: dict[str, Any]) -> list[Block]:
    """Roles and who is alive."""
    rows = tuple(
        (
            line((each.role, "bold")),
            line(", ".join(each.alive) or "-"),
            line(each.profile),
            line(each.writes),
            line(each.purpose),
        )
        for each in roles
    )
    return [Table(("role", "alive", "profile", "writes", "purpose"), rows, stretch=4)]


def identity(found: Identity, _values: dict[str, Any]) -> list[Block]:
    """An agent across its lives."""
    rows = (
        ("roles", line(", ".join(found.roles))),
        ("lives", line(f"{found.sessions}, {found.completed} of them completed")),
        ("first seen", line(found.first_seen)),
        ("last seen", line(found.last_seen)),
        ("at home in", line(", ".join(found.domains))),
    )
    recent = tuple(
        (line((str(each["task_id"]), "id")), line(each["outcome"] or "alive"), line(one_line(each["title"] or "")))
        for each in found.recent_tasks
    )
    return [text(found.name, "title"), Fields(rows), Table(("task", "outcome", "title"), recent, stretch=2)]
