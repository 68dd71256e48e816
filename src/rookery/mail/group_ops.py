"""What we offer of groups."""

from __future__ import annotations

from rookery.mail import groups
from rookery.mail.groups import Group
from rookery.ops.context import Context
from rookery.ops.operation import MAIL_GROUPS, arg, op

NAME = arg("name", "The group's name, with or without @.")
MEMBERS = arg("member", "An agent that is or was here, or `human`.", many=True)


@op("group create", NAME, MEMBERS, needs="mail.write", owns={}, view="mail.group")
def create(ctx: Context, name: str, member: tuple[str, ...]) -> Group:
    """Make a named group; `rook mail send @NAME` writes to everybody in it."""
    return groups.create(ctx.db, ctx.caller, name, member, ctx.now())


@op("group add", NAME, MEMBERS, needs="mail.write", owns={"name": MAIL_GROUPS}, view="mail.group")
def add(ctx: Context, name: str, member: tuple[str, ...]) -> Group:
    """Add members to a group."""
    return groups.add(ctx.db, ctx.caller, name, member, ctx.now())


@op("group remove", NAME, MEMBERS, needs="mail.write", owns={"name": MAIL_GROUPS}, view="mail.group")
def remove(ctx: Context, name: str, member: tuple[str, ...]) -> Group:
    """Take members out of a group."""
    return groups.remove(ctx.db, ctx.caller, name, member, ctx.now())


@op("group list", needs="mail.read", view="mail.groups")
def list_groups(ctx: Context) -> list[Group]:
    """List named groups.

    @all, @builders and the like, @children, @siblings and @lead are always there, and are not listed.
    """
    return groups.list_groups(ctx.db)


@op("group delete", NAME, needs="mail.write", owns={"name": MAIL_GROUPS}, view="mail.group_deleted")
def delete(ctx: Context, name: str) -> Group:
    """Delete a named group; mail that was sent to it stays."""
    return groups.delete(ctx.db, ctx.caller, name, ctx.now())
