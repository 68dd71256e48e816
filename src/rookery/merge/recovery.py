"""What is done about a landing that was cut off, without being asked for."""

from __future__ import annotations

from rookery.merge import lease as leases
from rookery.merge import undo
from rookery.merge.desk import Desk
from rookery.merge.landing import after, land
from rookery.merge.lease import Holder


def recover(desk: Desk, base: str) -> None:
    """Finish or put back what a killed merger left on a base; nothing where a merger is alive."""
    lease = leases.acquire(desk, base)
    if isinstance(lease, Holder):
        return
    try:
        land.recover(desk, lease)
        undo.recover(desk, lease)
        after.follow_up(desk, base)
    finally:
        leases.release(desk, lease)
    after.tidy(desk)
