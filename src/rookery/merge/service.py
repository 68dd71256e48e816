"""The use cases of landing: queue a branch, take it out, try it again, tell what was done."""

from __future__ import annotations

import os

from rookery.agents import store as agents
from rookery.base.errors import InvalidId, InvalidInput, NotFound
from rookery.base.ids import MERGE, new_id
from rookery.events import store as events
from rookery.merge import store
from rookery.merge.model import LANDED, OPEN, QUEUED, Entry, Explained, NothingToLand
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED, DEFAULT_PRIORITY, PENDING_REVIEW, check_priority
from rookery.tasks.work import BRANCH_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rookery.agents.model import Session
    from rookery.merge.desk import Desk
    from rookery.merge.model import GateRun

_EVENTS = 200
_TAIL = 16_000
_LAST_LINES = 20


def draft(desk: Desk, name: str, base: str, *, priority: int | None = None) -> Entry:
    """The entry that a branch, or the branch of an agent, would have; nothing is written."""
    branch = _branch(desk, name)
    tip = desk.merging.tip(branch)
    if tip is None:
        raise InvalidInput(f"there is no branch {branch}", hint="`rook merge list` shows what is queued")
    if branch == base:
        raise InvalidInput(f"{branch} cannot land on itself", hint="say --into another branch")
    session = _session(desk, branch)
    now = desk.now()
    task = None
    if session is not None and session.task_id is not None:
        task = tasks.get_many(desk.db, [session.task_id]).get(session.task_id)
    return Entry(
        id=new_id(MERGE),
        branch=branch,
        base=base,
        tip=tip,
        task_id=None if session is None else session.task_id,
        agent=None if session is None else session.agent,
        lead=None if session is None else session.parent,
        run_id=None if session is None else session.run_id,
        priority=check_priority(priority) if priority is not None else task.priority if task else DEFAULT_PRIORITY,
        state=QUEUED,
        attempts=0,
        tier=None,
        strategy=None,
        base_before=None,
        candidate=None,
        kind=None,
        reason=None,
        files=(),
        requested_by=desk.actor,
        created_at=now,
        updated_at=now,
        landed_at=None,
        cleaned_at=None,
        followed_at=None,
    )


def enqueue(desk: Desk, names: Sequence[str], base: str, *, priority: int | None = None) -> list[Entry]:
    """Queue branches to land on a base; one that is queued already stays where it is."""
    drafts = [draft(desk, name, base, priority=priority) for name in names]
    queued = []
    with desk.db.write() as db:
        for each in drafts:
            there = store.open_entry(db, each.branch, base)
            if there is None:
                store.insert(db, each)
            queued.append(there or each)
    return queued


def ready_branches(desk: Desk, base: str) -> list[str]:
    """The branches whose work is finished and not on the base: submitted, approved, or of agents that completed."""
    found = []
    tip = desk.merging.tip(base)
    last: dict[str, Session] = {session.branch: session for session in agents.sessions(desk.db)}
    for branch, commit in desk.vcs.branches(BRANCH_PREFIX).items():
        session = last.get(branch)
        if session is None or session.is_alive or commit == session.base_commit:
            continue
        task = tasks.get_many(desk.db, [session.task_id]).get(session.task_id) if session.task_id else None
        is_ready = session.outcome == "completed" or (task is not None and task.state in (PENDING_REVIEW, APPROVED))
        if is_ready and tip is not None and not desk.merging.store.contains(commit, tip):
            settled = store.select(desk.db, base=base, branch=branch, limit=1)
            if not settled or settled[0].is_open or settled[0].tip != commit:
                found.append(branch)
    return found


def cancel(desk: Desk, text: str) -> Entry:
    """Take an entry out of the queue."""
    with desk.db.write() as db:
        entry = store.get(db, store.resolve(db, text))
        return store.change(db, entry, "cancel", actor=desk.actor, at=desk.now())


def retry(desk: Desk, text: str) -> Entry:
    """Queue an entry again that failed, waits, was cancelled or taken back; its branch may have moved since."""
    with desk.db.write() as db:
        entry = find(desk, text)
        tip = desk.merging.tip(entry.branch)
        if tip is None:
            raise InvalidInput(f"there is no branch {entry.branch} any more", hint="its commit was " + entry.tip)
        there = store.open_entry(db, entry.branch, entry.base)
        if there is not None and there.id != entry.id:
            return there
        return store.change(
            db,
            entry,
            "retry",
            actor=desk.actor,
            at=desk.now(),
            tip=tip,
            kind=None,
            reason=None,
            files=(),
            candidate=None,
            base_before=None,
            landed_at=None,
            cleaned_at=None,
            followed_at=None,
        )


def find(desk: Desk, text: str) -> Entry:
    """The entry that an id, the beginning of one, a branch or an agent's name stands for; of several the newest."""
    found = store.select(desk.db, branch=_branch(desk, text), limit=1)
    if found:
        return found[0]
    try:
        return store.get(desk.db, store.resolve(desk.db, text))
    except InvalidId:
        raise NotFound(
            f"{text!r} is neither queued nor has it landed", hint="`rook merge list --all` shows what there is"
        ) from None


def listing(desk: Desk, *, everything: bool = False, limit: int = 50) -> list[Entry]:
    """What is open, in the order in which it lands; with `everything` also what is settled, the newest first."""
    under_way = [
        each for each in reversed(store.select(desk.db, states=OPEN)) if each.state not in ("queued", "waiting")
    ]
    open_entries = [*under_way, *store.queue(desk.db)]
    if not everything:
        return open_entries
    settled = [each for each in store.select(desk.db, limit=limit) if not each.is_open]
    return [*open_entries, *settled][:limit]


def explain(desk: Desk, text: str) -> Explained:
    """Everything that was done to bring an entry in."""
    entry = find(desk, text)
    happened = [
        {"at": each.at, "type": each.type, "actor": each.actor, "data": each.data}
        for each in events.read(desk.db, kinds=("merge",), limit=-1)
        if each.subject == entry.id
    ]
    return Explained(
        entry,
        tuple(store.outcomes(desk.db, entry.id)),
        tuple(_gate_runs(desk, entry)),
        tuple(happened[-_EVENTS:]),
    )


def _gate_runs(desk: Desk, entry: Entry) -> list[GateRun]:
    """What the gates said of an entry: of its own tree or, in a batch, of the last that landed with it."""
    if entry.candidate is None:
        return []
    others = store.select(desk.db, states=(LANDED,), base=entry.base) if entry.landed_at is not None else []
    together = [each.candidate for each in others if each.landed_at == entry.landed_at and each.candidate]
    for commit in dict.fromkeys((entry.candidate, *together)):
        if desk.merging.store.find_commit(commit) is None:
            continue  # it was never on a branch, and nobody keeps it any more
        runs = store.gate_runs(desk.db, tree=desk.merging.tree(commit))
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


def _branch(desk: Desk, name: str) -> str:
    """A branch by its name, or that of an agent."""
    if desk.merging.tip(name) is not None:
        return name
    session = agents.latest(desk.db, name)
    return name if session is None else session.branch


def _session(desk: Desk, branch: str) -> Session | None:
    found = [each for each in agents.sessions(desk.db) if each.branch == branch]
    return found[-1] if found else None
