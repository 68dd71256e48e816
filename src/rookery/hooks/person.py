"""A person's own session in an agent program: it is told how things stand, and gets its mail with each prompt."""

from __future__ import annotations

from rookery.base.clock import stamp
from rookery.base.errors import NotInitialised
from rookery.base.json import loads
from rookery.config.environ import Environ, now
from rookery.db.database import Database
from rookery.hooks.prime import prime
from rookery.mail.inbox import check
from rookery.ops.caller import prove
from rookery.ops.context import Context
from rookery.ops.state import open_state
from rookery.ops.state_owner import find_project


def at_event(environ: Environ, event: str, payload: bytes) -> str:
    """What to add to the session at the event; nothing outside of a project."""
    try:
        root = find_project(str(loads(payload).get("cwd") or "."), environ.root)
    except NotInitialised:
        return ""
    db = open_state(root)
    try:
        return _mail(db, environ) if event == "prompt" else _prime(root, db, environ, event)
    finally:
        db.close()


def _mail(db: Database, environ: Environ) -> str:
    """New mail for the person, told once: to be shown it here is to have read it."""
    found = check(db, prove(environ, lambda: db), stamp(now()), inject=True)
    return found.text or "" if found.messages else ""


def _prime(root: str, db: Database, environ: Environ, event: str) -> str:
    return prime(Context.at(root, db), None, compact=event == "pre-compact")
