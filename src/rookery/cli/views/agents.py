"""How agents look."""

from __future__ import annotations

from typing import Any

from rookery.agents.ops import Nudged, Stopped
from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Line, Paragraph, Span, Table, Tree, line, text
from rookery.cli.views.events import row
from rookery.sessions.model import BOOTING, COMPLETED, CRASHED, FAILED, STOPPED, SUPERSEDED, WAITING, WORKING, Session
from rookery.status.activity import Activity
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
    """An agent that was started."""
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
    """The agents that were stopped."""
    lines: list[Line] = [line((session.agent, "title"), f" has ended: {session.outcome}") for session in result.ended]
    lines += [line(("removed ", "dim"), path) for path in result.cleaned]
    return [Paragraph(tuple(lines))]


def nudged(result: Nudged, _values: dict[str, Any]) -> list[Block]:
    """A reminder."""
    return [text(f"{result.agent} was reminded ({result.message_id})")]


def interrupted(result: Interrupted, _values: dict[str, Any]) -> list[Block]:
    """A turn that was asked to end."""
    return [text(f"turn {result.turn} of {result.agent} is interrupted; it stays alive and waits for mail")]


def status(agents: list[AgentStatus], _values: dict[str, Any]) -> list[Block]:
    """Agents under those that slung them."""
    if not agents:
        return [text("No agents. `rook sling TASK` starts one.", "dim")]
    names = {agent.agent for agent in agents}
    return [_branch(agent, agents) for agent in agents if agent.parent not in names]


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
    return Tree(label, tuple(_branch(child, agents) for child in agents if child.parent == agent.agent))


def inspection(result: Inspection | Activity, values: dict[str, Any]) -> list[Block]:
    """An agent at length, and then what it did."""
    if not isinstance(result, Inspection):
        return row(result, values)
    session, agent = result.session, result.status
    rows = [
        ("state", line(session.outcome or session.state)),
        ("reason", line(one_line(session.reason or "", _TEXT_WIDTH))),
        ("task", line((session.task_id or "", "id"), f"  {one_line(agent.task_title or '')}")),
        ("answers to", line(session.parent)),
        ("agents", line(", ".join(result.children))),
        ("branch", line(session.branch)),
        ("worktree", line(session.worktree)),
        ("files", line(", ".join(session.settings.files))),
        ("runs on", line(f"{session.runtime}, {session.mode}, {session.model}, {session.profile}")),
        ("sandbox", line(session.settings.sandbox)),
        ("cost", line(f"${agent.dollars:.4f} in {agent.turns} turns")),
    ]
    blocks: list[Block] = [
        Paragraph((line((session.agent, "title"), f", a {session.role}"),)),
        Fields(tuple((name, value) for name, value in rows if value)),
    ]
    if result.turns:
        turns = tuple(
            (
                line(str(turn.number)),
                line(turn.cause),
                line(turn.state),
                line(turn.started_at),
                line(one_line(turn.last_words or "", 60)),
            )
            for turn in result.turns
        )
        blocks.append(Table(("turn", "cause", "state", "began", "last output"), turns, stretch=4))
    if result.screen:
        blocks += [text("screen", "dim"), text(result.screen.rstrip(), indent=2)]
    return blocks


def attach(result: Attached, _values: dict[str, Any]) -> list[Block]:
    """How to get into a terminal."""
    return [text(" ".join(result.command))]


def metrics(sessions: list[Metric], _values: dict[str, Any]) -> list[Block]:
    """Sessions in a table."""
    if not sessions:
        return [text("No agents yet.", "dim")]
    rows = tuple(
        (
            line((session.agent, "bold")),
            line(session.role),
            line(session.outcome or "alive"),
            line(str(session.turns)),
            line("" if session.seconds is None else f"{session.seconds:.1f} s"),
            line(f"{session.tokens:,}"),
            line(f"${session.dollars:.4f}"),
        )
        for session in sessions
    )
    return [Table(("agent", "role", "outcome", "turns", "time", "tokens", "cost"), rows)]


def discovered(roles: list[RoleSummary], _values: dict[str, Any]) -> list[Block]:
    """Roles, and their living agents."""
    rows = tuple(
        (
            line((role.role, "bold")),
            line(", ".join(role.alive) or "-"),
            line(role.profile),
            line(role.writes),
            line(role.purpose),
        )
        for role in roles
    )
    return [Table(("role", "alive", "profile", "writes", "purpose"), rows, stretch=4)]


def identity(agent: Identity, _values: dict[str, Any]) -> list[Block]:
    """An agent over all its sessions."""
    rows = (
        ("roles", line(", ".join(agent.roles))),
        ("sessions", line(f"{agent.sessions}, {agent.completed} of them completed")),
        ("first seen", line(agent.first_seen)),
        ("last seen", line(agent.last_seen)),
        ("works in", line(", ".join(agent.domains))),
    )
    recent = tuple(
        (line((str(task["task_id"]), "id")), line(task["outcome"] or "alive"), line(one_line(task["title"] or "")))
        for task in agent.recent_tasks
    )
    return [text(agent.name, "title"), Fields(rows), Table(("task", "outcome", "title"), recent, stretch=2)]
