"""Named groups: a list of agents and people that mail can be sent to as `@name`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput, NotFound
from rookery.base.record import Record
from rookery.base.text import check_name
from rookery.db.database import Database
from rookery.events.store import publish
from rookery.mail import addressing, store
from rookery.ops.caller import check_alive
from rookery.ops.context import Context
from rookery.ops.model import Caller
from rookery.ops.operation import ADDRESSES, MAIL_GROUPS, NOTHING, Doc, Owns, Ref, op
from rookery.roles.catalog import role_groups

NameArg = Annotated[str, Ref(MAIL_GROUPS), Doc("The group's name, with or without @.")]
OwnNameArg = Annotated[NameArg, Owns(MAIL_GROUPS)]
MembersArg = Annotated[tuple[str, ...], Ref(ADDRESSES), Doc("An agent that is or was here, or `human`.")]


@dataclass(frozen=True, slots=True)
class Group(Record):
    """A named group."""

    PRINTS = "name"
    name: str
    members: tuple[str, ...]


@op("group create", needs="mail.write", owns=NOTHING, view="mail.group")
def create(ctx: Context, name: NameArg, member: MembersArg) -> Group:
    """Make a named group; `rook mail send @NAME` writes to all its members."""
    name = check_name("a group", name.removeprefix("@"))
    if name.lower() in addressing.KIN_GROUPS or name.lower() in role_groups(ctx.root):
        raise InvalidInput(f"@{name} is reserved by Rookery", hint="choose another name")
    caller, now = ctx.caller, ctx.now()
    with ctx.db.write() as db:
        check_alive(db, caller)
        if store.group_members(db, name):
            raise InvalidInput(f"the group @{name} already exists", hint=f"`rook group add {name} …` adds to it")
        return _publish(db, "group.created", _insert(db, name, member, now), caller, now)


@op("group add", needs="mail.write", view="mail.group")
def add(ctx: Context, name: OwnNameArg, member: MembersArg) -> Group:
    """Add members to a group."""
    caller, now = ctx.caller, ctx.now()
    with ctx.db.write() as db:
        check_alive(db, caller)
        before = _find(db, name)
        group = _insert(db, before.name, member, now)
        return group if group == before else _publish(db, "group.changed", group, caller, now)


@op("group remove", needs="mail.write", view="mail.group")
def remove(ctx: Context, name: OwnNameArg, member: MembersArg) -> Group:
    """Take members out of a group."""
    caller, now = ctx.caller, ctx.now()
    with ctx.db.write() as db:
        check_alive(db, caller)
        before = _find(db, name)
        strangers = sorted(set(member) - set(before.members))
        if strangers:
            raise NotFound(f"{', '.join(strangers)} is not in @{before.name}", hint="`rook group list` shows who is")
        group = before.replace(members=tuple(known for known in before.members if known not in member))
        if not group.members:
            raise InvalidInput(f"@{before.name} would be empty", hint=f"`rook group delete {before.name}` removes it")
        store.remove_members(db, before.name, member)
        return group if group == before else _publish(db, "group.changed", group, caller, now)


@op("group list", needs="mail.read", view="mail.groups")
def list_groups(ctx: Context) -> list[Group]:
    """List named groups.

    @all, @builders and the like, @children, @siblings and @lead are always there, and are not listed.
    """
    with ctx.db.read() as db:
        return [Group(name, tuple(store.group_members(db, name))) for name in store.group_names(db)]


@op("group delete", needs="mail.write", view="mail.group_deleted")
def delete(ctx: Context, name: OwnNameArg) -> Group:
    """Delete a named group; mail that was sent to it stays."""
    caller, now = ctx.caller, ctx.now()
    with ctx.db.write() as db:
        check_alive(db, caller)
        group = _find(db, name)
        store.remove_members(db, group.name, group.members)
        return _publish(db, "group.deleted", group, caller, now)


def _find(db: Database, name: str) -> Group:
    name = name.removeprefix("@")
    members = store.group_members(db, name)
    if not members:
        raise NotFound(f"there is no group @{name}", hint="`rook group list` lists the groups")
    return Group(name, tuple(members))


def _insert(db: Database, name: str, members: Iterable[str], now: str) -> Group:
    for member in dict.fromkeys(members):
        store.add_member(db, name, addressing.find_person(db, member).name, now)
    return Group(name, tuple(store.group_members(db, name)))


def _publish(db: Database, kind: str, group: Group, caller: Caller, now: str) -> Group:
    publish(db, kind, group.name, {"members": group.members}, actor=caller.name, at=now)
    return group
