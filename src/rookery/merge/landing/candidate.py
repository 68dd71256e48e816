"""Candidates: the commit that the base would get, built in the object database. Nothing else is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.events.store import last_actor
from rookery.mail import store as mail
from rookery.merge.landing.history import Start, start_of
from rookery.merge.merger import Merger
from rookery.merge.model import CLEAN, REBASE, SQUASH, Entry
from rookery.merge.tiers.case import Case
from rookery.sessions import store as agents
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED
from rookery.tasks.scope.outside import describe_files
from rookery.vcs.git.landed import reverted_commits
from rookery.vcs.git.merge_tree import Conflict
from rookery.vcs.git.merging import Merging

_SUBJECT = 72


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A commit that is ready for the gates."""

    entry: Entry
    onto: str
    """Its parent: the base, or the candidate before it in a batch."""
    commit: str
    tier: str = CLEAN


def build(merger: Merger, entry: Entry, onto: str) -> Candidate | Case:
    """The commit that lands a branch onto another commit, or what conflicts."""
    case = merge(merger, entry, onto)
    return Candidate(entry, onto, commit_case(merger, case)) if case.is_settled else case


def merge(merger: Merger, entry: Entry, onto: str) -> Case:
    """A branch merged onto a commit, from where its own work begins; raises Unclear if nothing says where that is.

    Git sees no trace of squashed or rebased work in the history, and takes reverted work for merged. So what was
    reverted is put on again first, and git is given the files with the history that counts.
    """
    start = start_of(merger, entry.branch, entry.tip, entry.base)
    ours = _redone(merger.merging, onto, start)
    if ours is None:  # in one merge from before all of it, so that a tier that resolves a conflict sees both sides
        ours = merger.merging.pose(onto, *start.known(onto))
    merged = merger.merging.merge(ours, entry.tip)
    return Case(entry, onto, start, merged.tree, merged.conflicts)


def _redone(merging: Merging, onto: str, start: Start) -> str | None:
    """A commit with what was reverted put on again, or None if that conflicts, or if it is not known what it was."""
    tree = onto
    for redo in start.redo:
        again = merging.merge_trees(redo.old, tree, redo.new)
        if not again.is_clean:
            return None
        tree = again.tree
    if start.before is not None and not start.redo:
        return None
    known = (*start.hidden, *(redo.brings for redo in start.redo))
    return merging.pose(tree, onto, *known) if known else onto


def commit_case(merger: Merger, case: Case, *, tier: str = CLEAN, joined: str = "") -> str:
    """The commit that gives the base the tree of a settled case, by the strategy that the configuration names.

    `joined` is the second parent of a merge, if that is not the branch's tip but a commit that contains it.
    """
    merging, strategy = merger.merging, merger.ctx.config.merge.strategy
    entry, onto, tree = case.entry, case.onto, case.tree
    task = tasks.existing(merger.ctx.db, entry.task_id)
    title = entry.branch if task is None else one_line(task.title, _SUBJECT)
    trailers = _trailers(merger, entry, tier)
    if strategy not in (SQUASH, REBASE):
        return merging.commit_landing(tree, [onto, joined or entry.tip], f"Merge: {title}\n\n{trailers}")
    known = case.start.known(onto)
    if strategy == REBASE and tier == CLEAN:
        replayed = replay(merging, onto, merging.own_commits(known, entry.tip), trailers)
        # Commits that do not apply one by one, though their sum does, land as that sum.
        if isinstance(replayed, str) and merging.tree(replayed) == tree:
            return replayed
    return merging.commit_landing(tree, [onto], f"{title}\n\n{_summary(merging, entry, known)}\n{trailers}")


def _summary(merging: Merging, entry: Entry, known: Sequence[str]) -> str:
    """The messages of a branch's commits in one: their subjects, and what they revert."""
    messages = merging.own_messages(known, entry.tip)
    reverted = [commit for message in messages for commit in reverted_commits(message.text)]
    # The base has nothing to do with a revert of something that the branch itself brought.
    outside = [name for name in dict.fromkeys(reverted) if not any(own.commit.startswith(name) for own in messages)]
    subjects = [f"- {message.subject}\n" for message in messages]
    return "".join((*subjects, *(f"\nThis reverts commit {name}.\n" for name in outside)))


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


def _trailers(merger: Merger, entry: Entry, tier: str) -> str:
    trailers = {
        "Branch": entry.branch,
        "Task": entry.task_id,
        "Agent": entry.agent,
        "Reviewed-by": _reviewer(merger, entry),
        "Merge-Id": entry.id,
        "Conflicts-Resolved": None if tier == CLEAN else tier,
    }
    outside = [f"Outside-Scope: {text}\n" for text in describe_files(entry.outside)]
    return "".join((*(f"{name}: {value}\n" for name, value in trailers.items() if value), *outside))


def _reviewer(merger: Merger, entry: Entry) -> str | None:
    """Who approved the task, else who said by mail that the branch is checked and may land; None without a review.

    An approval is of one commit: later commits have no review. And an agent's approval of its own work does not count.
    """
    db, author = merger.ctx.db, entry.agent
    task = tasks.existing(db, entry.task_id)
    if task is None or author is None or task.commit not in (None, entry.tip):
        return None
    if task.state == APPROVED:
        approver = last_actor(db, "task.approved", task.id)
        if approver not in (None, author):
            return approver
    # The last sender of a `merge_ready` since the session began in which the work was done.
    sessions = [session for session in agents.of_agent(db, author) if session.branch == entry.branch]
    return mail.endorser(db, entry.branch, author=author, since=sessions[-1].created_at) if sessions else None
