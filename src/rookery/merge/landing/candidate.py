"""Candidates: the commit that the base would get, built in the object database. Nothing else is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.merge.landing.approval import reviewer_of
from rookery.merge.landing.landed import Start, start_of
from rookery.merge.merger import Merger
from rookery.merge.model import CLEAN, REBASE, SQUASH, Entry
from rookery.tasks import store as tasks
from rookery.vcs.git.landed import reverted_commits
from rookery.vcs.git.merge_tree import Conflict, Merged
from rookery.vcs.git.merging import Merging

_SUBJECT = 72


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A commit that is ready for the gates."""

    entry: Entry
    onto: str
    """What it stands on: the base, or the candidate before it in a batch."""
    commit: str
    tier: str = CLEAN


@dataclass(frozen=True, slots=True)
class Clash(Record):
    """A branch that does not go together with what it would stand on."""

    entry: Entry
    onto: str
    merged: Merged

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that conflict."""
        return tuple(each.path for each in self.merged.conflicts)


def build(merger: Merger, entry: Entry, onto: str) -> Candidate | Clash:
    """The commit that lands a branch onto another commit, or what conflicts."""
    start = start_of(merger, entry.branch, entry.tip, entry.base)
    merged = merge(merger, entry, onto, start)
    if not merged.is_clean:
        return Clash(entry, onto, merged)
    return Candidate(entry, onto, commit_tree(merger, entry, onto, merged.tree, start=start))


def merge(merger: Merger, entry: Entry, onto: str, start: Start | None = None) -> Merged:
    """A branch merged onto a commit, from where its own work begins.

    Git sees no trace of squashed or rebased work in the history, and takes reverted work for merged. So what was
    reverted is put on again first, and git is given the files with the history that counts.
    """
    start = start or start_of(merger, entry.branch, entry.tip, entry.base)
    merging, tree = merger.merging, onto
    for each in start.redo:
        again = merging.merge_trees(each.old, tree, each.new)
        if not again.is_clean:
            break
        tree = again.tree
    else:
        if start.redo or start.before is None:
            known = (onto, *start.hidden, *(each.brings for each in start.redo))
            return merging.merge(onto if known == (onto,) else merging.pose(tree, *known), entry.tip)
    # In one merge from before all of it, so that a tier that resolves a conflict sees both sides.
    return merging.merge(merging.pose(onto, *start.known(onto)), entry.tip)


def commit_tree(
    merger: Merger, entry: Entry, onto: str, tree: str, *, tier: str = CLEAN, start: Start | None = None
) -> str:
    """The commit that gives the base a tree, by the strategy that the configuration names."""
    strategy = merger.ctx.config.merge.strategy
    known = (
        (start or start_of(merger, entry.branch, entry.tip, entry.base)).known(onto)
        if strategy in (SQUASH, REBASE)
        else (onto,)
    )
    title, trailers = _title(merger, entry), _trailers(merger, entry, tier)
    if strategy == REBASE and tier == CLEAN:
        replayed = replay(merger.merging, onto, merger.merging.own_commits(known, entry.tip), trailers)
        # Commits that do not apply one by one, though their sum does, land as that sum.
        if isinstance(replayed, str) and merger.merging.tree(replayed) == tree:
            return replayed
    if strategy in (SQUASH, REBASE):
        return merger.merging.commit_landing(tree, [onto], f"{title}\n\n{_told(merger, entry, known)}\n{trailers}")
    return merger.merging.commit_landing(tree, [onto, entry.tip], f"Merge: {title}\n\n{trailers}")


def _told(merger: Merger, entry: Entry, known: Sequence[str]) -> str:
    """What the commits of a branch say, in one message: their subjects, and what they revert."""
    messages = merger.merging.own_messages(known, entry.tip)
    named = [each for message in messages for each in reverted_commits(message.text)]
    # A revert within the branch of something of its own is of no concern to the base.
    outside = [each for each in dict.fromkeys(named) if not any(own.commit.startswith(each) for own in messages)]
    lines = [f"- {each.subject}\n" for each in messages] + [f"\nThis reverts commit {each}.\n" for each in outside]
    return "".join(lines)


def replay(merging: Merging, onto: str, commits: Sequence[str], trailers: str = "") -> str | tuple[Conflict, ...]:
    """Commits one by one on top of another; what is there already is left out. The conflicts, if there are any."""
    parents = merging.parents(commits)
    for number, commit in enumerate(commits, 1):
        before = parents[commit][0] if parents[commit] else merging.store.empty_tree()
        merged = merging.merge_trees(before, onto, commit)
        if not merged.is_clean:
            return merged.conflicts
        if merged.tree == merging.tree(onto):
            continue
        message = merging.message(commit).rstrip("\n") + "\n"
        if trailers and number == len(commits):
            message += f"\n{trailers}"
        onto = merging.commit(merged.tree, [onto], message, author_of=commit)
    return onto


def _title(merger: Merger, entry: Entry) -> str:
    task = tasks.existing(merger.ctx.db, entry.task_id)
    return entry.branch if task is None else one_line(task.title, _SUBJECT)


def _trailers(merger: Merger, entry: Entry, tier: str) -> str:
    named = {
        "Branch": entry.branch,
        "Task": entry.task_id,
        "Agent": entry.agent,
        "Reviewed-by": reviewer_of(merger, entry),
        "Merge-Id": entry.id,
    }
    if tier != CLEAN:
        named["Conflicts-Resolved"] = tier
    return "".join(f"{name}: {value}\n" for name, value in named.items() if value)
