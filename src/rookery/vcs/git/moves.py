"""Moving a branch: one transaction of git's, which also keeps commits and holds the fence of the merger.

The fence is a ref for each base, `refs/rookery/lease/<base>`. A merger that takes the lease of a base over from another
process writes a new value there before anything else, and a landing moves the base only if the ref still has the value
that it had when its lease was acquired. Git compares both in the transaction that moves the base. So a merger that was
replaced cannot move it any more, however long it hung and wherever.

The value is a small blob that no other takeover writes. A lease that its holder released needs no new one: that holder
has finished.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from time import time

from rookery.base.errors import ProgramFailed
from rookery.vcs.git.in_progress import check_free
from rookery.vcs.git.repository import NO_HOOKS, GitStore
from rookery.vcs.model import RefMoved, moved
from rookery.vcs.ref_names import HEADS, SAVED, fence_ref

_LONGEST = 30.0
_Kept = Mapping[str, str] | None


class Fenced(Exception):
    """Another merger has taken the base over; nothing was changed."""


def read_fence(store: GitStore, base: str) -> str:
    """The value of a base's fence, empty if its lease was never taken over."""
    return store.ref(fence_ref(base)) or ""


def write_fence(store: GitStore, base: str, words: str, seen: str) -> str:
    """Give the fence a new value, if it has the one that was seen; raises Fenced. The words make it unique."""
    new = store.read("hash-object", "-w", "--stdin", stdin=words).strip()
    try:
        store.change_ref(fence_ref(base), old=seen or None, new=new)
    except RefMoved as error:
        raise Fenced(f"another merger has taken over {base}") from error
    return new


def keep_refs(store: GitStore, kept: Mapping[str, str]) -> None:
    """Keep commits under `refs/rookery/`, whatever was kept there before; all of them by one git."""
    lines = "".join(_keeping(kept))
    store.write(*NO_HOOKS, "update-ref", "--no-deref", "-m", "rook: keep", "--stdin", stdin=lines)


class Moving:
    """Moves branches, and keeps commits beside them."""

    def __init__(self, store: GitStore) -> None:
        self.store = store

    def keep(self, name: str, commit: str) -> None:
        """Keep a commit under `refs/rookery/<name>`, whatever was kept there before."""
        if self.store.ref(SAVED + name) != commit:
            keep_refs(self.store, {name: commit})

    def move(
        self, branch: str, commit: str, expected: str, why: str, fence: str | None = None, kept: _Kept = None
    ) -> None:
        """Move a branch that is still at `expected`, else raises RefMoved; the user's hooks hear of it and may refuse.

        Raises BranchInUse if git has begun something with it, looked up as late as can be: a caller that holds the
        locks of its checkouts' indexes lets no rebase begin there. With a `fence`, raises Fenced unless the branch's
        fence has that value. What is `kept` goes under `refs/rookery/`. All of it happens, or nothing. A hook that
        hangs is ended with git, and the locks that git held go with it.
        """
        ref = HEADS + branch
        lines = _keeping(kept or {})
        if fence is not None:
            absent = "0" * len(commit)
            lines.append(f"verify {fence_ref(branch)} {fence or absent}\n")
        lines.append(f"update {ref} {commit} {expected}\n")
        words = ("update-ref", "-m", f"rook: {why}", "--stdin")
        check_free(self.store, branch)
        limited = replace(self.store, timeout=min(self.store.timeout, _LONGEST))
        started = time()
        try:
            done = limited.run(*words, stdin="".join(lines), env={"GIT_TERMINAL_PROMPT": "0"})
        except ProgramFailed as error:
            _remove_locks(self.store, [line.split(" ")[1] for line in lines], started)
            hint = "see the hook `reference-transaction` of the repository"
            raise ProgramFailed(f"git could not move {branch}: {error.message}", hint=hint, code=error.code) from error
        if done.ok:
            return
        current = self.store.ref(ref)
        if current == commit:
            return
        if fence is not None and read_fence(self.store, branch) != fence:
            raise Fenced(f"another merger has taken over {branch}")
        if current == expected:
            raise ProgramFailed(
                f"git could not move {branch}: {done.last_output}",
                hint="a hook of the repository may have refused it, or another git holds the branch",
            )
        raise moved(branch, expected, current)


def _keeping(kept: Mapping[str, str]) -> list[str]:
    """Lines that `update-ref --stdin` reads: it does what all of them say, or nothing."""
    return [f"update {SAVED}{name} {commit}\n" for name, commit in kept.items()]


def _remove_locks(store: GitStore, refs: list[str], since: float) -> None:
    """Remove the locks of a git that we have just killed; one that was there before is not ours."""
    for name in (*refs, "packed-refs", "HEAD"):
        path = os.path.join(store.common, name + ".lock")
        with suppress(FileNotFoundError):
            if os.stat(path).st_mtime >= since - 1:
                os.unlink(path)
