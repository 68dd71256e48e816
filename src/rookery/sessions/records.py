"""One record of what an agent did: in the telemetry, and in the files of its session.

Apart from `log`, which runners use: they never load the database.
"""

from __future__ import annotations

from typing import Any

from rookery.config import layout
from rookery.events.telemetry import Telemetry
from rookery.sessions import log


def write_record(
    root: str,
    *,
    at: str,
    agent: str,
    session_id: str,
    turn_id: str | None,
    kind: str,
    name: str = "",
    is_error: bool = False,
    millis: int | None = None,
    data: dict[str, Any],
) -> None:
    """Write one record down, redacted and bounded."""
    folder = layout.session_path(root, session_id)
    kept = log.clean(data, log.read_secrets(root, folder))
    telemetry = Telemetry(layout.path(root, layout.TELEMETRY))
    who: dict[str, Any] = {"agent": agent, "session_id": session_id, "turn_id": turn_id}
    try:
        telemetry.add(at=at, kind=kind, name=name, is_error=is_error, millis=millis, data=kept, **who)
    finally:
        telemetry.close()
    log.append(
        folder, {"at": at, **who, "kind": kind, "name": name, "is_error": is_error, "millis": millis, "data": kept}
    )
