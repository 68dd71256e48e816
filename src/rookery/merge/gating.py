"""What the gates say of the branches in one run, and of the base itself.

A gate that fails on the base says nothing about a branch.
"""

from __future__ import annotations

from rookery.config import steps
from rookery.merge.gates import service as gates
from rookery.merge.gates.service import Gated, GateReport
from rookery.merge.landing.candidate import Candidate
from rookery.merge.merger import Merger
from rookery.merge.model import FLAKY, GateRun


class Gating:
    """The gates of one run through the queue of a base, and what is known of the base so far."""

    def __init__(self, merger: Merger, base: str) -> None:
        self._merger = merger
        self._base = base
        self._failed: GateRun | None = None
        self._flaky_on_base: set[str] = set()
        self.flaky: dict[str, None] = {}

    def gate(self, candidate: Candidate) -> GateRun | None:
        """The gate that a candidate fails alone on the base: there it gets its retries, also after a batch failed."""
        retries, commit, at = self._merger.ctx.config.merge.retries, candidate.commit, candidate.onto
        return self._note(gates.run_gates(self._merger, commit, base=self._base, at=at, retries=retries)).failed

    def gate_prefixes(self, stack: list[Candidate], cuts: list[int]) -> list[GateRun | None]:
        """The gates that the stack fails up to each cut."""
        gated = [Gated(stack[cut - 1].commit, self._base, stack[0].onto, _label(stack[:cut])) for cut in cuts]
        return [self._note(report).failed for report in gates.run_gates_on_all(self._merger, gated)]

    def ask_base(self, failed: GateRun | None = None) -> GateRun | None:
        """Run all gates on the base as it is, or those up to one that a branch failed: it may need what they make.

        Only that one counts then, and its run is returned; None if it has to do with no file there. What is known is
        not run again.
        """
        name = "" if failed is None else failed.name
        listed = [gate.name for gate in self._merger.ctx.config.gates]
        before = listed[: listed.index(name)] if name in listed else []
        report = gates.run_gates_on_base(self._merger, self._base, only=(*before, name) if name else (), last=name)
        runs = [run for run in self._note(report).runs if name in ("", run.name)]
        self._failed = next((run for run in runs if not run.is_ok), self._failed)
        self._flaky_on_base.update(run.name for run in runs if run.verdict == FLAKY)
        return next(iter(runs), None)

    def is_flaky_on_base(self, run: GateRun) -> bool:
        """True if the base, when it was asked, failed the gate and then passed it."""
        return run.name in self._flaky_on_base

    def base_tree(self) -> str:
        """The files of the base as it is."""
        return self._merger.merging.tree(str(self._merger.merging.tip(self._base)))

    def base_failure(self) -> GateRun | None:
        """The gate that fails on the base as it is, as far as we have asked."""
        return self._failed if self._failed is not None and self._failed.tree == self.base_tree() else None

    def _note(self, report: GateReport) -> GateReport:
        self.flaky.update((run.name, None) for run in report.runs if run.verdict == FLAKY and not run.is_cached)
        steps.reached("gated")
        return report


def _label(stack: list[Candidate]) -> str:
    """The last branch of a stack, and how many are below it."""
    below = f"+{len(stack) - 1}" if len(stack) > 1 else ""
    return f"{stack[-1].entry.branch}{below}"
