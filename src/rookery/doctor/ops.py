"""The operation of the doctor."""

from __future__ import annotations

from rookery.base.check import Place
from rookery.base.errors import NotInitialised
from rookery.config.project import find_root
from rookery.doctor import service
from rookery.ops.context import Context
from rookery.ops.operation import flag, op, option


@op(
    "doctor",
    flag("fix", "Mend what can be mended."),
    option("category", "Look at one thing only: " + ", ".join(service.CATEGORIES) + "."),
    needs="doctor.write",
    view="doctor.report",
)
def doctor(ctx: Context, fix: bool = False, category: str | None = None) -> service.Report:
    """Check the installation and the project, and say what is wrong.

    Exits with 1 if an error remains. It works outside of a project and with a broken one too.
    """
    return service.examine(Place(_root_if_any(ctx), ctx.cwd), category=category, fix=fix)


def _root_if_any(ctx: Context) -> str | None:
    """The project's root; why there is none is for a check to say."""
    try:
        return find_root(ctx.cwd, ctx.environ.root)
    except NotInitialised:
        return None
