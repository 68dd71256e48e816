"""Nothing is left over: no process, lock, scratch folder, temporary file or forgotten worktree."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dev.soak.checks.model import Violation, git
from dev.soak.processes import Process

_WORKTREES = ".rookery/worktrees"


def check_processes(running: Iterable[Process]) -> Iterator[Violation]:
    """No process of the project is alive."""
    for process in running:
        if not process.is_zombie:
            yield Violation("leftovers", f"process {process.pid} ({process.kind}) is alive: {process.words[:200]}")


def check_locks(repo: Path) -> Iterator[Violation]:
    """Git has no lock, and no process holds one of the project's own."""
    for folder, _, names in os.walk(repo / ".git"):
        for name in sorted(names):
            if name.endswith(".lock"):
                yield Violation("leftovers", f"lock file {Path(folder, name).relative_to(repo)}")
    for path in sorted((repo / ".rookery" / "run").glob("*")):
        if path.is_file() and not path.is_symlink() and _is_held(path):
            yield Violation("leftovers", f"lock of {path.relative_to(repo)} is held")


def _is_held(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def check_folders(repo: Path, temporary: Path) -> Iterator[Violation]:
    """Scratch folders and temporary files are gone."""
    scratch = repo / ".rookery" / "scratch"
    for path in sorted(scratch.iterdir()) if scratch.is_dir() else ():
        yield Violation("leftovers", f"scratch folder {path.relative_to(repo)}")
    for path in sorted(temporary.iterdir()) if temporary.is_dir() else ():
        yield Violation("leftovers", f"temporary file {path}")


def check_worktrees(repo: Path, listed: list[dict[str, Any]]) -> Iterator[Violation]:
    """Every worktree on the disk or in git is one that `rook worktree list` knows, and the other way round."""
    known = {worktree["path"] for worktree in listed}
    folder = repo / _WORKTREES
    there = {str(path) for path in folder.iterdir()} if folder.is_dir() else set()
    blocks = git(repo, "worktree", "list", "--porcelain", "-z").split("\0\0")
    paths = {block.split("\0")[0].removeprefix("worktree ") for block in blocks if block.strip("\0")}
    registered = paths - {str(repo.resolve())}
    for path in sorted(there - known):
        yield Violation("leftovers", f"worktree {path} is on the disk, and rook worktree list does not know it")
    for path in sorted(registered - known):
        yield Violation("leftovers", f"worktree {path} is known to git, and rook worktree list does not know it")
    for path in sorted(registered - there):
        yield Violation("leftovers", f"worktree {path} is known to git, and is not there")
