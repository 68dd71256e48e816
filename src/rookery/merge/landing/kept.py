"""The commits that landing keeps under `refs/rookery/`, and when such a ref may go.

The last ones stay, whatever they are. An older one goes only if git says that a branch, a tag or a remote has all that
it leads to, save commits that Rookery itself made to land something. So no ref goes that alone holds somebody's work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from rookery.base.clock import stamp
from rookery.merge import store
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, UNDONE
from rookery.vcs.ref_names import LANDINGS, LEASES, SAVED, UNDOINGS, UNDONE_WORK

_FENCE_KEPT = 7 * 86_400.0
_KEPT = 200
"""Of how many entries the refs are kept in any case."""
_SLACK = 50
"""How many more there may be, so that not every landing looks at all of them."""


def prune(merger: Merger) -> None:
    """Let go of what is old and held elsewhere, and of the marks of undone work that has landed again."""
    for name, commit in merger.merging.store.refs(SAVED + UNDONE_WORK).items():
        newest = store.select(merger.ctx.db, branch=unquote(name), limit=1)
        if newest and newest[0].state == LANDED:
            merger.merging.store.delete_refs({SAVED + UNDONE_WORK + name: commit})
    _prune_fences(merger)
    git = merger.merging.store
    if sum(git.count_refs(SAVED + prefix) for prefix in (LANDINGS, UNDOINGS)) <= _KEPT + _SLACK:
        return
    landings, undoings = (git.refs(SAVED + prefix) for prefix in (LANDINGS, UNDOINGS))
    settled = store.settled_before(merger.ctx.db, _KEPT)
    old = {LANDINGS + name: commit for name, commit in landings.items() if name in settled}
    # Of what stands as landed, somebody may be about to say that it is being taken back.
    old |= {UNDOINGS + name: commit for name, commit in undoings.items() if settled.get(name) == UNDONE}
    parents = git.commits_without_branch(old.values())
    made = store.candidates(merger.ctx.db) if parents else {}
    gone = {SAVED + name: commit for name, commit in old.items() if _is_held_elsewhere(commit, parents, made)}
    if gone:
        git.delete_refs(gone)


def _prune_fences(merger: Merger) -> None:
    """Let go of the fences of branches that are gone, a week after the last takeover.

    A merger that hangs for longer would find its fence as it knew it, but its base is gone.
    """
    for name, value in merger.merging.store.refs(SAVED + LEASES).items():
        if merger.merging.tip(unquote(name, errors="surrogateescape")) is not None:
            continue
        words = merger.merging.read_blobs([value]).get(value, b"").decode("utf-8", "surrogateescape").split("\n")
        base, at = (words[0], words[2]) if len(words) > 2 else ("", "")
        if merger.merging.tip(base) is None and at < stamp(merger.ctx.clock() - _FENCE_KEPT):
            merger.merging.store.delete_refs({SAVED + LEASES + name: value})


def _is_held_elsewhere(commit: str, parents: Mapping[str, Sequence[str]], made: Mapping[str, str]) -> bool:
    """True if all that a commit leads to, and no branch has, are merges of ours. `parents` are those without a branch.

    A squashed branch is not among the parents of what was made of it, so that one has its work once more, and stays.
    """
    seen: set[str] = set()
    left = [commit]
    while left:
        at = left.pop()
        if at in seen or at not in parents:  # not in there: a branch has it, and everything before it
            continue
        if made.get(at) not in parents[at]:
            return False
        seen.add(at)
        left += parents[at]
    return True
