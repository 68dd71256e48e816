"""How landings are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Line, Paragraph, Table, line, next_page, text
from rookery.cli.views.gates import failed_output, runs
from rookery.merge.model import (
    AGENT,
    CLEAN,
    DECLINED,
    FAILED,
    LANDED,
    LANDING,
    MECHANICAL,
    REFUSED,
    REIMAGINE,
    RESOLVED,
    TESTING,
    WAITING,
    Entry,
    Explained,
    FileOutcome,
    Outcome,
    Predicted,
    Skipped,
)
from rookery.merge.radar.service import CONFLICT, Scan
from rookery.merge.rebase import Rebased
from rookery.merge.undo import MOVED_BACK, Undone

_SHORT = 12
_STATES = {LANDED: "good", FAILED: "bad", WAITING: "busy", TESTING: "busy", LANDING: "busy"}
_TIERS = {CLEAN: "good", LANDED: "good", MECHANICAL: "good", AGENT: "busy", REIMAGINE: "busy"}
_OUTCOMES = {RESOLVED: "good", DECLINED: "dim", REFUSED: "bad"}


def outcome(result: Outcome, values: dict[str, Any]) -> list[Block]:
    """What landing did, or what it would do."""
    if values.get("dry_run"):
        return predictions(result.predicted, values)
    if not result.entries:
        nothing = f"Nothing landed on {result.base}." if result.skipped else f"Nothing is queued for {result.base}."
        return [text(nothing, "dim"), *_skipped(result.skipped)]
    landed = sum(entry.state == LANDED for entry in result.entries)
    summary = f"{landed} of {len(result.entries)} landed on {result.base}, with {result.gate_runs} gate runs"
    blocks: list[Block] = [_table(result.entries), text(summary, "bold")]
    if any(entry.state == WAITING for entry in result.entries):
        blocks.append(text("What waits lands with `rook merge run`, once nothing blocks it any more.", "busy"))
    blocks += [
        text(f"The gate {name} is flaky: it failed, and passed on the same files.", "note") for name in result.flaky
    ]
    return [*blocks, *_skipped(result.skipped)]


def _skipped(skipped: tuple[Skipped, ...]) -> list[Block]:
    rows = tuple((line((skip.branch, "bold")), line((one_line(skip.reason), "dim"))) for skip in skipped)
    return [Table(("skipped", "because"), rows, stretch=1)] if rows else []


def listing(entries: list[Entry], _values: dict[str, Any]) -> list[Block]:
    """The queue."""
    return [_table(entries), *next_page(entries)] if entries else [text("The queue is empty.", "dim")]


def one(entry: Entry, _values: dict[str, Any]) -> list[Block]:
    """One entry."""
    return [_table([entry])]


def explained(result: Explained, _values: dict[str, Any]) -> list[Block]:
    """Everything that was done to bring an entry in."""
    entry = result.entry
    rows = [
        ("merge", line((entry.id, "id"))),
        ("branch", line(entry.branch, (f" at {entry.tip[:_SHORT]}", "dim"))),
        ("onto", line(entry.base, ("" if entry.base_before is None else f" at {entry.base_before[:_SHORT]}", "dim"))),
        ("state", line((entry.state, _STATES.get(entry.state, "")))),
    ]
    optional = {"task": entry.task_id, "agent": entry.agent, "by": entry.tier, "reason": entry.reason}
    rows += [(name, line(one_line(value))) for name, value in optional.items() if value]
    if entry.commit:
        rows.append(("commit", line((entry.commit[:_SHORT], "id"))))
    blocks: list[Block] = [Fields(tuple(rows))]
    if entry.tier == CLEAN:
        blocks.append(text("Git merged it by itself: no file conflicted.", "dim"))
    for file in result.outcomes:
        blocks += _file(file)
    if result.gates:
        blocks += [runs(result.gates), *failed_output(result.gates[-1:])]
    return blocks


def _file(file: FileOutcome) -> list[Block]:
    head = line((file.path or "the whole branch", "bold"), (f" ({file.kind}) ", "dim"))
    verdict = line((f"{file.tier}: {file.outcome}", _OUTCOMES.get(file.outcome, "")), f"; {one_line(file.why)}")
    blocks: list[Block] = [Paragraph((head, verdict))]
    for hunk in file.hunks:
        where = f"line {hunk['start']}: " if "start" in hunk else ""
        why = one_line(str(hunk.get("why", "")))
        shown = f"{hunk.get('line')!r} " if "line" in hunk else ""
        lines = [line(f"{where}{shown}", (str(hunk.get("rule", "")), "note"), f"; {why}")]
        for side, style in (("ours", "dim"), ("theirs", "dim"), ("result", "good")):
            if hunk.get(side):
                lines += [line((f"  {side:>6} | {source}", style)) for source in str(hunk[side]).splitlines()[:8]]
        blocks.append(Paragraph(tuple(lines), indent=2))
    return blocks


def undone(landings: list[Undone], _values: dict[str, Any]) -> list[Block]:
    """What was undone."""
    if not landings:
        return [text("Nothing to undo.", "dim")]
    lines = []
    for landing in landings:
        base = landing.entry.base
        how = f"{base} was moved back to " if landing.how == MOVED_BACK else f"reverted on {base} by "
        lines.append(line((landing.entry.branch, "bold"), ": ", how, (landing.commit[:_SHORT], "id")))
        lines.append(line((f"  {base} as it was is kept under ", "dim"), (landing.rescue, "dim")))
    return [Paragraph(tuple(lines))]


def rebased(result: Rebased, _values: dict[str, Any]) -> list[Block]:
    """What became of a branch."""
    branch, base = result.branch, result.base
    if result.conflicts:
        lines = [line((f"{branch} conflicts with {base}; nothing was changed", "bad"))]
        lines += [line(f"  {file['path']} ", (f"({file['kind']})", "dim")) for file in result.conflicts]
        return [Paragraph(tuple(lines))]
    if result.before == result.after:
        return [text(f"{branch} is up to date with {base}.", "dim")]
    now = line((branch, "bold"), f" is on top of {base} now, with {result.commits} commits, at ")
    before = line((result.after[:_SHORT], "id"), ("; before it is kept under ", "dim"), (result.rescue, "dim"))
    return [Paragraph((now, before))]


def radar(scan: Scan, _values: dict[str, Any]) -> list[Block]:
    """Which branches overlap."""
    if not scan.overlaps:
        return [text(f"{len(scan.branches)} unlanded branches, and none of them overlap.", "dim")]
    rows = tuple(
        (
            line((overlap.kind, "bad" if overlap.kind == CONFLICT else "busy")),
            line((overlap.agents[0] or overlap.one, "bold")),
            line((overlap.agents[1] or overlap.other, "bold")),
            line(_files(overlap.conflicts or overlap.files)),
        )
        for overlap in scan.overlaps
    )
    return [Table(("kind", "one", "other", "files"), rows, stretch=3)]


def _table(entries: Sequence[Entry]) -> Table:
    rows = tuple(
        (
            line((entry.id, "id")),
            line((entry.state, _STATES.get(entry.state, ""))),
            line(str(entry.priority)),
            line((entry.branch, "bold")),
            line(entry.base),
            _remark(entry),
        )
        for entry in entries
    )
    return Table(("merge", "state", "priority", "branch", "onto", "remark"), rows, stretch=5)


def _remark(entry: Entry) -> Line:
    if entry.state != LANDED:
        return line(one_line(entry.reason or ""))
    reason = f"; {entry.reason}" if entry.reason else ""
    return line(((entry.commit or "")[:_SHORT], "id"), f" {entry.tier or 'it was there'}", (reason, "note"))


def predictions(predicted: Sequence[Predicted], _values: dict[str, Any]) -> list[Block]:
    """What would become of branches."""
    if not predicted:
        return [text("No branch is ready to land.", "dim")]
    rows = tuple(
        (
            line((branch.branch, "bold")),
            line((branch.tier, _TIERS.get(branch.tier, "bad"))),
            line(_files(branch.files)),
            line((one_line(branch.reason), "dim")),
        )
        for branch in predicted
    )
    return [Table(("branch", "would be", "files", "because"), rows, stretch=3)]


def _files(paths: tuple[str, ...]) -> str:
    shown = ", ".join(one_line(path) for path in paths[:3])
    return shown + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
