"""How gates are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.base.text import one_line
from rookery.cli.document import Block, Paragraph, Table, line, short, text
from rookery.merge.gates.ops import GateSummary
from rookery.merge.gates.service import GateReport
from rookery.merge.model import FAILED_GATE, FLAKY, MEMORY, OVERRAN, PASSED, TIMEOUT, GateRun, way_out

_STYLES = {PASSED: "good", FLAKY: "note", FAILED_GATE: "bad", TIMEOUT: "bad", OVERRAN: "bad", MEMORY: "bad"}
_SHOWN_LINES = 20


def report(result: GateReport, values: dict[str, Any]) -> list[Block]:
    """What the gates say of a commit."""
    if not result.runs:
        return [text("No gate is configured for what has changed; see `gates` in the configuration.", "dim")]
    commit = Paragraph([line("for ", short(result.commit))])
    to_do = [text(f"To do: {way_out('the base')}.", "busy")] if values.get("base") and result.failed else []
    return [runs(result.runs), *failed_output(result.runs), *to_do, commit]


def failed_output(gate_runs: tuple[GateRun, ...]) -> Iterator[Block]:
    """The last lines of those that did not pass, and where the rest is."""
    for run in gate_runs:
        if not run.is_ok:
            yield text(f"Last lines of {run.name}:" if run.last_lines else f"{run.name} printed nothing.", "bold")
            if run.last_lines:
                yield text("\n".join(run.last_lines.splitlines()[-_SHOWN_LINES:]), "dim", indent=2)
            yield text(f"output: {run.log}", "dim")


def runs(gate_runs: tuple[GateRun, ...]) -> Table:
    """Runs of gates."""
    rows = [
        (
            (run.name, "bold"),
            line((run.verdict, _STYLES[run.verdict]), (" (cached)" if run.is_cached else "", "dim")),
            run.status,
            f"{run.seconds:.1f}s",
            (run.log, "dim"),
        )
        for run in gate_runs
    ]
    return Table(("gate", "result", "exit", "time", "output"), rows)


def listing(gates: list[GateSummary], _values: dict[str, Any]) -> list[Block]:
    """Every gate."""
    rows = [
        (
            (gate.name, "bold"),
            gate.runs,
            (str(gate.failed), "bad" if gate.failed else "dim"),
            (str(gate.flaky), "note" if gate.flaky else "dim"),
            "never" if gate.last is None else (gate.last.verdict, _STYLES[gate.last.verdict]),
            one_line(gate.run),
        )
        for gate in gates
    ]
    none = "No gates. Name commands under `gates:` in .rookery/config.yaml."
    return [Table(("gate", "runs", "failed", "flaky", "last", "command"), rows, empty=none)]
