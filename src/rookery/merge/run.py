"""One merger's way through the queue of one base.

Branches that do not conflict are stacked and gated once. A gate over a batch says that all of it is good, or only that
something in it is bad; so batches are large while little fails, and small when much does. A red stack is halved until
the culprit is alone, and what is green lands at once. If the left half is green, the right one is red without another
run. Branches that conflict are resolved one by one, when nothing clean is left.

With several slots (`merge/gates/slots.py`), several batches are stacked on top of each other, and a red stack is cut
into more than two: every prefix is gated at the same time, in the hope that what is below it is good. Only a prefix
whose own files passed lands, on the base that it was built on.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from rookery.base.text import one_line
from rookery.merge import store
from rookery.merge.gates import slots
from rookery.merge.gating import Gating
from rookery.merge.landing import land
from rookery.merge.landing.candidate import Candidate, build
from rookery.merge.landing.eligibility import Withdrawn, outside_of, protected_paths, why_refused
from rookery.merge.landing.history import Unclear, landed_branches
from rookery.merge.landing.land import Held
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import (
    BASE_GATE,
    CONFLICT,
    EMPTY,
    GATE,
    GONE,
    HUMAN,
    MERGE,
    OUTSIDE,
    PROTECTED,
    RESOLVING,
    Entry,
    GateRun,
    is_alike,
)
from rookery.merge.person import closing, handback
from rookery.merge.person.model import OpenConflict, shown_place
from rookery.merge.progress import Progress
from rookery.merge.tiers import ladder as resolving
from rookery.merge.tiers.case import Case
from rookery.sessions import store as agents
from rookery.tasks import store as tasks
from rookery.tasks.model import OutsideFile
from rookery.vcs.git.in_progress import BranchInUse, check_free
from rookery.vcs.model import RefMoved
from rookery.vcs.ref_names import LANDINGS

WINDOW = 40
"""How many of the last landings count for the failure rate."""
SEASON = 20
"""After how many landings the rate is computed again: one red branch says little, and smaller batches cost runs."""
_PRIOR_RUNS, _PRIOR_FAILURES = 16, 1.0
"""What is assumed before there is a history: one in sixteen fails."""
_MOST_REBUILDS = 20


def batch_size(gated: int, failed: int, most: int) -> int:
    """How many branches to gate together: about one over the square root of the failure rate."""
    failure_rate = (failed + _PRIOR_FAILURES) / (gated + _PRIOR_RUNS)
    return max(1, min(most, round(1 / math.sqrt(failure_rate))))


class Run:
    """One merger's way through the queue of one base."""

    def __init__(self, merger: Merger, lease: Lease, only: Collection[str]) -> None:
        self.merger = merger
        self.lease = lease
        self.progress = Progress(merger, lease)
        self.only = frozenset(only)
        self._outside: dict[tuple[str, str], tuple[OutsideFile, ...]] = {}
        self.gating = Gating(merger, lease.base)
        self._rebuilds = 0
        self._size = self._sized_at = 0

    def carry_out(self) -> None:
        """Go on until nothing is left that could land."""
        for entry in land.recover(self.merger, self.lease):
            if not self.only or entry.id in self.only:
                self.progress.seen[entry.id] = None
        self.progress.follow_up()
        closing.pick_up(self.merger, self.lease.base)
        if any(entry.kind == BASE_GATE for entry in self._queued()):
            self.gating.ask_base()  # if the base is still broken, nothing need be searched for culprits
        while queued := self._queued():
            entries, resolved = self._without_open(self._landable(queued))
            landing = [*entries, *(entry for entry, _, _ in resolved)]
            if landing and self._is_base_in_use(landing):
                continue
            if resolved:  # first, while the base is as the person saw it
                self._hand_in(*resolved[0])
                continue
            stack, clashes = self._stack(entries) if entries else ([], [])
            if stack:
                self._settle(stack)
            elif clashes:
                self._resolve(clashes[0])

    def _queued(self) -> list[Entry]:
        now = self.gating.base_tree() if any(self.progress.held.values()) else ""
        held = {merge_id for merge_id, tree in self.progress.held.items() if tree in ("", now)}
        return [
            entry
            for entry in store.queue(self.merger.ctx.db, self.lease.base)
            if entry.id not in held and (not self.only or entry.id in self.only)
        ]

    def _landable(self, entries: list[Entry]) -> list[Entry]:
        """Entries as their branches are now; what is gone, empty or there already is settled at once."""
        tips = self.merger.merging.tips([entry.branch for entry in entries])
        landed = landed_branches(self.merger, tips, self.lease.base)
        landable = []
        for entry in entries:
            tip = tips.get(entry.branch)
            refusal = why_refused(self.merger.ctx.db, entry)
            if tip is None:
                self.progress.fail(entry, GONE, f"there is no branch {entry.branch}")
            elif refusal:
                self.progress.withdraw(entry, refusal)
            elif entry.branch not in landed:
                if not self._refuse_outside(entry, tip):
                    landable.append(entry.replace(tip=tip, outside=self._outside[entry.id, tip]))
            elif self._has_own_work(entry, tip):
                self.progress.note_landed(entry, tip)
            else:
                self.progress.fail(entry, EMPTY, f"{entry.branch} holds no commit of its own; was the work committed?")
        return landable

    def _is_base_in_use(self, entries: list[Entry]) -> bool:
        """True if git has begun something with the base: then all of them wait, before a gate or an agent is run."""
        try:
            check_free(self.merger.merging.store, self.lease.base)
        except BranchInUse as error:
            for entry in entries:
                self.progress.hold(entry.id, land.in_use(error))
            return True
        return False

    def _has_own_work(self, entry: Entry, tip: str) -> bool:
        """True unless the branch is still where its agent or its task began."""
        db = self.merger.ctx.db
        if entry.agent is None:
            return entry.task_id is None or tasks.start_of_branch(db, entry.branch) != tip
        return all(session.base_commit != tip for session in agents.sessions(db, branch=entry.branch))

    def _stack(self, entries: list[Entry]) -> tuple[list[Candidate], list[Case]]:
        """The first branches that do not conflict, each on top of the one before; and those that do."""
        stack: list[Candidate] = []
        clashes: list[Case] = []
        onto = self.merger.merging.tip(self.lease.base)
        assert onto is not None  # noqa: S101 - it was there when the lease was taken
        # On a broken base one run of everything says whether a branch repairs it.
        is_broken = self.gating.base_failure() is not None
        size = len(entries) if is_broken else self._batch_size() * slots.count(self.merger.ctx)
        for entry in entries:
            try:
                built = build(self.merger, entry, onto)
            except Unclear as error:
                self.progress.fail(entry, EMPTY, f"{error.message}; {error.hint}")
                continue
            if isinstance(built, Case):
                clashes.append(built)
            elif not self._brings_nothing(built, is_on_base=not stack) and not self._refuse_protected(built):
                stack.append(built)
                onto = built.commit
                if len(stack) == size:
                    break
        if stack and not self.merger.ctx.config.gates:
            return stack, clashes  # nothing takes time, so the step that begins the landing takes them
        taken = self.progress.take([item.entry for item in (stack or clashes[:1])])
        return [candidate.replace(entry=taken[candidate.entry.id]) for candidate in stack], clashes

    def _batch_size(self) -> int:
        if self._size == 0 or len(self.progress.seen) >= self._sized_at + SEASON:
            gated, failed = store.recent_failures(self.merger.ctx.db, WINDOW)
            self._size = batch_size(gated, failed, self.merger.ctx.config.merge.batch)
            self._sized_at = len(self.progress.seen)
        return self._size

    def _settle(self, stack: list[Candidate], *, is_red: bool = False) -> None:
        """Land a stack, or find out which of it is bad. `is_red` if the stack as a whole is known to fail."""
        broken = None if is_red else self.gating.base_failure()
        if broken is not None:
            (failed,) = self.gating.gate_prefixes(stack, [len(stack)])
            if failed is None:
                self._land(stack)  # something in it repairs the base
                return
            if is_alike(failed, broken):
                self.progress.hold_for_base([candidate.entry for candidate in stack], broken)
                return
            is_red = True  # for another reason: one may repair the base, and another be bad
        if len(stack) == 1:
            self._settle_single(stack[0])
            return
        cuts = self._cuts(len(stack), is_red)
        failures = self.gating.gate_prefixes(stack, cuts)
        green = max((cut for cut, failed in zip(cuts, failures, strict=True) if failed is None), default=0)
        red = min((cut for cut in (*cuts, len(stack)) if cut > green), default=green)
        self.progress.put_back(stack[red:])
        if green and not self._land(stack[:green]):
            self.progress.put_back(stack[green:red])
        elif green < red:
            self._settle(stack[green:red], is_red=True)

    def _cuts(self, length: int, is_red: bool) -> list[int]:
        """After how many candidates to cut a stack: what is below each cut is gated, all at the same time."""
        if is_red:
            parts = min(slots.count(self.merger.ctx) + 1, length)
            return [length * part // parts for part in range(1, parts)]
        size = self._batch_size()
        return [*range(size, length, size), length]

    def _settle_single(self, candidate: Candidate) -> None:
        """Alone, a branch gets its retries, also after it failed as a part of a batch."""
        failed = self.gating.gate(candidate)
        if failed is None:
            self._land([candidate])
        elif not self._is_base_to_blame(candidate.entry, failed):
            self._fail_gate(candidate, failed)

    def _is_base_to_blame(self, entry: Entry, failed: GateRun) -> bool:
        """True if the base itself fails a gate that a branch has failed; then the branch waits."""
        on_base = self.gating.ask_base(failed)
        if on_base is None or on_base.is_ok:
            return False
        self.progress.hold_for_base([entry], on_base)
        return True

    def _fail_gate(self, candidate: Candidate, failed: GateRun, remark: str = "") -> None:
        is_flaky = self.gating.is_flaky_on_base(failed)
        flaky = f"; it is flaky: on {self.lease.base} itself it failed and passed on the same files" if is_flaky else ""
        reason = f"the gate {failed.name} {failed.result}{flaky}{remark}"
        merge_id, commits = candidate.entry.id, {"candidate": candidate.commit, "base_before": candidate.onto}
        self.merger.merging.keep(LANDINGS + merge_id, candidate.commit)  # so that a person can look at it
        self.progress.fail(candidate.entry, GATE, reason, self._changed(candidate), failed, **commits)

    def _land(self, stack: list[Candidate]) -> bool:
        """Land a green stack. False if the base moved or a checkout blocks it: then it is queued or held."""
        self.progress.seen.update((candidate.entry.id, None) for candidate in stack)
        try:
            landed = land.land(self.merger, self.lease, stack)
        except Withdrawn:  # the next pass takes out of the queue what may not land any more
            self.progress.put_back(stack)
            return False
        except RefMoved:
            self._rebuilds += 1
            if self._rebuilds <= _MOST_REBUILDS:
                self.progress.put_back(stack)
                return False
            landed = Held(f"{self.lease.base} moved {self._rebuilds} times while it was being landed on")
        if isinstance(landed, Held):
            self._hold(stack, landed)
            return False
        for entry in landed:
            commit = str(entry.candidate)[:12]
            self.merger.say(f"{entry.branch} has landed on {entry.base} as {commit} ({entry.tier})\n")
        self.progress.follow_up()
        return True

    def _hold(self, stack: list[Candidate], held: Held) -> None:
        """Let those wait that touch the files that block it; the others of the stack are tried again without them."""
        blocked = set(held.paths)
        touched = self.merger.merging.changed_paths([(candidate.onto, candidate.commit) for candidate in stack])
        waiting = [candidate for candidate, paths in zip(stack, touched, strict=True) if blocked & set(paths)] or stack
        for candidate in stack:
            if candidate not in waiting:
                self.progress.put_back([candidate])
                continue
            self.progress.hold(candidate.entry.id, held)

    def _resolve(self, clash: Case) -> None:
        """Bring in a branch that conflicts: one tier after the other, each result gated."""
        merger = self.merger
        entry = store.get(merger.ctx.db, clash.entry.id)
        broken = self.gating.base_failure()
        if broken is not None:  # no tier, least of all an agent, can do better than the base
            self.progress.hold_for_base([entry], broken)
            return
        refused: GateRun | None = None
        for candidate, case in resolving.attempts(merger, clash.replace(entry=entry)):
            if self._refuse_protected(candidate):
                return
            failed = self.gating.gate(candidate)
            if failed is None:
                case.record(merger)
                self._land([candidate])
                return
            if self._is_base_to_blame(entry, failed):
                return
            case.refuse(merger, failed)
            refused = failed
        kinds = ", ".join(dict.fromkeys(conflict.kind for conflict in clash.conflicts))
        gate_reason = "" if refused is None else f", and what resolved it did not pass {refused.name}"
        reason = f"it conflicts with {self.lease.base} in {_files(clash.paths)} ({kinds}){gate_reason}"
        self.progress.fail(entry, CONFLICT, reason, clash.paths, refused, tier=HUMAN)

    def _without_open(self, entries: list[Entry]) -> tuple[list[Entry], list[tuple[Entry, OpenConflict, str]]]:
        """The entries without those whose conflict a person has open, and what persons have committed of these."""
        others, resolved, unfinished = handback.split(self.merger, entries)
        for entry in unfinished:
            self.progress.held[entry.id] = ""
            if entry.kind != RESOLVING:
                reason = f"being resolved by a person in {shown_place(entry.id)}"
                self.progress.change(entry.id, "resolve", kind=RESOLVING, reason=reason, log=None)
        return others, resolved

    def _hand_in(self, entry: Entry, conflict: OpenConflict, commit: str) -> None:
        """Land what a person has committed to resolve a conflict, gated as every result is."""
        merger = self.merger
        entry = self.progress.take([entry])[entry.id]
        try:
            handed = handback.hand_in(merger, entry, conflict, commit)
        except Unclear as error:
            self.progress.fail(entry, EMPTY, f"{error.message}; {error.hint}")
            return
        if isinstance(handed, handback.Unfinished):
            self.progress.held[entry.id] = ""
            self.progress.change(entry.id, "hold", kind=RESOLVING, reason=handed.reason, log=None)
            merger.say(f"{entry.branch} waits: {handed.reason}\n")
            return
        if isinstance(handed, handback.Again):
            paths = tuple(conflict.path for conflict in handed.conflicts)
            where = f" in {_files(paths)}" if paths else ""
            self.progress.fail(entry, CONFLICT, f"{handed.reason}{where}", paths, tier=HUMAN)
            return
        if handed.remark:
            merger.say(f"{entry.branch}: {handed.remark}\n")
        if self._refuse_protected(handed.candidate):
            return
        failed = self.gating.gate(handed.candidate)
        if failed is None:
            handed.case.record(merger)
            self._land([handed.candidate])
        elif not self._is_base_to_blame(entry, failed):
            handed.case.refuse(merger, failed)
            self._fail_gate(handed.candidate, failed, f"; its resolution stays in {shown_place(entry.id)}")

    def _brings_nothing(self, candidate: Candidate, *, is_on_base: bool) -> bool:
        """True if a candidate brings nothing that its base lacks; `is_on_base` if no other candidate is below it.

        A merge joins the histories all the same, unless they are joined.
        """
        merging, entry = self.merger.merging, candidate.entry
        if merging.changes(candidate.onto, candidate.commit):
            return False
        if self.merger.ctx.config.merge.strategy == MERGE and not merging.store.contains(entry.tip, candidate.onto):
            return False
        if is_on_base:
            self.progress.note_landed(entry, entry.tip)
        return True

    def _refuse_protected(self, candidate: Candidate) -> bool:
        """True if a candidate changes Rookery's own folder; then it fails for good."""
        paths = protected_paths(self._changed(candidate))
        if paths:
            reason = f"it changes {_files(paths)}, which no branch may: take that out, or change the base yourself"
            self.progress.fail(candidate.entry, PROTECTED, reason, paths)
        return bool(paths)

    def _refuse_outside(self, entry: Entry, tip: str) -> bool:
        """True if a branch changes files that its agent was not given, without a reason; then it fails.

        Before anything is merged: a gate, or an agent that resolves a conflict, would be run for nothing.
        """
        if (entry.id, tip) not in self._outside:
            outside = outside_of(self.merger, entry.branch, tip, self.lease.base)
            if outside is not None and outside.unexplained:
                reason = f"{outside.describe()}, and no reason is given"
                self.progress.fail(entry, OUTSIDE, reason, outside.unexplained, tip=tip, outside=outside.files)
                return True
            self._outside[entry.id, tip] = () if outside is None else outside.files
        return False

    def _changed(self, candidate: Candidate) -> tuple[str, ...]:
        return self.merger.merging.changed_paths([(candidate.onto, candidate.commit)])[0]


def _files(paths: tuple[str, ...]) -> str:
    named = [path for path in paths if path]
    return (
        ", ".join(map(one_line, named[:3])) + (f" and {len(named) - 3} more" if len(named) > 3 else "") or "all of it"
    )
