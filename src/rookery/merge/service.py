"""The use cases of landing: queue a branch, take it out, try it again, explain what was done."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rookery.base.errors import InvalidId, InvalidInput, InvalidState, NotFound, Refused
from rookery.base.ids import MERGE, new_id
from rookery.base.page import Page
from rookery.config.environ import HUMAN
from rookery.db.database import Database
from rookery.events import store as events
from rookery.merge import store
from rookery.merge.gates.gate_job import read_last_lines
from rookery.merge.landing.eligibility import objection, outside_of, why_refused
from rookery.merge.landing.history import landed_branches
from rookery.merge.merger import Merger
from rookery.merge.model import (
    CANCELLED,
    FAILED,
    LANDED,
    LANDING,
    OPEN,
    QUEUED,
    RESOLVING,
    UNDONE,
    WAITING,
    Entry,
    Explained,
    GateRun,
)
from rookery.merge.person import store as persons
from rookery.merge.person.model import place_of
from rookery.sessions import store as agents
from rookery.tasks import store as tasks
from rookery.tasks.model import DEFAULT_PRIORITY, check_priority
from rookery.tasks.scope.outside import Outside
from rookery.vcs.ref_names import bring_back

_EVENTS = 200
_SHOWN_LINES = 10


def draft(
    merger: Merger,
    name: str,
    base: str,
    *,
    priority: int | None = None,
    force: bool = False,
    outside: Outside | None = None,
) -> Entry:
    """The entry that a branch, or the branch of an agent, would have; nothing is written.

    `force` is kept only where it is needed. `outside` is what it changes outside its agent's files, if that is known.
    """
    branch = merger.branch(name)
    tip = merger.merging.tip(branch)
    if tip is None:
        tips = [entry.tip for entry in store.select(merger.ctx.db, branch=branch, limit=1)]
        tips += [task.commit for task in tasks.of_branch(merger.ctx.db, branch) if task.commit]
        kept = next((tip for tip in tips if merger.merging.store.find_commit(tip)), None)
        hint = "`rook merge list` shows what is queued" if kept is None else bring_back(branch, kept)
        raise InvalidInput(f"there is no branch {branch}", hint=hint)
    if branch == base:
        raise InvalidInput(f"{branch} cannot land on itself", hint="say --into another branch")
    sessions = agents.of_branch(merger.ctx.db, branch)
    session = sessions[-1] if sessions else None
    now = merger.ctx.now()
    if session is not None:
        task = tasks.existing(merger.ctx.db, session.task_id)
    else:  # a person's, or of an agent that Rookery did not start
        task = next(iter(tasks.of_branch(merger.ctx.db, branch)), None)
    task_id = session.task_id if session is not None else None if task is None else task.id
    outside = outside or outside_of(merger, branch, tip, base)
    if priority is None:
        priority = DEFAULT_PRIORITY if task is None else task.priority
    return Entry(
        id=new_id(MERGE),
        branch=branch,
        base=base,
        tip=tip,
        task_id=task_id,
        agent=None if session is None else session.agent,
        lead=None if session is None else session.parent,
        run_id=None if session is None else session.run_id,
        priority=check_priority(priority),
        requested_by=merger.actor,
        created_at=now,
        updated_at=now,
        forced=force and bool(objection(merger.ctx.db, branch, task_id)),
        outside=() if outside is None else outside.files,
    )


def explain_outside(merger: Merger, name: str, base: str, reason: str) -> Outside:
    """What a branch changes outside its agent's files, with a reason that the caller gives; nothing is written."""
    branch = merger.branch(name)
    tip = merger.merging.tip(branch)
    outside = None if tip is None else outside_of(merger, branch, tip, base)
    if outside is None or not outside.files:
        raise InvalidInput(
            f"{branch} changes no file outside of what its agent may", hint="leave --outside out: it needs no reason"
        )
    if merger.actor not in (HUMAN, *agents.leaders(merger.ctx.db, outside.scope.agent)):
        raise Refused(
            f"only a person, or an agent above {outside.scope.agent}, may say why it changes other files",
            hint="ask for it by mail",
        )
    return outside.explain(reason, merger.actor)


