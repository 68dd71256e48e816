"""How worktrees and their snapshots look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.base.ids import with_handles
from rookery.base.text import one_line, plural
from rookery.cli.document import Block, Cell, Paragraph, Table, line, moment, short, some, text
from rookery.merge.rebase import Rebased
from rookery.worktrees.cleaning import Cleaned, Listed
from rookery.worktrees.service import WorktreeState
from rookery.worktrees.snapshots import Restored, Snapshot

_SHOWN_FILES = 5
_VERDICTS = {"kept": "busy", "removable": "", "removed": "good"}


def listing(worktrees: list[Listed], values: dict[str, Any]) -> list[Block]:
    """Every worktree."""
    headings = ["agent", "session", "changed", "untracked", "unmerged", "ignored", "branch", "notes"]
    rows = [_row(listed) for listed in worktrees]
    if values.get("size"):
        headings.append("size")
        rows = [[*row, _megabytes(listed.size)] for row, listed in zip(rows, worktrees, strict=True)]
    return [Table(headings, rows, empty="No worktrees.", under=(6, 7))]


def _row(listed: Listed) -> list[Cell]:
    state = listed.worktree
    counts = (len(state.uncommitted), len(state.untracked), state.unmerged, len(state.ignored))
    return [
        (listed.agent, "bold"),
        listed.outcome or listed.state or "none",
        *((str(count), "busy" if count else "dim") for count in counts),
        listed.branch,
        (_notes(state), "bad"),
    ]


def cleaned(worktrees: list[Cleaned], _values: dict[str, Any]) -> Iterator[Block]:
    """What happened to worktrees."""
    rows = [
        (
            (worktree.verdict, _VERDICTS[worktree.verdict]),
            (worktree.agent, "bold"),
            (with_handles(one_line(worktree.reason)), "dim"),
        )
        for worktree in worktrees
    ]
    yield Table(("verdict", "agent", "why"), rows, empty="No worktrees to clean.")
    for worktree in worktrees:
        agent = worktree.agent
        if worktree.rescue is not None:
            saved = line(f"{agent}: unsaved work is saved as ", (worktree.rescue, "id"))
            yield Paragraph([saved, "  a branch with it:", line("  ", (worktree.restore_with, "bold"))])
        if worktree.ignored:
            verb = "deleted" if worktree.verdict == "removed" else "would delete"
            files = plural(worktree.ignored, "ignored file")
            yield text(f"{agent}: {verb} {files}; --ignored saves them", "note")


def snapshots(listed: list[Snapshot], _values: dict[str, Any]) -> list[Block]:
    """The ends of an agent's turns."""
    rows = [
        (
            snapshot.turn,
            (moment(snapshot.at), "dim"),
            short(snapshot.commit),
            some(snapshot.files, _SHOWN_FILES) or "nothing",
        )
        for snapshot in listed
    ]
    return [Table(("turn", "ended", "commit", "changed"), rows, empty="No snapshots.")]


def restored(worktree: Restored, _values: dict[str, Any]) -> list[Block]:
    """A worktree that was restored."""
    lines = [line(f"Restored {worktree.path} to the end of turn {worktree.turn}, commit ", short(worktree.commit))]
    if worktree.was_recreated:
        lines.append(line("The worktree was created again, without its provisioning."))
    if worktree.rescue is not None:
        lines.append(line("The earlier files are saved as ", (worktree.rescue, "id")))
    return [Paragraph(lines)]


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.1f} MB"


def _notes(state: WorktreeState) -> str:
    notes = {
        "folder is gone": state.is_missing,
        "is a link": state.is_symlink,
        "is no checkout": state.is_broken,
        f"locked: {one_line(state.lock)}" if state.lock else "locked": state.lock is not None,
        f"on {state.branch or 'no branch'}": state.is_there and state.is_other_branch,
        f"{state.step} in progress": state.step is not None,
    }
    return ", ".join(note for note, applies in notes.items() if applies)


def rebased(result: Rebased, _values: dict[str, Any]) -> list[Block]:
    """What became of a branch."""
    branch, base = result.branch, result.base
    if result.conflicts:
        conflicts = [line(f"  {file['path']} ", (f"({file['kind']})", "dim")) for file in result.conflicts]
        return [Paragraph([(f"{branch} conflicts with {base}. Nothing was changed.", "bad"), *conflicts])]
    if result.before == result.after:
        return [text(f"{branch} is up to date with {base}.", "dim")]
    head = line("Rebased ", (branch, "bold"), f" onto {base}: {plural(result.commits, 'commit')}, now at ")
    saved = f"The earlier branch is saved as {result.rescue}"
    return [Paragraph([[*head, short(result.after)], (saved, "dim")])]
