"""How landings are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from textwrap import wrap
from typing import Any

from rookery.base.ids import handle, with_handles
from rookery.base.text import one_line, plural
from rookery.cli.document import (
    SHORT,
    Block,
    Cell,
    Fields,
    Paragraph,
    Table,
    line,
    named,
    next_page,
    short,
    some,
    text,
)
from rookery.cli.views.gates import failed_output, runs
from rookery.merge.model import (
    AGENT,
    BASE_GATE,
    CLEAN,
    DECLINED,
    FAILED,
    GATE,
    LANDED,
    LANDING,
    MECHANICAL,
    NOT_PUSHED,
    OUTSIDE,
    PUSHED,
    QUEUED,
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
    Pushed,
    way_out,
)
from rookery.merge.model import CONFLICT as CONFLICTS
from rookery.merge.person.explanation import landing_of, what_it_did
from rookery.merge.person.handback import changes
from rookery.merge.person.model import GIVEN_UP, HAS_LANDED, NOT_LANDED, NOTES, ConflictedPath, Resolving, SideView
from rookery.merge.undo_plan import MOVED_BACK, ReopenedTask, Undo, Undone
from rookery.tasks.scope.outside import describe_files

_SHOWN_FILES = 3
_MOST_CONFLICTS = 20
_LISTED_LINES = 3
_WIDTH = 78
_STATES = {LANDED: "good", FAILED: "bad", WAITING: "busy", TESTING: "busy", LANDING: "busy"}
_TIERS = {CLEAN: "good", LANDED: "good", MECHANICAL: "good", AGENT: "busy", REIMAGINE: "busy"}
_OUTCOMES = {RESOLVED: "good", DECLINED: "dim", REFUSED: "bad"}


def outcome(result: Outcome, values: dict[str, Any]) -> Iterator[Block]:
    """What landing did, or what it would do."""
    if values.get("dry_run"):
        yield from predictions(result.predicted, values)
        return
    if result.entries:
        yield from _landed(result, f" --into {quote(result.base)}" if values.get("into") else "")
    elif result.skipped:
        yield text(f"Nothing landed on {result.base}.", "dim")
    elif values.get("all"):
        yield text(f"No finished branch waits to land on {result.base}.", "dim")
        yield text("`rook status --all` shows who is done; `rook merge --branch NAME` lands any branch.", "dim")
    else:
        yield text(f"No branch is queued for {result.base}.", "dim")
    if result.skipped:
        rows = [((skip.branch, "bold"), (with_handles(one_line(skip.reason)), "dim")) for skip in result.skipped]
        yield Table(("skipped", "reason"), rows)


def _landed(result: Outcome, into: str) -> Iterator[Block]:
    yield _table(result.entries)
    landed = sum(entry.state == LANDED for entry in result.entries)
    gate_runs = plural(result.gate_runs, "gate run")
    yield text(f"{landed} of {len(result.entries)} landed on {result.base}, with {gate_runs}.", "bold")
    for entry in result.entries:
        yield from _outside_of(entry)
    if any(entry.state == WAITING and entry.kind != BASE_GATE for entry in result.entries):
        yield text(f"To land what waits, remove what blocks it, then `rook merge run{into}`.", "busy")
    yield from _failed_gates(result, into)
    for entry in result.entries:
        yield from next_steps(entry)
    yield from _after_landing(result)
    for branch in result.resolved:
        yield text(f"{branch} was resolved by hand. `rook merge run{into}` lands it.", "note")


def next_steps(entry: Entry) -> Iterator[Block]:
    """What a person can do about an entry that did not land."""
    name = handle(entry.id)
    if entry.state == FAILED and entry.kind == CONFLICTS:
        yield text(f"To resolve it by hand: rook merge resolve {name}", "note")
    elif entry.state == FAILED and entry.kind == GATE:
        fix = f'`rook resume {entry.agent} "…"` sends it back to its agent, ' if entry.agent else ""
        yield text(f"{fix}`rook merge retry {name}` tries it again.", "note")


def _after_landing(result: Outcome) -> Iterator[Block]:
    if result.push is not None:
        yield pushed(result.push)
    for name in result.flaky:
        yield text(f"The gate {name} is flaky: it failed, then passed on the same files.", "note")


def _outside_of(entry: Entry) -> Iterator[Block]:
    """What a branch changes outside its agent's files, and why."""
    if entry.outside:
        yield text(f"{entry.branch} changes files outside those of {entry.agent or 'its agent'}:", "note")
        yield from (text(described, indent=2) for described in describe_files(entry.outside))
        if entry.kind == OUTSIDE:
            yield text(f"`rook merge --branch {entry.branch} --outside WHY` gives a reason and lands it.", "busy")


