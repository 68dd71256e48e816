"""The use cases of landing: queue a branch, take it out, try it again, tell what was done."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rookery.base.errors import InvalidId, InvalidInput, InvalidState, NotFound
from rookery.base.ids import MERGE, new_id
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.events import store as events
from rookery.merge import store
from rookery.merge.landing.attempts import objection
from rookery.merge.landing.landed import landed_branches
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, OPEN, QUEUED, UNDONE, WAITING, Entry, Explained, GateRun, NothingToLand
from rookery.sessions import store as agents
from rookery.sessions.model import Session
from rookery.tasks import store as tasks
from rookery.tasks.model import DEFAULT_PRIORITY, check_priority

_EVENTS = 200
_TAIL = 16_000
_LAST_LINES = 20


def draft(merger: Merger, name: str, base: str, *, priority: int | None = None, force: bool = False) -> Entry:
    """The entry that a branch, or the branch of an agent, would have; nothing is written.

    `force` is kept only where it is needed.
    """
    branch = _branch(merger, name)
    tip = merger.merging.tip(branch)
    if tip is None:
        raise InvalidInput(f"there is no branch {branch}", hint="`rook merge list` shows what is queued")
    if branch == base:
        raise InvalidInput(f"{branch} cannot land on itself", hint="say --into another branch")
    session = _session(merger, branch)
    now = merger.ctx.now()
    task_id = None if session is None else session.task_id
    task = tasks.existing(merger.ctx.db, task_id)
    return Entry(
        id=new_id(MERGE),
        branch=branch,
        base=base,
        tip=tip,
        task_id=task_id,
        agent=None if session is None else session.agent,
        lead=None if session is None else session.parent,
        run_id=None if session is None else session.run_id,
        priority=check_priority(priority) if priority is not None else task.priority if task else DEFAULT_PRIORITY,
        requested_by=merger.actor,
        created_at=now,
        updated_at=now,
        forced=force and bool(objection(merger.ctx.db, branch, task_id)),
    )


def enqueue(
    merger: Merger, names: Sequence[str], base: str, *, priority: int | None = None, force: bool = False
) -> list[Entry]:
    """Queue branches to land on a base. One that is queued, or has landed as it is, keeps the entry that it has."""
    planned = plan(merger, names, base, priority=priority, force=force)
    with merger.ctx.db.write():
        return insert(merger, planned)


@dataclass(frozen=True, slots=True)
class Plan(Record):
    """What is about to be queued, and what was known of it when git was asked."""

    drafts: tuple[Entry, ...]
    before: dict[str, Entry | None]
    """The newest entry that each branch had."""
    landed: set[str]
    """The branches of which the base has everything."""


def plan(
    merger: Merger,
    names: Sequence[str],
    base: str,
    *,
    priority: int | None = None,
    force: bool = False,
    lands_next: bool = False,
) -> Plan:
    """What queueing branches would write; raises if one of them may not land. One that lands next is merged already."""
    drafts = tuple(draft(merger, name, base, priority=priority, force=force) for name in names)
    for each in drafts:
        _check_allowed(merger, each)
    onto = merger.merging.tip(base)
    if lands_next and len(drafts) == 1 and onto is not None:
        merger.merging.foresee(onto, drafts[0].tip)
    before = {each.branch: _newest(merger.ctx.db, each) for each in drafts}
    return Plan(drafts, before, landed_branches(merger, {each.branch: each.tip for each in drafts}, base))


def insert(merger: Merger, planned: Plan) -> list[Entry]:
    """Within a transaction: queue what was planned."""
    queued = []
    for each in planned.drafts:
        newest = _newest(merger.ctx.db, each)
        if newest is None or not (newest.is_open or _has_landed(newest, each, planned.landed, planned.before)):
            store.insert(merger.ctx.db, each)
            newest = each
        elif each.forced and newest.is_open and not newest.forced:
            newest = store.force(merger.ctx.db, newest, actor=merger.actor, at=merger.ctx.now())
        queued.append(newest)
    return queued


def _newest(db: Database, entry: Entry) -> Entry | None:
    return store.newest(db, entry.branch, entry.base)


def _has_landed(newest: Entry, wanted: Entry, landed: set[str], before: Mapping[str, Entry | None]) -> bool:
    """True if the last entry of a branch says all there is to say: it landed, and the branch is still as it was.

    Either git has just said that it is on the base, or another process landed it since we asked.
    """
    if newest.state != LANDED or newest.tip != wanted.tip:
        return False
    return wanted.branch in landed or newest != before[wanted.branch]


def _check_allowed(merger: Merger, entry: Entry) -> None:
    reason = "" if entry.forced else objection(merger.ctx.db, entry.branch, entry.task_id)
    if reason:
        raise InvalidState(
            f"{entry.branch} does not land: {reason}",
            hint=f"`rook merge --branch {entry.branch} --force` lands it all the same, and completes no task",
        )


def cancel(merger: Merger, text: str) -> Entry:
    """Take an entry out of the queue."""
    with merger.ctx.db.write() as db:
        entry = store.get(db, store.resolve(db, text))
        return merger.change(entry, "cancel")


def retry(merger: Merger, text: str) -> Entry:
    """Queue an entry again that failed, waits, was cancelled or undone; its branch may have moved since."""
    entry = find(merger, text)
    tip = merger.merging.tip(entry.branch)
    if tip is None:
        raise InvalidInput(f"there is no branch {entry.branch} any more", hint="its commit was " + entry.tip)
    _check_allowed(merger, entry)
    if entry.state == UNDONE:  # its record stays, as what landed and was undone
        return enqueue(merger, [entry.branch], entry.base, priority=entry.priority, force=entry.forced)[0]
    with merger.ctx.db.write() as db:
        there = store.open_entry(db, entry.branch, entry.base)
        if there is not None and there.id != entry.id:
            return there
        blank = {"kind": None, "reason": None, "files": (), "candidate": None, "base_before": None}
        return merger.change(store.get(db, entry.id), "retry", tip=tip, **blank)


def find(merger: Merger, text: str) -> Entry:
    """The entry that an id, the beginning of one, a branch or an agent's name stands for; of several the newest."""
    found = store.select(merger.ctx.db, branch=_branch(merger, text), limit=1)
    if found:
        return found[0]
    try:
        return store.get(merger.ctx.db, store.resolve(merger.ctx.db, text))
    except InvalidId:
        raise NotFound(
            f"{text!r} is neither queued nor has it landed", hint="`rook merge list --all` shows what there is"
        ) from None


