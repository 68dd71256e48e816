"""How agents look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rookery.agents.hold_ops import Held
from rookery.agents.ops import Nudged
from rookery.agents.several import Slung
from rookery.agents.stop_ops import Stopped
from rookery.base.clock import length, seconds_of
from rookery.base.ids import handle, with_handles
from rookery.base.text import in_words, one_line, plural
from rookery.cli.document import Block, Cell, Fields, Paragraph, Span, Table, line, moment, named, some, text
from rookery.cli.views.events import row
from rookery.merge.compare.service import ComparedAttempt, Comparison
from rookery.overview.metrics import Metric, Metrics, Summary
from rookery.overview.service import Overview
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
from rookery.status.service import AgentStatus, Identity, Inspection
from rookery.tasks.model import IN_REVIEW, Progress
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
_INBOX = "rook inbox"
_LAST_WIDTH = 80
_REASON_WIDTH = 200
_TEXT_WIDTH = 160


def slung(result: Slung, _values: dict[str, Any]) -> list[Block]:
    """The agents that were started, and the tasks on which none was."""
    if len(result.agents) == 1 and not result.failed:
        return _one_slung(result.agents[0])
    rows = [
        ((session.agent, "bold"), session.role, named(session.task_id or ""), session.branch)
        for session in result.agents
    ]
    blocks: list[Block] = [Table(("agent", "role", "task", "branch"), rows)] if rows else []
    for failure in result.failed:
        reason = text(with_handles(failure.message), indent=2)
        blocks += [text(f"not started: {one_line(failure.task, 60)}", "bad"), reason]
        blocks += [text(with_handles(failure.hint), "dim", indent=2)] if failure.hint else []
    return blocks


def _one_slung(session: Session) -> list[Block]:
    title = line(("◐ ", "busy"), (session.agent, "title"), f" has started as {session.role}")
    fields: dict[str, Cell] = {
        "task": named(session.task_id),
        "run": named(session.run_id),
        "answers to": session.parent,
        "branch": session.branch,
        **({"starts from": session.settings.source} if session.settings.source else {}),
        "worktree": session.worktree,
        "runs on": f"{session.runtime}, {session.mode}",
    }
    hint = text(f"Watch it with `rook inspect {session.agent} --follow`.", "dim")
    return [Paragraph([title]), Fields(fields, shows_empty=True), hint]


def stopped(result: Stopped, _values: dict[str, Any]) -> list[Block]:
    """The agents that were stopped or had ended before, or those that are about to be."""
    ended = [
        line(("stopped ", "dim"), (session.agent, "title"))
        if session.outcome == STOPPED and session.agent not in result.ended_before
        else line(
            (session.agent, "title"), f" ended before: {session.outcome}" if session.outcome else f" is {session.state}"
        )
        for session in result.ended
    ]
    if not ended:
        return [text("No agent was stopped.", "dim")]
    return [Paragraph([*ended, *(line(("removed ", "dim"), path) for path in result.cleaned)])]


def held(result: Held, values: dict[str, Any]) -> list[Block]:
    """An agent that was paused or taken over, or goes on."""
    name = result.agent
    if result.hold is None:
        fields: dict[str, Cell] = {"new commits": "\n".join(result.commits), "changed files": some(result.files, 5)}
        return [Paragraph([line((name, "title"), " goes on")]), Fields(fields)]
    title = line((name, "title"), f" is {result.hold.kind}; `rook handback {name}` lets it go on")
    if result.hold.kind == PAUSED:
        ends = f"is still running, and ends by itself; `rook interrupt {name}` ends it now"
        turn = f"turn {result.turn} {'was interrupted' if values.get('now') else ends}"
        return [Paragraph([title]), *([text(turn, "dim")] if result.turn is not None else [])]
    fields = {"worktree": result.worktree, "branch": result.branch, "terminal": " ".join(result.command)}
    return [Paragraph([title]), Fields(fields)]


def nudged(result: Nudged, _values: dict[str, Any]) -> list[Block]:
    """A reminder."""
    return [Paragraph([line(f"Reminded {result.agent} by message ", named(result.message_id), ".")])]


def interrupted(result: Interrupted, _values: dict[str, Any]) -> list[Block]:
    """A turn that was asked to end."""
    return [text(f"Interrupted turn {result.turn} of {result.agent}. The agent waits for mail.")]


def status(result: Overview, _values: dict[str, Any]) -> list[Block]:
    """What needs a person, agents, worktrees and tasks."""
    past = ended(result.ended, result.at)
    return [
        _inbox(result.inbox),
        alive(result.agents, result.at),
        text(_worktrees(result) + _tasks(result.tasks), "dim"),
        *([past] if past.rows else []),
    ]


def _inbox(count: int) -> Block:
    if not count:
        return text("Nothing needs you.", "dim")
    need = f"{plural(count, 'thing')} {'needs' if count == 1 else 'need'} you: "
    return Paragraph([line((need, "note"), (f"`{_INBOX}`", "bold"))])


def _worktrees(result: Overview) -> str:
    count = result.worktrees
    idle = f", {count.without_agent} without an agent" if count.without_agent else ""
    return f"{plural(count.total, 'worktree')}{idle}\n" if count.total else ""


def _tasks(tasks: Progress) -> str:
    counts = {
        "ready": tasks.ready,
        "blocked": tasks.blocked,
        "in progress": tasks.in_progress,
        "in review": tasks.in_review,
        "failed": tasks.failed,
        "completed": tasks.completed,
    }
    shown = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"tasks: {shown or 'none'}"


def alive(agents: Sequence[AgentStatus], now: str) -> Table:
    """Agents in a table, each under the one that it answers to."""
    rows = [_row(agent, depth, now) for agent, depth in _in_order(agents)]
    headings = ("agent", "role", "state", "turns", "cost", "unread", "task", "last")
    return Table(headings, rows, stretch=6, empty="No agents. `rook sling TASK` starts one.", under=(6, 7))


def ended(agents: Sequence[AgentStatus], now: str) -> Table:
    """Agents that have ended, how, and why."""
    rows = [
        (
            line(_mark(agent), " ", (agent.agent, "title")),
            agent.role,
            f"{agent.outcome} {_age(agent.since, now)} ago",
            agent.turns,
            _dollars(agent),
            agent.unread or "",
            _task(agent),
            (f"({with_handles(one_line(agent.reason, _REASON_WIDTH))})" if agent.reason else "", "dim"),
        )
        for agent in agents
    ]
    return Table(("ended", "role", "outcome", "turns", "cost", "unread", "task", "why"), rows, stretch=6, under=(6, 7))


def _in_order(agents: Sequence[AgentStatus]) -> Iterator[tuple[AgentStatus, int]]:
    """Each agent before those that answer to it, and how deep it is in the table."""
    names = {agent.agent for agent in agents}
    under: dict[str, list[AgentStatus]] = {}
    for agent in agents:
        under.setdefault(agent.parent if agent.parent in names - {agent.agent} else "", []).append(agent)
    waiting = [(agent, 0) for agent in reversed(under.pop("", []))]
    while waiting:
        agent, depth = waiting.pop()
        yield agent, depth
        waiting += [(child, depth + 1) for child in reversed(under.pop(agent.agent, []))]
    yield from ((agent, 0) for circle in under.values() for agent in circle)


def _row(agent: AgentStatus, depth: int, now: str) -> tuple[Cell, ...]:
    last, when = agent.last, ""
    if last is not None and last.at is not None:
        when = f" for {_age(last.at, now)}" if last.is_going_on else f" {_age(last.at, now)} ago"
    return (
        line("  " * depth, _mark(agent), " ", (agent.agent, "title")),
        agent.role,
        f"{agent.state} {_age(agent.since, now)}"
        if agent.hold is None
        else f"{agent.hold.kind} {_age(agent.hold.at, now)}",
        agent.turns,
        _dollars(agent),
        (str(agent.unread or ""), "note"),
        _task(agent),
        ("" if last is None else f"{one_line(last.text, _LAST_WIDTH)}{when}", "dim"),
    )


def _task(agent: AgentStatus) -> Cell:
    return line(named(agent.task_id), f" {one_line(agent.task_title or '')}") if agent.task_id else ""


def _mark(agent: AgentStatus) -> Span:
    return _STATES.get(agent.outcome or (agent.state if agent.hold is None else agent.hold.kind), ("○", "note"))


def _age(at: str, now: str) -> str:
    return length(seconds_of(now) - seconds_of(at))


def _dollars(agent: AgentStatus) -> str:
    return f"${agent.dollars:.2f}" if agent.dollars else ""


def inspection(result: Inspection | Activity, values: dict[str, Any]) -> Iterator[Block]:
    """An agent at length, and then what it did."""
    if not isinstance(result, Inspection):
        yield from row(result, values)
        return
    session, agent = result.session, result.status
    fields: dict[str, Cell] = {
        "state": session.outcome or session.state,
        "held": f"{session.hold.kind} by {session.hold.by} since {moment(session.hold.at)}" if session.hold else "",
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
        yield text("screen" if session.is_alive else "last screen", "dim")
        yield text(result.screen.rstrip(), indent=2)


def attach(result: Attached, _values: dict[str, Any]) -> list[Block]:
    """How to get into a terminal."""
    return [text(" ".join(result.command))]


def metrics(result: Metrics, _values: dict[str, Any]) -> list[Block]:
    """Sessions in a table, and their sums and averages."""
    rows: list[tuple[Cell, ...]] = [
        (
            (session.agent, "bold"),
            session.role,
            _outcome(session),
            session.tier,
            session.turns,
            "" if session.seconds is None else length(session.seconds),
            f"{session.tokens:,}",
            f"${session.dollars:.2f}",
            session.parent,
            moment(session.started_at),
            moment(session.ended_at) if session.ended_at else "",
        )
        for session in result.sessions
    ]
    headings = ("agent", "role", "outcome", "landed", "turns", "time", "tokens", "cost", "parent", "began", "ended")
    table = Table(headings, rows, empty="No sessions yet.", under=(8, 9, 10))
    return [table, *(_summary(result.summary) if rows else ())]


def _outcome(session: Metric) -> str:
    status = f" ({session.exit_status})" if session.exit_status else ""
    return f"{session.outcome or session.state}{status}"


def _summary(summary: Summary) -> list[Block]:
    average = "" if summary.average_seconds is None else f" in {length(summary.average_seconds)}"
    fields: dict[str, Cell] = {
        "total": f"{plural(summary.sessions, 'session')}, {plural(summary.turns, 'turn')}, "
        f"{plural(summary.tokens, 'token')}, ${summary.dollars:.2f}, {length(summary.seconds)}",
        "average": f"{summary.average_turns:.1f} turns, {plural(round(summary.average_tokens), 'token')}, "
        f"${summary.average_dollars:.2f}{average}",
        "outcomes": _counts(summary.outcomes),
        "landed": _counts(summary.tiers),
    }
    return [Fields(fields)]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def discovered(roles: list[RoleSummary], _values: dict[str, Any]) -> list[Block]:
    """Roles, and their living agents."""
    rows = [
        ((role.role, "bold"), ", ".join(role.alive) or "-", role.profile, role.writes, one_line(role.purpose))
        for role in roles
    ]
    return [Table(("role", "alive", "profile", "writes", "purpose"), rows, empty="No such agents.")]


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
        (named(task["session_id"]), named(task["task_id"]), task["outcome"] or "alive", one_line(task["title"] or ""))
        for task in agent.recent_tasks
    ]
    tasks = Table(("session", "task", "outcome", "title"), recent)
    return [text(agent.name, "title"), Fields(fields, shows_empty=True), tasks]


def _merge_state(attempt: ComparedAttempt) -> str:
    if attempt.has_landed:
        return "landed"
    return "gone" if attempt.conflicts is None else "conflicts" if attempt.conflicts else "clean"


def _changed(attempt: ComparedAttempt) -> str:
    committed = f"{attempt.files} (+{attempt.added} -{attempt.deleted})"
    return f"{committed}, {attempt.uncommitted} uncommitted" if attempt.uncommitted else committed


def compared(result: Comparison, values: dict[str, Any]) -> Iterator[Block]:
    """The attempts at a task side by side; the one whose branch is the task's is marked."""
    rows = [
        (
            line("* " if attempt.is_current else "  ", (attempt.agent, "bold")),
            in_words(attempt.state),
            attempt.commits,
            _changed(attempt),
            _merge_state(attempt),
            "; ".join(attempt.gates) or "-",
            f"${attempt.dollars:.2f}",
            attempt.turns,
            length(attempt.seconds),
        )
        for attempt in result.attempts
    ]
    headings = ("agent", "state", "commits", "files", "merge", "gates", "cost", "turns", "time")
    title = line(named(result.task_id), f"  {one_line(result.title)}, {in_words(result.state)}")
    yield Paragraph([title])
    yield Table(headings, rows, empty="No agent has worked on it.")
    current = next((attempt for attempt in result.attempts if attempt.is_current), None)
    if current is not None:
        yield text("* the branch of this agent is the task's", "dim")
    if current is not None and values.get("keep"):
        next_step = f"; next: `rook review show {handle(result.task_id)}`" if result.state in IN_REVIEW else ""
        yield text(f"The task's branch is now {current.branch}{next_step}.", "good")
