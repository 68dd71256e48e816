"""Named groups: a list of agents and people that mail can be sent to as `@name`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.errors import InvalidInput, NotFound
from rookery.base.record import Record
from rookery.base.text import check_name
from rookery.config.project import root_of
from rookery.db.database import Database
from rookery.events.store import publish
from rookery.mail import addressing, store
from rookery.ops.caller import check_alive
from rookery.ops.model import Caller
from rookery.roles.catalog import role_groups


@dataclass(frozen=True, slots=True)
class Group(Record):
    """A named group."""

    name: str
    members: tuple[str, ...]


def create(db: Database, caller: Caller, name: str, members: Iterable[str], now: str) -> Group:
    """Make a group of agents that are or were here."""
    name = _check_name(root_of(db.path), name)
    with db.write():
        check_alive(db, caller)
        if store.group_members(db, name):
            raise InvalidInput(f"there is a group @{name} already", hint=f"`rook group add {name} …` adds to it")
        return _publish(db, "group.created", _insert(db, name, members, now), caller, now)


def add(db: Database, caller: Caller, name: str, members: Iterable[str], now: str) -> Group:
    """Add members; those that are in it stay."""
    with db.write():
        check_alive(db, caller)
        before = _find(db, name)
        group = _insert(db, before.name, members, now)
        return group if group == before else _publish(db, "group.changed", group, caller, now)


def remove(db: Database, caller: Caller, name: str, members: Iterable[str], now: str) -> Group:
    """Take members out; a group is never left empty."""
    with db.write():
        check_alive(db, caller)
        before = _find(db, name)
        leaving = set(members)
        strangers = sorted(leaving - set(before.members))
        if strangers:
            raise NotFound(f"{', '.join(strangers)} is not in @{before.name}", hint="`rook group list` shows who is")
        group = before.replace(members=tuple(member for member in before.members if member not in leaving))
        if not group.members:
            raise InvalidInput(f"@{before.name} would be empty", hint=f"`rook group delete {before.name}` removes it")
        store.remove_members(db, before.name, leaving)
        return group if group == before else _publish(db, "group.changed", group, caller, now)


def delete(db: Database, caller: Caller, name: str, now: str) -> Group:
    """Remove a group, and return what it was; mail that was sent to it stays."""
    with db.write():
        check_alive(db, caller)
        group = _find(db, name)
        store.remove_members(db, group.name, group.members)
        return _publish(db, "group.deleted", group, caller, now)


def list_groups(db: Database) -> list[Group]:
    """Every named group, by name."""
    with db.read():
        return [Group(name, tuple(store.group_members(db, name))) for name in store.group_names(db)]


def _find(db: Database, name: str) -> Group:
    name = name.removeprefix("@")
    members = store.group_members(db, name)
    if not members:
        raise NotFound(f"there is no group @{name}", hint="`rook group list` shows what there is")
    return Group(name, tuple(members))


def _insert(db: Database, name: str, members: Iterable[str], now: str) -> Group:
    for member in dict.fromkeys(members):
        store.add_member(db, name, addressing.find_person(db, member).name, now)
    return Group(name, tuple(store.group_members(db, name)))


def _publish(db: Database, kind: str, group: Group, caller: Caller, now: str) -> Group:
    publish(db, kind, group.name, {"members": group.members}, actor=caller.name, at=now)
    return group


def _check_name(root: str, text: str) -> str:
    name = check_name("a group", text.removeprefix("@"))
    if name.lower() in addressing.KIN_GROUPS or name.lower() in role_groups(root):
        raise InvalidInput(f"@{name} is a group of Rookery's own", hint="choose another name")
    return name