def _failed_gates(result: Outcome, into: str) -> Iterator[Block]:
    """What the gates printed that kept something from landing; that of the base once."""
    broken = {failed.run.name: failed.run for failed in result.failed_gates if failed.is_base}
    for run in broken.values():
        yield text(
            f"The gate {run.name} fails on {result.base} itself, so the waiting branches are not the cause.", "busy"
        )
        yield from failed_output((run,))
    if broken:
        yield text(f"To do: {way_out(result.base, into)}.", "busy")
    for failed in result.failed_gates:
        if not failed.is_base:
            yield text(failed.branch, "bad")
            yield from failed_output((failed.run,))


def pushed(push: Pushed) -> Block:
    """What became of a push."""
    if push.state == PUSHED:
        return text(f"Pushed {plural(push.commits, 'commit')} to {push.upstream}.", "good")
    return text(f"Not pushed: {with_handles(push.reason)}", "bad" if push.state == NOT_PUSHED else "busy")


def listing(entries: list[Entry], _values: dict[str, Any]) -> list[Block]:
    """The queue."""
    outside = [block for entry in entries for block in _outside_of(entry)]
    failed = getattr(entries, "left_out", 0)
    hint = f"{plural(failed, 'failed entry', 'failed entries')} not shown: `rook merge list --all`"
    return [_table(entries), *outside, *_logs(entries), *next_page(entries), *([text(hint, "note")] if failed else [])]


def one(entry: Entry, _values: dict[str, Any]) -> list[Block]:
    """One entry."""
    way = [text(f"`rook merge run --into {quote(entry.base)}` lands it.", "dim")] if entry.state == QUEUED else []
    return [_table([entry]), *_outside_of(entry), *_logs([entry]), *way]


def _logs(entries: Sequence[Entry]) -> Iterator[Block]:
    """Where the output is of the gates that keep something from landing."""
    lines: list[Cell] = []
    for entry in entries:
        if entry.log:
            lines.append(line((entry.branch, "bold"), f": {entry.log}"))
            lines += [(f"  | {row}", "dim") for row in entry.last_lines.splitlines()[-_LISTED_LINES:]]
    if lines:
        yield Paragraph([("Output of the failed gates:", "dim"), *lines])


def explained(result: Explained, _values: dict[str, Any]) -> Iterator[Block]:
    """Everything that was done to bring an entry in."""
    entry = result.entry
    fields = {
        "merge": named(entry.id),
        "branch": line(entry.branch, (f" at {entry.tip[:SHORT]}", "dim")),
        "onto": line(entry.base, ("" if entry.base_before is None else f" at {entry.base_before[:SHORT]}", "dim")),
        "state": (entry.state, _STATES.get(entry.state, "")),
        "task": named(entry.task_id),
        "agent": entry.agent,
        "tier": entry.tier,
        "reason": with_handles(one_line(entry.reason or "")),
        "output": (entry.log or "", "dim"),
        "commit": short(entry.commit),
        "resolved in": result.resolving,
        "other files": "; ".join(describe_files(entry.outside)),
    }
    yield Fields(fields)
    if entry.tier == CLEAN:
        yield text("Git merged it: no conflicts.", "dim")
    for file in result.outcomes:
        yield from _file(file)
    if result.gates:
        yield runs(result.gates)
        yield from failed_output(result.gates[-1:])


