"""The user's own checkout is as the user left it, except for what has landed, and the repository is whole."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from dev.soak.checks.model import Violation, git
from dev.soak.repository import UsersFile, describe

_STATUS = {"untracked": "?? ", "modified": " M ", "staged": "A  "}


def check_users_files(repo: Path, files: list[UsersFile]) -> Iterator[Violation]:
    """The user's files have the same bytes, and nothing has written them."""
    for file in files:
        if not (repo / file.path).is_file():
            yield Violation("checkout", f"the user's file {file.path} is gone")
            continue
        now = describe(repo, file.path, file.kind)
        if now.digest != file.digest:
            yield Violation("checkout", f"the user's file {file.path} has other bytes")
        elif now.modified_ns != file.modified_ns:
            yield Violation("checkout", f"the user's file {file.path} was written again (its time has changed)")


def check_status(repo: Path, files: list[UsersFile], base: str) -> Iterator[Violation]:
    """HEAD is on the base, and git shows the user's own changes and no others."""
    head = git(repo, "rev-parse", "--abbrev-ref", "HEAD").strip()
    if head != base:
        yield Violation("checkout", f"HEAD is on {head}, and was on {base}")
    shown = set(git(repo, "status", "--porcelain", "--untracked-files=all").splitlines())
    wanted = {_STATUS[file.kind] + file.path for file in files}
    for line in sorted(shown - wanted):
        yield Violation("checkout", f"git status shows {line!r}, which is not the user's")
    for line in sorted(wanted - shown):
        yield Violation("checkout", f"git status does not show {line!r}, the user's own")


def check_repository(repo: Path) -> Iterator[Violation]:
    """Git finds every object that something leads to."""
    argv = ["git", "fsck", "--connectivity-only", "--no-dangling", "--no-progress"]
    done = subprocess.run(argv, cwd=repo, capture_output=True, text=True, check=False)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode != 0 or lines:
        shown = "; ".join(lines[:8]) or "no output"
        yield Violation("checkout", f"git fsck ends with {done.returncode}: {shown}")
