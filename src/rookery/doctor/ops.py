"""The operations of the doctor."""

from __future__ import annotations

import os
from typing import Annotated

from rookery.base.check import Place
from rookery.base.clock import stamp
from rookery.base.errors import NotInitialised, UntrustedState
from rookery.doctor import service
from rookery.doctor.bug_report import BugReport, write_report
from rookery.merge.checks import try_gates
from rookery.ops.context import Context
from rookery.ops.operation import CHECKS, FILE, NOTHING, PROCESS, Doc, Ref, op
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


@op("bug-report", needs="doctor.write", long=True, touches=PROCESS, owns=NOTHING, view="doctor.bug_report")
def bug_report(
    ctx: Context,
    *,
    output: Annotated[str | None, FILE, Doc("The file to write, instead of one in this folder.")] = None,
) -> BugReport:
    """Write a file that helps to repair Rookery: versions, the doctor, settings, events, errors and logs.

    Secrets, titles, mail and code are left out. It is written to this folder and sent nowhere: read it first.
    """
    at = stamp(ctx.clock())[:19].replace(":", "").replace("-", "").replace("T", "-")
    path = os.path.join(ctx.cwd, output or f"rookery-bug-report-{at}.md")
    return write_report(ctx, _find_place(ctx), path)


def _find_place(ctx: Context) -> Place:
    """Where to look. Why there is no project is for a check to say; of state that is refused nothing is looked at."""
    try:
        return Place(find_project(ctx.cwd, ctx.environ.root), ctx.cwd)
    except NotInitialised:
        return Place(None, ctx.cwd)
    except UntrustedState as error:
        return Place(None, ctx.cwd, error)
