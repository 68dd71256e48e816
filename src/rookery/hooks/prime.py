"""What a session needs to know when it starts, or after its memory was compacted: who it is, and how things stand.

Titles, names and subjects are others' words: on one line each, cut, and marked as what they are.
"""

from __future__ import annotations

import os

from rookery.base.text import one_line
from rookery.config import layout
from rookery.mail import store as mail_store
from rookery.ops.context import Context
from rookery.roles.catalog import read_role
from rookery.status import service as look
from rookery.status.service import AgentStatus
from rookery.tasks import service

_MOST = 12
_WIDTH = 100


def prime(ctx: Context, agent: str | None, *, compact: bool = False) -> str:
    """The text for an agent, or for a person's own session."""
    return _for_agent(ctx, agent, compact) if agent else _for_person(ctx, compact)


def _for_person(ctx: Context, compact: bool) -> str:
    parts = [] if compact else [_session_prompt()]
    parts.append(_lines("## Agents", [_agent_line(each) for each in look.status(ctx)], "Nobody is at work."))
    ready = service.next_ready(ctx.db, ctx.now())
    tasks = [f"`{ready.task.id}` {one_line(ready.task.title, _WIDTH)}"] if ready else []
    parts.append(_lines("## Ready to be done next", tasks, "No task is ready."))
    unread = mail_store.count_new(ctx.db, "human")
    if unread:
        parts.append(f"There {'is 1 message' if unread == 1 else f'are {unread} messages'} for you: `rook mail check`.")
    return "\n\n".join(parts)


def _for_agent(ctx: Context, agent: str, compact: bool) -> str:
    session = look.find(ctx.db, agent)
    path = os.path.join(ctx.session_folder(session.id), layout.SESSION_INSTRUCTIONS)
    known = look.identity(ctx, agent)
    lines = [
        f"You are `{agent}`, a {session.role}. You answer to `{session.parent}`.",
        f"Your task: `{session.task_id}` (`rook task get {session.task_id}`). Your worktree: `{session.worktree}`.",
        f"Your branch: `{session.branch}`. Your whole instructions: `{path}`.",
    ]
    if known.domains:
        lines.append(f"You have worked in: {', '.join(known.domains)}.")
    children = [_agent_line(each) for each in look.status(ctx) if each.parent == agent]
    parts = ["\n".join(lines)]
    if children:
        parts.append(_lines("## Your agents", children, ""))
    waiting = mail_store.count_new(ctx.db, agent)
    if waiting:
        parts.append(f"Mail for you: {waiting} new. `rook mail check`")
    if not compact:
        parts.append(_instructions(path) or read_role(ctx.root, session.role).prompt.strip())
    return "\n\n".join(parts)


def _agent_line(each: AgentStatus) -> str:
    return f"`{each.agent}` ({each.role}, {each.state}): {one_line(each.task_title or 'no task', _WIDTH)}"


def _lines(title: str, lines: list[str], nothing: str) -> str:
    more = [f"- and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return "\n".join([title, "", *(f"- {line}" for line in lines[:_MOST]), *more] if lines else [title, "", nothing])


def _session_prompt() -> str:
    with open(os.path.join(os.path.dirname(__file__), "session.md"), encoding="utf-8") as file:
        return file.read().strip()


def _instructions(path: str) -> str:
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read().strip()
