"""An operation that is read as it comes holds nothing of the database while its caller takes its time."""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from pathlib import Path

import apsw
import pytest

from rookery.agents.reservation import Request, reserve
from rookery.config.environ import read_environ
from rookery.events.telemetry import Telemetry
from rookery.ops.context import Context
from rookery.ops.index import GROUPS
from rookery.ops.operation import call, declared
from rookery.sessions import store
from support import NOW, add


def streaming() -> list[str]:
    """The operations whose result is read as it comes."""
    for modules in GROUPS.values():
        for module in modules:
            import_module(module)
    return sorted(name for name, op in declared().items() if op.streams)


def open_context(project: Path) -> Context:
    return Context(cwd=str(project), environ=read_environ())


def prepare(project: Path) -> None:
    """An agent that has done something, so that every operation has something to tell."""
    ctx = open_context(project)
    session = reserve(ctx, Request(add(ctx.db), "builder", "human", "0" * 40, name="ada"))
    store.change_session(ctx.db, session, "", actor="ada", at=NOW, move="wait", step="ready", runner_pid=None)
    telemetry = Telemetry(ctx.path("telemetry.db"))
    for number in range(3):
        telemetry.add(
            at=ctx.now(),
            agent="ada",
            session_id=session.id,
            turn_id=None,
            kind="tool",
            is_error=True,
            data={"n": number},
        )
    telemetry.close()
    (project / ".rookery" / "logs").mkdir()
    (project / ".rookery" / "logs" / "daemon.log").write_text("serving\n")
    ctx.close()


def is_blocked(path: Path) -> bool:
    """True if an open query keeps the write-ahead log from being truncated."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS extra (a); INSERT INTO extra VALUES (1)")
        return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0])


@pytest.mark.parametrize("name", streaming())
def test_one_that_is_half_read_holds_nothing(name: str, project: Path) -> None:
    prepare(project)
    ctx = open_context(project)
    values = {"name": "ada", "subject": "ada", "follow": True, "watch": True, "live": True, "limit": 2}
    rows = iter(call(ctx, declared()[name], values))
    next(rows)
    assert not is_blocked(project / ".rookery" / "rookery.db")
    assert not is_blocked(project / ".rookery" / "telemetry.db")
    ctx.close()


def test_there_are_some() -> None:
    assert {"events", "logs", "status", "costs"} <= set(streaming())
