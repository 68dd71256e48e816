"""Closing a conflict that was open for a person: what is not on the base is saved first, then the worktree goes.

The row says that it is being closed before anything is touched, and goes last, so a kill in between is followed up.
"""

from __future__ import annotations

import os

from rookery.base.errors import InvalidState, RookError
from rookery.config import steps
from rookery.merge import service
from rookery.merge import store as merges
from rookery.merge.merger import Merger
from rookery.merge.model import FAILED, HUMAN, LANDED, UNDONE, WAITING, Entry
from rookery.merge.person import handback, store
from rookery.merge.person.model import CLOSING, MAKING, OpenConflict, name_of, place_of
from rookery.vcs import conflicted, folders
from rookery.vcs.git.checkout import Git
from rookery.vcs.ref_names import OPENED, RESOLVED_WORK, SAVED, rescue_name
from rookery.worktrees.removal import alone


def tidy(merger: Merger) -> None:
    """Close what has landed, and finish what a killed process was opening or closing."""
    for conflict in store.all_open(merger.ctx.db):
        if not is_left(merger, conflict):
            continue
        with alone(merger.ctx.root):
            again = store.find(merger.ctx.db, conflict.merge_id)
            if again is not None and is_left(merger, again):
                try:
                    rescue = close(merger, again)
                except RookError as error:
                    merger.say(f"{place_of(merger.ctx.root, again.merge_id)} stays: {error.message}\n")
                    continue
                if rescue is not None:
                    merger.say(f"what was not handed back is kept under {rescue}\n")


def pick_up(merger: Merger, base: str) -> None:
    """Look at what persons have open: queue what did not land and has a new commit since, and tidy the rest."""
    tidy(merger)
    for conflict in store.all_open(merger.ctx.db):
        entry = merges.get(merger.ctx.db, conflict.merge_id)
        if entry.base != base or entry.state != FAILED:
            continue
        commit = handback.finished(merger, conflict)
        if isinstance(commit, str) and commit != conflict.judged:
            with merger.ctx.db.write() as db:
                newest = merges.newest(db, entry.branch, entry.base)
                if newest is not None and newest.id == entry.id and newest.state == FAILED:
                    service.queue_again(merger, newest)


def is_left(merger: Merger, conflict: OpenConflict) -> bool:
    """True if the worktree is of no use any more, is gone, or is not finished.

    Under `alone`, no process is at it then.
    """
    entry = merges.get(merger.ctx.db, conflict.merge_id)
    is_gone = not os.path.lexists(place_of(merger.ctx.root, conflict.merge_id))
    return is_gone or conflict.step in (MAKING, CLOSING) or entry.state in (LANDED, UNDONE)


def close(merger: Merger, conflict: OpenConflict) -> str | None:
    """Under `alone`: remove the worktree; returns the whole name of the ref that keeps unsaved work, if there is any.

    An entry that waits for the person is what it was before.
    """
    place = place_of(merger.ctx.root, conflict.merge_id)
    rescue = None if conflict.step == MAKING else save(merger, conflict)
    steps.reached("resolution saved")
    with merger.ctx.db.write() as db:
        give_back(merger, merges.get(db, conflict.merge_id), conflict)
        if conflict.step != MAKING:
            store.update(db, conflict.merge_id, step=CLOSING)
    steps.reached("resolution closing")
    git = merger.merging.store
    conflicted.remove(git, place)
    steps.reached("resolution removed")
    refs = {SAVED + prefix + conflict.merge_id for prefix in (OPENED, RESOLVED_WORK)}
    kept = {ref: commit for ref in refs if (commit := git.ref(ref)) is not None}
    done = kept.get(SAVED + RESOLVED_WORK + conflict.merge_id)
    if rescue is None and done is not None and merges.get(merger.ctx.db, conflict.merge_id).state != LANDED:
        name = rescue_name(name_of(conflict.merge_id), merger.ctx.now())
        merger.merging.keep(name, done)
        rescue = SAVED + name
    if kept:
        git.delete_refs(kept)
    with merger.ctx.db.write() as db:
        store.forget(db, conflict.merge_id)
    steps.reached("resolution closed")
    return rescue


def give_back(merger: Merger, entry: Entry, conflict: OpenConflict) -> None:
    """Within a transaction: let an entry that waits for the person be what it was before."""
    if entry.state != WAITING:
        return
    was = {name: value for name, value in conflict.was.items() if name != "state"}
    was["files"] = tuple(was["files"])
    if conflict.was["state"] == FAILED:
        merger.change(entry, "fail", **was)
    else:
        service.queue_again(merger, entry)


def save(merger: Merger, conflict: OpenConflict) -> str | None:
    """Keep what a person has done in the worktree, if that is not on the base; returns the whole name of its ref."""
    place = place_of(merger.ctx.root, conflict.merge_id)
    here = handback.open_checkout(merger, conflict.merge_id)
    if here is None:
        if not folders.is_empty(place):
            raise InvalidState(f"{place} holds files and is no longer a checkout", hint="move them away")
        return None
    _check_inner(here, place)
    name = rescue_name(name_of(conflict.merge_id), merger.ctx.now())
    head = here.current_commit()
    saved = here.snapshot(name, f"What was not handed back from {place}", replace=True)
    git = merger.merging.store
    if saved is not None and _is_nothing_new(merger, conflict, str(head), saved):
        git.delete_refs({SAVED + name: saved})
        return None
    return None if saved is None else SAVED + name


def _is_nothing_new(merger: Merger, conflict: OpenConflict, head: str, saved: str) -> bool:
    """True if a snapshot holds nothing of a person's that is not on the base."""
    merging, entry = merger.merging, merges.get(merger.ctx.db, conflict.merge_id)
    opened = merging.store.find_commit(SAVED + OPENED + conflict.merge_id)
    is_untouched = head == conflict.ours and opened is not None and merging.tree(saved) == merging.tree(opened)
    has_landed = entry.state == LANDED and entry.tier == HUMAN and saved == head == conflict.judged
    return is_untouched or has_landed


def _check_inner(here: Git, place: str) -> None:
    """Raise if a repository inside the worktree holds what no snapshot of ours reaches."""
    for name in here.inner_repositories():
        inner = Git(os.path.join(place, name), here._timeout)
        if not inner.status().is_clean or inner.unpushed_commits():
            hint = "commit and push there, or move it away"
            raise InvalidState(f"the repository {name} in {place} has work that is nowhere else", hint=hint)