def enqueue(
    merger: Merger, names: Sequence[str], base: str, *, priority: int | None = None, force: bool = False
) -> list[Entry]:
    """Queue branches to land on a base. One that is queued, or has landed as it is, keeps the entry that it has."""
    drafts = [draft(merger, name, base, priority=priority, force=force) for name in names]
    reverted = find_reverted(merger, drafts)
    with merger.ctx.db.write():
        return insert(merger, drafts, reverted)


def find_reverted(merger: Merger, drafts: Sequence[Entry]) -> set[str]:
    """The last entries of branches for one base that landed and that git does not find there any more.

    Raises if one of the branches may not land.
    """
    for entry in drafts:
        _check_allowed(merger, entry)
    newest = filter(None, [store.newest(merger.ctx.db, entry.branch, entry.base) for entry in drafts])
    landed = landed_branches(merger, {entry.branch: entry.tip for entry in drafts}, drafts[0].base) if drafts else set()
    return {entry.id for entry in newest if entry.state == LANDED and entry.branch not in landed}


def insert(merger: Merger, drafts: Sequence[Entry], reverted: Collection[str]) -> list[Entry]:
    """Within a transaction: queue branches, but for those that are queued, or have landed as they are.

    Also what another process has landed since we asked which entries were reverted counts as landed. A branch whose
    conflict a person has open keeps that entry, so that the person's work is what lands.
    """
    queued = []
    for entry in drafts:
        newest = store.newest(merger.ctx.db, entry.branch, entry.base)
        has_landed = newest is not None and newest.state == LANDED and newest.tip == entry.tip
        if newest is not None and _is_with_person(merger, newest):
            newest = queue_again(merger, newest, tip=entry.tip)
        if newest is None or not (newest.is_open or (has_landed and newest.id not in reverted)):
            store.insert(merger.ctx.db, entry)
            newest = entry
        elif entry.forced and newest.is_open and not newest.forced:
            newest = store.force(merger.ctx.db, newest, actor=merger.actor, at=merger.ctx.now())
        queued.append(newest)
    return queued


def _check_allowed(merger: Merger, entry: Entry) -> None:
    reason = why_refused(merger.ctx.db, entry)
    if reason:
        raise InvalidState(
            f"{entry.branch} does not land: {reason}",
            hint=f"`rook merge --branch {entry.branch} --force` lands it all the same, and completes no task",
        )


def cancel(merger: Merger, text: str) -> Entry:
    """Take an entry out of the queue."""
    merge_id = find(merger, text).id
    with merger.ctx.db.write() as db:
        return _take_out(merger, store.get(db, merge_id))


def withdraw(merger: Merger, branch: str) -> list[Entry]:
    """Within a transaction: take a branch out of every queue. What is being tested is refused before it lands."""
    entries = store.select(merger.ctx.db, states=OPEN, branch=branch)
    for entry in entries:
        if entry.state == LANDING:
            raise InvalidState(f"{branch} is landing on {entry.base} just now", hint="`rook merge list` shows it")
    waiting = [entry for entry in entries if entry.state in (QUEUED, WAITING)]
    return [_take_out(merger, entry) for entry in waiting]


def _take_out(merger: Merger, entry: Entry) -> Entry:
    stale = {"kind": None, "reason": None} if entry.kind == RESOLVING else {}  # no landing waits for that any more
    return merger.change(entry, "cancel", **stale)


def retry(merger: Merger, text: str) -> Entry:
    """Queue an entry again that failed, waits, was cancelled or undone; its branch may have moved since."""
    entry = find(merger, text)
    tip = merger.merging.tip(entry.branch)
    if tip is None:
        raise InvalidInput(f"there is no branch {entry.branch} any more", hint=bring_back(entry.branch, entry.tip))
    _check_allowed(merger, entry)
    if entry.state == UNDONE:  # its record stays, as what landed and was undone
        return enqueue(merger, [entry.branch], entry.base, priority=entry.priority, force=entry.forced)[0]
    with merger.ctx.db.write() as db:
        newest = store.newest(db, entry.branch, entry.base) or entry
        if newest.is_open and newest.id != entry.id:
            return newest
        merge_id = newest.id if _is_with_person(merger, newest) else entry.id
        return queue_again(merger, store.get(db, merge_id), tip=tip)


