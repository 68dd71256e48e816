"""How agents look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.agents.ops import Nudged, Stopped
from rookery.base.ids import with_handles
from rookery.base.text import one_line, plural
from rookery.cli.document import Block, Cell, Fields, Paragraph, Span, Table, Tree, line, moment, named, text
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
    title = line(("◐ ", "busy"), (session.agent, "title"), f" has started as {session.role}")
    fields: dict[str, Cell] = {
        "task": named(session.task_id),
        "run": named(session.run_id),
        "answers to": session.parent,
        "branch": session.branch,
        "worktree": session.worktree,
        "runs on": f"{session.runtime}, {session.mode}",
    }
    hint = text(f"Watch it with `rook inspect {session.agent} --follow`.", "dim")
    return [Paragraph([title]), Fields(fields, shows_empty=True), hint]


def stopped(result: Stopped, _values: dict[str, Any]) -> list[Block]:
    """The agents that were stopped."""
    ended = [line(("stopped ", "dim"), (session.agent, "title"), f": {session.outcome}") for session in result.ended]
    return [Paragraph([*ended, *(line(("removed ", "dim"), path) for path in result.cleaned)])]


def nudged(result: Nudged, _values: dict[str, Any]) -> list[Block]:
    """A reminder."""
    return [Paragraph([line(f"Reminded {result.agent} by message ", named(result.message_id), ".")])]


def interrupted(result: Interrupted, _values: dict[str, Any]) -> list[Block]:
    """A turn that was asked to end."""
    return [text(f"Interrupted turn {result.turn} of {result.agent}. The agent waits for mail.")]


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
    return Tree(label, [_branch(child, agents) for child in agents if child.parent == agent.agent])


def inspection(result: Inspection | Activity, values: dict[str, Any]) -> Iterator[Block]:
    """An agent at length, and then what it did."""
    if not isinstance(result, Inspection):
        yield from row(result, values)
        return
    session, agent = result.session, result.status
    fields: dict[str, Cell] = {
        "state": session.outcome or session.state,
        "reason": with_handles(one_line(session.reason or "")),
        "task": line(named(session.task_id), f"  {one_line(agent.task_title or '')}"),
        "answers to": session.parent,
        "agents": ", ".join(result.children),
        "branch": session.branch,
        "worktree": session.worktree,
        "files": ", ".join(session.settings.files),
        "runs on": f"{session.runtime}, {session.mode}, {session.model}, {session.profile}",
        "sandbox": session.settings.sandbox,
        "cost": f"${agent.dollars:.4f} in {plural(agent.turns, 'turn')}",
    }
    yield Paragraph([line((session.agent, "title"), f", {session.role}")])
    yield Fields(fields)
    if result.turns:
        turns = [
            (turn.number, turn.cause, turn.state, moment(turn.started_at), one_line(turn.last_words or ""))
            for turn in result.turns
        ]
        yield Table(("turn", "cause", "state", "started", "last output"), turns)
    if result.screen:
        yield text("screen", "dim")
        yield text(result.screen.rstrip(), indent=2)


def attach(result: Attached, _values: dict[str, Any]) -> list[Block]:
    """How to get into a terminal."""
    return [text(" ".join(result.command))]


def metrics(sessions: list[Metric], _values: dict[str, Any]) -> list[Block]:
    """Sessions in a table."""
    rows = [
        (
            (session.agent, "bold"),
            session.role,
            session.outcome or "alive",
            session.turns,
            "" if session.seconds is None else f"{session.seconds:.1f}s",
            f"{session.tokens:,}",
            f"${session.dollars:.4f}",
        )
        for session in sessions
    ]
    headings = ("agent", "role", "outcome", "turns", "time", "tokens", "cost")
    return [Table(headings, rows, empty="No agents yet.")]


def discovered(roles: list[RoleSummary], _values: dict[str, Any]) -> list[Block]:
    """Roles, and their living agents."""
    rows = [
        ((role.role, "bold"), ", ".join(role.alive) or "-", role.profile, role.writes, one_line(role.purpose))
        for role in roles
    ]
    return [Table(("role", "alive", "profile", "writes", "purpose"), rows)]


def identity(agent: Identity, _values: dict[str, Any]) -> list[Block]:
    """An agent over all its sessions."""
    fields: dict[str, Cell] = {
        "roles": ", ".join(agent.roles),
        "sessions": f"{agent.sessions} ({agent.completed} completed)",
        "first seen": moment(agent.first_seen),
        "last seen": moment(agent.last_seen),
        "works in": ", ".join(agent.domains),
    }
    recent = [
        (named(task["task_id"]), task["outcome"] or "alive", one_line(task["title"] or ""))
        for task in agent.recent_tasks
    ]
    tasks = Table(("task", "outcome", "title"), recent)
    return [text(agent.name, "title"), Fields(fields, shows_empty=True), tasks]
