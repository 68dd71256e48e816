"""What follows a landing, and may be done later or again: rebase requests, and worktrees that have served."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from rookery.base.errors import ProgramFailed, RookError
from rookery.config import layout, steps
from rookery.merge import store
from rookery.merge.landing import kept, news
from rookery.merge.merger import Merger
from rookery.merge.model import Entry
from rookery.merge.radar import service as radar
from rookery.sessions import store as agents
from rookery.vcs.folders import delete_tree
from rookery.worktrees import service as worktrees
from rookery.worktrees.cleaning import clean_worktrees

_KEPT_LOGS = 200
"""Of how many trees the output of gates is kept."""


def has_own_work(merger: Merger, entry: Entry, tip: str) -> bool:
    """True unless the branch still stands where its agent began."""
    if entry.agent is None:
        return True
    return all(each.base_commit != tip for each in agents.sessions(merger.ctx.db, branch=entry.branch))


def mark_settled(merger: Merger, entry: Entry, now: str) -> None:
    """Within the landing's transaction: note what there is nothing to do about, for most work is nobody else's."""
    if not _may_touch_agents(merger):
        store.mark_followed(merger.ctx.db, [entry], now)
    if not _has_worktree(merger, entry):
        store.mark_cleaned(merger.ctx.db, entry, now)


def _may_touch_agents(merger: Merger) -> bool:
    return merger.ctx.config.merge.rebase != "none" and bool(agents.sessions(merger.ctx.db, alive=True))


def _has_worktree(merger: Merger, entry: Entry) -> bool:
    return entry.agent is not None and merger.ctx.config.merge.clean


def follow_up(merger: Merger, base: str) -> None:
    """Ask living agents to take in what has landed, where it touches files that they have changed too; each once."""
    landed = store.unfollowed(merger.ctx.db, base)
    if not landed:
        return
    steps.reached("to be followed up")
    try:
        wanted = _touched_agents(merger, base, landed)
    except ProgramFailed as error:  # git has no answer, now or later: the landing stands without it
        merger.say(f"who would have to rebase on {base} cannot be told: {error.message}\n")
        wanted = []
    with merger.ctx.db.write() as db:
        if [each.id for each in store.unfollowed(db, base)] != [each.id for each in landed]:
            return  # somebody else sees to it, or some of it was taken back
        for agent, branch, files in wanted:
            news.ask_to_rebase(merger, agent, branch, base, files)
        store.mark_followed(db, landed, merger.ctx.now())
    steps.reached("followed up")


def _touched_agents(merger: Merger, base: str, landed: Sequence[Entry]) -> list[tuple[str, str, list[str]]]:
    """Living agents with their branch and the files that concern them."""
    if not _may_touch_agents(merger):
        return []
    wish = merger.ctx.config.merge.rebase

    pairs = [(each.base_before, each.candidate) for each in landed if each.base_before and each.candidate]
    touched = {path for paths in merger.merging.changed_paths(pairs) for path in paths}
    own = {each.branch for each in landed}
    found = []
    for branch in radar.living_branches(merger):
        if branch.name in own or not branch.is_alive:
            continue
        files = radar.files_of(merger, branch, base)
        common = sorted(touched & set(files)) if wish == "overlapping" else sorted(touched)
        if common and (files or wish == "all"):
            found.append((branch.agent, branch.name, common))
    return found


def tidy(merger: Merger) -> None:
    """Remove what has served: worktrees of agents whose work is on the base, old output of gates, and old refs."""
    _prune_logs(merger.ctx.path(layout.GATES))
    with suppress(RookError):  # another git is at the refs: the next landing looks again
        kept.prune(merger)
    for entry in store.uncleaned(merger.ctx.db):
        try:
            is_done = _tidy_one(merger, entry)
        except RookError:
            continue  # `rook worktree list` shows it, and the next landing looks again
        if is_done:
            with merger.ctx.db.write() as db:
                store.mark_cleaned(db, entry, merger.ctx.now())


def _prune_logs(folder: str) -> None:
    """Keep what the gates said of the last trees, and no more."""
    if not os.path.isdir(folder):
        return
    trees = sorted(os.scandir(folder), key=lambda each: each.stat().st_mtime, reverse=True)
    for each in trees[_KEPT_LOGS:]:
        delete_tree(each.path)


def _tidy_one(merger: Merger, entry: Entry) -> bool:
    if entry.agent is None or not _has_worktree(merger, entry):
        return True
    session = agents.latest(merger.ctx.db, entry.agent)
    if session is None or session.branch != entry.branch:
        return True
    if session.is_alive:
        return False
    if not os.path.isdir(session.worktree):
        return True
    state = worktrees.inspect(
        merger.ctx.root, merger.ctx.config.vcs, path=session.worktree, branch=session.branch, base=entry.base
    )
    has_landed = state.unmerged == 0 or merger.merging.tip(session.branch) == entry.tip
    if not (state.is_there and state.is_clean and has_landed):
        return True  # something in it is not on the base: `rook worktree list` shows it
    found = clean_worktrees(merger.ctx, names=[entry.agent], actor=merger.actor)
    for each in found:
        merger.say(f"worktree of {each.agent}: {each.verdict}" + (f" ({each.reason})\n" if each.reason else "\n"))
    return True
