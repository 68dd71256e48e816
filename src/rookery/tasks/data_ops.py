"""What we offer of a project's data as a whole."""

from __future__ import annotations

import os
from typing import Annotated

from rookery.base.errors import UsageError
from rookery.config import layout
from rookery.ops.context import Context
from rookery.ops.operation import FILE, NOTHING, PROCESS, Doc, op
from rookery.tasks import transfer
from rookery.tasks.ops import author


@op("data export", needs="data.write", long=True, touches=PROCESS, owns=NOTHING, view="upkeep.exported")
def export(ctx: Context, path: Annotated[str, FILE, Doc("The file to write.")]) -> transfer.Exported:
    """Write all tasks and learnings to a file.

    The same state always gives the same bytes, but for the time of the export. A name that ends in `.jsonl` gives
    one record a line, which git merges well.
    """
    if path == "-":
        raise UsageError("an export needs the name of a file", hint="for example /dev/stdout, with --quiet")
    return transfer.export_file(ctx.db, os.path.join(ctx.cwd, path), ctx.now())


@op("data import", needs="data.write", long=True, touches=PROCESS, owns=NOTHING, view="upkeep.imported")
def import_(
    ctx: Context,
    path: Annotated[str, FILE, Doc("The file to read, as `rook data export` writes it.")],
    *,
    clear: Annotated[
        bool, Doc("Delete all tasks and learnings first; an export of them is kept in .rookery/backups.")
    ] = False,
) -> transfer.Imported:
    """Read tasks and learnings from a file: all of them, or none if anything is wrong."""
    backups = ctx.path(layout.BACKUPS)
    return transfer.import_file(
        ctx.db, os.path.join(ctx.cwd, path), author(ctx), clear=clear, backups=backups, progress=ctx.progress
    )
