"""What is done about a landing that was cut off, without being asked for."""

from __future__ import annotations

from rookery.merge import lease as leases
from rookery.merge import undo
from rookery.merge.landing import after, land
from rookery.merge.lease import Holder
from rookery.merge.merger import Merger


def recover(merger: Merger, base: str) -> None:
    """Finish or put back what a killed merger left on a base; nothing where a merger is alive."""
    lease = leases.acquire(merger, base)
    if isinstance(lease, Holder):
        return
    try:
        land.recover(merger, lease)
        undo.recover(merger, lease)
        after.follow_up(merger, base)
    finally:
        leases.release(merger, lease)
    after.tidy(merger)
