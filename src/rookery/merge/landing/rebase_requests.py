"""Asking running agents to rebase after a landing that touches their files; may be done later, or again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rookery.base.errors import ProgramFailed
from rookery.config import steps
from rookery.merge import store
from rookery.merge.landing import messages
from rookery.merge.merger import Merger
from rookery.merge.radar import service as radar
from rookery.sessions import store as agents


def may_be_needed(merger: Merger) -> bool:
    """True if some agent might have to rebase: one runs, and the settings want it to be asked."""
    return merger.ctx.config.merge.rebase != "none" and bool(agents.sessions(merger.ctx.db, alive=True))


def follow_up(merger: Merger, base: str) -> None:
    """Ask running agents to rebase where what has landed touches files that they have changed too; each once."""
    landed = store.unfollowed(merger.ctx.db, base)
    if not landed:
        return
    steps.reached("to be followed up")
    try:
        pairs = [(entry.base_before, entry.candidate) for entry in landed if entry.base_before and entry.candidate]
        touched = touched_agents(merger, base, pairs, {entry.branch for entry in landed})
    except ProgramFailed as error:  # git has no answer, now or later: the landing stands without it
        merger.say(f"cannot find out which agents would have to rebase on {base}: {error.message}\n")
        touched = []
    with merger.ctx.db.write() as db:
        if [entry.id for entry in store.unfollowed(db, base)] != [entry.id for entry in landed]:
            return  # another process follows it up, or some of it was undone
        for agent, branch, files in touched:
            messages.ask_to_rebase(merger, agent, branch, base, files)
        store.mark_followed(db, landed, merger.ctx.now())
    steps.reached("followed up")


def touched_agents(
    merger: Merger, base: str, pairs: Sequence[tuple[str, str]], own: Collection[str] = ()
) -> list[tuple[str, str, list[str]]]:
    """The running agents that have to rebase after the base has gone from one commit of each pair to the other.

    With their branches, those in `own` left out, and the files that overlap.
    """
    if not may_be_needed(merger):
        return []
    asks_all = merger.ctx.config.merge.rebase == "all"
    changed = {path for paths in merger.merging.changed_paths(pairs) for path in paths}
    branches = [branch for branch in radar.unlanded_branches(merger) if branch.is_alive and branch.name not in own]
    files = {} if asks_all else radar.changed_files(merger, branches, base)
    overlaps = [(branch, changed & files.get(branch.name, changed)) for branch in branches]
    return [(branch.agent, branch.name, sorted(overlap)) for branch, overlap in overlaps if overlap]
