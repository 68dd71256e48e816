"""`rook init`: makes the project (`ops/init.py`), and lets a person see at once whether the gates pass on the base."""

from __future__ import annotations

from typing import Annotated

from rookery.base import call as calls
from rookery.base.check import ERROR, WARNING, Finding, Place
from rookery.merge.checks import try_gates
from rookery.ops import init as project
from rookery.ops.context import Context
from rookery.ops.init import Initialised
from rookery.ops.operation import NOTHING, PROCESS, Doc, op

_QUESTION = "The project is made. Try its gates on {base} now, in a fresh checkout? Ctrl-C skips that [Y/n]: "
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
) -> Initialised:
    """Make a project of the repository that you are in.

    Everything is kept in `.rookery/` at the top of the main checkout; no tracked file is touched. Running it again
    keeps settings and data, and makes what is missing. Then the gates are tried on the base, because one that fails
    there lets nothing land: a person at a terminal is asked first, as that runs the repository's own code.
    """
    result = project.init(ctx, yes=yes, force=force)
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
