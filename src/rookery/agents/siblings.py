"""Living agents that may change the same files: refused at sling unless they share, and then told of each other.

Only scopes that were declared with `--files` count: an agent without one may change everything, and every second sling
would be refused. Roles that only read change nothing, and an agent knows what it gives to those below it. What agents
really change is compared by the radar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from rookery.base.errors import Refused
from rookery.base.file_scope import overlapping_patterns, quote_name
from rookery.base.text import plural
from rookery.db.database import Database
from rookery.mail import service as mail
from rookery.mail.model import QUIET_PRIORITY
from rookery.ops.context import Context
from rookery.roles.catalog import list_roles
from rookery.sessions import store
from rookery.sessions.model import ScopeTaken, Session
from rookery.tasks import store as tasks
from rookery.tasks.scope.outside import list_names
from rookery.turns.instructions import Sibling, describe_sibling

_SHOWN = 3


def check_scope_free(db: Database, files: Sequence[str], parent: Session | None, can_write: Mapping[str, bool]) -> None:
    """Within the transaction of a sling: raise ScopeTaken if a living agent may change some of these files.

    `can_write` tells of each role. The agents above the new one do not count.
    """
    above = set() if parent is None else {parent.agent, *store.leaders(db, parent.agent)}
    taken = [
        (session.agent, common)
        for session, common in _overlapping(store.sessions(db, alive=True), files, can_write)
        if session.agent not in above
    ]
    if taken:
        whose = "; ".join(f"{agent} has {list_names(common, _SHOWN)}" for agent, common in taken[:_SHOWN])
        more = f"; and {plural(len(taken) - _SHOWN, 'more agent')}" if len(taken) > _SHOWN else ""
        names = " and ".join(agent for agent, _ in taken[:_SHOWN])
        raise ScopeTaken(
            f"living agents may change the same files: {whose}{more}",
            hint=f"add --share if both may, give other --files, or wait until {names} ended (`rook status`)",
        )


def find_siblings(ctx: Context, session: Session) -> list[Sibling]:
    """The living agents that began before this one and may change the same files.

    Of two agents the later one finds the other, and tells it: so each learns of the other once, also if both are slung
    at the same time. Neither the agents above it nor those below it are siblings.
    """
    db, can_write = ctx.db, {role.name: role.can_write for role in list_roles(ctx.root)}
    if not session.settings.files or not can_write.get(session.role, True):
        return []
    with db.read():
        living = store.sessions(db, alive=True)
        earlier = living[: next((at for at, other in enumerate(living) if other.id == session.id), None)]
        above = set(store.leaders(db, session.agent))
        return [
            _sibling(db, other, common)
            for other, common in _overlapping(earlier, session.settings.files, can_write)
            if other.agent not in above and session.agent not in store.leaders(db, other.agent)
        ]


def tell_siblings(ctx: Context, session: Session, siblings: Sequence[Sibling]) -> None:
    """Within the transaction in which an agent is ready: its siblings learn of it, at their next turns."""
    db = ctx.db
    for sibling in siblings:
        if store.living(db, sibling.agent) is None:
            continue
        body = (
            "Another agent has begun to work beside you, on the same base, and may change some of your files:\n\n"
            f"{describe_sibling(_sibling(db, session, sibling.common))}\n\n"
            "Expect the base to move. Where a file is both of yours, agree by mail on what each of you changes there."
        )
        subject = f"{session.agent} works beside you"
        with suppress(Refused):  # no agent of that name is known any more
            mail.send_from_system(db, sibling.agent, subject, body, priority=QUIET_PRIORITY, now=ctx.now())


def _overlapping(
    sessions: Sequence[Session], files: Sequence[str], can_write: Mapping[str, bool]
) -> Iterator[tuple[Session, tuple[str, ...]]]:
    """Those that may change some of these files, and the patterns that both have, for people."""
    for session in sessions:
        pairs = overlapping_patterns(files, session.settings.files) if can_write.get(session.role, True) else []
        if pairs:
            yield session, tuple(_describe_pair(*pair) for pair in pairs)


def _describe_pair(one: str, other: str) -> str:
    return quote_name(one) if one == other else f"{quote_name(one)} and {quote_name(other)}"


def _sibling(db: Database, session: Session, common: tuple[str, ...]) -> Sibling:
    task = tasks.existing(db, session.task_id)
    return Sibling(session.agent, session.role, "" if task is None else task.title, session.settings.files, common)
