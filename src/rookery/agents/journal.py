"""The log of a session: records in the telemetry, NDJSON for programs and text for people, redacted on the way in."""

from __future__ import annotations

import os

from rookery.agents.records import bounded, text_line
from rookery.base.json import dumps
from rookery.events.redact import redact_all
from rookery.events.telemetry import Telemetry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rookery.agents.home import Home
    from rookery.agents.model import Session


class Journal:
    """Where one session's doings are written down."""

    def __init__(self, home: Home, session: Session, secrets: tuple[str, ...] = ()) -> None:
        self._home = home
        self._session = session
        self._secrets = secrets
        self._telemetry = Telemetry(home.path("telemetry.db"))
        folder = home.folder(session.id)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._lines = open(os.path.join(folder, "events.ndjson"), "a", encoding="utf-8")  # noqa: SIM115
        self._text = open(os.path.join(folder, "log.txt"), "a", encoding="utf-8")  # noqa: SIM115

    def write(
        self,
        kind: str,
        data: dict[str, Any],
        *,
        turn_id: str | None,
        name: str = "",
        is_error: bool = False,
        millis: int | None = None,
    ) -> None:
        """Write down one thing."""
        kept = bounded(redact_all(data, self._secrets))
        at = self._home.now()
        who: dict[str, Any] = {"agent": self._session.agent, "session_id": self._session.id, "turn_id": turn_id}
        self._telemetry.add(at=at, kind=kind, name=name, is_error=is_error, millis=millis, data=kept, **who)
        record = {"at": at, **who, "kind": kind, "name": name, "is_error": is_error, "millis": millis, "data": kept}
        self._lines.write(dumps(record) + "\n")
        self._text.write(text_line(at, kind, name, is_error, kept) + "\n")
        self._lines.flush()
        self._text.flush()

    def has(self, kind: str, call_id: str) -> bool:
        """True if a call was written down already as being of that kind, by whoever saw it first."""
        found = self._telemetry.read(session_id=self._session.id, kinds=(kind,))
        return any(each.data.get("id") == call_id for each in found)

    def close(self) -> None:
        """Let go of the files."""
        self._telemetry.close()
        self._lines.close()
        self._text.close()
