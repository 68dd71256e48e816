"""Work that is handed in by mail: what it changes outside its agent's files is named there, and needs a reason.

An agent says `worker_done` of its own branch, and the agents above it say `merge_ready`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rookery.base.errors import Refused
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.mail.validation import check_payload, check_type
from rookery.ops.context import Context
from rookery.ops.model import Caller
from rookery.sessions import store as sessions
from rookery.tasks.scope import outside as scopes
from rookery.tasks.scope import store as scope_store
from rookery.tasks.scope.outside import Outside

_DONE, _READY = "worker_done", "merge_ready"
_SHOWN_FILES = 50
_SHOWN_REASONS = 3
_HOW = 'put "outside_reason": "…" into the payload'


@dataclass(frozen=True, slots=True)
class HandIn(Record):
    """What a message hands in: the files outside the scope, if there are any."""

    outside: Outside | None = None

    def complete(self, payload: dict[str, Any] | None) -> dict[str, Any] | None:
        """The payload with the files outside the scope, and why they change."""
        if self.outside is None:
            return payload
        reasons = list(dict.fromkeys(file.reason for file in self.outside.files if file.reason))
        names = tuple(file.path for file in self.outside.files)
        shown = [
            *names[:_SHOWN_FILES],
            *([f"and {len(names) - _SHOWN_FILES} more"] if len(names) > _SHOWN_FILES else []),
        ]
        return {**(payload or {}), "outside": shown, "outside_reason": "; ".join(reasons[:_SHOWN_REASONS])}

    def keep(self, db: Database, caller: Caller, now: str) -> None:
        """Within the transaction that sends the message: keep the reasons."""
        scopes.keep(db, self.outside, actor=caller.name, at=now)


def examine(ctx: Context, type: str, payload: dict[str, Any] | None) -> HandIn:
    """Before a message is sent: what it hands in. Raises OutsideFiles if that needs a reason and has none."""
    check_payload(check_type(type), payload)
    branch = _branch_of(ctx, type, payload or {})
    scope = None if branch is None else scope_store.find(ctx.db, branch)
    if scope is None:
        return HandIn()
    reason = (payload or {}).get("outside_reason")
    if reason is not None and type == _READY:
        _check_leads(ctx, scope.agent)
    base = ctx.config.project.base
    return HandIn(
        scopes.check_hand_in(ctx.db, ctx.repository(), scope.branch, base, reason=reason, by=ctx.caller.name, how=_HOW)
    )


def _branch_of(ctx: Context, type: str, payload: dict[str, Any]) -> str | None:
    """The branch that a message of that type hands in."""
    if type == _READY:
        return str(payload["branch"])
    session_id = ctx.caller.session_id
    return sessions.session(ctx.db, session_id).branch if type == _DONE and session_id is not None else None


def _check_leads(ctx: Context, agent: str) -> None:
    caller = ctx.caller
    if not caller.is_human and caller.name != agent and caller.name not in sessions.leaders(ctx.db, agent):
        raise Refused(
            f"{caller.name} cannot say why {agent} changes other files", hint=f"ask {agent}'s lead, or a person"
        )
