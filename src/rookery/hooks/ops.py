"""Operations for the hooks in a person's own session, and what primes a session."""

from __future__ import annotations

from typing import Annotated

from rookery.hooks import settings as session_hooks
from rookery.hooks.prime import prime as compose
from rookery.hooks.settings import Installed
from rookery.ops.context import Context
from rookery.ops.operation import ACTS_AS, AGENTS, NOTHING, PROCESS, Doc, Ref, op


@op("hooks install", needs="project.write", long=True, touches=PROCESS, owns=NOTHING, view="project.hooks_installed")
def install(ctx: Context) -> Installed:
    """Connect your own Claude Code session: it sees the project's state at its start, and mail with each prompt.

    Only sessions in this checkout are connected. Writes to `.claude/settings.local.json`, and leaves the rest of that
    file as it is.
    """
    return session_hooks.install(ctx.root)


@op("hooks uninstall", needs="project.write", long=True, touches=PROCESS, owns=NOTHING, view="project.hooks_installed")
def uninstall(ctx: Context) -> Installed:
    """Remove the hooks again, without a trace."""
    return session_hooks.uninstall(ctx.root)


@op("hooks status", needs="project.read", view="project.hooks_installed")
def status(ctx: Context) -> Installed:
    """Show which hooks are installed, and whether they call this Rookery."""
    return session_hooks.status(ctx.root)


@op("prime", needs="agent.read", view="plain.lines")
def prime(
    ctx: Context,
    *,
    agent: Annotated[
        str | None, Ref(AGENTS), ACTS_AS, Doc("For people: the text for this agent; by default for your own session.")
    ] = None,
    compact: Annotated[bool, Doc("Only what must not be forgotten.")] = False,
) -> str:
    """Print what a session should know when it starts: how to use Rookery, who is at work, what is ready."""
    name = agent if agent is not None or ctx.caller.is_human else ctx.actor
    return compose(ctx, name, compact=compact)
