"""Following the upstream: fetch it, compare, and move the base as a landing does.

Nothing is rebased or forced. The base moves by compare-and-set under its lease and fence; its checkouts follow, and a
file with changes of its own holds it. What a kill cut off the next `rook sync` finds by looking again: the event and
the requests to rebase follow from the last event and from what the base has now.
"""

from __future__ import annotations

from collections.abc import Callable

from rookery.base.errors import InvalidState, ProgramFailed, Refused
from rookery.config import steps
from rookery.config.environ import HUMAN
from rookery.events import store as events
from rookery.merge import lease as leases
from rookery.merge import push as pushing
from rookery.merge import store as merges
from rookery.merge.gates import service as gates
from rookery.merge.landing import completion, land, messages, rebase_requests
from rookery.merge.landing.eligibility import protected_paths
from rookery.merge.landing.land import Held, checkouts_following
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, LEFT, VERDICTS, Entry, MergeBusy, Pushed
from rookery.remote.model import FORWARDED, MERGED, CommitLine, Synced
from rookery.tasks import store as tasks
from rookery.vcs.git.forward import InTheWay
from rookery.vcs.git.in_progress import find_operation
from rookery.vcs.git.merging import Merging
from rookery.vcs.git.remote import BEHIND, DIVERGED, Comparison, Remote
from rookery.vcs.model import RefMoved
from rookery.vcs.ref_names import SAVED, UPSTREAMS, synced_from_name, upstream_ref_name

_MOST_LISTED = 100
_MOST_FILES = 200
_TRIES = 5

Agree = Callable[[Synced, int], bool]
"""Asks a person whether so many commits may be pushed."""


def sync(
    merger: Merger,
    base: str,
    *,
    push: bool = False,
    merge: bool = False,
    dry_run: bool = False,
    agree: Agree = lambda _synced, _count: False,
) -> Synced:
    """Bring a base to its upstream, and push it if that is wanted."""
    policy = pushing.policy(merger.ctx)
    if push and merger.actor != HUMAN:
        raise Refused("only people push", hint="ask a person by mail")
    if push and policy == pushing.NEVER:
        raise Refused("remote.push is never, so nothing is pushed", hint="`rook config explain remote.push` shows why")
    remote = pushing.open_remote(merger, base)
    if dry_run:
        return _preview(merger, remote)
    comparison = pushing.look(merger, remote)
    synced = _describe(merger, merger.merging, comparison)
    for left in reversed(range(_TRIES)):
        try:
            synced = _bring(merger, remote, comparison, synced, merge=merge)
            break
        except RefMoved:  # another process has moved the base since we looked
            if not left:
                raise
            comparison = remote.compare(comparison.theirs, comparison.known)
            synced = _describe(merger, merger.merging, comparison)
    comparison = remote.compare(comparison.theirs, comparison.known)
    if comparison.theirs is not None and not comparison.has_dropped:
        remote.learn(comparison.theirs)
    _record(merger, comparison)
    completion.complete_landed(merger, base)
    return synced.replace(push=_push(merger, remote, comparison, synced, policy, push=push, agree=agree))


def _preview(merger: Merger, remote: Remote) -> Synced:
    """What a sync would find; no ref and no object of the repository is written."""
    with merger.merging.on_trial() as trial:
        theirs = remote.peek(trial.store)
        comparison = remote.compare(theirs, remote.known(), trial.store)
        return _describe(merger, trial, comparison).replace(is_dry_run=True)


def _describe(merger: Merger, merging: Merging, comparison: Comparison) -> Synced:
    """How the base and its upstream have come apart, for people."""
    synced = Synced(
        comparison.base,
        comparison.upstream.name,
        comparison.state,
        comparison.tip,
        comparison.tip,
        comparison.theirs,
        comparison.ahead,
        comparison.behind,
        is_rewritten=comparison.is_rewritten,
        has_dropped=comparison.has_dropped,
    )
    if comparison.theirs is None:
        return synced
    ours = _own_commits(merger, merging, comparison) if comparison.ahead else ()
    theirs = tuple(_lines(merging, comparison.theirs, comparison.tip)) if comparison.behind else ()
    conflicts: tuple[dict[str, str], ...] = ()
    if comparison.state == DIVERGED:
        merged = merging.merge(comparison.tip, comparison.theirs)
        conflicts = tuple({"path": conflict.path, "kind": conflict.kind} for conflict in merged.conflicts)
    return synced.replace(ours=ours, theirs=theirs, conflicts=conflicts)


