"""What we offer of gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.merge import store
from rookery.merge.gates.service import run_gates
from rookery.merge.merger import Merger
from rookery.merge.model import GateRun
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, BRANCHES, NOTHING, PROCESS, Doc, Ref, op
from rookery.sessions import store as agents


@dataclass(frozen=True, slots=True)
class GateReport(Record):
    """What the gates say of a commit."""

    commit: str
    runs: tuple[GateRun, ...]

    @property
    def exit_status(self) -> int:
        """1 if one did not pass."""
        return 0 if all(each.is_ok for each in self.runs) else 1


@dataclass(frozen=True, slots=True)
class GateSummary(Record):
    """A gate, and how it did lately."""

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
    name: Annotated[tuple[str, ...], Ref(AGENTS), Doc("Gates to run; all unless given.")] = (),
    *,
    branch: Annotated[str | None, Ref(BRANCHES), Doc("A branch, or the agent whose branch it is.")] = None,
    commit: Annotated[str | None, Doc("A commit.")] = None,
    fresh: Annotated[bool, Doc("Run also what has passed on the same files before.")] = False,
) -> GateReport:
    """Run the gates on a branch or a commit, by default on what you stand on; nothing lands.

    They run in a checkout apart, so that only what is committed counts. What they run is the branch's own code, with
    your rights: agents run the project's tests in their worktree instead.
    """
    if branch and commit:
        raise InvalidInput("say --branch or --commit, not both", hint="leave one out")
    unknown = set(name) - {gate.name for gate in ctx.config.gates}
    if unknown:
        raise InvalidInput(f"there is no gate {', '.join(sorted(unknown))}", hint="`rook gate list` shows them")
    merger = Merger(ctx, ctx.actor, ctx.follow)
    if branch:
        session = agents.latest(ctx.db, branch) if merger.merging.tip(branch) is None else None
        target: str | None = merger.vcs.resolve(branch if session is None else session.branch)
    else:
        target = merger.vcs.resolve(commit) if commit else ctx.vcs().current_commit()
    if target is None:
        raise InvalidInput("there is no commit yet", hint="make a first commit")
    base = merger.base()
    # Asked for by name, a gate runs whatever has changed.
    parted = merger.merging.fork_point(merger.merging.tip(base) or target, target)
    at = parted if parted not in (None, target) else merger.merging.store.empty_tree()
    verdict = run_gates(
        merger,
        target,
        base=base,
        at=at or merger.merging.store.empty_tree(),
        retries=ctx.config.merge.retries,
        fresh=fresh,
        only=name,
    )
    return GateReport(target, verdict.runs)


@op("gate list", needs="vcs.read", view="gates.listing")
def list_gates(ctx: Context) -> list[GateSummary]:
    """List the gates and how they did lately; a flaky one failed and passed on the same files."""
    runs = store.gate_runs(ctx.db, limit=1000)
    found = []
    for gate in ctx.config.gates:
        own = [each for each in runs if each.name == gate.name]
        failed = sum(1 for each in own if not each.is_ok)
        flaky = sum(1 for each in own if each.verdict == "flaky")
        found.append(
            GateSummary(gate.name, gate.run, gate.paths, gate.timeout, len(own), failed, flaky, own[0] if own else None)
        )
    return found
