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

    def ask(self, name: str = "") -> GateReport:
        """Run all gates on the base as it is, or those up to the named one: it may need what they make.

        Only that one counts then. What is known of it is not run again.
        """
        listed = [gate.name for gate in self._merger.ctx.config.gates]
        before = listed[: listed.index(name)] if name in listed else []
        report = gates.run_gates_on_base(self._merger, self._base, only=(*before, name) if name else (), last=name)
        failed = [run for run in report.runs if not run.is_ok and name in ("", run.name)]
        self._failed = failed[0] if failed else self._failed
        return report

    def failure(self) -> GateRun | None:
        """The gate that fails on the base as it is, as far as we have asked."""
        return self._failed if self._failed is not None and self._failed.tree == self.tree() else None
