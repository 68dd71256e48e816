"""What a turn has used that did not say so itself: one in a terminal, or one that was cut off."""

from __future__ import annotations

from rookery.agents import store
from rookery.agents.model import TURN_RUNNING
from rookery.costs.prices import price
from rookery.costs.transcripts import usage_of_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rookery.agents.home import Home
    from rookery.agents.model import Session, Turn


def read_spent(home: Home, session: Session, turn: Turn | None) -> list[dict[str, Any]]:
    """The usage of a turn, priced, for whoever settles it; nothing without a turn, or where no transcripts are kept.

    Whoever settles a turn asks, also if the turn has said itself what it used: so the next one is counted from there.
    """
    if turn is None:
        return []

    def is_settled(turn_id: str) -> bool:
        turns = store.turns(home.db, session.id)
        return any(each.id == turn_id and each.state != TURN_RUNNING for each in turns)

    used = usage_of_turn(home.runtime_folder(session.id), turn.id, is_settled)
    return [price(each, session.model, home.config) for each in used]
