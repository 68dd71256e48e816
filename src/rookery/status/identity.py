"""`identity.yaml`: who an agent is over all its lives, rendered from the database for people and prompts to read."""

from __future__ import annotations

import os

from rookery.base.draft import write_whole
from rookery.base.json import dumps
from rookery.config import layout, steps
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
    found = identity(ctx, name)
    lines = [
        f"name: {found.name}",
        f"roles: [{', '.join(found.roles)}]",
        f"sessions: {found.sessions}",
        f"sessions_completed: {found.completed}",
        f"first_seen: {found.first_seen}",
        f"last_seen: {found.last_seen}",
        f"domains: {dumps(found.domains)}",
        "recent_tasks:" if found.recent_tasks else "recent_tasks: []",
    ]
    for task in found.recent_tasks:
        # A JSON string is a YAML string, whatever is in it.
        entries = [f"{key}: {dumps(value)}" for key, value in task.items()]
        lines += [f"  - {entries[0]}", *(f"    {entry}" for entry in entries[1:])]
    path = ctx.path(layout.AGENTS, name, layout.IDENTITY)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_whole(path, "\n".join(lines) + "\n")
