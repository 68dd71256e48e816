"""What a session needs to know when it starts, or after its memory was compacted: who it is, and the project's state.

Titles, names and subjects are texts of others: cut to one line, and marked as what they are.
"""

from __future__ import annotations

import os

from rookery.base.clock import length, seconds_of
from rookery.base.files import read_text
from rookery.base.ids import handle
from rookery.base.text import one_line, plural
from rookery.config import layout
from rookery.mail import store as mail_store
from rookery.mail.model import HUMAN
from rookery.ops.context import Context
from rookery.roles.catalog import read_role
from rookery.status import service as status
from rookery.status.activity import EVENTS, Activity, about, show_rows
from rookery.tasks import service

_MOST = 12
_WIDTH = 100
_MOST_RECENT = 6
_SHOWN = (
    *("task.submitted", "task.changes_requested", "task.approved", "task.completed", "task.failed", "task.cancelled"),
    *("agent.reserved", "agent.ended", "merge.landed", "merge.failed", "merge.undone", "learning.added"),
)
"""The types of events that are worth a line."""


def prime(ctx: Context, agent: str | None, *, compact: bool = False) -> str:
    """The text for an agent, or for a person's own session."""
    return _for_agent(ctx, agent, compact) if agent else _for_person(ctx, compact)


def _for_person(ctx: Context, compact: bool) -> str:
    parts = [] if compact else [(read_text(os.path.join(os.path.dirname(__file__), "session.md")) or "").strip()]
    parts.append(_section("## Agents", _agents(ctx), "No agent is at work."))
    ready = service.next_ready(ctx.db, ctx.now())
    tasks = [f"`{ready.task.id}` {one_line(ready.task.title, _WIDTH)}"] if ready else []
    parts.append(_section("## Ready to be done next", tasks, "No task is ready."))
    recent = _recent(ctx)
    if recent:
        parts.append(_section("## What happened last", recent))
    unanswered, unread = mail_store.count_unanswered(ctx.db, HUMAN), mail_store.count_new(ctx.db, HUMAN)
    if unanswered:
        waits = "waits" if unanswered == 1 else "wait"
        parts.append(
            f"{plural(unanswered, 'question')} {waits} for an answer: `rook inbox` shows everything that waits for the "
            "person, with the command for it."
        )
    if unread:
        is_unread = "is" if unread == 1 else "are"
        parts.append(
            f"{plural(unread, 'message')} {is_unread} unread for the person: `rook mail list --unread --to human`."
        )
    return "\n\n".join(parts)


def _for_agent(ctx: Context, agent: str, compact: bool) -> str:
    session = status.find(ctx.db, agent)
    path = os.path.join(ctx.session_folder(session.id), layout.SESSION_INSTRUCTIONS)
    identity = status.identity(ctx, agent)
    lines = [
        f"You are `{agent}`, a {session.role}. You answer to `{session.parent}`.",
        f"Your task: `{session.task_id}` (`rook task get {session.task_id}`). Your worktree: `{session.worktree}`.",
        f"Your branch: `{session.branch}`. Your whole instructions: `{path}`.",
    ]
    if identity.domains:
        lines.append(f"You have worked in: {', '.join(identity.domains)}.")
    parts = ["\n".join(lines)]
    children = _agents(ctx, parent=agent)
    if children:
        parts.append(_section("## Your agents", children))
    recent = _recent(ctx, agent)
    if recent:
        parts.append(_section("## What happened last", recent))
    unread = mail_store.count_new(ctx.db, agent)
    if unread:
        parts.append(f"Mail for you: {unread} new. `rook mail check`")
    if not compact:
        parts.append((read_text(path) or read_role(ctx.root, session.role).prompt).strip())
    return "\n\n".join(parts)


def _agents(ctx: Context, parent: str | None = None) -> list[str]:
    """All agents that are alive, or those of one parent, on a line each."""
    return [
        f"`{agent.agent}` ({agent.role}, {agent.state}): {one_line(agent.task_title or 'no task', _WIDTH)}"
        for agent in status.status(ctx)
        if parent in (None, agent.parent)
    ]


def _recent(ctx: Context, *agents: str) -> list[str]:
    """The newest events, of all or about some agents, the newest last; their own tool calls are left out."""
    query = about(*agents).replace(source=EVENTS, types=_SHOWN, limit=_MOST_RECENT)
    now = ctx.clock()
    return [f"{length(now - seconds_of(row.at))} ago: {_in_words(row)}" for row in show_rows(ctx, query)]


def _in_words(row: Activity) -> str:
    what, by = row.kind.replace(".", " ").replace("_", " "), f" by {row.agent}" if row.agent != row.subject else ""
    subject = handle(row.subject) if "_" in row.subject and row.subject.partition("_")[2].isupper() else row.subject
    is_new = row.text and not row.kind.startswith("task.") and row.text != row.kind.rpartition(".")[2]
    says = f": {one_line(row.text, _WIDTH)}" if is_new else ""
    return f"{what}, `{one_line(subject, _WIDTH)}`{by}{says}"


def _section(title: str, lines: list[str], nothing: str = "") -> str:
    shown = [f"- {line}" for line in lines[:_MOST]] or [nothing]
    more = [f"- and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return "\n".join([title, "", *shown, *more])
