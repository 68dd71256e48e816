"""How agents look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.agents.hold_ops import Held
from rookery.agents.ops import Nudged
from rookery.agents.several import Slung
from rookery.agents.stop_ops import Stopped
from rookery.base.text import one_line
from rookery.cli.document import Block, Cell, Fields, Paragraph, Span, Table, Tree, line, named, some, text
from rookery.cli.views.events import row
from rookery.sessions.model import (
    BOOTING,
    COMPLETED,
    CRASHED,
    FAILED,
    PAUSED,
    STOPPED,
    SUPERSEDED,
    TAKEN_OVER,
    WAITING,
    WORKING,
    Session,
)
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
    PAUSED: ("‖", "note"),
    TAKEN_OVER: ("‖", "note"),
    STOPPED: ("⊘", "dim"),
    FAILED: ("✕", "bad"),
    CRASHED: ("✕", "bad"),
    SUPERSEDED: ("⊘", "dim"),
}
_TITLE_WIDTH = 60
_DOING_WIDTH = 60
_TEXT_WIDTH = 160


def slung(result: Slung, _values: dict[str, Any]) -> list[Block]:
    """The agents that were started, and the tasks on which none was."""
    if len(result.agents) == 1 and not result.failed:
        return _one_slung(result.agents[0])
    rows = [
        ((session.agent, "bold"), session.role, named(session.task_id or ""), session.branch)
        for session in result.agents
    ]
    blocks: list[Block] = [Table(("agent", "role", "task", "branch"), rows, stretch=3)] if rows else []
    for failure in result.failed:
        reason = text(failure.message, indent=2)
        blocks += [text(f"not started: {one_line(failure.task, _TITLE_WIDTH)}", "bad"), reason]
        blocks += [text(failure.hint, "dim", indent=2)] if failure.hint else []
    return blocks


def _one_slung(session: Session) -> list[Block]:
    title = line(("◐ ", "busy"), (session.agent, "title"), f" is a {session.role} and at work")
    fields: dict[str, Cell] = {
        "task": (session.task_id, "id"),
        "run": (session.run_id, "id"),
        "answers to": session.parent,
        "branch": session.branch,
        **({"starts from": session.settings.source} if session.settings.source else {}),
        "worktree": session.worktree,
        "runs on": f"{session.runtime}, {session.mode}",
    }
    hint = text(f"`rook inspect {session.agent} --follow` shows what it does", "dim")
    return [Paragraph([title]), Fields(fields, shows_empty=True), hint]


def stopped(result: Stopped, _values: dict[str, Any]) -> list[Block]:
    """The agents that were stopped."""
    ended = [
        line((session.agent, "title"), f" has ended: {session.outcome}" if session.outcome else f" is {session.state}")
        for session in result.ended
    ]
    if not ended:
        return [text("No agent was stopped.", "dim")]
    return [Paragraph([*ended, *(line(("removed ", "dim"), path) for path in result.cleaned)])]


def held(result: Held, _values: dict[str, Any]) -> list[Block]:
    """An agent that was paused or taken over, or goes on."""
    name = result.agent
    if result.hold is None:
        fields: dict[str, Cell] = {"new commits": "\n".join(result.commits), "changed files": some(result.files, 5)}
        return [Paragraph([line((name, "title"), " goes on")]), Fields(fields)]
    title = line((name, "title"), f" is {result.hold.kind}; `rook handback {name}` lets it go on")
    if result.hold.kind == PAUSED:
        turn = f"turn {result.turn} is still running, and ends by itself; `rook interrupt {name}` ends it now"
        return [Paragraph([title]), *([text(turn, "dim")] if result.turn is not None else [])]
    fields = {"worktree": result.worktree, "branch": result.branch, "terminal": " ".join(result.command)}
    return [Paragraph([title]), Fields(fields)]


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
    shown = agent.outcome or (agent.hold.kind if agent.hold is not None else agent.state)
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
        "held": f"{session.hold.kind} by {session.hold.by} since {session.hold.at}" if session.hold else "",
        "reason": one_line(session.reason or "", _TEXT_WIDTH),
        "task": line((session.task_id, "id"), f"  {one_line(agent.task_title or '')}"),
        "answers to": session.parent,
        "agents": ", ".join(result.children),
        "branch": session.branch,
        "worktree": session.worktree,
        "files": ", ".join(session.settings.files),
        "runs on": f"{session.runtime}, {session.mode}, {session.model}, {session.profile}",
        "sandbox": session.settings.sandbox,
        "cost": f"${agent.dollars:.4f} in {agent.turns} turns",
    }
    yield Paragraph([line((session.agent, "title"), f", a {session.role}")])
    yield Fields(fields)
    if result.turns:
        turns = [
            (turn.number, turn.cause, turn.state, turn.started_at, one_line(turn.last_words or "", 60))
            for turn in result.turns
        ]
        yield Table(("turn", "cause", "state", "began", "last output"), turns, stretch=4)
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
            "" if session.seconds is None else f"{session.seconds:.1f} s",
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
        ((role.role, "bold"), ", ".join(role.alive) or "-", role.profile, role.writes, role.purpose) for role in roles
    ]
    return [Table(("role", "alive", "profile", "writes", "purpose"), rows, stretch=4)]


def identity(agent: Identity, _values: dict[str, Any]) -> list[Block]:
    """An agent over all its sessions."""
    fields: dict[str, Cell] = {
        "roles": ", ".join(agent.roles),
        "sessions": f"{agent.sessions}, {agent.completed} of them completed",
        "first seen": agent.first_seen,
        "last seen": agent.last_seen,
        "works in": ", ".join(agent.domains),
    }
    recent = [
        ((str(task["task_id"]), "id"), task["outcome"] or "alive", one_line(task["title"] or ""))
        for task in agent.recent_tasks
    ]
    tasks = Table(("task", "outcome", "title"), recent, stretch=2)
    return [text(agent.name, "title"), Fields(fields, shows_empty=True), tasks]
