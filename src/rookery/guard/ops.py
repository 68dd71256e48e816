"""The operations of the guard: try a call, and read what a role may do."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

from rookery.base.errors import InvalidInput, NotInitialised
from rookery.guard.decide import decide
from rookery.guard.explanation import Explanation, explain_role
from rookery.guard.model import Bounds, Call, Verdict
from rookery.guard.ownership import check_owned
from rookery.ops.context import Context
from rookery.ops.model import Caller
from rookery.ops.operation import FILE, LONG_TEXT, ROLES, Choices, Doc, Ref, op
from rookery.roles.catalog import find_role
from rookery.roles.model import PROFILES
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.vcs.detect import open_vcs

RoleArg = Annotated[str, Ref(ROLES), Doc("The agent's role, or its other name.")]
ProfileOption = Annotated[str | None, Choices(PROFILES), Doc("How much it may do unasked; by default the role's.")]


@op("guard test", needs="guard.read", view="guard.verdict")
def try_call(
    ctx: Context,
    role: RoleArg,
    tool: Annotated[str, Doc("The tool, such as Bash or Write.")],
    input: Annotated[str, LONG_TEXT, Doc('The input of the tool as JSON, such as {"command": "git push"}.')],
    *,
    worktree: Annotated[str | None, FILE, Doc("The agent's worktree; by default the checkout that you are in.")] = None,
    profile: ProfileOption = None,
) -> Verdict:
    """Ask the guard what it would say to a tool call, without making it.

    In the worktree of an agent its own bounds hold: its branch, its task and its file scope.
    """
    judged = find_role(_root(ctx), role)
    return decide(judged, profile or judged.profile, _bounds(ctx, worktree), Call(tool, _read(input)))


@op("guard explain", needs="guard.read", view="guard.explanation")
def explain(ctx: Context, role: RoleArg, *, profile: ProfileOption = None) -> Explanation:
    """Show what the guard allows, asks and denies to a role."""
    explained = find_role(_root(ctx), role)
    return explain_role(explained, profile or explained.profile)


def _root(ctx: Context) -> str | None:
    """The project whose roles count; None outside of one, where there are only Rookery's own."""
    try:
        return ctx.root
    except NotInitialised:
        return None


def _read(text: str) -> dict[str, Any]:
    example = """`rook guard test builder Bash '{"command": "git push"}'`"""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"the input is not JSON: {error}", hint=example) from error
    if not isinstance(values, dict):
        raise InvalidInput("the input of a tool is a JSON object", hint=example)
    return values


def _bounds(ctx: Context, worktree: str | None) -> Bounds:
    folder = os.path.realpath(os.path.join(ctx.cwd, worktree or "."))
    if not os.path.isdir(folder):
        raise InvalidInput(f"there is no folder {folder}", hint="--worktree names a checkout")
    vcs = open_vcs(folder, ctx.config.vcs)
    bounds = Bounds(vcs.main_root(), os.path.realpath(vcs.root), vcs.current_branch() or "", vcs.default_branch() or "")
    caller = Caller("", None, worktree=bounds.worktree)  # no agent works here: it would have nothing of its own
    session = _session(ctx, bounds.worktree)
    if session is not None:
        settings = session.settings
        bounds = bounds.replace(branch=session.branch, task_id=session.task_id, agent=session.agent)
        bounds = bounds.replace(scope=tuple(settings.files), tools=settings.tools or bounds.tools)
        caller = Caller(session.agent, session.id, session.role, session.task_id, session.parent, session.worktree)
    return bounds.replace(cwd=folder, check_own=lambda *call: check_owned(ctx.db, caller, *call))


def _session(ctx: Context, worktree: str) -> Session | None:
    """The last session that worked there."""
    try:
        sessions = store.sessions(ctx.db)
    except NotInitialised:
        return None
    return next((session for session in reversed(sessions) if os.path.realpath(session.worktree) == worktree), None)
