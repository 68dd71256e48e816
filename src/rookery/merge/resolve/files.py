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
from rookery.merge.resolve.conflict import ConflictedFile, RuleAnswer
from rookery.merge.resolve.markers import has_markers, parses
from rookery.merge.resolve.model import Declined, Hunk, Resolved, Sides
from rookery.merge.resolve.regions import Lines, Region
from rookery.merge.resolve.rules import DEFAULT, LATE, RULES, superseded
from rookery.merge.resolve.rules.superseded import Lineage

_SYMLINK, _SUBMODULE = "120000", "160000"
_MOST_BYTES = 2_000_000
_MOST_LINES = 50_000
_MOST_SHOWN = 4_000
"""How many characters of a region are shown to people."""


@dataclass(frozen=True, slots=True)
class Settings(Record):
    """What the mechanical tier may do."""

    rules: tuple[str, ...] = DEFAULT
    """The names of the rules that may be used."""
    unions: tuple[str, ...] = ()
    """Patterns of files that are heaps of lines, where all lines of both sides are kept."""


def lineage_of(files: Iterable[Sides], *, settings: Settings) -> Lineage | None:
    """The side of a merge that went on from what the other is now, as its conflicted files tell together."""
    if superseded.LINEAGE not in settings.rules:
        return None
    opened = [_read(sides, settings) for sides in files if sides.ours_history or sides.theirs_history]
    return superseded.lineage(superseded.winner(file) for file in opened if isinstance(file, ConflictedFile))


def resolve(sides: Sides, *, lineage: Lineage | None = None, settings: Settings | None = None) -> Resolved | Declined:
    """The file with both sides' changes, or why that is not for rules to say."""
    settings = settings or Settings()
    file = _read(sides, settings)
    if isinstance(file, Declined):
        return file
    mode = _mode(sides)
    if isinstance(mode, Declined):
        return mode
    problem = _answer(file, lineage, settings)
    if not problem:
        resolved = _assemble(file, mode)
        problem = _problem(sides, resolved)
    return Declined(problem, "content" if sides.base is not None else "add/add") if problem else resolved


def _read(sides: Sides, settings: Settings) -> ConflictedFile | Declined:
    """The lines of a file, if rules on lines may settle it."""
    modes = (sides.base_mode, sides.ours_mode, sides.theirs_mode)
    if _SUBMODULE in modes:
        return Declined("a submodule points to one commit or another", "submodule")
    if _SYMLINK in modes:
        return Declined("a symbolic link points to one place or another", "symlink")
    if sides.ours is None or sides.theirs is None:
        return Declined("one side changed the file, the other does not have it", "modify/delete")
    lockfile = lockfile_of(sides.path)
    if lockfile is not None:
        return Declined(f"a lock file is made again: {' '.join(lockfile.command)}", "lockfile")
    contents = (sides.base or b"", sides.ours, sides.theirs)
    if max(map(len, contents)) > _MOST_BYTES:
        return Declined(f"the file has more than {_MOST_BYTES:,} bytes", "too_big")
    texts = []
    for content in contents:
        side = text.read(content)
        if side is None:
            if b"\0" in content:
                return Declined("the file is binary", "binary")
            return Declined("the file is not in UTF-8", "encoding")
        if len(side.lines) > _MOST_LINES:
            return Declined(f"the file has more than {_MOST_LINES:,} lines", "too_big")
        texts.append(side)
    if has_markers(contents[0]) and not has_markers(sides.ours):
        # Git merges several bases into one, and leaves in it what it could not merge.
        return Declined("the sides have no one base, and its versions are in conflict themselves", "criss_cross")
    base, ours, theirs = texts
    return ConflictedFile(sides, base, ours, theirs, settings.unions)


def _mode(sides: Sides) -> str | Declined | None:
    if sides.ours_mode == sides.theirs_mode or sides.theirs_mode == sides.base_mode:
        return sides.ours_mode
    if sides.ours_mode == sides.base_mode:
        return sides.theirs_mode
    return Declined("the sides gave the file different modes", "mode")


def _answer(file: ConflictedFile, lineage: Lineage | None, settings: Settings) -> str:
    """Let a rule answer for every region in conflict; why not, if one has no answer."""
    file.answers = superseded.answer(file, lineage, settings.rules)
    late = []
    for region in file.regions:
        if file.result_of(region) is None and not _settle(region, file, settings, late=False):
            late.append(region)
            if not _settle(region, file, settings, late=True):
                return f"no rule settles what both sides changed at line {region.ours_start + 1} of ours"
    for region in late[:-1]:
        # When these were asked first, the rest of the file was not yet known.
        if not _settle(region, file, settings, late=True):
            return f"the imports at line {region.ours_start + 1} of ours do not fit the rest of the file"
    return ""


def _settle(region: Region, file: ConflictedFile, settings: Settings, *, late: bool) -> bool:
    """Keep the answer of the first rule that has one."""
    for name, rule in RULES.items():
        if name in settings.rules and (name in LATE) == late:
            answer = rule(region, file)
            if answer is not None and (answer.replaces or _keeps_all(region, file, answer.lines)):
                file.answers[region] = answer
                return True
    return False


def _keeps_all(region: Region, file: ConflictedFile, lines: Lines) -> bool:
    """True if every line of both sides is there. What one side took out and the other kept is for people to say."""
    comma = "," if file.language == "json" else ""
    there, ours, theirs = (
        Counter(line.rstrip().removesuffix(comma) for line in side if line.strip())
        for side in (lines, region.ours, region.theirs)
    )
    return not (ours | theirs) - there


def _assemble(file: ConflictedFile, mode: str | None) -> Resolved:
    lines: list[str] = []
    hunks: list[Hunk] = []
    for region in file.regions:
        if region in file.answers:
            hunks.append(_hunk(region, file.answers[region], len(lines) + 1))
        lines += file.result_of(region) or ()
    return Resolved(text.surround(tuple(lines), *file.texts).encode(), mode, tuple(hunks))


def _hunk(region: Region, answer: RuleAnswer, start: int) -> Hunk:
    lost = loss.losses(region.base, region.ours, region.theirs, answer.lines) if answer.drops else ()
    return Hunk(
        rule=answer.rule,
        why=answer.why,
        start=start,
        end=start + len(answer.lines),
        ours=_shown(region.ours),
        base=_shown(region.base),
        theirs=_shown(region.theirs),
        result=_shown(answer.lines),
        covers=tuple(lost),
    )


def _shown(lines: Lines) -> str:
    shown = "\n".join(lines)
    return shown if len(shown) <= _MOST_SHOWN else shown[: _MOST_SHOWN - 1] + "…"


def _problem(sides: Sides, resolved: Resolved) -> str:
    """Why a result cannot be taken, though every region had its rule."""
    content, before = resolved.content, [side for side in (sides.ours, sides.theirs) if side is not None]
    if has_markers(content) and not any(map(has_markers, before)):
        return "the result would have conflict markers"
    if parses(sides.path, content) is False and all(parses(sides.path, side) for side in before):
        return "the result would not parse, though both sides do"
    lost = loss.check(sides, content, resolved.covers)
    return f"a line would be lost: {lost[0].line.strip()[:80]!r}" if lost else ""
