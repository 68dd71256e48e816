"""How a conflict in a person's hands is shown."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from textwrap import wrap
from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Cell, Paragraph, line, short, text
from rookery.merge.model import Entry
from rookery.merge.person.model import GIVEN_UP, HAS_LANDED, NOT_LANDED, NOTES, ConflictedPath, Resolving, SideView

_MOST_FILES = 20
_WIDTH = 78


def resolving(result: Resolving, _values: dict[str, Any]) -> Iterator[Block]:
    """Where the conflict is open, both sides of it, and how to go on; or what became of it."""
    entry = result.entry
    if result.status == GIVEN_UP:
        yield text(f"Given up: {entry.branch} is {entry.state} again; its worktree is removed.")
        if result.rescue is not None:
            yield text(f"What was done there is kept under {result.rescue}", "note")
        return
    if result.status == HAS_LANDED:
        yield Paragraph([line((entry.branch, "bold"), f" has landed on {entry.base} as ", short(entry.commit))])
        if result.lost:
            yield text(f"{len(result.lost)} lines of one side or the other are left out, as accepted.", "note")
        return
    if result.status == NOT_LANDED:
        yield text(f"{entry.branch} is {entry.state}: {one_line(entry.reason or '')}", "bad")
        yield text(f"Your work is kept in {result.path}", "note")
        yield text(f"To go on: rook merge resolve {entry.id}")
        return
    yield from _open(result)


def _open(result: Resolving) -> Iterator[Block]:
    entry = result.entry
    state = "is open for you in" if result.is_new else "is open already in"
    head: list[Cell] = [
        line((entry.branch, "bold"), f" conflicts with {entry.base}; it {state}"),
        (f"  {result.path}", "bold"),
    ]
    if result.purpose:
        head.append((f"for: {result.purpose}", "dim"))
    yield Paragraph([*head, *((note, "note") for note in result.notes)])
    for file in result.files[:_MOST_FILES]:
        yield Paragraph(list(_file(file, entry)))
    if len(result.files) > _MOST_FILES:
        yield text(f"and {len(result.files) - _MOST_FILES} more files; {NOTES} has all of them", "dim")
    if result.settled:
        yield text(f"Rules have settled {len(result.settled)} more files.", "dim")
    yield Paragraph(
        [
            ("To go on:", "bold"),
            f"  cd {quote(result.path)}",
            "  git status            # what is left; `git mergetool` works too",
            f"  (between the markers, ours is {one_line(entry.base)}, theirs is {one_line(entry.branch)})",
            "  git commit            # when all of it is resolved",
            f"  rook merge resolve {entry.id} --done",
            ("    (add --accept-loss where a line of one side is meant to go)", "dim"),
            "To give up:",
            f"  rook merge resolve {entry.id} --abort",
            (f"{NOTES} in that folder says all of this again.", "dim"),
        ]
    )


def _file(file: ConflictedPath, entry: Entry) -> Iterator[Cell]:
    yield line((one_line(file.path), "bold"), (f" ({file.kind})", "dim"))
    for name, side in ((entry.base, file.base), (entry.branch, file.branch)):
        yield from _side(one_line(name), side)
    for tried in file.tried:
        if tried.tier != "human":
            yield from _wrapped(f"{tried.tier} {tried.outcome} it: {one_line(tried.why)}", "dim")
    yield from _wrapped(file.how)


def _wrapped(content: str, style: str = "") -> Iterator[Cell]:
    """A long line in several, so that it can be read in a pipe, too."""
    for row in wrap(content, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False):
        yield (row, style)


def _side(name: str, side: SideView) -> Iterator[Cell]:
    counts = "" if side.added is None else f" (+{side.added} -{side.deleted})"
    did = "left it as it was" if side.did == "nothing" else f"{side.did} it"
    yield f"  {name} {did}{counts}"
    for commit in side.commits:
        yield line("    ", short(commit.commit), f" {one_line(commit.subject, 60)}")
        if commit.branch:
            task = f": {commit.task}" if commit.task else ""
            yield (f"      landed {one_line(commit.branch)}{task}", "dim")
    if side.more:
        yield (f"    and {side.more} more commits", "dim")
