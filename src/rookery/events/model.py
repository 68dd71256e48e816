"""An event: something that is now true, said once, in the transaction that made it true."""

from __future__ import annotations

from rookery.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Event(Record):
    """One entry of the outbox. `seq` grows by the order of commits."""

    seq: int
    id: str
    at: str
    type: str
    actor: str
    subject: str
    data: dict[str, Any]
