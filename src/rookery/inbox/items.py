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
from rookery.inbox.store import Asked, Broken, GivenUp, Idle, InReview, Stuck
from rookery.mail.model import SYSTEM
from rookery.merge.model import BASE_GATE, BUSY, CONFLICT, FAILED, GATE, OUTSIDE, RESOLVING
from rookery.merge.person.model import shown_place
from rookery.runtimes.model import TMUX
from rookery.tasks.model import AWAITING_HUMAN_REVIEW

_WIDTH = 300


@dataclass(frozen=True, slots=True)
class Rows(Record):
    """Everything that is open, as the tables have it at one time."""

    asked: list[Asked]
    broken: list[Broken]
    stuck: list[Stuck]
    idle: list[Idle]
    given_up: list[GivenUp]
    in_review: list[InReview]


def derive(rows: Rows, base: str = "") -> list[Item]:
    """What waits for a person, in the order in which a person should see it. `base` is the branch of the project."""
    landings = [
        *_of_bases(rows.stuck, base),
        *(_landing(entry, base) for entry in rows.stuck if not _waits_for_base(entry)),
    ]
    tasks = {item.task_id for item in landings} - {None}
    items = [
        *map(_question, rows.asked),
        *map(_crash, rows.broken),
        *landings,
        *map(_idle, rows.idle),
        *map(_action, rows.given_up),
        *(_review(task) for task in rows.in_review if task.id not in tasks),  # its landing says more
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
    again = (f"rook sling {handle(session.task_id)}",) if session.task_id else ()
    return Item(
        key=key_of(model.CRASH, session.id),
        kind=model.CRASH,
        id=session.id,
        who=session.agent,
        about=_line(session.title),
        why=f"{session.outcome}: {_line(session.reason or 'no reason is known')}",
        since=session.ended_at,
        commands=(f"rook resume {session.agent}", *again, f"rook inspect {session.agent}"),
        task_id=session.task_id,
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


def _run_of(log: str | None) -> str:
    """What tells one failed run of a gate from another: the name of its log."""
    return (log or "").rpartition("/")[2]


def _landing(entry: Stuck, base: str) -> Item:
    short, explain = handle(entry.id), f"rook merge explain {handle(entry.id)}"
    retry, cancel = f"rook merge retry {short}", f"rook merge cancel {short}"
    why = _line(entry.reason or "it waits for a person")
    if entry.is_open or entry.kind == RESOLVING:
        kind, why = model.CONFLICT, f"you have its conflict open in {shown_place(entry.id)}"
        commands = (f"rook merge resolve {short} --done", f"rook merge resolve {short} --abort", explain)
    elif entry.kind == CONFLICT:
        kind, commands = model.CONFLICT, (f"rook merge resolve {short}", explain, cancel)
    elif entry.kind == GATE:
        verb = "nudge" if entry.has_agent else "resume"
        fix = (f'rook {verb} {entry.agent} "The gate fails: fix it."',) if entry.agent else ()
        kind, commands = model.GATE, (*fix, retry, explain, cancel)
    elif entry.kind == BUSY:
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
    look = f"rook attach {session.agent}" if session.mode == TMUX else f"rook inspect {session.agent}"
    return Item(
        key=key_of(model.IDLE, session.id, session.turn),
        kind=model.IDLE,
        id=session.id,
        who=session.agent,
        about=_line(session.title),
        why="it has asked no one and handed in nothing, and nothing will wake it",
        since=session.since,
        commands=(nudge, look, f"rook stop {session.agent}"),
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


def _review(task: InReview) -> Item:
    short = handle(task.id)
    what = "the epic is done" if task.state == AWAITING_HUMAN_REVIEW else "handed in"
    approve, show = f"rook review approve {short} --merge", f"rook review show {short}"
    return Item(
        key=key_of(model.REVIEW, task.id, task.commit or ""),
        kind=model.REVIEW,
        id=task.id,
        who=task.agent or "",
        about=_line(task.title),
        why=f"{what}, and waits for your review",
        since=task.updated_at,
        commands=(approve, show, f'rook review request-changes {short} "…"'),
        task_id=task.id,
    )


def _into(base: str, own: str) -> str:
    return "" if base == own else f" --into {shlex.quote(base)}"


def _line(text: str | None) -> str:
    return one_line(text or "", _WIDTH)
