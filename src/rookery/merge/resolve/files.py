"""Resolves a conflicted file by rules that lose no line, or declines. Pure: bytes in, bytes out, no process.

Every region that both sides changed needs a rule with a proof; one that has none leaves the whole file to the next
tier. Whatever the rules say, the result must have no conflict markers, parse if the sides did, and pass the loss check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.lockfiles import lockfile_of
from rookery.base.record import Record
from rookery.merge.resolve import loss, text
from rookery.merge.resolve.conflict import Answer, Case
from rookery.merge.resolve.markers import has_markers, parses
from rookery.merge.resolve.model import OURS, THEIRS, Cover, Declined, Hunk, Resolved, Sides, shown
from rookery.merge.resolve.regions import Lines, Region
from rookery.merge.resolve.rules import DEFAULT, LATE, RULES, superseded
from rookery.merge.resolve.rules.superseded import Lineage
from rookery.merge.resolve.text import Text

_SYMLINK, _SUBMODULE = "120000", "160000"


@dataclass(frozen=True, slots=True)
class Settings(Record):
    """What the mechanical tier may do."""

    rules: tuple[str, ...] = DEFAULT
    """The rules that may speak, by name."""
    unions: tuple[str, ...] = ()
    """Patterns of files that are heaps of lines, where all lines of both sides are kept."""
    max_bytes: int = 2_000_000
    """A larger file is declined."""
    max_lines: int = 50_000
    """A longer file is declined."""


def lineage_of(files: Iterable[Sides], *, settings: Settings) -> Lineage | None:
    """The side of a merge that went on from what the other is now, as its conflicted files tell together."""
    if superseded.LINEAGE not in settings.rules:
        return None
    winners = []
    for sides in files:
        if _refuse(sides, settings) is None and (sides.ours_history or sides.theirs_history):
            read = _read(sides, settings)
            winners.append(None if isinstance(read, Declined) else superseded.winner(_case(sides, read, settings)))
    return superseded.lineage(winners)


def resolve(sides: Sides, *, lineage: Lineage | None = None, settings: Settings | None = None) -> Resolved | Declined:
    """The file with both sides' changes, or why that is not for rules to say."""
    settings = settings or Settings()
    refused = _refuse(sides, settings)
    if refused is not None:
        return refused
    read = _read(sides, settings)
    if isinstance(read, Declined):
        return read
    mode = _mode(sides)
    if isinstance(mode, Declined):
        return mode
    base, ours, theirs = read
    kind = "content" if sides.base is not None else "add/add"
    merged = _merge(_case(sides, read, settings), lineage, settings)
    if isinstance(merged, str):
        return Declined(merged, kind)
    lines, hunks = merged
    content = text.surround(tuple(lines), base if sides.base is not None else None, ours, theirs).encode()
    fault = _fault(sides, content, hunks)
    return Declined(fault, kind) if fault else Resolved(content, mode, tuple(hunks))


def _case(sides: Sides, read: tuple[Text, Text, Text], settings: Settings) -> Case:
    base, ours, theirs = (side.lines for side in read)
    return Case(sides.path, base, ours, theirs, sides.ours_history, sides.theirs_history, settings.unions)


def _refuse(sides: Sides, settings: Settings) -> Declined | None:
    """What is declined without a look at its lines."""
    modes = (sides.base_mode, sides.ours_mode, sides.theirs_mode)
    if _SUBMODULE in modes:
        return Declined("a submodule points to one commit or another", "submodule")
    if _SYMLINK in modes:
        return Declined("a symbolic link points to one place or another", "symlink")
    if sides.ours is None or sides.theirs is None:
        return Declined("one side changed the file, the other has it not", "modify/delete")
    lockfile = lockfile_of(sides.path)
    if lockfile is not None:
        return Declined(f"a lock file is made again: {' '.join(lockfile.command)}", "lockfile")
    if max(len(sides.base or b""), len(sides.ours), len(sides.theirs)) > settings.max_bytes:
        return Declined(f"the file has more than {settings.max_bytes:,} bytes", "too_big")
    return None


def _read(sides: Sides, settings: Settings) -> tuple[Text, Text, Text] | Declined:
    found = []
    for content in (sides.base or b"", sides.ours or b"", sides.theirs or b""):
        if b"\0" in content:
            return Declined("the file is binary", "binary")
        side = text.read(content)
        if side is None:
            return Declined("the file is not in UTF-8", "encoding")
        if len(side.lines) > settings.max_lines:
            return Declined(f"the file has more than {settings.max_lines:,} lines", "too_big")
        found.append(side)
    if sides.base is not None and has_markers(sides.base) and not has_markers(sides.ours or b""):
        # Git merges several bases into one, and leaves in it what it could not merge.
        return Declined("the sides have no one base, and its versions are in conflict themselves", "criss_cross")
    return found[0], found[1], found[2]


