"""What git has begun and not ended: a rebase, a bisect, a merge with conflicts; and which branches that uses.

Git itself keeps such a branch from being moved by `git branch -f`, in whichever checkout the operation is: a rebase
that is aborted sets its branch back to where it was, and so drops all that came onto the branch meanwhile. It is read
from the files in which git keeps the operation, as `branch_checked_out` of git's branch.c does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.vcs.folders import read_line, read_text
from rookery.vcs.git.pointers import linked_worktrees
from rookery.vcs.git.repository import GitStore
from rookery.vcs.ref_names import HEADS

_MERGE, _REBASE, _PICK, _REVERT, _AM, _BISECT = "merge", "rebase", "cherry-pick", "revert", "am", "bisect"
_STEPS = {
    "MERGE_HEAD": _MERGE,
    "rebase-merge": _REBASE,
    "rebase-apply": _REBASE,
    "CHERRY_PICK_HEAD": _PICK,
    "REVERT_HEAD": _REVERT,
}
_APPLYING = os.path.join("rebase-apply", "applying")
_PICKING = "sequencer"
_HEAD = f"ref: {HEADS}"


class BranchInUse(InvalidState):
    """Git has begun something with a branch in some checkout, and that has not ended."""

    code = "branch_in_use"


@dataclass(frozen=True, slots=True)
class Operation(Record):
    """Something that git has begun in a checkout."""

    kind: str
    folder: str
    """The checkout."""

    def use_of(self, branch: str) -> str:
        """What it does with a branch, as a sentence."""
        article = "an" if self.kind == _AM else "a"
        return f"{article} {self.kind} that uses {branch} is in progress in {self.folder}"

    @property
    def way_out(self) -> str:
        """How it is ended."""
        if not os.path.isdir(self.folder):
            return "that folder is gone: bring it back, or let git forget it by `git worktree prune`"
        if self.kind == _BISECT:
            return "end it there with `git bisect reset`"
        return f"end it there with `git {self.kind} --continue` or `git {self.kind} --abort`"


def step_in(own: str) -> str | None:
    """The merge, rebase, cherry-pick, revert or am that has begun in a checkout; `own` is what git keeps for that."""
    if os.path.exists(os.path.join(own, _APPLYING)):
        return _AM
    step = next((step for name, step in _STEPS.items() if os.path.exists(os.path.join(own, name))), None)
    if step is None and os.path.isdir(os.path.join(own, _PICKING)):  # several commits, between two of them
        is_revert = read_line(os.path.join(own, _PICKING, "todo")).startswith("revert")
        return _REVERT if is_revert else _PICK
    return step


def check_free(store: GitStore, branch: str) -> None:
    """Raise BranchInUse if git has begun something with a branch in any checkout."""
    operation = find_operation(store, branch)
    if operation is not None:
        raise BranchInUse(operation.use_of(branch), hint=operation.way_out)


def find_operation(store: GitStore, branch: str) -> Operation | None:
    """What git has begun with a branch, in whichever checkout; None if nothing."""
    for own, folder in _checkouts(store):
        kind = _kind_of_use(own, branch)
        if kind is not None:
            return Operation(kind, folder)
    return None


def _checkouts(store: GitStore) -> Iterator[tuple[str, str]]:
    """What git keeps for each checkout, and where the checkout is."""
    top, name = os.path.split(store.common)
    yield store.common, top if name == ".git" else store.common
    yield from linked_worktrees(store.common).items()


def _kind_of_use(own: str, branch: str) -> str | None:
    ref = HEADS + branch
    step = step_in(own)
    if step is not None and read_line(os.path.join(own, "HEAD")) == f"{_HEAD}{branch}":
        return step
    if step == _REBASE and ref in _rebased(own):
        return _REBASE
    if os.path.exists(os.path.join(own, "BISECT_LOG")):
        start = read_line(os.path.join(own, "BISECT_START"))
        if start.removeprefix(HEADS) == branch:
            return _BISECT
    return None


def _rebased(own: str) -> set[str]:
    """The refs that a rebase moves at its end, and sets back if it is aborted."""
    heads = {read_line(os.path.join(own, folder, "head-name")) for folder in ("rebase-merge", "rebase-apply")}
    # With --update-refs: a ref, where it was and where it will be, a line each.
    updated = read_text(os.path.join(own, "rebase-merge", "update-refs")).split("\n")[::3]
    return heads | set(updated)
