"""The operations of gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.config.model import GateConfig
from rookery.merge import store
from rookery.merge.gates.service import GateReport, run_gates, run_gates_on_base
from rookery.merge.merger import Merger
from rookery.merge.model import FLAKY, GateRun
from rookery.ops.context import Context
from rookery.ops.operation import BRANCHES, GATES, NOTHING, PROCESS, Doc, Ref, op


@dataclass(frozen=True, slots=True)
class GateSummary(Record):
    """A gate, and its last results."""

    PRINTS = "name"
    name: str
    run: str
    paths: tuple[str, ...]
    timeout: float
    runs: int
    failed: int
    flaky: int
    last: GateRun | None


@op("gate run", needs="gate.write", long=True, touches=PROCESS, owns=NOTHING, view="gates.report")
def run(
    ctx: Context,
    name: Annotated[tuple[str, ...], Ref(GATES), Doc("Gates to run; all by default.")] = (),
    *,
    branch: Annotated[str | None, Ref(BRANCHES), Doc("A branch, or the agent whose branch it is.")] = None,
    commit: Annotated[str | None, Doc("A commit.")] = None,
    base: Annotated[bool, Doc("The base as it is: what lands later is compared with it.")] = False,
    fresh: Annotated[bool, Doc("Run also gates that have passed on the same files before.")] = False,
) -> GateReport:
    """Run the gates on a branch or a commit, by default on the current commit; nothing lands.

    They run in a checkout apart, so that only what is committed counts. What they run is the branch's own code, with
    your rights: agents run the project's tests in their worktree instead.
    """
    if bool(branch) + bool(commit) + base > 1:
        raise InvalidInput("say only one of --branch, --commit and --base", hint="leave the others out")
    unknown = set(name) - {gate.name for gate in ctx.config.gates}
    if unknown:
        raise InvalidInput(f"there is no gate {', '.join(sorted(unknown))}", hint="`rook gate list` shows them")
    merger = Merger(ctx, ctx.actor, ctx.follow)
    onto = merger.base()
    if base:
        return run_gates_on_base(merger, onto, only=name, fresh=fresh)
    if branch:
        target: str | None = merger.vcs.resolve(merger.branch(branch))
    else:
        target = merger.vcs.resolve(commit) if commit else ctx.vcs().current_commit()
    if target is None:
        raise InvalidInput("there is no commit yet", hint="make a first commit")
    fork_point = merger.merging.fork_point(merger.merging.tip(onto) or target, target)
    # On the base itself nothing has changed: then all of its files count as changed.
    at = fork_point if fork_point and fork_point != target else merger.merging.store.empty_tree()
    retries = ctx.config.merge.retries
    return run_gates(merger, target, base=onto, at=at, retries=retries, fresh=fresh, only=name)


@op("gate list", needs="vcs.read", view="gates.listing")
def list_gates(ctx: Context) -> list[GateSummary]:
    """List the gates and their last results; a flaky one failed and passed on the same files."""
    runs = store.gate_runs(ctx.db, limit=1000)
    return [_summary(gate, [run for run in runs if run.name == gate.name]) for gate in ctx.config.gates]


def _summary(gate: GateConfig, runs: list[GateRun]) -> GateSummary:
    failed = sum(not run.is_ok for run in runs)
    flaky = sum(run.verdict == FLAKY for run in runs)
    last = runs[0] if runs else None
    return GateSummary(gate.name, gate.run, gate.paths, gate.timeout, len(runs), failed, flaky, last)
