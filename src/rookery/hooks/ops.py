"""Operations for hooks: installed in a person's own session, called by agents' programs; and what primes a session."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidState
from rookery.hooks import settings as session_hooks
from rookery.hooks.prime import prime as compose
from rookery.hooks.settings import Installed
from rookery.ops.context import Context
from rookery.ops.operation import ACTS_AS, AGENTS, NOTHING, PROCESS, Doc, Ref, op
from rookery.sessions import store
from rookery.turns.interactive import begin_turn, end_turn
from rookery.turns.opening import prompt_of


@op("hooks install", needs="project.write", long=True, touches=PROCESS, owns=NOTHING, view="project.hooks_installed")
def install(ctx: Context) -> Installed:
    """Tell your own Claude Code session in this checkout about Rookery: how things stand, and mail at each prompt.

    Writes to `.claude/settings.local.json` and leaves everything else there as it is.
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


@op("hook prompt", needs="hook.write", owns=NOTHING, view="plain.lines")
def begin(ctx: Context) -> str:
    """Begin a turn of the calling agent, and give it its mail."""
    session_id = _own_session(ctx)
    cause, mail_text = begin_turn(ctx, session_id)
    return prompt_of(store.session(ctx.db, session_id), cause, mail_text)


@op("hook stop", needs="hook.write", owns=NOTHING, view="plain.lines")
def stop(ctx: Context) -> str:
    """End the turn of the calling agent: snapshot, mail acknowledged, and its session too if it has said so."""
    end_turn(ctx, _own_session(ctx))
    return ""


def _own_session(ctx: Context) -> str:
    if ctx.caller.session_id is None:
        raise InvalidState("only an agent has turns", hint="an agent's own program calls this")
    return ctx.caller.session_id
