"""What is done, beside any command, about a landing that was cut off."""

from __future__ import annotations

from rookery.merge import after, land, undo
from rookery.merge import lease as leases
from rookery.merge.lease import Holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rookery.merge.desk import Desk


def settle(desk: Desk, bases: Sequence[str]) -> None:
    """Finish or put back what a killed merger left; nothing where a merger is alive."""
    for base in bases:
        lease = leases.acquire(desk, base)
        if isinstance(lease, Holder):
            continue
        try:
            land.recover(desk, lease)
            undo.recover(desk, lease)
            after.follow_up(desk, base)
        finally:
            leases.release(desk, lease)
    after.tidy(desk)
