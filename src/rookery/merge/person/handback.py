"""What a person has committed in the worktree of a conflict: whether it is finished, what it leaves out, and the
candidate that it becomes.

A commit in that worktree is a fact, so the merger finds it whenever it looks. It lands as it is if the base has not
moved; otherwise git merges it with the base, or with what came onto the branch since, and what conflicts then goes
back to the person, who is given only that.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.base.errors import RookError
from rookery.base.record import Record
from rookery.base.text import as_utf8, one_line, plural
from rookery.config import steps
from rookery.merge.landing.candidate import Candidate, commit_case, merge
from rookery.merge.landing.history import Start, start_of
from rookery.merge.merger import Merger
from rookery.merge.model import HUMAN, RESOLVED, SQUASH, Entry, FileOutcome
from rookery.merge.model import REBASE as REBASED
from rookery.merge.person import renames, store
from rookery.merge.person.model import LostLine, OpenConflict, place_of, shown_place
from rookery.merge.resolve import loss
from rookery.merge.resolve.markers import has_markers
from rookery.merge.resolve.model import OURS, THEIRS, Sides
from rookery.merge.tiers.case import Case, is_text, sides_of, why_unfinished
from rookery.merge.tiers.oneshot import conflicts_at
from rookery.vcs.git.checkout import Git
from rookery.vcs.git.merge_tree import REGULAR, Conflict, Side
from rookery.vcs.git.porcelain import CONFLICTED, UNTRACKED
from rookery.vcs.ref_names import OPENED, RESOLVED_WORK, SAVED

_SHOWN = 3
WHOLE_FILE = "whole_file"


@dataclass(frozen=True, slots=True)
class Unfinished(Record):
    """Why what is in the worktree cannot land yet, and what to do."""

    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Judgement(Record):
    """A person's commit compared with both sides."""

    outcomes: tuple[FileOutcome, ...]
    problems: tuple[tuple[str, str], ...]
    """Files that cannot be the end of a conflict, and why."""
    lost: tuple[LostLine, ...]


@dataclass(frozen=True, slots=True)
class Again(Record):
    """A person's commit that conflicts again, because the base or the branch moved."""

    reason: str
    ours: str = ""
    theirs: str = ""
    conflicts: tuple[Conflict, ...] = ()
    """Between these two; none if the commit is of no use any more, because a side of it is gone."""


@dataclass(frozen=True, slots=True)
class Handed(Record):
    """A person's commit on its way to the gates."""

    candidate: Candidate
    case: Case
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Joined(Record):
    """A person's commit together with the base and the branch as they are now."""

    commit: str
    """It contains the person's commit and the branch; also the base, unless `tree` is there."""
    tree: str = ""
    """Merged with the base, where the base has moved."""
    remark: str = ""


def open_checkout(merger: Merger, merge_id: str) -> Git | None:
    """The worktree of an open conflict; None if there is no longer a checkout."""
    place = place_of(merger.ctx.root, merge_id)
    if os.path.islink(place) or not os.path.isfile(os.path.join(place, ".git")):
        return None
    return Git(place, merger.ctx.config.vcs.timeout)


def finished(merger: Merger, conflict: OpenConflict) -> str | Unfinished:
    """The commit that a person has made of the merge, or what is missing."""
    place = place_of(merger.ctx.root, conflict.merge_id)
    git_there = f"git -C {shlex.quote(place)}"
    here = open_checkout(merger, conflict.merge_id)
    way_out = f"`rook merge resolve {conflict.merge_id} --abort`"
    if here is None:
        return Unfinished(f"{place} is no longer a checkout", way_out)
    try:
        status, step = here.status(), here.running_step()
    except RookError as error:  # one broken worktree must not keep everything else from landing
        return Unfinished(f"{place} cannot be read: {error.message}", error.hint or way_out)
    open_files = [change.path for change in status.changes if change.kind == CONFLICTED]
    if open_files:
        hint = f"resolve them in {place}, `git add` them, and commit"
        return Unfinished(f"{_files(open_files)} still in conflict", hint)
    changed = [change.path for change in status.changes if change.kind != UNTRACKED]
    if step is not None:
        return Unfinished(f"the {step} in {place} is not committed", f"`{git_there} commit`")
    if changed:
        hint = f"`{git_there} commit -a`, or `{git_there} stash`"
        return Unfinished(f"{place} has changes that are not committed: {_files(changed, '')}", hint)
    contains, head = merger.merging.store.contains, status.commit
    again = f"`{git_there} merge {conflict.theirs[:12]}` begins it again; --abort gives up"
    if head is None or head == conflict.ours:
        return Unfinished(f"nothing is committed in {place}", again)
    if not contains(conflict.theirs, head) or not contains(conflict.ours, head):
        missing = "the branch" if contains(conflict.ours, head) else "the base"
        if missing == "the base":
            again = f"`{git_there} checkout --detach {conflict.ours[:12]}`, then {again}"
        return Unfinished(f"what is committed in {place} is not a merge: it does not contain {missing}", again)
    return head


