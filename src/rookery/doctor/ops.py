"""The operation of the doctor."""

from __future__ import annotations

from typing import Annotated

from rookery.base.check import Place
from rookery.base.errors import NotInitialised, UntrustedState
from rookery.doctor import service
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
) -> service.Report:
    """Check the installation and the project, and say what is wrong.

    Exits with 1 if an error remains. It works outside of a project and with a broken one too.
    """
    return service.examine(_find_place(ctx), category=category, fix=fix)


def _find_place(ctx: Context) -> Place:
    """Where to look. Why there is no project is for a check to say; of state that is refused nothing is looked at."""
    try:
        return Place(find_project(ctx.cwd, ctx.environ.root), ctx.cwd)
    except NotInitialised:
        return Place(None, ctx.cwd)
    except UntrustedState as error:
        return Place(None, ctx.cwd, error)
