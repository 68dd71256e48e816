"""How worktrees and their snapshots look."""

from __future__ import annotations

from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Line, Paragraph, Table, line, text
from rookery.worktrees.cleaning import Cleaned, Listed
from rookery.worktrees.service import WorktreeState
from rookery.worktrees.snapshots import Restored, Snapshot

_SHORT = 12
_SHOWN_FILES = 5
_VERDICTS = {"kept": "busy", "removable": "", "removed": "good"}


def listing(found: list[Listed], values: dict[str, Any]) -> list[Block]:
    """Every worktree."""
    if not found:
        return [text("No worktrees.", "dim")]
    headings = ("agent", "session", "changed", "untracked", "unmerged", "ignored", "branch", "notes")
    rows = []
    for each in found:
        state = each.worktree
        counts = (len(state.uncommitted), len(state.untracked), state.unmerged, len(state.ignored))
        rows.append(
            (
                line((each.agent, "bold")),
                line(each.outcome or each.state or "none"),
                *(_count(count) for count in counts),
                line(each.branch),
                line((_notes(state), "bad")),
                *((line(_megabytes(each.size)),) if values.get("size") else ()),
            )
        )
    return [Table(headings + (("size",) if values.get("size") else ()), tuple(rows))]


def cleaned(found: list[Cleaned], _values: dict[str, Any]) -> list[Block]:
    """What became of worktrees."""
    if not found:
        return [text("No worktrees to clean.", "dim")]
    rows = tuple(
        (
            line((each.verdict, _VERDICTS[each.verdict])),
            line((each.agent, "bold")),
            line((one_line(each.reason), "dim")),
        )
        for each in found
    )
    blocks: list[Block] = [Table(("verdict", "agent", "why"), rows)]
    for each in found:
        if each.rescue is not None:
            saved = line(f"{each.agent}: unsaved work is kept under ", (each.rescue, "id"))
            blocks.append(Paragraph((saved, line("  ", (each.restore_with, "bold")))))
        if each.ignored:
            verb = "were deleted" if each.verdict == "removed" else "would be deleted"
            blocks.append(text(f"{each.agent}: {each.ignored} ignored files {verb}; --ignored saves them", "note"))
    return blocks


def snapshots(found: list[Snapshot], _values: dict[str, Any]) -> list[Block]:
    """The ends of an agent's turns."""
    if not found:
        return [text("No snapshots.", "dim")]
    rows = tuple(
        (
            line(str(each.turn)),
            line((each.at or "", "dim")),
            line((each.commit[:_SHORT], "id")),
            line(_files(each.files)),
        )
        for each in found
    )
    return [Table(("turn", "ended", "commit", "changed"), rows, stretch=3)]


def restored(made: Restored, _values: dict[str, Any]) -> list[Block]:
    """A worktree that was brought back."""
    lines = [line(f"{made.path} is as it was at the end of turn {made.turn}, ", (made.commit[:_SHORT], "id"))]
    if made.was_recreated:
        lines.append(line("It was made again, without its provisioning."))
    if made.rescue is not None:
        lines.append(line("What was there before is kept under ", (made.rescue, "id")))
    return [Paragraph(tuple(lines))]


def _count(count: int) -> Line:
    return line((str(count), "busy" if count else "dim"))


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.1f} MB"


def _files(paths: tuple[str, ...]) -> str:
    shown = ", ".join(one_line(path) for path in paths[:_SHOWN_FILES])
    rest = len(paths) - _SHOWN_FILES
    return shown + (f" and {rest} more" if rest > 0 else "") if paths else "nothing"


def _notes(state: WorktreeState) -> str:
    notes = []
    if state.is_missing:
        notes.append("folder is gone")
    if state.is_symlink:
        notes.append("is a link")
    if state.is_broken:
        notes.append("is no checkout")
    if state.lock is not None:
        notes.append(f"locked: {one_line(state.lock)}" if state.lock else "locked")
    if state.is_there and state.is_other_branch:
        notes.append(f"on {state.branch or 'no branch'}")
    if state.step is not None:
        notes.append(f"{state.step} under way")
    return ", ".join(notes)
