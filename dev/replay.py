"""How the mechanical tier does on real histories: `./rook-dev replay REPO… [--limit N] [--rules all] [--json]`.

Every merge of two commits is done again; where git finds a conflict, the file is resolved by our rules and compared
with what people committed. Nothing is written to the repositories.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dev.replay_history import Conflict, History, read
from rookery.base.lockfiles import lockfile_of
from rookery.merge.resolve import text
from rookery.merge.resolve.files import Settings, lineage_of, resolve
from rookery.merge.resolve.markers import has_markers
from rookery.merge.resolve.model import Declined, Resolved, Sides
from rookery.merge.resolve.regions import Region, regions
from rookery.merge.resolve.rules import ALL
from rookery.merge.resolve.rules.superseded import Lineage

SAME, OTHER_ORDER, DIFFERENT = "same", "same in another order", "different"


@dataclass
class Score:
    """How often the result was people's."""

    same: int = 0
    other_order: int = 0
    different: int = 0
    thrown_away: int = 0
    """Of the different: people took one side's whole file, and threw changes away that git merges cleanly."""
    lost: int = 0
    """Files with a line that a rule left out and people kept."""

    @property
    def resolved(self) -> int:
        """How many files were resolved."""
        return self.same + self.other_order + self.different

    @property
    def agreed(self) -> float:
        """The share with the same lines as people's."""
        return (self.same + self.other_order) / max(1, self.resolved)


