"""How reviews, resumed agents and differences look."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from rookery.base.clock import length, seconds_of
from rookery.base.ids import handle, with_handles
from rookery.base.text import in_words, one_line, plural
from rookery.cli.document import Block, Cell, Fields, Line, Paragraph, Span, Table, line, named, next_page, short, text
from rookery.cli.views import merges
from rookery.cli.views.gates import failed_output
from rookery.config.environ import now
from rookery.merge.model import LANDED
from rookery.review.diff import WorkDiff
from rookery.review.diff_ops import Editing, Place
from rookery.review.model import Decided, Resumed, Review, ReviewDetails
from rookery.review.service import STATES
from rookery.tasks.model import APPROVED, NEEDS_REBASE
from rookery.tasks.reviews import store as steps
from rookery.tasks.scope.outside import describe_files
from rookery.vcs.model import FileDiff

_ACTIONS: dict[str, Span] = {
    steps.SUBMITTED: ("handed in", "note"),
    steps.APPROVED: ("approved", "good"),
    steps.CHANGES_REQUESTED: ("changes requested", "bad"),
    steps.REBASE_REQUESTED: ("rebase requested", "busy"),
}
_SHOWN_FILES = 40


def listing(reviews: list[Review], _values: dict[str, Any]) -> list[Block]:
    """Reviews in a table."""
    rows = [
        (
            named(review.task_id),
            _state(review),
            review.agent or "-",
            _age(review.submitted_at),
            _size(review),
            review.gate or "-",
            one_line(review.title),
        )
        for review in reviews
    ]
    headings = ("task", "state", "agent", "age", "change", "gates", "title")
    table = Table(headings, rows, stretch=6, empty="Nothing is in review.")
    hint = text("`rook review show TASK` shows one", "dim")
    return [table, *next_page(reviews), *([hint] if reviews else [])]


def _state(review: Review) -> Span:
    if review.is_moved:
        return "moved since approval", "bad"
    return in_words(review.state), {APPROVED: "good", NEEDS_REBASE: "busy"}.get(review.state, "note")


def _age(at: str) -> str:
    return length(now() - seconds_of(at))


def _size(review: Review) -> Line:
    return line(f"{plural(review.files, 'file')} ", (f"+{review.added}", "good"), " ", (f"-{review.deleted}", "bad"))


def details(review: ReviewDetails, _values: dict[str, Any]) -> Iterator[Block]:
    """One review at length."""
    name = handle(review.task_id)
    yield Paragraph([line(named(review.task_id), "  ", (one_line(review.title), "title"))])
    fields: dict[str, Cell] = {
        "state": _state(review),
        "agent": review.agent,
        "branch": review.branch,
        "commit": short(review.commit),
        "handed in": f"{_age(review.submitted_at)} ago, {plural(review.attempt, 'attempt')}",
        "change": _size(review),
        "on " + review.base: _prediction(review),
        "gates": review.gate or "not run yet",
        "queue": _landing(review),
    }
    yield Fields(fields)
    if review.description.strip():
        yield text("task", "dim")
        yield text(review.description.strip(), indent=2)
    if review.result:
        yield text("result", "dim")
        yield text(review.result.strip(), indent=2)
    if review.changes:
        yield text("changes", "dim")
        yield from files(review.changes, _SHOWN_FILES)
    if review.outside:
        yield text("outside of its agent's files", "dim")
        yield Paragraph(describe_files(review.outside), indent=2)
    yield from _rounds(review)
    yield from _next_steps(review, name)


def _prediction(review: ReviewDetails) -> Cell:
    if review.predicted is None:
        return ""
    reason = f": {with_handles(one_line(review.predicted.reason))}" if review.predicted.reason else ""
    return f"{review.predicted.tier.replace('_', ' ')}{reason}"


def _landing(review: ReviewDetails) -> str:
    entry = review.landing
    if entry is None:
        return ""
    return f"{entry.state}: {with_handles(one_line(entry.reason))}" if entry.reason else entry.state


def _rounds(review: ReviewDetails) -> Iterator[Block]:
    """When it was handed in and what was decided."""
    if not review.steps:
        return
    yield text("rounds", "dim")
    for step in review.steps:
        by = f"  {step.actor}, {_age(step.at)} ago" + (f", at {step.commit[:12]}" if step.commit else "")
        yield Paragraph([line(_ACTIONS.get(step.action, (step.action, "")), (by, "dim"))], indent=2)
        if step.comment:
            yield text(step.comment, indent=4)


def _next_steps(review: ReviewDetails, name: str) -> Iterator[Block]:
    if review.branch is None:
        return
    if review.state == APPROVED and not review.is_moved:
        yield text(f"`rook merge --branch {review.branch}` lands it", "dim")
        return
    yield text(f"`rook diff {name}` shows the lines", "dim")
    if review.state in STATES:
        approve = "" if review.state == NEEDS_REBASE else f"`rook review approve {name}` or "
        yield text(f'{approve}`rook review request-changes {name} "…"` decides', "dim")


def files(changes: tuple[FileDiff, ...], most: int = 0) -> Iterator[Block]:
    """Changed files with their counts."""
    shown = changes[: most or None]
    rows = [
        (
            ("binary" if file.added is None else f"+{file.added}", "good"),
            ("" if file.deleted is None else f"-{file.deleted}", "bad"),
            (file.kind, "dim"),
            one_line(file.path) if file.old_path is None else f"{one_line(file.old_path)} → {one_line(file.path)}",
        )
        for file in shown
    ]
    yield Table(("added", "deleted", "change", "path"), rows)
    if len(shown) < len(changes):
        yield text(f"and {plural(len(changes) - len(shown), 'more file')}", "dim")


def decided(result: Decided, _values: dict[str, Any]) -> Iterator[Block]:
    """A decision, and what follows."""
    name, action = handle(result.task_id), _ACTIONS[result.action]
    yield Paragraph([line(named(result.task_id), "  ", action, (f" at {(result.commit or 'no commit')[:12]}", "dim"))])
    if result.withdrawn:
        yield text(f"{result.branch} was taken out of the merge queue")
    if result.landed is not None:
        entry = result.landed
        how = (
            f"landed on {entry.base}"
            if entry.state == LANDED
            else f"{entry.state}: {with_handles(one_line(entry.reason or ''))}"
        )
        yield text(f"{entry.branch} {how}", "good" if entry.state == LANDED else "bad")
        yield from failed_output(tuple(failed.run for failed in result.failed_gates))
        yield from merges.next_steps(entry)
    elif result.action == steps.APPROVED:
        yield text(f"`rook merge --branch {result.branch}` lands it", "dim")
    elif result.session is not None:
        yield text(f"{result.agent} is resumed and has the comment as mail")
        yield text(f"`rook inspect {result.agent} --follow` shows what it does", "dim")
    elif result.is_told:
        yield text(f"{result.agent} has the comment as mail")
    else:
        yield text(result.problem, "bad")
        yield from _without_author(result, name)


def _without_author(result: Decided, name: str) -> Iterator[Block]:
    if result.action == steps.REBASE_REQUESTED:
        yield text(f"Rebase {result.branch} yourself, then `rook task submit {name}`", "dim")
    elif result.state == "PENDING":
        yield text(f"{name} is open again: `rook sling {name}` gives it to another agent", "dim")
    else:
        yield text(f"{name} is {in_words(result.state)}: `rook task submit {name}` hands it in again", "dim")


def resumed(result: Resumed, _values: dict[str, Any]) -> list[Block]:
    """An agent that was resumed."""
    session, earlier = result.session, result.earlier
    title = line(("◐ ", "busy"), (session.agent, "title"), f" is resumed, a {session.role}, and at work")
    worktree = session.worktree
    if result.is_recreated:
        worktree += " (made again from the branch)"
    fields: dict[str, Cell] = {
        "task": named(session.task_id),
        "answers to": session.parent,
        "branch": session.branch,
        "worktree": worktree,
        "put back": f"uncommitted work from {result.restored}" if result.restored else "",
        "conversation": "goes on" if result.has_conversation else "there was none",
        "last session": ": ".join(
            part for part in (earlier.outcome, with_handles(one_line(earlier.reason or ""))) if part
        ),
        "runs on": f"{session.runtime}, {session.mode}",
    }
    return [
        Paragraph([title]),
        Fields(fields),
        *([_withdrawn(result)] if result.sent_back else []),
        *(text(f"{name} ended too; `rook resume {name}` starts it again", "note") for name in result.workers),
        text(f"`rook inspect {session.agent} --follow` shows what it does", "dim"),
    ]


def _withdrawn(result: Resumed) -> Block:
    asked = one_line(result.sent_back, 60)
    return text(f"{handle(result.session.task_id or '')} was in review and goes back to it: {asked}", "note")


_MARKS = {"+": "good", "-": "bad", "@": "note"}


def difference(result: WorkDiff, values: dict[str, Any]) -> Iterator[Block]:
    """What some work changes."""
    yield Paragraph([_heading(result)])
    if not result.files:
        yield text("No difference.", "dim")
        return
    if not result.patch:
        yield from files(result.files)
        return
    yield Paragraph([(row, _style(row)) for row in result.patch.removesuffix("\n").split("\n")])
    if result.left_out:
        yield text(f"and {plural(result.left_out, 'more line')}; `rook diff {values['name']} --all` shows them", "dim")


def _heading(result: WorkDiff) -> Line:
    who = result.agent or (handle(result.task_id) if result.task_id else "")
    added, deleted = sum(file.added or 0 for file in result.files), sum(file.deleted or 0 for file in result.files)
    where, at = f"since {result.since}", result.start
    if result.landed_on:
        where, at = f"landed on {result.landed_on} as", result.commit or result.start
    loose = ""
    if result.worktree is not None and result.files:
        loose = (
            f", {plural(result.uncommitted, 'uncommitted file')} included" if result.uncommitted else ", all committed"
        )
    return line(
        (who, "title"),
        (f"  {result.branch}, {where} ({at[:12]}){loose}: ", "dim"),
        f"{plural(len(result.files), 'file')} ",
        (f"+{added}", "good"),
        " ",
        (f"-{deleted}", "bad"),
    )


def _style(row: str) -> str:
    if row.startswith(("diff --git ", "index ", "--- ", "+++ ")):
        return "title"
    return _MARKS.get(row[:1], "")


def place(result: Place, _values: dict[str, Any]) -> list[Block]:
    """A folder alone, for `cd`."""
    return [text(result.path)]


def editing(result: Editing, _values: dict[str, Any]) -> list[Block]:
    """How to open the editor."""
    return [text(shlex.join(result.command))]