def split(
    merger: Merger, entries: Sequence[Entry]
) -> tuple[list[Entry], list[tuple[Entry, OpenConflict, str]], list[Entry]]:
    """The entries that no person has open; those of which one has committed the merge; and those that are not done."""
    conflicts = {conflict.merge_id: conflict for conflict in store.all_open(merger.ctx.db)}
    others, resolved, unfinished = [], [], []
    for entry in entries:
        conflict = conflicts.get(entry.id)
        commit = None if conflict is None else finished(merger, conflict)
        if conflict is None:
            others.append(entry)
        elif isinstance(commit, str):
            resolved.append((entry, conflict, commit))
        else:
            unfinished.append(entry)
    return others, resolved, unfinished


def judge(merger: Merger, conflict: OpenConflict, entry: Entry, commit: str) -> Judgement:
    """Compare a person's commit with both sides, file by file, as every tier's result is."""
    case, conflicts = _opened(merger, conflict, entry, commit)
    beyond = set(merger.merging.changed_paths([(case.tree, commit)])[0]) - {one.path for one in conflicts}
    after = merger.merging.files(commit)
    conflicts = renames.join(merger, conflicts, case.onto, case.entry.tip, after)
    outcomes, problems, lost = [], [], []
    for one in (*conflicts, *conflicts_at(merger, case, beyond)):
        result = after.get(one.path)
        sides = sides_of(merger, case, one)
        problem, left_out = _compare(merger, one, sides, result)
        if problem:
            problems.append((one.path, problem))
        lost += left_out
        hunks = tuple({"rule": "accepted", "line": line.line, "why": f"{line.side}: {line.kind}"} for line in left_out)
        why = f"resolved by {conflict.opened_by} in {commit[:12]}"
        outcomes.append(FileOutcome(one.path, one.kind, HUMAN, RESOLVED, why, hunks))
    return Judgement(tuple(outcomes), tuple(problems), tuple(lost))


def _opened(merger: Merger, conflict: OpenConflict, entry: Entry, commit: str) -> tuple[Case, list[Conflict]]:
    """The merge that a commit resolves, with the files as the person got them, and what was in conflict.

    Where the person has brought in the base as it is now, that merge counts.
    """
    merging = merger.merging
    base = merging.tip(entry.base)
    has_moved = base is not None and merging.store.contains(base, commit) and conflict.is_first
    if has_moved and base is not None and not merging.store.contains(base, conflict.ours):
        case = merge_sides(merger, entry, conflict.replace(ours=base, base_commit=base))
        return case, list(case.conflicts)
    case = merge_sides(merger, entry, conflict)
    opened = merging.store.find_commit(SAVED + OPENED + conflict.merge_id)
    if opened is None:
        return case, list(case.conflicts)
    left = [one for one in case.conflicts if one.path in conflict.files]
    return case.replace(tree=merging.tree(opened)), left


def merge_sides(merger: Merger, entry: Entry, conflict: OpenConflict) -> Case:
    """The merge that is open for a person; the case's entry has as its tip what is merged."""
    theirs = entry.replace(tip=conflict.theirs)
    if conflict.is_first:
        return merge(merger, theirs, conflict.ours)
    merged = merger.merging.merge(conflict.ours, conflict.theirs)
    return Case(theirs, conflict.ours, Start(), merged.tree, merged.conflicts)


def _compare(merger: Merger, conflict: Conflict, sides: Sides, result: Side | None) -> tuple[str, list[LostLine]]:
    """Why a file cannot be the end of a conflict, and what it leaves out."""
    path, both = conflict.path, {OURS: conflict.ours, THEIRS: conflict.theirs}
    contents = merger.merging.read_blobs([result.oid]) if result is not None and result.mode in REGULAR else {}
    content = None if result is None else contents.get(result.oid)
    texts = [text for text in (sides.base, sides.ours, sides.theirs, content) if text is not None]
    if not is_text(conflict) or any(b"\0" in text for text in texts) or (result is not None and content is None):
        # Nothing in it can be compared line by line: a side that changed it, and is not what was taken, is left out.
        taken = [side for side, there in both.items() if there == result]
        changed = [side for side, there in both.items() if there != conflict.base]
        left_out = [side for side in changed if taken and side not in taken]
        return "", [LostLine(as_utf8(path), side, WHOLE_FILE, "") for side in left_out]
    contents_before = [text for text in (sides.ours, sides.theirs) if text is not None]
    unfinished = "" if content is None else why_unfinished(path, content)
    if unfinished and content is not None:
        if has_markers(content):
            was_fine = not any(map(has_markers, contents_before))
        else:
            was_fine = any(not why_unfinished(path, text) for text in contents_before)
        unfinished = unfinished if was_fine else ""
    return unfinished, [
        LostLine(as_utf8(path), lost.side, lost.kind, lost.line, lost.count)
        for lost in loss.check(sides, content or b"")
    ]


