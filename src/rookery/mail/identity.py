"""Who is calling. An agent proves it with its token; whoever has neither name nor token is a person."""

from __future__ import annotations

from rookery.base.record import Record
from rookery.base.token import hash_token
from rookery.mail import directory
from rookery.mail.model import HUMAN, ForgedSender, TurnOver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.config.environ import Environ
    from rookery.db.database import Database


class Caller(Record):
    """A caller that is who it says it is."""

    name: str
    session_id: str | None
    """The life that it speaks from; None for a person, and for Rookery itself."""

    @property
    def is_human(self) -> bool:
        """True for a person."""
        return self.name == HUMAN


def prove(db: Database, environ: Environ) -> Caller:
    """The caller, or ForgedSender if it is not the living agent that it names."""
    if environ.agent == HUMAN:
        if environ.is_agents_process:  # which took its name off
            raise ForgedSender("an agent's process cannot speak as a person")
        return Caller(HUMAN, None)
    life = directory.find_living(db, environ.agent)
    if life is None:
        raise ForgedSender(f"no living agent is called {environ.agent!r}")
    if environ.token is None:
        raise ForgedSender(f"{environ.agent} did not prove who it is: there is no token")
    if hash_token(environ.token) != life.token_hash:
        raise ForgedSender(f"that is not the token of {environ.agent}")
    return Caller(life.agent, life.session_id)


def current_turn(db: Database, caller: Caller, environ: Environ) -> str | None:
    """The turn that the caller runs in, None outside of one.

    The session's own turn counts, whatever the environment says: a program in a terminal cannot be given a new
    variable with every turn. But what a turn left running must not take mail away from the turn after it.
    """
    running = None if caller.session_id is None else directory.running_turn(db, caller.session_id)
    if environ.turn is not None and environ.turn != running:
        raise TurnOver(f"the turn {environ.turn} of {caller.name} is not running")
    return running