def queue_again(merger: Merger, entry: Entry, **changes: Any) -> Entry:
    """Within a transaction: put an entry back into the queue, without what the last try left in it."""
    blank = {"kind": None, "reason": None, "files": (), "candidate": None, "base_before": None, "log": None}
    return merger.change(entry, "retry", **blank, **changes)


def _is_with_person(merger: Merger, entry: Entry) -> bool:
    """True if an entry that is out of the queue has a conflict that a person has open."""
    return entry.state in (FAILED, CANCELLED) and persons.find(merger.ctx.db, entry.id) is not None


def find(merger: Merger, text: str) -> Entry:
    """The entry that an id or a part of one, a branch or an agent's name stands for; of several the newest."""
    entries = store.select(merger.ctx.db, branch=merger.branch(text), limit=1)
    if entries:
        return entries[0]
    try:
        return store.get(merger.ctx.db, store.resolve(merger.ctx.db, text))
    except (InvalidId, NotFound):
        raise NotFound(
            f"{text!r} is neither queued nor has it landed", hint="`rook merge list --all` lists everything"
        ) from None


def find_undoable(merger: Merger, text: str) -> Entry:
    """The same, but of several the newest that can be undone, if one can."""
    landed = store.select(merger.ctx.db, states=(LANDED,), branch=merger.branch(text))
    return next((entry for entry in landed if entry.base_before is not None), None) or find(merger, text)


def listing(db: Database, *, everything: bool, limit: int, cursor: str | None) -> Page[Entry]:
    """What is open, in the order in which it lands; with `everything` also what is settled, the newest first.

    Without that, branches that failed are only counted.
    """
    if limit < 0:
        raise InvalidInput("the limit is negative", hint="0 lists all")
    entries = store.page(db, everything=everything, limit=limit, cursor=cursor)
    shown = [with_output(entry) for entry in entries[: limit or None]]
    failed = 0 if everything else store.count_failed(db)
    return Page(shown, shown[-1].id if len(shown) < len(entries) else None, failed)


def with_output(entry: Entry) -> Entry:
    """An entry with the last lines of the gate that keeps it from landing."""
    if entry.log is None:
        return entry
    return entry.replace(last_lines="\n".join(read_last_lines(entry.log).splitlines()[-_SHOWN_LINES:]))


def explain(merger: Merger, text: str) -> Explained:
    """Everything that was done to bring an entry in."""
    db, entry = merger.ctx.db, find(merger, text)
    conflict = persons.find(db, entry.id)
    happened = events.read(db, kinds=("merge",), subject=entry.id, limit=_EVENTS, newest=True)
    return Explained(
        with_output(entry),
        tuple(store.outcomes(db, entry.id)),
        tuple(_gate_runs(merger, entry)),
        tuple({"at": event.at, "type": event.type, "actor": event.actor, "data": event.data} for event in happened),
        None if conflict is None else place_of(merger.ctx.root, entry.id),
    )


def _gate_runs(merger: Merger, entry: Entry) -> list[GateRun]:
    """What the gates said of an entry: of its own tree or, in a batch, of the last that landed with it."""
    if entry.candidate is None:
        return []
    at = entry.landed_at
    others = store.select(merger.ctx.db, states=(LANDED,), base=entry.base, landed_at=at) if at is not None else []
    together = [other.candidate for other in others if other.candidate]
    for commit in dict.fromkeys((entry.candidate, *together)):
        if merger.merging.store.find_commit(commit) is None:
            continue  # it was never on a branch, and no ref keeps it any more
        runs = store.gate_runs(merger.ctx.db, tree=merger.merging.tree(commit))
        if runs:
            return [run.replace(last_lines=read_last_lines(run.log)) for run in reversed(runs)]
    return []