def why_held(judgement: Judgement, conflict: OpenConflict, commit: str) -> str:
    """Why a person's commit may not land as it is; empty if it may."""
    if judgement.problems:
        path, why = judgement.problems[0]
        more = f", and {plural(len(judgement.problems) - 1, 'more file')}" if len(judgement.problems) > 1 else ""
        return f"{one_line(path)}: {why}{more}"
    if judgement.lost and conflict.accepted != commit:
        return f"it leaves out {changes(judgement.lost)} of one side or the other"
    return ""


def changes(lost: Sequence[LostLine]) -> str:
    """How many lines are left out that a side put in, or are back that one took out."""
    return plural(len(lost), "change")


def hand_in(merger: Merger, entry: Entry, conflict: OpenConflict, commit: str) -> Handed | Unfinished | Again:
    """The candidate that a person's commit becomes, or why it cannot land."""
    judgement = judge(merger, conflict, entry, commit)
    held = why_held(judgement, conflict, commit)
    if held:
        way_out = f"`rook merge resolve {entry.id} --done` says more"
        return Unfinished(f"{held}, as it is committed in {shown_place(entry.id)}; {way_out}", way_out)
    merger.merging.keep(RESOLVED_WORK + entry.id, commit)
    with merger.ctx.db.write() as db:
        store.update(db, entry.id, judged=commit)
    steps.reached("resolution judged")
    joined = join(merger, entry, conflict, commit)
    if isinstance(joined, Again):
        return joined
    onto = merger.merging.tip(entry.base)
    assert onto is not None  # noqa: S101 - it was there when the lease was taken
    start = start_of(merger, entry.branch, entry.tip, entry.base)
    case = Case(entry, onto, start, joined.tree or merger.merging.tree(joined.commit), (), judgement.outcomes)
    is_whole = not joined.tree and merger.ctx.config.merge.strategy not in (SQUASH, REBASED)
    landing = joined.commit if is_whole else commit_case(merger, case, tier=HUMAN, joined=joined.commit)
    return Handed(Candidate(entry, onto, landing, HUMAN), case, joined.remark)


def join(merger: Merger, entry: Entry, conflict: OpenConflict, commit: str) -> Joined | Again:
    """A person's commit with what came onto the branch and the base since it was opened; git merges that by itself."""
    merging, contains = merger.merging, merger.merging.store.contains
    base = merging.tip(entry.base)
    assert base is not None  # noqa: S101 - it was there when the lease was taken
    joined = Joined(commit)
    if not contains(conflict.base_commit, base):  # with the resolution, what was undone there would come back
        return Again(f"{entry.base} went back behind the commit on which it was resolved")
    if not contains(entry.tip, commit):
        if not contains(conflict.tip, entry.tip):
            return Again(f"{entry.branch} was rewritten since it was resolved")
        merged = merging.merge(commit, entry.tip)
        if not merged.is_clean:
            reason = f"{entry.branch} has new commits that conflict with its resolution"
            return Again(reason, commit, entry.tip, merged.conflicts)
        message = f"Merge: the commits that {entry.branch} got while its conflict was resolved\n"
        count = merging.store.count_commits(entry.tip, commit)
        remark = f"{plural(count, 'newer commit')} of {entry.branch} merged into the resolution"
        joined = Joined(merging.commit(merged.tree, [commit, entry.tip], message), remark=remark)
    if contains(base, joined.commit):
        return joined
    merged = merging.merge(base, joined.commit)
    if not merged.is_clean:
        reason = f"{entry.base} has moved, and conflicts with the resolution"
        return Again(reason, base, joined.commit, merged.conflicts)
    return joined.replace(tree=merged.tree)


def _files(paths: Sequence[str], verb: str = " are") -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    verb = " is" if verb and len(paths) == 1 else verb
    return ", ".join(one_line(path) for path in paths[:_SHOWN]) + more + verb
