"""From the rows of what is open to items: who, about what, why, and the command that settles it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rookery.base.ids import handle
from rookery.base.record import Record
from rookery.base.text import one_line
from rookery.inbox import model
from rookery.inbox.model import Item, key_of, short_hash
from rookery.inbox.store import Asked, Broken, FailedTask, GivenUp, Idle, InReview, Queued, Stray, Stuck
from rookery.mail.model import SYSTEM
from rookery.merge.model import BASE_GATE, BUSY, CONFLICT, EMPTY, FAILED, GATE, OUTSIDE, RESOLVING
from rookery.merge.person.model import shown_place
from rookery.runtimes.model import TMUX
from rookery.tasks.model import APPROVED, AWAITING_HUMAN_REVIEW, NEEDS_REBASE

_WIDTH = 300


@dataclass(frozen=True, slots=True)
class Rows(Record):
    """Everything that is open, as the tables have it at one time."""

    asked: list[Asked]
    broken: list[Broken]
    failed: list[FailedTask]
    stuck: list[Stuck]
    queued: list[Queued]
    idle: list[Idle]
    stray: list[Stray]
    given_up: list[GivenUp]
    in_review: list[InReview]


def derive(rows: Rows, base: str = "") -> list[Item]:
    """What waits for a person, in the order in which a person should see it. `base` is the branch of the project."""
    landings = [
        *_of_bases(rows.stuck, base),
        *_of_queues(rows.queued, base),
        *(_landing(entry, base) for entry in rows.stuck if not _waits_for_base(entry)),
    ]
    tasks = {item.task_id for item in landings} - {None}
    items = [
        *map(_question, rows.asked),
        *map(_crash, rows.broken),
        *map(_failed_task, rows.failed),
        *landings,
        *map(_idle, rows.idle),
        *map(_stray, rows.stray),
        *map(_action, rows.given_up),
        *(_review(task, base) for task in rows.in_review if task.id not in tasks),  # its landing says more
    ]
    return sorted(items, key=model.order)


def _question(asked: Asked) -> Item:
    short = handle(asked.id)
    return Item(
        key=key_of(asked.type, asked.id),
        kind=asked.type,
        id=asked.id,
        who=asked.sender,
        about=_line(asked.title),
        why=_line(asked.subject) + (f" ({asked.sender} has ended)" if asked.is_over else ""),
        since=asked.created_at,
        urgency=asked.priority,
        commands=(f'rook mail reply {short} --body "…"', f"rook inbox show {short}", f"rook inbox ack {short}"),
        task_id=asked.task_id,
    )


def _crash(session: Broken) -> Item:
    again: tuple[str, ...] = (f"rook sling {handle(session.task_id)}",) if session.task_id else ()
    if session.has_begun:
        again = (f"rook resume {session.agent}", *again)
    elif session.task_id:
        again = (f"{again[0]} --name {session.agent}",)
    return Item(
        key=key_of(model.CRASH, session.id),
        kind=model.CRASH,
        id=session.id,
        who=session.agent,
        about=_line(session.title),
        why=f"{session.outcome}: {_line(session.reason or 'no reason is known')}",
        since=session.ended_at,
        commands=(*again, f"rook inspect {session.agent}"),
        task_id=session.task_id,
    )


def _failed_task(task: FailedTask) -> Item:
    short = handle(task.id)
    return Item(
        key=key_of(model.FAILED, task.id, task.seq),
        kind=model.FAILED,
        id=task.id,
        who=task.agent,
        about=_line(task.title),
        why=f"given up as failed: {_line(task.reason or 'no reason is known')}",
        since=task.at,
        commands=(f"rook task reopen {short}", f"rook task cancel {short}", f"rook task get {short}"),
        task_id=task.id,
    )


def _waits_for_base(entry: Stuck) -> bool:
    return entry.kind == BASE_GATE and not entry.is_open


def _of_bases(entries: Iterable[Stuck], own_base: str) -> Iterator[Item]:
    """One item for each base that fails a gate, however many branches wait for it."""
    waiting = sorted(filter(_waits_for_base, entries), key=lambda entry: (entry.base, entry.updated_at, entry.id))
    for base, group in groupby(waiting, key=lambda entry: entry.base):
        branches = list(group)
        first = branches[0]
        number = len(branches)
        waits = f"{first.branch} waits" if number == 1 else f"{number} branches wait"
        yield Item(
            key=key_of(model.BASE, base, _run_of(first.log)),
            kind=model.BASE,
            id=first.id,
            who="",
            about=_line(base),
            why=f"{_line(first.reason or f'{base} itself fails a gate')}; {_line(waits)}",
            since=first.updated_at,
            urgency="high",
            commands=(f"rook merge run{_into(base, own_base)}", f"rook merge explain {handle(first.id)}"),
        )


def _of_queues(entries: Iterable[Queued], own_base: str) -> Iterator[Item]:
    """One item for each base that branches are queued for, and that no merger is at work on."""
    waiting = sorted(entries, key=lambda entry: (entry.base, entry.updated_at, entry.id))
    for base, group in groupby(waiting, key=lambda entry: entry.base):
        branches = list(group)
        number = len(branches)
        what = f"{branches[0].branch} is queued" if number == 1 else f"{number} branches are queued"
        yield Item(
            key=key_of(model.LANDING, base, short_hash(" ".join(entry.id for entry in branches))),
            kind=model.LANDING,
            id=branches[0].id,
            who="",
            about=_line(base),
            why=f"{_line(what)}, and nothing lands {'it' if number == 1 else 'them'}",
            since=branches[0].updated_at,
            commands=(f"rook merge run{_into(base, own_base)}", "rook merge list"),
        )


def _run_of(log: str | None) -> str:
    """What tells one failed run of a gate from another: the name of its log."""
    return (log or "").rpartition("/")[2]


def _landing(entry: Stuck, base: str) -> Item:
    short, explain = handle(entry.id), f"rook merge explain {handle(entry.id)}"
    retry, cancel = f"rook merge retry {short}", f"rook merge cancel {short}"
    why = _line(entry.reason or "it waits for a person")
    commands: tuple[str, ...]
    if entry.is_open or entry.kind == RESOLVING:
        kind, why = model.CONFLICT, f"you have its conflict open in {shown_place(entry.id)}"
        commands = (f"rook merge resolve {short} --done", f"rook merge resolve {short} --abort", explain)
    elif entry.kind == CONFLICT:
        kind, commands = model.CONFLICT, (f"rook merge resolve {short}", explain, cancel)
    elif entry.kind == GATE:
        verb = "nudge" if entry.has_agent else "resume"
        fix = (f'rook {verb} {entry.agent} "The gate fails: fix it."',) if entry.agent else ()
        kind, commands = model.GATE, (*fix, retry, explain, cancel)
    elif entry.kind == EMPTY and entry.agent:
        verb = "nudge" if entry.has_agent else "resume"
        kind, commands = model.LANDING, (f'rook {verb} {entry.agent} "Commit your work."', retry, explain, cancel)
    elif entry.kind == BUSY:
        why += "; settle that first"
        kind, commands = model.LANDING, (f"rook merge run{_into(entry.base, base)}", explain, cancel)
    elif entry.kind == OUTSIDE:
        into = _into(entry.base, base)
        land = f'rook merge --branch {shlex.quote(entry.branch)}{into} --outside "…"'
        kind, commands = model.LANDING, (land, explain, cancel)
    else:
        kind, commands = model.LANDING, (retry, explain, cancel) if entry.state != FAILED else (cancel, retry, explain)
    return Item(
        key=key_of(kind, entry.id, short_hash(f"{entry.attempts} {entry.reason}")),
        kind=kind,
        id=entry.id,
        who=entry.agent or "",
        about=_line(entry.title or entry.branch),
        why=why,
        since=entry.updated_at,
        commands=commands,
        task_id=entry.task_id,
    )


def _idle(session: Idle) -> Item:
    nudge = f'rook nudge {session.agent} "…"'
    why = "it has asked no one and handed in nothing"
    if session.asked is not None:
        why = f"it has asked {session.asked}, who has ended"
    hand_in = (f"rook task submit {handle(session.task_id)}",) if session.task_id else ()
    look = f"rook attach {session.agent}" if session.mode == TMUX else f"rook inspect {session.agent}"
    return Item(
        key=key_of(model.IDLE, session.id, session.turn),
        kind=model.IDLE,
        id=session.id,
        who=session.agent,
        about=_line(session.title),
        why=f"{why}, and nothing will wake it",
        since=session.since,
        commands=(nudge, look, *hand_in, f"rook stop {session.agent}"),
        task_id=session.task_id,
    )


def _stray(session: Stray) -> Item:
    again = (f"rook task reopen {handle(session.task_id)}",) if session.title is not None else ()
    return Item(
        key=key_of(model.STRAY, session.id, session.cancelled or ""),
        kind=model.STRAY,
        id=session.id,
        who=session.agent,
        about=_line(session.title),
        why=f"its task was {'deleted' if session.title is None else 'cancelled'}, and it has not ended",
        since=session.since,
        commands=(f"rook stop {session.agent}", *again, f"rook inspect {session.agent}"),
        task_id=session.task_id,
    )


def _action(failure: GivenUp) -> Item:
    name, _, subject = failure.key.rpartition(" ")
    title = f"{name} {failure.agent or subject}"
    times = "" if failure.count <= model.MOST_FAILURES else f" {failure.count} times"
    return Item(
        key=key_of(model.ACTION, failure.key, failure.at),
        kind=model.ACTION,
        id=failure.key,
        who=failure.agent or SYSTEM,
        about=_line(title),
        why=f"given up, it failed{times}: {_line(failure.error)}",
        since=failure.at,
        urgency="high",
        commands=("rook loop run", "rook loop explain"),
    )


def _review(task: InReview, base: str) -> Item:
    short = handle(task.id)
    show = f"rook review show {short}"
    approve, send_back = f"rook review approve {short} --merge", f'rook review request-changes {short} "…"'
    is_epic = task.state == AWAITING_HUMAN_REVIEW
    is_empty = not is_epic and (task.branch is None or (task.commit is not None and task.commit == task.start_commit))
    number = ".".join(filter(None, (task.commit, str(task.submission or ""))))
    if task.state == APPROVED:
        why, number = "approved, and has not landed", f"{number}.approved"
        land = f"rook task complete {short}" if is_empty else f"rook merge --branch {shlex.quote(task.branch or '')}"
        commands: tuple[str, ...] = (land, show, send_back)
    elif task.state == NEEDS_REBASE:
        why, number = "needs a rebase, and no agent works on it", f"{number}.rebase"
        rebase = f'rook resume {task.agent} "Rebase your branch onto {base or "its base"}."'
        commands = (rebase if task.agent else send_back, show)
    elif is_empty:
        why = "handed in without a commit, and waits for your review"
        commands = (send_back, show, f"rook review approve {short}")  # nothing lands: then it is completed
    else:
        what = "the epic is done" if is_epic else "handed in"
        why, commands = f"{what}, and waits for your review", (approve, show, send_back)
    return Item(
        key=key_of(model.REVIEW, task.id, number),
        kind=model.REVIEW,
        id=task.id,
        who=task.agent or "",
        about=_line(task.title),
        why=why,
        since=task.updated_at,
        commands=commands,
        task_id=task.id,
    )


def _into(base: str, own: str) -> str:
    return "" if base == own else f" --into {shlex.quote(base)}"


def _line(text: str | None) -> str:
    return one_line(text or "", _WIDTH)
