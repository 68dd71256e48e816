"""How landings look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Fields, Line, Paragraph, Table, line, text
from rookery.cli.views.gates import last_words, runs
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
    UNDONE,
    WAITING,
    Entry,
    Explained,
    FileOutcome,
    Outcome,
    Predicted,
    Skipped,
)
from rookery.merge.radar.service import Scan
from rookery.merge.rebase import Rebased
from rookery.merge.undo import Undone

_SHORT = 12
_STATES = {LANDED: "good", FAILED: "bad", WAITING: "busy", TESTING: "busy", LANDING: "busy"}
_TIERS = {CLEAN: "good", LANDED: "good", MECHANICAL: "good", AGENT: "busy", REIMAGINE: "busy"}
_OUTCOMES = {RESOLVED: "good", DECLINED: "dim", REFUSED: "bad"}


def outcome(found: Outcome, values: dict[str, Any]) -> list[Block]:
    """What came of landing, or what would."""
    if values.get("dry_run"):
        return predictions(found.predicted, values)
    if not found.entries:
        nothing = f"Nothing landed on {found.base}." if found.skipped else f"Nothing is queued for {found.base}."
        return [text(nothing, "dim"), *_skipped(found.skipped)]
    blocks: list[Block] = [_table(found.entries)]
    landed = sum(1 for each in found.entries if each.state == LANDED)
    summary = f"{landed} of {len(found.entries)} landed on {found.base}, with {found.gate_runs} gate runs"
    blocks.append(Paragraph((line((summary, "bold")),)))
    if any(each.state == WAITING for each in found.entries):
        blocks.append(text("What waits lands with `rook merge run`, once what stands in its way is gone.", "busy"))
    blocks += [
        text(f"The gate {name} is flaky: it failed, and passed on the same files.", "note") for name in found.flaky
    ]
    return [*blocks, *_skipped(found.skipped)]


def _skipped(found: tuple[Skipped, ...]) -> list[Block]:
    rows = tuple((line((each.branch, "bold")), line((one_line(each.reason), "dim"))) for each in found)
    return [Table(("skipped", "because"), rows, stretch=1)] if rows else []


def listing(found: list[Entry], _values: dict[str, Any]) -> list[Block]:
    """The queue."""
    return [_table(tuple(found))] if found else [text("The queue is empty.", "dim")]


def one(found: Entry, _values: dict[str, Any]) -> list[Block]:
    """One entry."""
    return [_table((found,))]


def explained(found: Explained, _values: dict[str, Any]) -> list[Block]:
    """Everything that was done to bring an entry in."""
    entry = found.entry
    rows = [
        ("merge", line((entry.id, "id"))),
        ("branch", line(entry.branch, (f" at {entry.tip[:_SHORT]}", "dim"))),
        ("onto", line(entry.base, ("" if entry.base_before is None else f" at {entry.base_before[:_SHORT]}", "dim"))),
        ("state", line((entry.state, _STATES.get(entry.state, "")))),
    ]
    optional = {"task": entry.task_id, "agent": entry.agent, "by": entry.tier, "reason": entry.reason}
    rows += [(name, line(one_line(value))) for name, value in optional.items() if value]
    if entry.state in (LANDED, UNDONE) and entry.candidate:
        rows.append(("commit", line((entry.candidate[:_SHORT], "id"))))
    blocks: list[Block] = [Fields(tuple(rows))]
    if entry.tier == "clean":
        blocks.append(text("Git merged it by itself: no file conflicted.", "dim"))
    for each in found.outcomes:
        blocks += _file(each)
    if found.gates:
        blocks += [runs(found.gates), *last_words(found.gates[-1:])]
    return blocks


def _file(found: FileOutcome) -> list[Block]:
    head = line((found.path or "the whole branch", "bold"), (f" ({found.kind}) ", "dim"))
    verdict = line((f"{found.tier}: {found.outcome}", _OUTCOMES.get(found.outcome, "")), f"; {one_line(found.why)}")
    blocks: list[Block] = [Paragraph((head, verdict))]
    for hunk in found.hunks:
        where = f"line {hunk['start']}: " if "start" in hunk else ""
        why = one_line(str(hunk.get("why", "")))
        shown = f"{hunk.get('line')!r} " if "line" in hunk else ""
        lines = [line(f"{where}{shown}", (str(hunk.get("rule", "")), "note"), f"; {why}")]
        for side, style in (("ours", "dim"), ("theirs", "dim"), ("result", "good")):
            if hunk.get(side):
                lines += [line((f"  {side:>6} | {each}", style)) for each in str(hunk[side]).splitlines()[:8]]
        blocks.append(Paragraph(tuple(lines), indent=2))
    return blocks


def undone(found: list[Undone], _values: dict[str, Any]) -> list[Block]:
    """What was undone."""
    if not found:
        return [text("Nothing to undo.", "dim")]
    lines = []
    for each in found:
        is_back = each.how == "moved back"
        how = f"{each.entry.base} was moved back to " if is_back else f"reverted on {each.entry.base} by "
        lines.append(line((each.entry.branch, "bold"), ": ", how, (each.commit[:_SHORT], "id")))
        lines.append(line((f"  {each.entry.base} as it was is kept under ", "dim"), (each.rescue, "dim")))
    return [Paragraph(tuple(lines))]


def rebased(found: Rebased, _values: dict[str, Any]) -> list[Block]:
    """What became of a branch."""
    if found.conflicts:
        lines = [line((f"{found.branch} conflicts with {found.base}; nothing was changed", "bad"))]
        lines += [line(f"  {each['path']} ", (f"({each['kind']})", "dim")) for each in found.conflicts]
        return [Paragraph(tuple(lines))]
    if found.before == found.after:
        return [text(f"{found.branch} stands on {found.base} already.", "dim")]
    return [
        Paragraph(
            (
                line((found.branch, "bold"), f" stands on {found.base} now, with {found.commits} commits, at "),
                line((found.after[:_SHORT], "id"), ("; before it is kept under ", "dim"), (found.rescue, "dim")),
            )
        )
    ]


def radar(found: Scan, _values: dict[str, Any]) -> list[Block]:
    """Which branches meet."""
    if not found.meetings:
        return [text(f"{len(found.branches)} unlanded branches, and none of them meet.", "dim")]
    rows = tuple(
        (
            line((each.kind, "bad" if each.kind == "conflict" else "busy")),
            line((each.agents[0] or each.one, "bold")),
            line((each.agents[1] or each.other, "bold")),
            line(_files(each.conflicts or each.files)),
        )
        for each in found.meetings
    )
    return [Table(("meets", "one", "other", "files"), rows, stretch=3)]


def _table(entries: tuple[Entry, ...]) -> Table:
    rows = tuple(
        (
            line((each.id, "id")),
            line((each.state, _STATES.get(each.state, ""))),
            line(str(each.priority)),
            line((each.branch, "bold")),
            line(each.base),
            _remark(each),
        )
        for each in entries
    )
    return Table(("merge", "state", "priority", "branch", "onto", "remark"), rows, stretch=5)


def _remark(entry: Entry) -> Line:
    if entry.state == LANDED:
        at = "" if entry.candidate is None else entry.candidate[:_SHORT]
        return line(
            (at, "id"), f" {entry.tier or 'it was there'}", (f"; {entry.reason}" if entry.reason else "", "note")
        )
    return line(one_line(entry.reason or ""))


def predictions(found: Sequence[Predicted], _values: dict[str, Any]) -> list[Block]:
    """What would become of branches."""
    if not found:
        return [text("No branch is ready to land.", "dim")]
    rows = tuple(
        (
            line((each.branch, "bold")),
            line((each.tier, _TIERS.get(each.tier, "bad"))),
            line(_files(tuple(part["path"] for part in each.conflicts) or each.files)),
            line((one_line(each.reason), "dim")),
        )
        for each in found
    )
    return [Table(("branch", "would be", "files", "because"), rows, stretch=3)]


def _files(paths: tuple[str, ...]) -> str:
    shown = ", ".join(one_line(path) for path in paths[:3])
    return shown + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
