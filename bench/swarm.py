"""Many at once: a dry run of hundreds of branches and a list of many worktrees, beside the bare git for the same."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable

from bench.landing import begin, git, open_merger, timed
from bench.project import Size
from bench.table import Figure, Table
from rookery.config import layout
from rookery.merge import predict, service
from rookery.worktrees.cleaning import list_worktrees

_FILES = 3000
_MOST_DRY_RUN = 5000.0
_BRANCH = "commit refs/heads/{name}\ncommitter b <b@example.org> 1700000000 +0000\ndata 1\nw\nfrom {base}\n{file}\n"


def measure(root: str, size: Size) -> Table:
    """On a repository of its own, of 3,000 files."""
    branches, worktrees = (500, 60) if size.rounds > 2 else (60, 6)
    folder = os.path.join(os.path.dirname(root), "many")
    try:
        begin(folder, {f"part{n % 30}/file{n}.py": f"VALUE = {n}\n" * 20 for n in range(_FILES)})
        names = _make_branches(folder, branches)
        figures = (_dry_run(folder, names), _worktrees(folder, names[:worktrees]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Table(f"many at once, in a repository of {_FILES:,} files", "bare git, one for each", figures)


def _make_branches(folder: str, count: int) -> list[str]:
    """Branches of one commit, each of which changes a file of its own."""
    base = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True).strip()
    names = [f"rook/a{number:03}/task" for number in range(count)]
    text = [f"VALUE = {number}\n" * 19 + "changed\n" for number in range(count)]
    paths = [f"part{number % 30}/file{number}.py" for number in range(count)]
    files = [f"M 100644 inline {path}\ndata {len(body)}\n{body}" for path, body in zip(paths, text, strict=True)]
    stream = [_BRANCH.format(name=name, base=base, file=file) for name, file in zip(names, files, strict=True)]
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input="".join(stream).encode(), check=True)
    return names


def _dry_run(folder: str, names: list[str]) -> Figure:
    merger = open_merger(folder, "")
    entries = [service.draft(merger, name, "main") for name in names]
    bare = timed(lambda: _each((folder, "merge-tree", "--write-tree", "main", name) for name in names))
    ours = timed(lambda: predict.predict_all(merger, entries))
    merger.ctx.db.close()
    return Figure(f"dry run of {len(names)} branches", ours, bare, most=_MOST_DRY_RUN)


def _worktrees(folder: str, names: list[str]) -> Figure:
    merger = open_merger(folder, "")
    places = [layout.path(folder, layout.WORKTREES, name.split("/")[1]) for name in names]
    for place, name in zip(places, names, strict=True):
        git(folder, "worktree", "add", "-q", place, name)
    words = (("status", "--porcelain=v2"), ("rev-list", "--count", "main..HEAD"))
    bare = timed(lambda: _each((place, *command) for place in places for command in words))
    ours = timed(lambda: list_worktrees(merger.ctx))
    merger.ctx.db.close()
    return Figure(f"list of {len(names)} worktrees", ours, bare)


def _each(commands: Iterable[tuple[str, ...]]) -> None:
    """Run git in a folder with its words, once for each."""
    for folder, *words in commands:
        git(folder, *words)