def _mode(sides: Sides) -> str | Declined | None:
    if sides.ours_mode == sides.theirs_mode or sides.theirs_mode == sides.base_mode:
        return sides.ours_mode
    if sides.ours_mode == sides.base_mode:
        return sides.theirs_mode
    return Declined("the sides gave the file different modes", "mode")


def _merge(case: Case, lineage: Lineage | None, settings: Settings) -> tuple[list[str], list[Hunk]] | str:
    """All lines of the result and what was done, or why not."""
    newer = superseded.winner(case)
    rule = None if newer is None else superseded.rule_for(case, newer, lineage)
    if newer is not None and rule in settings.rules:
        return _superseded(case, rule, newer)
    late = []
    for region in case.regions:
        if region.settled is None and not _settle(region, case, settings, late=False):
            late.append(region)
            if not _settle(region, case, settings, late=True):
                return f"no rule settles what both sides changed at line {region.ours_start + 1} of ours"
    for region in late[:-1]:
        # What the rest of the file has become was not known when these were asked first.
        if not _settle(region, case, settings, late=True):
            return f"the imports at line {region.ours_start + 1} of ours do not fit the rest of the file"
    return _assembled(case)


def _superseded(case: Case, rule: str, newer: str) -> tuple[list[str], list[Hunk]]:
    """The side that went on."""
    older = THEIRS if newer == OURS else OURS
    why = f"{newer} once was just what {older} is now, and went on from there"
    for at, region in enumerate(case.regions):
        if region.settled is None:
            case.answers[at] = Answer(rule, superseded.text_of(region, newer), why, drops=True)
    return _assembled(case)


def _assembled(case: Case) -> tuple[list[str], list[Hunk]]:
    lines: list[str] = []
    hunks: list[Hunk] = []
    for at, region in enumerate(case.regions):
        answer = case.answers.get(at)
        if answer is not None:
            hunks.append(_told(region, answer, len(lines) + 1))
        lines += region.settled or () if answer is None else answer.lines
    return lines, hunks


def _settle(region: Region, case: Case, settings: Settings, *, late: bool) -> bool:
    """Keep the answer of the first rule that has one."""
    for name, rule in RULES.items():
        if name in settings.rules and (name in LATE) == late:
            answer = rule(region, case)
            if answer is not None and (answer.replaces or _keeps_all(region, case, answer.lines)):
                case.answers[case.place(region)] = answer
                return True
    return False


def _keeps_all(region: Region, case: Case, lines: Lines) -> bool:
    """True if every line of both sides is there. What one side took out and the other kept is for people to say."""
    comma = "," if case.language == "json" else ""
    there, ours, theirs = (
        Counter(line.rstrip().removesuffix(comma) for line in side if line.strip())
        for side in (lines, region.ours, region.theirs)
    )
    return not (ours | theirs) - there


def _told(region: Region, answer: Answer, start: int) -> Hunk:
    covers: tuple[Cover, ...] = ()
    if answer.drops:
        found = loss.losses(region.base, region.ours, region.theirs, answer.lines)
        covers = tuple(Cover(lost.side, lost.kind, lost.line, lost.count) for lost in found)
    return Hunk(
        rule=answer.rule,
        why=answer.why,
        start=start,
        end=start + len(answer.lines),
        ours=shown(region.ours),
        base=shown(region.base),
        theirs=shown(region.theirs),
        result=shown(answer.lines),
        covers=covers,
    )


def _fault(sides: Sides, content: bytes, hunks: list[Hunk]) -> str | None:
    """Why a result cannot be taken, though every region had its rule."""
    given = [side for side in (sides.ours, sides.theirs) if side is not None]
    if has_markers(content) and not any(map(has_markers, given)):
        return "the result would have conflict markers"
    if parses(sides.path, content) is False and all(parses(sides.path, side) for side in given):
        return "the result would not parse, though both sides do"
    lost = loss.check(sides, content, (cover for hunk in hunks for cover in hunk.covers))
    if lost:
        return f"a line would be lost: {lost[0].line.strip()[:80]!r}"
    return None
