"""What we offer of groups."""

from __future__ import annotations

from typing import Annotated

from rookery.mail import groups
from rookery.mail.groups import Group
from rookery.ops.context import Context
from rookery.ops.operation import ADDRESSES, MAIL_GROUPS, NOTHING, Doc, Owns, Ref, op

NameArg = Annotated[str, Ref(MAIL_GROUPS), Doc("The group's name, with or without @.")]
MembersArg = Annotated[tuple[str, ...], Ref(ADDRESSES), Doc("An agent that is or was here, or `human`.")]


@op("group create", needs="mail.write", owns=NOTHING, view="mail.group")
def create(ctx: Context, name: NameArg, member: MembersArg) -> Group:
    """Make a named group; `rook mail send @NAME` writes to all its members."""
    return groups.create(ctx.db, ctx.caller, name, member, ctx.now())


@op("group add", needs="mail.write", view="mail.group")
def add(ctx: Context, name: Annotated[NameArg, Owns(MAIL_GROUPS)], member: MembersArg) -> Group:
    """Add members to a group."""
    return groups.add(ctx.db, ctx.caller, name, member, ctx.now())


@op("group remove", needs="mail.write", view="mail.group")
def remove(ctx: Context, name: Annotated[NameArg, Owns(MAIL_GROUPS)], member: MembersArg) -> Group:
    """Take members out of a group."""
    return groups.remove(ctx.db, ctx.caller, name, member, ctx.now())


@op("group list", needs="mail.read", view="mail.groups")
def list_groups(ctx: Context) -> list[Group]:
    """List named groups.

    @all, @builders and the like, @children, @siblings and @lead are always there, and are not listed.
    """
    return groups.list_groups(ctx.db)


@op("group delete", needs="mail.write", view="mail.group_deleted")
def delete(ctx: Context, name: Annotated[NameArg, Owns(MAIL_GROUPS)]) -> Group:
    """Delete a named group; mail that was sent to it stays."""
    return groups.delete(ctx.db, ctx.caller, name, ctx.now())