def _lines(merging: Merging, tip: str, without: str) -> list[CommitLine]:
    rows = merging.store.first_parents(tip, without, _MOST_LISTED)
    return [CommitLine(commit, author, subject) for commit, author, subject in rows]


def _own_commits(merger: Merger, merging: Merging, comparison: Comparison) -> tuple[CommitLine, ...]:
    """The commits that only the base has, with the landings that they came from."""
    db = merger.ctx.db
    landed = {entry.candidate: entry for entry in merges.select(db, states=(LANDED,), base=comparison.base)}
    titles = tasks.get_many(db, [entry.task_id for entry in landed.values() if entry.task_id])
    current: Entry | None = None
    lines = []
    for line in _lines(merging, comparison.tip, str(comparison.theirs)):
        # A rebased branch lands as several commits, of which the last is recorded.
        if line.commit in landed:
            current = landed[line.commit]
        elif current is not None and line.commit == current.base_before:
            current = None
        if current is not None:
            task = titles.get(current.task_id or "")
            line = line.replace(
                merge_id=current.id,
                branch=current.branch,
                task_id=current.task_id,
                title=None if task is None else task.title,
            )
        is_dropped = comparison.has_dropped and merging.store.contains(line.commit, str(comparison.known))
        lines.append(line.replace(is_dropped=is_dropped))
    return tuple(lines)


def _bring(merger: Merger, remote: Remote, comparison: Comparison, synced: Synced, *, merge: bool) -> Synced:
    """Move the base if it is behind, or has diverged and a merge is wanted; raises RefMoved if it has moved since."""
    if comparison.theirs is None or not (comparison.state == BEHIND or (comparison.state == DIVERGED and merge)):
        return synced
    if comparison.state == DIVERGED and synced.conflicts:
        return synced
    lease = leases.acquire(merger, comparison.base)
    if not isinstance(lease, Lease):
        holder = f"{lease.actor} (process {lease.process.pid})"
        raise MergeBusy(f"{holder} lands on {comparison.base} just now", hint="try again soon")
    try:
        land.recover(merger, lease)
        new, how = (
            (comparison.theirs, FORWARDED) if comparison.state == BEHIND else (_merge(merger, comparison), MERGED)
        )
        held = _why_held(merger, comparison, new) or _move(merger, lease, comparison, new)
    finally:
        leases.release(merger, lease)
    if held is not None:
        return synced.replace(held=held.reason, files=held.paths[:_MOST_FILES])
    merger.merging.settle()
    return synced.replace(commit=new, moved=how)


def _merge(merger: Merger, comparison: Comparison) -> str:
    """The base with its upstream merged, in the object database."""
    merging, theirs = merger.merging, str(comparison.theirs)
    tree = merging.merge(comparison.tip, theirs).tree
    return merging.commit(tree, [comparison.tip, theirs], f"Merge {comparison.upstream.name} into {comparison.base}\n")


def _why_held(merger: Merger, comparison: Comparison, new: str) -> Held | None:
    """Why the base may not become a commit: what it changes, a step of git's that is under way, or a gate."""
    paths = protected_paths(merger.merging.changed_paths([(comparison.tip, new)])[0])
    if paths:
        return Held(
            f"{comparison.upstream.name} changes Rookery's own settings, which decide what runs here: "
            "look at them, then `git merge` it by hand",
            paths,
        )
    operation = find_operation(merger.merging.store, comparison.base)
    if operation is not None:
        return Held(f"{operation.use_of(comparison.base)}; {operation.way_out}")
    if comparison.state != DIVERGED:
        return None  # those who pushed it have tested it; nothing of ours is in it
    retries = merger.ctx.config.merge.retries
    failed = gates.run_gates(merger, new, base=comparison.base, at=comparison.tip, retries=retries).failed
    if failed is None:
        return None
    verdict = f"the gate {failed.name} {VERDICTS[failed.verdict]}"
    return Held(f"what the merge gives does not pass: {verdict}; see {failed.log}")


