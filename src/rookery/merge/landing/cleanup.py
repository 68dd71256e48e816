"""Removing what landed work no longer needs: worktrees, old output of gates, and old refs under `refs/rookery/`.

The refs of the last entries stay. An older one goes only if git says that a branch, a tag or a remote has all that it
leads to, save commits that Rookery itself made to land something. So no ref goes that alone holds a person's work.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import unquote

from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.base.text import plural
from rookery.config import layout
from rookery.merge import store
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, UNDONE, Entry
from rookery.sessions import store as agents
from rookery.vcs.folders import delete_tree
from rookery.vcs.ref_names import LANDINGS, LEASES, SAVED, UNDOINGS, UNDONE_WORK
from rookery.worktrees import service as worktrees
from rookery.worktrees.cleaning import Cleaner

_MOST_LOGS = 200
"""Of how many trees the output of gates is kept."""
_MOST_ENTRIES = 200
"""Of how many entries the refs are kept in any case."""
_SLACK = 50
"""How many more there may be, so that not every landing looks at all of them."""
_FENCE_SECONDS = 7 * 86_400.0


def tidy(merger: Merger) -> None:
    """Remove worktrees of agents whose work is on the base, old output of gates, and old refs."""
    _prune_logs(merger.ctx.path(layout.GATES))
    with suppress(RookError):  # another git has locked the refs: the next landing tries again
        prune_refs(merger)
    for entry in store.uncleaned(merger.ctx.db):
        try:
            is_done = _clean(merger, entry)
        except RookError:
            continue  # `rook worktree list` shows it, and the next landing tries again
        if is_done:
            with merger.ctx.db.write() as db:
                store.mark_cleaned(db, entry, merger.ctx.now())


def _prune_logs(folder: str) -> None:
    if os.path.isdir(folder):
        trees = sorted(os.scandir(folder), key=lambda tree: tree.stat().st_mtime, reverse=True)
        for tree in trees[_MOST_LOGS:]:
            delete_tree(tree.path)


def has_worktree(merger: Merger, entry: Entry) -> bool:
    """True if an entry may have a worktree that goes once its work has landed."""
    return entry.agent is not None and merger.ctx.config.merge.clean


def _clean(merger: Merger, entry: Entry) -> bool:
    """Remove the worktree of an entry that has landed; False if its agent still runs in it."""
    session = agents.latest(merger.ctx.db, entry.agent) if entry.agent and has_worktree(merger, entry) else None
    if session is None or session.branch != entry.branch:
        return True
    if session.is_alive:
        return False
    if not os.path.isdir(session.worktree):
        return True
    state = worktrees.inspect(merger.ctx, session.worktree, session.branch)
    unmerged = worktrees.count_unmerged(merger.vcs, [session.branch], entry.base)
    has_landed = unmerged[session.branch] == 0 or merger.merging.tip(session.branch) == entry.tip
    if state.is_there and state.is_clean and has_landed:  # else `rook worktree list` shows what is not on the base
        for cleaned in Cleaner(merger.ctx, actor=merger.actor).clean([session.agent]):
            gone = f"; {plural(cleaned.ignored, 'ignored file')} went with it" if cleaned.ignored else ""
            reason = f" ({cleaned.reason})" if cleaned.reason else gone
            merger.say(f"worktree of {cleaned.agent}: {cleaned.verdict}{reason}\n")
    return True


def prune_refs(merger: Merger) -> None:
    """Delete old refs whose commits are held elsewhere, and the marks of undone work that has landed again."""
    git = merger.merging.store
    for name, commit in git.refs(SAVED + UNDONE_WORK).items():
        newest = store.select(merger.ctx.db, branch=unquote(name), limit=1)
        if newest and newest[0].state == LANDED:
            git.delete_refs({SAVED + UNDONE_WORK + name: commit})
    _prune_fences(merger)
    if sum(git.count_refs(SAVED + prefix) for prefix in (LANDINGS, UNDOINGS)) <= _MOST_ENTRIES + _SLACK:
        return
    # The refs first: one that changes after that is not deleted, because its old value is compared.
    landings, undoings = git.refs(SAVED + LANDINGS), git.refs(SAVED + UNDOINGS)
    settled = store.settled_before(merger.ctx.db, _MOST_ENTRIES)
    old = {LANDINGS + name: commit for name, commit in landings.items() if name in settled}
    # The undo of an entry that still counts as landed may be about to be recorded.
    old |= {UNDOINGS + name: commit for name, commit in undoings.items() if settled.get(name) == UNDONE}
    parents = git.commits_without_branch(old.values())
    tips = store.candidates(merger.ctx.db) if parents else {}
    held = {SAVED + name: commit for name, commit in old.items() if _is_held_elsewhere(commit, parents, tips)}
    if held:
        git.delete_refs(held)


def _prune_fences(merger: Merger) -> None:
    """Delete the fences of branches that are gone, a week after the last takeover.

    A merger that hangs for longer would find its fence unchanged, but its base is gone.
    """
    merging = merger.merging
    for name, value in merging.store.refs(SAVED + LEASES).items():
        if merging.tip(unquote(name, errors="surrogateescape")) is not None:
            continue
        lines = merging.read_blobs([value]).get(value, b"").decode("utf-8", "surrogateescape").split("\n")
        base, at = (lines[0], lines[2]) if len(lines) > 2 else ("", "")
        if merging.tip(base) is None and at < stamp(merger.ctx.clock() - _FENCE_SECONDS):
            merging.store.delete_refs({SAVED + LEASES + name: value})


def _is_held_elsewhere(commit: str, parents: Mapping[str, Sequence[str]], tips: Mapping[str, str]) -> bool:
    """True if only our own merges would be lost with a commit.

    `parents` are those of all commits that no branch has, `tips` the branch that each commit of ours brings in. The
    commit of a squashed branch does not have that branch among its parents, so it is a copy of the work, and stays.
    """
    seen: set[str] = set()
    left = [commit]
    while left:
        at = left.pop()
        if at in seen or at not in parents:  # not in there: a branch has it, and everything before it
            continue
        if tips.get(at) not in parents[at]:
            return False
        seen.add(at)
        left += parents[at]
    return True