def find_undoable(merger: Merger, text: str) -> Entry:
    """The same, but of several the newest that can be undone, if one can."""
    landed = store.select(merger.ctx.db, states=(LANDED,), branch=_branch(merger, text))
    return next((each for each in landed if each.base_before is not None), None) or find(merger, text)


def listing(merger: Merger, *, everything: bool = False, limit: int = 50) -> list[Entry]:
    """What is open, in the order in which it lands; with `everything` also what is settled, the newest first."""
    under_way = [
        each for each in reversed(store.select(merger.ctx.db, states=OPEN)) if each.state not in (QUEUED, WAITING)
    ]
    open_entries = [*under_way, *store.queue(merger.ctx.db)]
    if not everything:
        return open_entries
    settled = [each for each in store.select(merger.ctx.db, limit=limit) if not each.is_open]
    return [*open_entries, *settled][:limit]


def explain(merger: Merger, text: str) -> Explained:
    """Everything that was done to bring an entry in."""
    entry = find(merger, text)
    happened = [
        {"at": each.at, "type": each.type, "actor": each.actor, "data": each.data}
        for each in events.read(merger.ctx.db, kinds=("merge",), subject=entry.id, limit=_EVENTS, newest=True)
    ]
    return Explained(
        entry,
        tuple(store.outcomes(merger.ctx.db, entry.id)),
        tuple(_gate_runs(merger, entry)),
        tuple(happened),
    )


def _gate_runs(merger: Merger, entry: Entry) -> list[GateRun]:
    """What the gates said of an entry: of its own tree or, in a batch, of the last that landed with it."""
    if entry.candidate is None:
        return []
    others = store.select(merger.ctx.db, states=(LANDED,), base=entry.base) if entry.landed_at is not None else []
    together = [each.candidate for each in others if each.landed_at == entry.landed_at and each.candidate]
    for commit in dict.fromkeys((entry.candidate, *together)):
        if merger.merging.store.find_commit(commit) is None:
            continue  # it was never on a branch, and nobody keeps it any more
        runs = store.gate_runs(merger.ctx.db, tree=merger.merging.tree(commit))
        if runs:
            return [run.replace(last_lines=_last_lines(run.log)) for run in reversed(runs)]
    return []


def _last_lines(log: str) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))
            return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-_LAST_LINES:])
    except OSError:
        return ""


def check_something(names: Sequence[str], base: str) -> None:
    """Raise if there is nothing to land."""
    if not names:
        raise NothingToLand(
            f"no finished branch is waiting to land on {base}",
            hint="`rook status --all` shows who is done; `rook merge --branch NAME` lands any branch",
        )


def _branch(merger: Merger, name: str) -> str:
    """A branch by its name, or that of an agent."""
    if merger.merging.tip(name) is not None:
        return name
    session = agents.latest(merger.ctx.db, name)
    return name if session is None else session.branch


def _session(merger: Merger, branch: str) -> Session | None:
    found = agents.sessions(merger.ctx.db, branch=branch)
    return found[-1] if found else None
