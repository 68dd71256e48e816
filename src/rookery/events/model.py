"""An event: something that became true, recorded once, in the transaction that made it true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record

_FAILURES = frozenset({"turn.lost", "merge.failed"})
_FAILED = ("crashed", "failed")


@dataclass(frozen=True, slots=True)
class Event(Record):
    """One entry of the outbox. `seq` grows by the order of commits."""

    PRINTS = ""
    seq: int
    id: str
    at: str
    type: str
    actor: str
    subject: str
    data: dict[str, Any]


def is_error(kind: str, data: dict[str, Any]) -> bool:
    """True if an event of that type, with that data, says that something went wrong."""
    changes = data.get("set", data)
    outcome = changes.get("outcome") if isinstance(changes, dict) else None
    return kind in _FAILURES or outcome in _FAILED or data.get("ok") is False
