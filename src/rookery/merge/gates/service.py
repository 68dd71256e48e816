"""Gates: commands that must pass before work lands, run on just what would land.

The gates of one commit run one after the other in one folder, so that a later one finds what an earlier one made. Those
of several commits run at once, as far as there are slots (`slots.py`). A gate that passed on a tree is not run again on
it, unless a later one has to be run and needs what it made. One that failed is run again by the next command, or at
once, in a folder of its own, where a retry shows whether it is flaky.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rookery.base.draft import unique
from rookery.base.record import Record
from rookery.config.model import GateConfig
from rookery.merge import store
from rookery.merge.gates.gate_job import Checkout, GateJob, command_of
from rookery.merge.gates.together import Flow, together
from rookery.merge.merger import Merger
from rookery.merge.model import GateRun


@dataclass(frozen=True, slots=True)
class GateReport(Record):
    """What the gates say of a commit."""

    commit: str
    runs: tuple[GateRun, ...]
    """In order; where only passing all of them counts, the first that did not pass is the last."""

    @property
    def failed(self) -> GateRun | None:
        """The gate that did not pass; None if the commit may land."""
        return next((run for run in self.runs if not run.is_ok), None)

    @property
    def exit_status(self) -> int:
        """1 if one did not pass."""
        return 0 if self.failed is None else 1


@dataclass(frozen=True, slots=True)
class Gated(Record):
    """A commit to run the gates on."""

    commit: str
    base: str
    at: str
    """Gates with paths run if these have changed since this commit or tree."""
    label: str = ""
    """Stands before every line of output, where gates of several commits run at once."""


def run_gates(
    merger: Merger,
    commit: str,
    *,
    base: str,
    at: str,
    retries: int = 0,
    fresh: bool = False,
    only: Sequence[str] = (),
    goes_on: bool = False,
) -> GateReport:
    """Run every gate whose paths have changed since `at`, up to the first that does not pass unless `goes_on`."""
    return together(merger, [_run_on(merger, Gated(commit, base, at), retries, fresh, only, goes_on)])[0]


def run_gates_on_base(
    merger: Merger, base: str, *, only: Sequence[str] = (), last: str = "", fresh: bool = False, goes_on: bool = False
) -> GateReport:
    """The same on a base as it is, for the gates whose paths it has. What failed there is not run twice.

    Where only the result of the `last` counts, nothing is run if that is known, and else all of them, in one folder.
    """
    tip = merger.merging.tip(base)
    if tip is None:
        return GateReport(base, ())
    tree = merger.merging.tree(tip)
    chosen = [gate for gate in merger.ctx.config.gates if not only or gate.name in only]
    known = [run for gate in chosen if gate.name == last and (run := _known(merger, tree, gate)) is not None]
    if known:
        return GateReport(tip, (known[0],))
    is_known = any((tree, command_of(merger, gate)) in merger.red for gate in chosen)
    retries = 0 if is_known and not last else merger.ctx.config.merge.retries
    at = merger.merging.store.empty_tree()
    goes_on = goes_on or bool(last)
    return run_gates(merger, tip, base=base, at=at, retries=retries, only=only, fresh=fresh, goes_on=goes_on)


def run_gates_on_all(merger: Merger, gated: Sequence[Gated]) -> list[GateReport]:
    """The same on several commits at once, without retries."""
    is_one = len(gated) == 1
    flows = [_run_on(merger, one.replace(label="") if is_one else one, 0, False, ()) for one in gated]
    return together(merger, flows)


def _run_on(
    merger: Merger, gated: Gated, retries: int, fresh: bool, only: Sequence[str], goes_on: bool = False
) -> Flow[GateReport]:
    if not merger.ctx.config.gates:
        return GateReport(gated.commit, ())
    tree = merger.merging.tree(gated.commit)
    chosen: list[GateJob] = []
    runs: dict[str, GateRun] = {}
    with Checkout(merger, gated.commit, tree, gated.base) as checkout:
        for gate in _choose(merger, gated.at, gated.commit, only):
            job = GateJob(merger, gate, tree, checkout, tuple(chosen), unique() if fresh else "", gated.label, goes_on)
            chosen.append(job)
            run = None if fresh else _known(merger, tree, gate)
            if run is None or (not run.is_ok and retries):
                run = yield from job.run(retries)
            runs[run.name] = run
            if not run.is_ok and not goes_on:
                # Where it is a gate that passed before, those after it were not run on what it leaves now.
                done = list(runs)[: list(runs).index(run.name) + 1]
                return GateReport(gated.commit, tuple(runs[name] for name in done))
    return GateReport(gated.commit, tuple(runs.values()))


def _choose(merger: Merger, old: str, new: str, only: Sequence[str]) -> list[GateConfig]:
    """The gates whose paths have changed, and those without paths; with `only`, those of them that are named."""
    gates = [gate for gate in merger.ctx.config.gates if not only or gate.name in only]
    if not any(gate.paths for gate in gates):
        return gates
    changed = merger.merging.changed_paths([(old, new)])[0]
    return [gate for gate in gates if not gate.paths or any(matches(path, gate.paths) for path in changed)]


def matches(path: str, patterns: Sequence[str]) -> bool:
    """True if one of the patterns is the path, a folder above it, or a glob that fits it."""
    return any(
        path == pattern.rstrip("/") or path.startswith(pattern.rstrip("/") + "/") or fnmatchcase(path, pattern)
        for pattern in patterns
    )


def _known(merger: Merger, tree: str, gate: GateConfig) -> GateRun | None:
    command = command_of(merger, gate)
    failed = merger.red.get((tree, command))
    if failed is not None:
        return failed.replace(is_cached=True)
    run = store.last_gate_run(merger.ctx.db, tree, command)
    return run.replace(is_cached=True, name=gate.name) if run is not None and run.is_ok else None