def _file(file: FileOutcome) -> Iterator[Block]:
    head = line((file.path or "the whole branch", "bold"), (f" ({file.kind}) ", "dim"))
    verdict = line((f"{file.tier}: {file.outcome}", _OUTCOMES.get(file.outcome, "")), f"; {one_line(file.why)}")
    yield Paragraph([head, verdict])
    for hunk in file.hunks:
        where = f"line {hunk['start']}: " if "start" in hunk else ""
        why = one_line(str(hunk.get("why", "")))
        shown = f"{hunk.get('line')!r} " if "line" in hunk else ""
        lines: list[Cell] = [line(f"{where}{shown}", (str(hunk.get("rule", "")), "note"), f"; {why}")]
        for side, style in (("ours", "dim"), ("theirs", "dim"), ("result", "good")):
            if hunk.get(side):
                lines += [(f"  {side:>6} | {source}", style) for source in str(hunk[side]).splitlines()[:8]]
        yield Paragraph(lines, indent=2)


def undone(result: Undo, _values: dict[str, Any]) -> list[Block]:
    """What was or would be undone, with all that follows from it."""
    blocks: list[Block] = []
    if not result.bases:
        blocks.append(text("Nothing to undo.", "dim"))
    for base in dict.fromkeys(one.entry.base for one in result.landings):
        landings = [(one.entry.branch, one.commits, _how(one)) for one in result.on(base).landings]
        verb = "Undone" if result.is_done else "Would be undone"
        blocks.append(text(f"{verb} on {base}, in this order:", "bold"))
        blocks.append(Table(("landing", "commits", "how"), landings))
    blocks += _effect("out of the queue", "branch", [(handle(entry.id), entry.branch) for entry in result.withdrawn])
    blocks += _effect("reopened task", "title", [(handle(task.id), _reopened(task)) for task in result.tasks])
    blocks += _effect("message to", "about", [(_told(result, one), one.entry.branch) for one in result.landings])
    blocks += _effect("kept", "reason", [(kept.entry.branch, with_handles(kept.reason)) for kept in result.kept])
    rescued = {one.entry.base: one for one in result.landings if one.rescue is not None}
    lines = [f"The earlier {base} is saved as {one.rescue}" for base, one in rescued.items()]
    return [*blocks, *([text("\n".join(lines), "dim")] if lines else [])]


def _how(landing: Undone) -> Cell:
    if landing.how == MOVED_BACK:
        return line("moved back to ", short(landing.commit))
    return line("reverted by ", short(landing.commit) if landing.commit else "a commit")


def _reopened(task: ReopenedTask) -> Cell:
    reason = (
        " (a task under it is reopened)"
        if task.is_above
        else " (its work was part of that landing)"
        if task.came_with
        else ""
    )
    return line(one_line(task.title), (reason, "dim"))


def _told(result: Undo, landing: Undone) -> str:
    return ", ".join(message.to for message in result.mail if message.merge_id == landing.id)


def _effect(first: str, second: str, rows: list[tuple[str, Cell]]) -> list[Block]:
    rows = [row for row in rows if row[0]]
    return [Table((first, second), rows)] if rows else []


def _table(entries: Sequence[Entry]) -> Table:
    """Entries; the base and the priority only where they differ."""
    columns: dict[str, list[Cell]] = {
        "merge": [named(entry.id) for entry in entries],
        "state": [(entry.state, _STATES.get(entry.state, "")) for entry in entries],
        "pri": [entry.priority for entry in entries],
        "branch": [(entry.branch, "bold") for entry in entries],
        "onto": [entry.base for entry in entries],
        "result": [_result(entry) for entry in entries],
    }
    for name in ("pri", "onto"):
        if len({*map(str, columns[name])}) < 2:
            del columns[name]
    return Table(tuple(columns), list(zip(*columns.values(), strict=True)), empty="The queue is empty.")


def _result(entry: Entry) -> Cell:
    reason = with_handles(one_line(entry.reason or ""))
    if entry.state != LANDED:
        return reason
    how = f" {entry.tier}" if entry.tier else f" already on {entry.base}"
    return line(short(entry.commit), how, (f"; {reason}" if reason else "", "note"))


def predictions(predicted: Sequence[Predicted], _values: dict[str, Any]) -> list[Block]:
    """What would become of branches."""
    rows = [
        (
            (branch.branch, "bold"),
            (branch.tier, _TIERS.get(branch.tier, "bad")),
            some(branch.files, _SHOWN_FILES),
            (with_handles(one_line(branch.reason)), "dim"),
        )
        for branch in predicted
    ]
    headings = ("branch", "tier", "files", "reason")
    outside = [
        text(f"{branch.branch} changes files outside those of its agent: {described}", "note")
        for branch in predicted
        for described in describe_files(branch.outside)
    ]
    return [Table(headings, rows, empty="No branch is ready to land."), *outside]


