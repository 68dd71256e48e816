"""Reading an export into an empty project."""

from __future__ import annotations

import os
import time

from bench.in_process import AUTHOR, NOW
from bench.project import Size, build, create
from bench.table import Figure, Table
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.tasks.transfer import export_file, import_file

_AIM_SECONDS = 5.0


def measure(root: str, size: Size) -> Table:
    """Seconds for one export and one import."""
    folder = os.path.dirname(root)
    share = size.imported / size.tasks
    source = build(
        os.path.join(folder, "source"),
        size.replace(tasks=size.imported, edges=int(size.edges * share), learnings=int(size.learnings * share)),
    )
    path = os.path.join(folder, "export.json")
    db = Database.open(database_path(source))
    started = time.perf_counter()
    export_file(db, path, NOW)
    exported = time.perf_counter() - started
    db.close()
    target = create(os.path.join(folder, "target"))
    started = time.perf_counter()
    done = import_file(target, path, AUTHOR, clear=False, backups=folder, progress=lambda _label, _total: _ignore)
    imported = time.perf_counter() - started
    target.close()
    return Table(
        f"Import of {done.tasks:,} tasks",
        "none",
        (
            Figure("export", exported, unit="s"),
            Figure("import", imported, unit="s", most=_AIM_SECONDS),
        ),
    )


def _ignore(_done: int) -> None:
    pass
