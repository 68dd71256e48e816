"""How backups, exports, imports, and the parts of the state that can be removed, look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rookery.base.clock import length, seconds_of
from rookery.base.text import one_line, plural
from rookery.cli.document import Block, Cell, Fields, Paragraph, Table, line, some, text
from rookery.config.environ import now
from rookery.tasks.transfer import Exported, Imported
from rookery.upkeep.model import Backup, Cleanup, Part, Removal, Restoration

_SHOWN = 5


def backup(result: Backup, _values: dict[str, Any]) -> list[Block]:
    """A backup that was made."""
    return [
        Paragraph([line("backup ", (result.name, "id"), f", {size(result.size)}"), line("  ", (result.path, "dim"))])
    ]


def restoration(result: Restoration, _values: dict[str, Any]) -> Iterator[Block]:
    """The backups there are, what a restore would do, or what it did."""
    if result.chosen is None:
        yield _backups(result.backups)
        if result.backups:
            yield text("`rook restore BACKUP` brings one back. What the database is now is kept as a backup.", "dim")
        return
    if not result.is_done:
        yield _backups((result.chosen,))
        yield text("All that happened since then is taken out of the database. It is kept as a backup.")
        return
    yield Paragraph([line("restored ", (result.chosen.name, "id"))])
    if result.kept is not None:
        yield Paragraph([line("undo it: ", (f"rook restore {result.kept.name}", "bold"))])
    if result.damaged:
        yield text(f"the damaged files are in {result.damaged}", "note")
    if result.stopped:
        yield text(f"ended, because they were alive in the backup: {', '.join(result.stopped)}", "note")
    for names, what in (
        (result.unknown_branches, "branches that the database does not know"),
        (result.missing_branches, "branches that the database names and that are gone"),
        (result.lost_landings, "branches that have landed since, as git says"),
    ):
        if names:
            yield text(f"{what}: {some(names, _SHOWN)}", "note")
    yield text("`rook doctor` says what else does not agree.", "dim")


def _backups(backups: Sequence[Backup]) -> Table:
    rows = [
        (
            (backup.name, "id"),
            (length(now() - seconds_of(backup.at)), ""),
            size(backup.size),
            _schema(backup),
        )
        for backup in backups
    ]
    return Table(("backup", "age", "size", "schema"), rows, empty="No backups yet: `rook backup` makes one.")


def _schema(backup: Backup) -> Cell:
    if backup.schema is None:
        return "damaged", "bad"
    return str(backup.schema) if backup.can_restore else (f"{backup.schema}, too new", "bad")


def cleanup(result: Cleanup, _values: dict[str, Any]) -> Iterator[Block]:
    """The parts of the state, or what became of them."""
    if result.is_plan and not any(part.count for part in result.parts):
        yield text("Nothing to remove.")
    else:
        rows = [_part(part) for part in result.parts]
        yield Table(("removed" if result.is_done else "part", "count", "size", "what"), rows, stretch=3)
    for part in result.parts:
        if part.why_kept:
            kept = f"{part.kept} stay: " if part.kept else ""
            yield text(f"{part.name}: {kept}{one_line(part.why_kept)}", "note")
        yield from (text(note, "note") for note in part.notes)
    if not result.is_plan and not result.is_done:
        yield text("Nothing was removed. Name parts to remove them: `rook clean --logs --mail`, or `rook clean --all`.")


def _part(part: Part) -> list[Cell]:
    return [(part.name, "bold"), str(part.count), size(part.size) if part.size else "", (part.what, "dim")]


def removal(result: Removal, _values: dict[str, Any]) -> Iterator[Block]:
    """What `rook deinit` removes, or has removed."""
    worktrees, branches = len(result.worktrees), len(result.branches)
    yield Fields(
        {
            "removed" if result.is_done else "removes": f"{result.root}/.rookery, {size(result.size)}",
            "worktrees": some(result.worktrees, _SHOWN) if worktrees else "",
            "hooks": "in .claude/settings.local.json" if result.hooks else "",
            "stays": f"{plural(branches, 'branch', 'branches')} of agents" if branches else "",
            "not landed": (some(result.unlanded, _SHOWN), "busy") if result.unlanded else "",
            "committed": some(result.kept_files, _SHOWN),
            "backup": result.backup or "",
        }
    )
    if result.refs:
        yield text(f"{plural(result.refs, 'ref')} under refs/rookery stay: they keep saved work.", "dim")
    if not result.is_done and not result.backup:
        yield text("--keep-backup PATH keeps a copy of the database.", "dim")


def exported(result: Exported, _values: dict[str, Any]) -> list[Block]:
    """What was written."""
    return [text(f"wrote {_counted(result)} to {result.path}")]


def imported(result: Imported, _values: dict[str, Any]) -> Iterator[Block]:
    """What was read."""
    yield text(f"read {_counted(result)} from {result.path}")
    if result.backup:
        yield text(f"deleted {plural(result.deleted, 'task')} first; the backup is {result.backup}", "dim")


def _counted(result: Exported | Imported) -> str:
    return f"{plural(result.tasks, 'task')} and {plural(result.learnings, 'learning')}"


def size(count: int) -> str:
    """Bytes for people."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"
