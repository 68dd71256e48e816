"""`rook init`: makes the project (`ops/init.py`), and lets a person see at once whether the gates pass on the base."""

from __future__ import annotations

from typing import Annotated

from rookery.base import call as calls
from rookery.base.check import Finding, Place
from rookery.base.errors import RookError
from rookery.merge.checks import try_gates
from rookery.ops import init as project
from rookery.ops.context import Context
from rookery.ops.init import Initialised
from rookery.ops.operation import NOTHING, PROCESS, Doc, op

_QUESTION = "Try the gates on the base now, in a fresh checkout? Ctrl-C stops it, and keeps the project [Y/n]: "
_STOPPED = "the gates were not tried to the end; `rook doctor --gates` does that"


@op("init", needs="project.write", long=True, touches=PROCESS, owns=NOTHING, view="project.init")
def init(
    ctx: Context,
    *,
    yes: Annotated[bool, Doc("Ask nothing; take what was found, and do not try the gates.")] = False,
    force: Annotated[
        bool, Doc("Write config.yaml again (the old one is kept beside it), and do without a repository.")
    ] = False,
    no_gates: Annotated[bool, Doc("Do not offer to try the gates.")] = False,
) -> Initialised:
    """Make a project of the repository that you are in.

    Everything is kept in `.rookery/` at the top of the main checkout; no tracked file is touched. Running it again
    keeps settings and data, and makes what is missing. On a terminal it offers to run the gates on the base, because
    one that fails there lets nothing land.
    """
    result = project.init(ctx, yes=yes, force=force)
    may_ask = ctx.is_interactive and not yes and not no_gates
    if not (may_ask and result.created and result.gates and result.base):
        return result
    checks: list[Finding] = []
    try:
        if calls.ask(_QUESTION).strip().lower() in ("", "y", "yes"):
            checks += try_gates(Place(result.root, ctx.cwd), ctx.follow)
    except (EOFError, KeyboardInterrupt):
        return result.replace(checks=tuple(checks), notes=(*result.notes, _STOPPED))
    except RookError as error:  # the project is made, whatever becomes of the gates
        return result.replace(notes=(*result.notes, f"the gates could not be tried: {error.message}; {error.hint}"))
    return result.replace(checks=tuple(checks))
