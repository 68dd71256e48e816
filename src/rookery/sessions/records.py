"""Writes one thing that an agent did to the telemetry, and to the log of its session.

Apart from `log`, which runners use: they never load the database.
"""

from __future__ import annotations

from contextlib import closing

from rookery.base.clock import stamp
from rookery.config import layout
from rookery.config.environ import now
from rookery.events.telemetry import Telemetry
from rookery.sessions import log
from rookery.sessions.log import LogEntry
from rookery.sessions.model import Session


def write_record(root: str, session: Session, turn_id: str | None, entry: LogEntry) -> None:
    """Write one record, redacted and bounded."""
    folder = layout.session_path(root, session.id)
    cleaned = entry.replace(data=log.clean(entry.data, log.read_secrets(root, folder))).as_dict()
    record = {"at": stamp(now()), "agent": session.agent, "session_id": session.id, "turn_id": turn_id, **cleaned}
    with closing(Telemetry(layout.path(root, layout.TELEMETRY))) as telemetry:
        telemetry.add(**record)
    log.append(folder, record)
