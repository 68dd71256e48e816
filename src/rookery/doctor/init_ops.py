"""`rook init`: makes the project (`ops/init.py`), and lets a person see at once whether the gates pass on the base."""

from __future__ import annotations

import os
from typing import Annotated

from rookery.base import call as calls
from rookery.base.check import ERROR, WARNING, Finding, Place
from rookery.base.errors import InvalidInput, InvalidState
from rookery.hooks import settings as session_hooks
from rookery.merge.checks import try_gates
from rookery.ops import init as project
from rookery.ops.context import Context
from rookery.ops.init import Initialised
from rookery.ops.operation import NOTHING, PROCESS, Doc, op

_QUESTION = "The project is made. Try its gates on {base} now, in a fresh checkout? Ctrl-C skips that [Y/n]: "
_HOOKS_QUESTION = (
    "Connect your own Claude Code session in this checkout to Rookery? It writes .claude/settings.local.json"
)
_HOOKS_HINT = "rook hooks install connects your own Claude Code session, which then hears of agents and mail"
_STOPPED = "the gates were not tried to the end; `rook doctor --gates` does that"


@op("init", needs="project.write", long=True, touches=PROCESS, owns=NOTHING, view="project.init")
def init(
    ctx: Context,
    *,
    yes: Annotated[bool, Doc("Ask nothing; take what was found, and try the gates.")] = False,
    force: Annotated[
        bool, Doc("Write config.yaml again (the old one is kept beside it), and do without a repository.")
    ] = False,
    no_gates: Annotated[bool, Doc("Do not try the gates.")] = False,
    hooks: Annotated[bool, Doc("Install the hooks for your own Claude Code session: `rook hooks install`.")] = False,
    no_hooks: Annotated[bool, Doc("Do not install them, and do not ask.")] = False,
) -> Initialised:
    """Set up Rookery in the repository that you are in.

    Everything is kept in `.rookery/` at the top of the main checkout; no tracked file is touched. Running it again
    keeps settings and data, and makes what is missing. Then the gates are tried on the base, because one that fails
    there lets nothing land: a person at a terminal is asked first, as that runs the repository's own code.
    """
    if hooks and no_hooks:
        raise InvalidInput("say either --hooks or --no-hooks", hint="`rook hooks uninstall` removes them again")
    result = project.init(ctx, yes=yes, force=force)
    may_ask = ctx.is_interactive and not yes
    return _try_gates(ctx, _with_hooks(result, wanted=hooks, unwanted=no_hooks, may_ask=may_ask), yes, no_gates)


def _with_hooks(result: Initialised, *, wanted: bool, unwanted: bool, may_ask: bool) -> Initialised:
    """Install the hooks of a person's own session if they say so; otherwise the next steps name the command."""
    if unwanted:
        return result
    try:
        if session_hooks.status(result.root).is_current:
            return result
        if wanted or (may_ask and result.created and calls.confirm(_HOOKS_QUESTION)):
            installed = session_hooks.install(result.root)
            return result.replace(created=(*result.created, os.path.relpath(installed.path, result.root)))
    except KeyboardInterrupt:
        pass
    except InvalidState as error:  # the project is made all the same
        return result.replace(notes=(*result.notes, f"the hooks were not installed: {error.message}"))
    return result.replace(next=(*result.next, _HOOKS_HINT))


def _try_gates(ctx: Context, result: Initialised, yes: bool, no_gates: bool) -> Initialised:
    may_ask = ctx.is_interactive and not yes
    is_possible = result.created and result.gates and result.base and result.has_commit
    if no_gates or not is_possible or not (yes or may_ask):
        return result
    try:
        if may_ask and calls.ask(_QUESTION.format(base=result.base)).strip().lower() not in ("", "y", "yes"):
            return result
        checks = [_warned(finding) for finding in try_gates(Place(result.root, ctx.cwd), ctx)]
    except (EOFError, KeyboardInterrupt):
        return result.replace(notes=(*result.notes, _STOPPED))
    return result.replace(checks=tuple(checks))


def _warned(finding: Finding) -> Finding:
    return finding.replace(status=WARNING) if finding.status == ERROR else finding
