"""The operation of the doctor."""

from __future__ import annotations

from typing import Annotated

from rookery.base.check import Place
from rookery.base.errors import NotInitialised, UntrustedState
from rookery.doctor import service
from rookery.merge.checks import try_gates
from rookery.ops.context import Context
from rookery.ops.operation import CHECKS, NOTHING, PROCESS, Doc, Ref, op
from rookery.ops.state_owner import find_project


@op("doctor", needs="doctor.write", long=True, touches=PROCESS, owns=NOTHING, view="doctor.report")
def doctor(
    ctx: Context,
    *,
    fix: Annotated[bool, Doc("Repair what can be repaired.")] = False,
    category: Annotated[
        str | None, Ref(CHECKS), Doc("Look at one thing only: " + ", ".join(service.CATEGORIES) + ".")
    ] = None,
    gates: Annotated[bool, Doc("Also run every gate on the base, however long that takes.")] = False,
) -> service.Report:
    """Check the installation and the project, and say what is wrong.

    With --gates, each gate is run on the base in a fresh checkout: one that fails there lets nothing land.

    Exits with 1 if an error remains. It works outside of a project and with a broken one too.
    """
    place = _find_place(ctx)
    report = service.examine(place, category=category, fix=fix)
    return report.with_findings(try_gates(place, ctx)) if gates else report


def _find_place(ctx: Context) -> Place:
    """Where to look. Why there is no project is for a check to say; of state that is refused nothing is looked at."""
    try:
        return Place(find_project(ctx.cwd, ctx.environ.root), ctx.cwd)
    except NotInitialised:
        return Place(None, ctx.cwd)
    except UntrustedState as error:
        return Place(None, ctx.cwd, error)
