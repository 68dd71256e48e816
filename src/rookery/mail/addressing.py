"""From what a sender writes (`bee`, `human`, `@builders`, `@lead of bee`) to the names that get a message each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.mail import store
from rookery.mail.model import HUMAN, SYSTEM, EmptyGroup, UnknownRecipient
from rookery.ops.model import Caller
from rookery.sessions import store as sessions
from rookery.sessions.model import Session
from rookery.tasks import store as tasks
from rookery.tasks.model import COMPLETED

KIN_GROUPS = ("all", "children", "siblings", "lead", "parent")


@dataclass(frozen=True, slots=True)
class Addressee(Record):
    """A recipient of a message, and the group that named it, if one did."""

    name: str
    audience: str | None
    is_alive: bool
    is_held: bool = False
    """It is paused or taken over, so it reads its mail later."""
    is_done: bool = False
    """It has ended, and so has its task: it cannot be resumed."""


def resolve(db: Database, caller: Caller, texts: Iterable[str], roles: Mapping[str, str]) -> list[Addressee]:
    """The recipients that the texts name, each once. One unknown name, or an empty group, refuses them all.

    `roles` names the role that each group of a role stands for, as `role_groups` read them before the transaction.
    """
    recipients: dict[str, Addressee] = {}
    for text in texts:
        for recipient in _expand(db, caller, text.strip(), roles):
            if recipient.name not in recipients or recipient.audience is None:
                recipients[recipient.name] = recipient
    if not recipients:
        raise InvalidInput("no recipient", hint="name an agent, `human`, or a group such as @all")
    return list(recipients.values())


def find_person(db: Database, name: str) -> Addressee:
    """An agent that is or was here, or the human."""
    if name == HUMAN:
        return Addressee(HUMAN, None, True)
    if name == SYSTEM:
        raise UnknownRecipient(f"{SYSTEM} is Rookery itself, and reads no mail", hint="write to @lead or to human")
    session = _find_session(db, name)
    return Addressee(name, None, session.is_alive, session.hold is not None, _is_done(db, session))


def _is_done(db: Database, session: Session) -> bool:
    task = None if session.is_alive else tasks.existing(db, session.task_id)
    return task is not None and task.state == COMPLETED


def _find_session(db: Database, name: str) -> Session:
    session = sessions.latest(db, name)
    if session is None:
        raise UnknownRecipient(f"no agent is called {name!r}", hint=_suggestion(db, name))
    return session


def _expand(db: Database, caller: Caller, text: str, roles: Mapping[str, str]) -> list[Addressee]:
    if text == "parent":
        text = "@lead"
    if not text.startswith("@"):
        return [find_person(db, text)]
    group = "@" + " ".join(text[1:].split())
    members = [name for name in _members(db, caller, group, roles) if name != caller.name]
    if not members:
        others = "but the sender " if group == "@all" else ""
        raise EmptyGroup(
            f"no agent {others}is in {group} now",
            hint="`rook group list` shows named groups; the other groups hold living agents",
        )
    return [find_person(db, name).replace(audience=group) for name in members]


def _members(db: Database, caller: Caller, group: str, roles: Mapping[str, str]) -> list[str]:
    word = group[1:].lower()
    if word == "all":
        return _living(db)
    if word == "children":
        return _living(db, parent=caller.name)
    if word == "siblings":
        return _living(db, parent=_parent(db, caller.name))
    if word in ("lead", "parent"):
        return [_parent(db, caller.name)]
    for start in ("lead:", "lead of "):
        if word.startswith(start):
            return [_parent(db, group[1 + len(start) :].strip())]
    if word in roles:
        return _living(db, role=roles[word])
    members = store.group_members(db, group[1:])
    if not members:
        raise UnknownRecipient(f"there is no group {group}", hint=_suggestion(db, group, roles))
    return members


def _living(db: Database, **wanted: str) -> list[str]:
    return sorted(session.agent for session in sessions.sessions(db, alive=True, **wanted))


def _parent(db: Database, name: str) -> str:
    """The parent of an agent."""
    if name in (HUMAN, SYSTEM):
        raise EmptyGroup(f"{name} has no parent", hint="name the recipient")
    return _find_session(db, name).parent


def _suggestion(db: Database, text: str, roles: Iterable[str] = ()) -> str:
    names = [HUMAN, *sessions.agent_names(db)]
    groups = [f"@{name}" for name in (*KIN_GROUPS, *roles, *store.group_names(db))]
    near = difflib.get_close_matches(text, [*names, *groups], 1)
    return f"did you mean `{near[0]}`?" if near else "write to an agent, to `human`, or to a group such as @all"
