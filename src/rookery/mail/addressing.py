"""From what a sender writes (`bee`, `human`, `@builders`, `@lead of bee`) to the names that get a message each."""

from __future__ import annotations

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

KIN_GROUPS = ("all", "children", "siblings", "lead", "parent")


@dataclass(frozen=True, slots=True)
class Addressee(Record):
    """Somebody who gets a message, and the group on whose account."""

    name: str
    audience: str | None
    is_alive: bool


def resolve(db: Database, caller: Caller, texts: Iterable[str], roles: Mapping[str, str]) -> list[Addressee]:
    """Everybody that the texts name, each once. One unknown name, or an empty group, refuses them all.

    `roles` names the role that each group of a role stands for, as `role_groups` read them before the transaction.
    """
    found: dict[str, Addressee] = {}
    for text in texts:
        for each in _expand(db, caller, text.strip(), roles):
            known = found.get(each.name)
            if known is None or each.audience is None:
                found[each.name] = each
    if not found:
        raise InvalidInput("nobody to write to", hint="name an agent, `human`, or a group such as @all")
    return list(found.values())


def find_person(db: Database, name: str) -> Addressee:
    """An agent that is or was here, or the human."""
    if name == HUMAN:
        return Addressee(HUMAN, None, True)
    if name == SYSTEM:
        raise UnknownRecipient(f"{SYSTEM} is Rookery itself, and reads no mail", hint="write to @lead or to human")
    session = sessions.latest(db, name)
    if session is None:
        raise UnknownRecipient(f"nobody is called {name!r}", hint=_suggestion(db, name))
    return Addressee(name, None, session.is_alive)


def _expand(db: Database, caller: Caller, text: str, roles: Mapping[str, str]) -> list[Addressee]:
    if text == "parent":
        text = "@lead"
    if not text.startswith("@"):
        return [find_person(db, text)]
    group = "@" + " ".join(text[1:].split())
    members = [each for each in _members(db, caller, group, roles) if each != caller.name]
    if not members:
        raise EmptyGroup(
            f"nobody but the sender is in {group}" if group == "@all" else f"nobody is in {group} just now",
            hint="`rook group list` shows named groups; the other groups hold living agents",
        )
    return [find_person(db, name).replace(audience=group) for name in members]


def _members(db: Database, caller: Caller, group: str, roles: Mapping[str, str]) -> list[str]:
    word = group[1:].lower()
    if word == "all":
        return [each.agent for each in _living(db)]
    if word == "children":
        return [each.agent for each in _living(db) if each.parent == caller.name]
    if word == "siblings":
        parent = _parent(db, caller.name)
        return [each.agent for each in _living(db) if each.parent == parent]
    if word in ("lead", "parent"):
        return [_parent(db, caller.name)]
    for start in ("lead:", "lead of "):
        if word.startswith(start):
            return [_parent(db, group[1 + len(start) :].strip())]
    if word in roles:
        return [each.agent for each in _living(db) if each.role == roles[word]]
    members = store.group_members(db, group[1:])
    if not members:
        raise UnknownRecipient(f"there is no group {group}", hint=_suggestion(db, group, roles))
    return members


def _living(db: Database) -> list[Session]:
    return sorted(sessions.sessions(db, alive=True), key=lambda session: session.agent)


def _parent(db: Database, name: str) -> str:
    """Who is above an agent."""
    if name in (HUMAN, SYSTEM):
        raise EmptyGroup(f"nobody is above {name}", hint="name the recipient")
    session = sessions.latest(db, name)
    if session is None:
        raise UnknownRecipient(f"nobody is called {name!r}", hint=_suggestion(db, name))
    return session.parent


def _suggestion(db: Database, text: str, roles: Iterable[str] = ()) -> str:
    import difflib

    names = [HUMAN, *sessions.agent_names(db)]
    groups = [f"@{each}" for each in (*KIN_GROUPS, *roles, *store.group_names(db))]
    near = difflib.get_close_matches(text, [*names, *groups], 1)
    return f"did you mean `{near[0]}`?" if near else "write to an agent, to `human`, or to a group such as @all"
