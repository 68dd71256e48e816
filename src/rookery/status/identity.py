"""`identity.yaml`: an agent over all its sessions, rendered from the database for people and prompts to read."""

from __future__ import annotations

import os

from rookery.base.draft import write_whole
from rookery.base.json import dumps
from rookery.config import layout, steps
from rookery.config.project import make_state_folders
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.status.service import identity


def renew_identity(ctx: Context, name: str) -> None:
    """Write the file if a session of the agent has ended since it was written; safe to repeat."""
    session_id = store.identities_due(ctx.db).get(name)
    if session_id is None:
        return
    _write(ctx, name)
    steps.reached("identity written")
    with ctx.db.write() as db:
        store.forget_identity(db, name, session_id)


def _write(ctx: Context, name: str) -> None:
    agent = identity(ctx, name)
    lines = [
        f"name: {agent.name}",
        f"roles: [{', '.join(agent.roles)}]",
        f"sessions: {agent.sessions}",
        f"sessions_completed: {agent.completed}",
        f"first_seen: {agent.first_seen}",
        f"last_seen: {agent.last_seen}",
        f"domains: {dumps(agent.domains)}",
        "recent_tasks:" if agent.recent_tasks else "recent_tasks: []",
    ]
    for task in agent.recent_tasks:
        # A JSON string is a YAML string, whatever is in it.
        entries = [f"{key}: {dumps(value)}" for key, value in task.items()]
        lines += [f"  - {entries[0]}", *(f"    {entry}" for entry in entries[1:])]
    path = ctx.path(layout.AGENTS, name, layout.IDENTITY)
    make_state_folders(os.path.dirname(path))
    write_whole(path, "\n".join(lines) + "\n")