@dataclass
class Report:
    """All there is to tell of one or several repositories."""

    repositories: list[str] = field(default_factory=list)
    merges: int = 0
    unreadable: int = 0
    clean_same: int = 0
    clean_different: int = 0
    conflicted: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Conflicted paths that are not measured, by why."""
    files: int = 0
    total: Score = field(default_factory=Score)
    by_rule: dict[str, Score] = field(default_factory=dict)
    declined: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    examples: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        took = sorted(self.milliseconds) or [0.0]
        return {
            "repositories": self.repositories,
            "merges": self.merges,
            "unreadable": self.unreadable,
            "clean": {"same": self.clean_same, "different": self.clean_different},
            "conflicted": self.conflicted,
            "left_out": dict(sorted(self.left_out.items())),
            "files": self.files,
            "resolved": _score(self.total) | {"share": round(self.total.resolved / max(1, self.files), 4)},
            "rules": {name: _score(score) for name, score in sorted(self.by_rule.items())},
            "declined": dict(self.declined.most_common()),
            "milliseconds": {"p50": took[len(took) // 2], "p95": took[int(len(took) * 0.95)], "max": took[-1]},
            "examples": self.examples,
        }


def _score(score: Score) -> dict[str, Any]:
    return vars(score) | {"resolved": score.resolved, "agreed": round(score.agreed, 4)}


def measure(history: History, report: Report, settings: Settings, *, every: int = 1) -> None:
    """Resolve each conflicted file of a history and add the outcome to the report."""
    report.repositories.append(history.name)
    report.merges += history.merges
    report.unreadable += history.unreadable
    report.clean_same += history.clean_same
    report.clean_different += history.clean_different
    report.conflicted += history.conflicted
    lineages = _lineages(history, settings)
    for conflict in history.conflicts[::every]:
        why = _left_out(history, conflict)
        if why is not None:
            report.left_out[why] += 1
            continue
        report.files += 1
        sides = sides_of(history, conflict)
        began = time.process_time()
        got = resolve(sides, lineage=lineages[conflict.merge], settings=settings)
        report.milliseconds.append(round((time.process_time() - began) * 1000, 2))
        if isinstance(got, Declined):
            report.declined[got.reason.partition(" at line")[0].partition(":")[0]] += 1
        else:
            _compare(history, conflict, sides, got, report)


def _lineages(history: History, settings: Settings) -> dict[str, Lineage | None]:
    """For each merge the side that went on from what the other is."""
    merges: dict[str, list[Conflict]] = {}
    for conflict in history.conflicts:
        merges.setdefault(conflict.merge, []).append(conflict)
    return {
        merge: lineage_of((sides_of(history, file) for file in files), settings=settings)
        for merge, files in merges.items()
    }


def sides_of(history: History, conflict: Conflict) -> Sides:
    """The input of the resolver."""
    content = history.content
    return Sides(
        conflict.path,
        *(content(conflict.base), content(conflict.ours), content(conflict.theirs)),
        *conflict.modes,
        tuple(history.blobs[blob] for blob in conflict.ours_history),
        tuple(history.blobs[blob] for blob in conflict.theirs_history),
    )


def _left_out(history: History, conflict: Conflict) -> str | None:
    """Why a path is no measure of a merge of text, if it is none."""
    if lockfile_of(conflict.path) is not None:
        return "lock file"
    if conflict.path.endswith(".jsonl"):
        return "jsonl"
    if conflict.ours is None or conflict.theirs is None:
        return "modify/delete"
    ours, theirs = history.blobs[conflict.ours], history.blobs[conflict.theirs]
    if text.read(ours) is None or text.read(theirs) is None:
        return "not text"
    if conflict.one_sided:
        return "merge that took one side whole"
    human = history.content(conflict.human)
    if human is not None and has_markers(human) and not has_markers(ours) and not has_markers(theirs):
        return "committed with conflict markers"
    return None


def _compare(history: History, conflict: Conflict, sides: Sides, got: Resolved, report: Report) -> None:
    contents = (history.content(conflict.human), sides.ours, sides.theirs, got.content)
    human, ours, theirs, mine = (_compared_lines(sides.path, content) for content in contents)
    verdict = SAME if mine == human else OTHER_ORDER if sorted(mine) == sorted(human) else DIFFERENT
    lost = (_at_stake(sides) & Counter(human)) - Counter(mine)
    thrown = verdict == DIFFERENT and human in (ours, theirs) and _threw_away(sides, took_ours=human == ours)
    rules = sorted({hunk.rule for hunk in got.hunks}) or ["(no region in conflict)"]
    for score in (report.total, *(report.by_rule.setdefault(rule, Score()) for rule in rules)):
        score.same += verdict == SAME
        score.other_order += verdict == OTHER_ORDER
        score.different += verdict == DIFFERENT
        score.thrown_away += thrown
        score.lost += bool(lost)
    if verdict == DIFFERENT or lost:
        report.examples.append(
            {
                "repository": history.name,
                "merge": conflict.merge,
                "path": conflict.path,
                "rules": rules,
                "thrown_away": thrown,
                "lost": list(lost),
            }
        )


def _at_stake(sides: Sides) -> Counter[str]:
    """What people can have kept: the lines of either side, each as often as the side has it that has it more often."""
    stake: Counter[str] = Counter()
    for region in _regions(sides):
        if region.settled is not None:
            stake += Counter(_read(sides.path, region.settled))
        else:
            stake += Counter(_read(sides.path, region.ours)) | Counter(_read(sides.path, region.theirs))
    return stake & (
        Counter(_compared_lines(sides.path, sides.ours)) | Counter(_compared_lines(sides.path, sides.theirs))
    )


def _threw_away(sides: Sides, *, took_ours: bool) -> bool:
    """True if the side that was not taken had a change that git merges cleanly."""
    clean = (region for region in _regions(sides) if region.settled is not None and region.ours != region.theirs)
    return any((region.theirs if took_ours else region.ours) != region.base for region in clean)


def _regions(sides: Sides) -> Iterator[Region]:
    read = [text.read(content or b"") for content in (sides.base, sides.ours, sides.theirs)]
    return regions(*(version.lines if version else () for version in read))


def _compared_lines(path: str, content: bytes | None) -> list[str]:
    """The lines of a file that count when versions are compared; none if it is not text."""
    readable = text.read(content or b"")
    return [] if readable is None else _read(path, readable.lines)


def _read(path: str, lines: Iterable[str]) -> list[str]:
    """Without blank lines, trailing blanks and, in JSON, commas at the end: no author decides on those."""
    comma = "," if path.endswith(".json") else ""
    return [line.rstrip().removesuffix(comma) for line in lines if line.strip()]


def main() -> None:
    """Replay the repositories that are named."""
    options = _parse()
    rules = ALL if options.rules == ["all"] else tuple(options.rules or Settings().rules)
    settings = Settings(rules=rules)
    report = Report()
    for repository in options.repositories:
        history = _history(repository, options.limit, options.cache)
        measure(history, report, settings, every=options.every)
    print(json.dumps(report.as_dict(), indent=1) if options.json else render(report))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rook-dev replay", description=__doc__)
    parser.add_argument("repositories", nargs="+", type=Path, metavar="REPO", help="a clone, or a bare git directory")
    parser.add_argument("--limit", type=int, help="only the newest N merges of each")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th conflicted file")
    parser.add_argument(
        "--rules", nargs="+", choices=("all", *ALL), help="only these rules; `all` has those on request"
    )
    parser.add_argument("--cache", type=Path, help="keep what git found in this folder, and use it the next time")
    parser.add_argument("--json", action="store_true", help="for programs, with every difference")
    return parser.parse_args()


def _history(repository: Path, limit: int | None, cache: Path | None) -> History:
    kept = None if cache is None else cache / f"{repository.resolve().parent.name}+{repository.name}-{limit}.pickle"
    if kept is not None and kept.is_file():
        cached: History = pickle.loads(kept.read_bytes())
        return cached
    history = History(repository.name)
    began = time.monotonic()
    for history in read(repository, limit=limit):
        if sys.stderr.isatty() and history.merges % 20 == 0:
            print(
                f"\r{history.name}: {history.merges} merges, {history.conflicted} in conflict", end="", file=sys.stderr
            )
    if sys.stderr.isatty():
        print(f"\r{history.name}: {history.merges} merges in {time.monotonic() - began:.0f} s\033[K", file=sys.stderr)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(history))
    return history


def render(report: Report) -> str:
    """For people."""
    total = report.total
    took = sorted(report.milliseconds) or [0.0]
    high = took[len(took) * 95 // 100]
    lines = [
        ", ".join(report.repositories),
        f"merges              {report.merges:6}  ({report.unreadable} more could not be read)",
        f"  clean, as people  {report.clean_same:6}",
        f"  clean, different  {report.clean_different:6}",
        f"  in conflict       {report.conflicted:6}",
        f"text files measured {report.files:6}  (left out: {_listed(report.left_out)})",
        f"  resolved          {total.resolved:6}  {total.resolved / max(1, report.files):.1%}",
        f"    as people       {total.same + total.other_order:6}  {total.agreed:.1%} of the resolved"
        f" ({total.other_order} in another order)",
        f"    different       {total.different:6}  ({total.thrown_away} where people threw clean changes away)",
        f"    lost a line     {total.lost:6}  that people kept",
        f"  declined          {report.files - total.resolved:6}",
        f"CPU ms a file       {took[len(took) // 2]:6.1f}  p50, {high:.1f} p95, {took[-1]:.1f} max",
        "",
        f"{'rule':26}{'as people':>10}{'different':>10}{'thrown away':>12}{'lost':>6}{'agrees':>8}",
    ]
    for name, score in sorted(report.by_rule.items(), key=lambda item: -item[1].resolved):
        agreed = score.same + score.other_order
        lines.append(
            f"{name:26}{agreed:>10}{score.different:>10}{score.thrown_away:>12}{score.lost:>6}{score.agreed:>8.0%}"
        )
    return "\n".join(lines)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.most_common()) or "none"


if __name__ == "__main__":
    main()
