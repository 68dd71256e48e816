"""What the gates say of the base itself: a gate that fails there says nothing about a branch."""

from __future__ import annotations

from rookery.merge.gates import service as gates
from rookery.merge.gates.service import GateReport
from rookery.merge.merger import Merger
from rookery.merge.model import GateRun


class BaseGates:
    """The base of one pass through the queue, and what is known of it so far."""

    def __init__(self, merger: Merger, base: str) -> None:
        self._merger = merger
        self._base = base
        self._failed: GateRun | None = None

    def tree(self) -> str:
        """The files of the base as it is."""
        return self._merger.merging.tree(str(self._merger.merging.tip(self._base)))

    def ask(self, *names: str) -> GateReport:
        """Run these gates, or all, on the base as it is. Without a run, no gate has to do with its files."""
        report = gates.run_gates_on_base(self._merger, self._base, only=names)
        self._failed = report.failed or self._failed
        return report

    def failure(self) -> GateRun | None:
        """The gate that fails on the base as it is, as far as we have asked."""
        return self._failed if self._failed is not None and self._failed.tree == self.tree() else None