def _move(merger: Merger, lease: Lease, comparison: Comparison, new: str) -> Held | None:
    """Move the base as a landing does, or say what blocks it."""
    base, merging = comparison.base, merger.merging
    if merging.tip(base) != comparison.tip:
        raise RefMoved(f"{base} has moved", hint="`rook sync` again")
    try:
        begun = merging.begin_forward(base, comparison.tip, new)
    except InTheWay as error:
        return Held(error.message, error.paths)
    except InvalidState as error:
        return Held(error.message)
    try:
        with checkouts_following(merger, base, new, begun):
            steps.reached("sync forwarded")
            leases.check(merger.ctx.db, lease)
            steps.reached("sync checked")
            kept = {synced_from_name(base): comparison.tip}
            if not comparison.has_dropped:  # else it stays known that the upstream had these commits
                known = upstream_ref_name(UPSTREAMS, base, comparison.upstream.name)
                kept[known] = str(comparison.theirs)
            why = f"sync with {comparison.upstream.name}"
            merging.move(base, new, comparison.tip, why, fence=lease.fence, kept=kept)
            steps.reached("sync moved")
    except ProgramFailed as error:
        if merging.tip(base) == new:
            raise
        return Held(error.message)  # a hook of the user's refuses it
    steps.reached("sync settled")
    return None


def _record(merger: Merger, comparison: Comparison) -> None:
    """Publish that the base has the upstream's commit, once, and ask the agents whose work that touches to rebase.

    Also where a kill kept the process from it that moved the base, or where a person has moved it by hand.
    """
    if comparison.theirs is None or comparison.behind:
        return
    store, theirs = merger.merging.store, comparison.theirs
    last = _last_event(merger, comparison)
    name = SAVED + synced_from_name(comparison.base)
    moved_from = store.ref(name)
    if moved_from is not None:
        if last != theirs:
            _publish(merger, comparison, last, moved_from)
        store.delete_ref_at(name, moved_from)
    elif last and not comparison.has_dropped and not (store.find_commit(last) and store.contains(theirs, last)):
        _publish(merger, comparison, last, None)


def _publish(merger: Merger, comparison: Comparison, last: str | None, moved_from: str | None) -> None:
    db, base = merger.ctx.db, comparison.base
    before, after = (moved_from, comparison.tip) if moved_from else (last, str(comparison.theirs))
    pairs = [(before, after)] if before and merger.merging.store.find_commit(before) else []
    touched = rebase_requests.touched_agents(merger, base, pairs) if pairs else []
    with db.write():
        if _last_event(merger, comparison) != last:
            return  # another process has recorded it
        for agent, branch, files in touched:
            messages.ask_to_rebase(merger, agent, branch, base, files)
        data = {
            "upstream": comparison.upstream.name,
            "commit": comparison.theirs,
            "base_commit": comparison.tip,
            "before": before,
        }
        events.publish(db, "remote.synced", base, data, actor=merger.actor, at=merger.ctx.now())
    steps.reached("sync recorded")


def _last_event(merger: Merger, comparison: Comparison) -> str | None:
    """The upstream's commit that was last recorded, as followed or as pushed; None if another upstream came last."""
    last = events.read(merger.ctx.db, kinds=("remote",), subject=comparison.base, limit=1, newest=True)
    return str(last[0].data["commit"]) if last and last[0].data["upstream"] == comparison.upstream.name else None


def _push(
    merger: Merger, remote: Remote, comparison: Comparison, synced: Synced, policy: str, *, push: bool, agree: Agree
) -> Pushed | None:
    """Push what the upstream lacks, if it is asked for; None if there is nothing to push, or no one asks for it."""
    reason = pushing.why_not(comparison)
    if reason:
        is_wanted = push or policy == pushing.ALWAYS
        left = Pushed(LEFT, comparison.upstream.name, comparison.tip, comparison.ahead, reason)
        return left if comparison.ahead and is_wanted else None
    if push or policy == pushing.ALWAYS or (policy == pushing.ASK and agree(synced, comparison.ahead)):
        return pushing.push(merger, remote, comparison)
    return None