def resolving(result: Resolving, _values: dict[str, Any]) -> Iterator[Block]:
    """Where the conflict is open, both sides of it, and how to go on; or what became of it."""
    entry = result.entry
    if result.status == GIVEN_UP:
        yield text(f"Gave up: {entry.branch} is {entry.state} again, and its worktree is removed.")
        if result.rescue is not None:
            yield text(f"Your work there is saved as {result.rescue}", "note")
        return
    if result.status == HAS_LANDED:
        yield Paragraph([line("Landed ", (entry.branch, "bold"), f" on {entry.base} as ", short(entry.commit))])
        if result.lost:
            yield text(f"{changes(result.lost)} of one side or the other left out, as you accepted.", "note")
        if result.landing is not None:
            yield from _after_landing(result.landing)
        return
    if result.status == NOT_LANDED:
        yield text(f"{entry.branch} is {entry.state}: {with_handles(one_line(entry.reason or ''))}", "bad")
        if result.landing is not None:
            yield from _failed_gates(result.landing, f" --into {quote(entry.base)}")
        yield text(f"Your work is kept in {result.path}", "note")
        yield text(f"To continue: rook merge resolve {handle(entry.id)}")
        return
    yield from _opened(result)


def _opened(result: Resolving) -> Iterator[Block]:
    entry = result.entry
    state = "resolve it in" if result.is_new else "it is already open in"
    head: list[Cell] = [
        line((entry.branch, "bold"), f" conflicts with {entry.base}; {state}"),
        (f"  {result.path}", "bold"),
    ]
    if entry.agent:
        head.append((f"by: {one_line(entry.agent)}", "dim"))
    if result.purpose:
        head.append((f"for: {result.purpose}", "dim"))
    yield Paragraph([*head, *((note, "note") for note in result.notes)])
    for file in result.files[:_MOST_CONFLICTS]:
        yield Paragraph(list(_conflict(file, entry)))
    if len(result.files) > _MOST_CONFLICTS:
        yield text(f"and {plural(len(result.files) - _MOST_CONFLICTS, 'more file')}; {NOTES} lists all of them", "dim")
    if result.settled:
        yield text(f"Rules have resolved {plural(len(result.settled), 'more file')}.", "dim")
    yield Paragraph(
        [
            ("To continue:", "bold"),
            f"  cd {quote(result.path)}",
            "  git status            # what is left; `git mergetool` works too",
            f"  (between the markers, ours is {one_line(entry.base)}, theirs is {one_line(entry.branch)})",
            "  git commit            # when all of it is resolved",
            f"  rook merge resolve {handle(entry.id)} --done",
            ("    (add --accept-loss if a line of one side is meant to be dropped)", "dim"),
            "To give up:",
            f"  rook merge resolve {handle(entry.id)} --abort",
            (f"{NOTES} in that folder repeats all of this.", "dim"),
        ]
    )


def _conflict(file: ConflictedPath, entry: Entry) -> Iterator[Cell]:
    yield line((one_line(file.path), "bold"), (f" ({file.kind})", "dim"))
    for name, side in ((entry.base, file.base), (entry.branch, file.branch)):
        yield from _side(one_line(name), side, what_it_did(file, side))
    for tried in file.tried:
        if tried.tier != "human":
            yield from _wrapped(f"{tried.tier} {tried.outcome} it: {one_line(tried.why)}", "dim")
    yield from _wrapped(file.how)


def _wrapped(content: str, style: str = "") -> Iterator[Cell]:
    """A long line in several, so that it can be read in a pipe, too."""
    for row in wrap(content, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False):
        yield (row, style)


def _side(name: str, side: SideView, did: str) -> Iterator[Cell]:
    counts = "" if side.added is None else f" (+{side.added} -{side.deleted})"
    yield f"  {name} {did}{counts}"
    for commit in side.commits:
        yield line("    ", short(commit.commit), f" {one_line(commit.subject, 60)}")
        if commit.branch:
            yield (f"      {landing_of(commit)}", "dim")
    if side.more:
        yield (f"    and {plural(side.more, 'more commit')}", "dim")
