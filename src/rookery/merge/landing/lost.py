"""Completed tasks whose work has left its base: that was reset or rewritten, or a person reverted the landing.

There may be very many completed tasks, so git is asked about all of them at once: which of their commits the base
lacks, and which commits it has reverted. Only the few that a revert names are looked at one by one. A rewritten base
that has the same changes under other ids, as after a rebase, has lost nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rookery.base.record import Record
from rookery.merge import store
from rookery.merge.landing.history import is_landed
from rookery.merge.merger import Merger
from rookery.tasks import store as tasks
from rookery.tasks.model import COMPLETED, Task
from rookery.vcs.git import landed as git_landed
from rookery.vcs.git.repository import GitStore
from rookery.vcs.ref_names import LANDINGS, SAVED

MOST_LOOKED_AT = 100
"""So many landings that a revert names are looked at one by one."""
_MOST_COMPARED = 2000
"""So many commits are compared by their changes."""


@dataclass(frozen=True, slots=True)
class Landed(Record):
    """Where the work of a completed task was when it landed."""

    task: Task
    base: str
    tip: str
    candidate: str = ""
    """The commit that the base got; empty if a person landed it."""
    before: str = ""
    merge_id: str = ""

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits of which the base must have one."""
        return tuple(filter(None, (self.candidate, self.tip)))


@dataclass(frozen=True, slots=True)
class Lost(Record):
    """A completed task whose work its base no longer has."""

    task: Task
    base: str
    commit: str
    """The commit with the work; empty if the repository has none any more."""
    kept_by: str = ""
    """The branch or ref that holds it; empty if none does."""


@dataclass(frozen=True, slots=True)
class Report(Record):
    """What was found out about all completed tasks."""

    looked_at: int
    lost: tuple[Lost, ...] = ()
    unknown: tuple[str, ...] = ()
    """Tasks of which nothing can be said: their commits were never here, or too many are named by reverts."""


def find_lost(merger: Merger) -> Report:
    """All completed tasks with work of their own, and which of them have lost it."""
    landed = _landed(merger)
    if not landed:
        return Report(0)
    git = merger.merging.store
    here = set(git.find_commits({commit for work in landed for commit in work.commits}))
    # What was never here, such as the commits of an imported plan, cannot have been lost.
    known = [work for work in landed if work.merge_id or work.tip in here]
    unknown = [work.task.id for work in landed if not work.merge_id and work.tip not in here]
    lost: list[Landed] = []
    for base in dict.fromkeys(work.base for work in known):
        onto = merger.merging.tip(base)
        of_base = [work for work in known if work.base == base]
        if onto is None:
            lost += of_base
            continue
        gone = _not_on(git, of_base, onto, here)
        lost += gone
        gone_ids = {work.task.id for work in gone}
        suspects = _reverted(git, [work for work in of_base if work.task.id not in gone_ids], onto)
        unknown += [work.task.id for work in suspects[MOST_LOOKED_AT:]]
        lost += [work for work in suspects[:MOST_LOOKED_AT] if not _is_landed(merger, work)]
    return Report(len(landed), tuple(_describe(merger, work, here) for work in lost), tuple(unknown))


def _landed(merger: Merger) -> list[Landed]:
    """Every completed task with work of its own, with its last landing that was not undone."""
    db, base = merger.ctx.db, merger.base()
    rows = store.last_landings(db)
    bases = merger.merging.tips(list({row.base for row in rows.values()}))
    works = []
    for task in tasks.in_states(db, COMPLETED):
        if task.archived_at is not None or task.branch is None:
            continue
        row = rows.get(task.id)
        if row is not None:
            on = row.base if row.base in bases else base
            candidate = "" if row.base_before is None else str(row.candidate)
            works.append(Landed(task, on, row.tip, candidate, row.base_before or "", row.id))
        elif task.commit is not None and task.commit != task.start_commit:
            works.append(Landed(task, base, task.commit))
    return works


def _not_on(git: GitStore, works: Sequence[Landed], onto: str, here: set[str]) -> list[Landed]:
    """Those whose commits the base lacks, and whose changes it has under no other id."""
    asked = "".join(f"{commit}\n" for work in works for commit in work.commits if commit in here)
    beyond = git.read_parents("--stdin", stdin=f"{asked}^{onto}\n") if asked else {}
    gone = [work for work in works if all(commit in beyond or commit not in here for commit in work.commits)]
    if not gone:
        return []
    own = {work.task.id: _own_commits(work, beyond) for work in gone}
    asked = "".join(f"^{commit}\n" for work in gone for commit in work.commits if commit in here)
    rewritten = list(git.read_parents("--no-merges", "--stdin", stdin=f"{onto}\n{asked}"))
    compared = {commit for commits in own.values() for commit in commits}
    compared |= {work.candidate for work in gone if work.candidate in beyond}
    if len(rewritten) + len(compared) > _MOST_COMPARED:
        return gone
    changes = git_landed.patch_ids(git, [*compared, *rewritten])
    there = {changes[commit] for commit in rewritten if commit in changes}

    def is_there(commits: Iterable[str]) -> bool:
        ids = [changes.get(commit, "") for commit in commits]
        return bool(ids) and there.issuperset(ids)

    return [work for work in gone if not is_there(own[work.task.id]) and not is_there([work.candidate])]


def _own_commits(work: Landed, beyond: Mapping[str, Sequence[str]]) -> list[str]:
    """The commits of a branch that its base lacks, without merges; those since its start."""
    own, left = {}, [work.tip]
    while left:
        commit = left.pop()
        if commit in beyond and commit not in own and commit != work.task.start_commit:
            own[commit] = beyond[commit]
            left += beyond[commit]
    return [commit for commit, parents in own.items() if len(parents) < 2]


def _reverted(git: GitStore, works: Sequence[Landed], onto: str) -> list[Landed]:
    """Those of which a commit is named by a revert on the base; whether that counts, `is_landed` says."""
    named = git_landed.commits_named_by_reverts(git, onto)
    if not works or not named:
        return []
    chain = git.read_parents("--first-parent", "--reverse", onto, "--")
    place = {commit: number for number, commit in enumerate(chain)}
    at = sorted({place[commit] for commit in named if commit in place})
    brought = git_landed.brought_by_merges(git, [name for name in named if name in place])
    suspects = []
    for work in works:
        last = work.candidate or work.tip
        first = place.get(work.before or work.task.start_commit or "", -1)
        is_named = last in place and bisect_right(at, place[last]) > bisect_right(at, first)
        if is_named or work.tip in brought or not named.isdisjoint(work.commits):
            suspects.append(work)
    return suspects


def _is_landed(merger: Merger, work: Landed) -> bool:
    return is_landed(merger, str(work.task.branch), work.tip, work.base)


def _describe(merger: Merger, work: Landed, here: set[str]) -> Lost:
    branch = str(work.task.branch)
    tip = merger.merging.tip(branch)
    if tip is not None:
        return Lost(work.task, work.base, tip, branch)
    saved = SAVED + LANDINGS + work.merge_id
    commit = next((commit for commit in reversed(work.commits) if commit in here), "")
    kept = merger.merging.store.ref(saved) if work.merge_id else None
    return Lost(work.task, work.base, commit or kept or "", saved if kept else "")
