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
from contextlib import suppress

from rookery.base.errors import RookError
from rookery.base.text import one_line
from rookery.config import steps
from rookery.merge import lease as leases
from rookery.merge import store
from rookery.merge.base_gates import BaseGates
from rookery.merge.gates import service as gates
from rookery.merge.gates import slots
from rookery.merge.gates.service import Gated, GateReport
from rookery.merge.landing import completion, land, messages, rebase_requests
from rookery.merge.landing.candidate import Candidate, build
from rookery.merge.landing.eligibility import Withdrawn, protected_paths, why_refused
from rookery.merge.landing.history import Unclear, landed_branches
from rookery.merge.landing.land import Held
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import (
    BASE_GATE,
    BUSY,
    CONFLICT,
    EMPTY,
    FLAKY,
    GATE,
    GONE,
    HUMAN,
    LANDING,
    MERGE,
    PROTECTED,
    RESOLVING,
    TESTING,
    Entry,
    FailedGate,
    GateRun,
    is_alike,
)
from rookery.merge.person import closing, handback
from rookery.merge.person.model import OpenConflict, shown_place
from rookery.merge.tiers import ladder as resolving
from rookery.merge.tiers.case import Case
from rookery.sessions import store as agents
from rookery.tasks import store as tasks
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
_MOST_FILES = 200


def batch_size(gated: int, failed: int, most: int) -> int:
    """How many branches to gate together: about one over the square root of the failure rate."""
    failure_rate = (failed + _PRIOR_FAILURES) / (gated + _PRIOR_RUNS)
    return max(1, min(most, round(1 / math.sqrt(failure_rate))))


class Run:
    """One merger's way through the queue of one base."""

    def __init__(self, merger: Merger, lease: Lease, only: Collection[str]) -> None:
        self.merger = merger
        self.lease = lease
        self.only = frozenset(only)
        self.seen: dict[str, None] = {}
        self.flaky: dict[str, None] = {}
        self.failed_gates: dict[str, FailedGate] = {}
        self._held: dict[str, str] = {}
        """The entries that wait, and the tree of the base that fails a gate if they wait for that."""
        self._on_base = BaseGates(merger, lease.base)
        self._rebuilds = 0
        self._size = self._sized_at = 0

    def carry_out(self) -> None:
        """Go on until nothing is left that could land."""
        for entry in land.recover(self.merger, self.lease):
            if not self.only or entry.id in self.only:
                self.seen[entry.id] = None
        self._follow_up()
        closing.pick_up(self.merger, self.lease.base)
        if any(entry.kind == BASE_GATE for entry in self._queued()):
            self._note(self._on_base.ask())  # if the base is still broken, nothing need be searched for culprits
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
        now = self._on_base.tree() if any(self._held.values()) else ""
        held = {merge_id for merge_id, tree in self._held.items() if tree in ("", now)}
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
                self._fail(entry, GONE, f"there is no branch {entry.branch}")
            elif refusal:
                self._withdraw(entry, refusal)
            elif entry.branch not in landed:
                landable.append(entry.replace(tip=tip))
            elif self._has_own_work(entry, tip):
                self._note_landed(entry, tip)
            else:
                self._fail(entry, EMPTY, f"{entry.branch} holds no commit of its own; was the work committed?")
        return landable

    def _is_base_in_use(self, entries: list[Entry]) -> bool:
        """True if git has begun something with the base: then all of them wait, before a gate or an agent is run."""
        try:
            check_free(self.merger.merging.store, self.lease.base)
        except BranchInUse as error:
            for entry in entries:
                self._hold_one(entry.id, land.in_use(error))
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
        is_broken = self._on_base.failure() is not None
        size = len(entries) if is_broken else self._batch_size() * slots.count(self.merger.ctx)
        for entry in entries:
            try:
                built = build(self.merger, entry, onto)
            except Unclear as error:
                self._fail(entry, EMPTY, f"{error.message}; {error.hint}")
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
        taken = self._take([item.entry for item in (stack or clashes[:1])])
        return [candidate.replace(entry=taken[candidate.entry.id]) for candidate in stack], clashes

    def _batch_size(self) -> int:
        if self._size == 0 or len(self.seen) >= self._sized_at + SEASON:
            gated, failed = store.recent_failures(self.merger.ctx.db, WINDOW)
            self._size = batch_size(gated, failed, self.merger.ctx.config.merge.batch)
            self._sized_at = len(self.seen)
        return self._size

    def _take(self, entries: list[Entry]) -> dict[str, Entry]:
        with leases.writing(self.merger, self.lease) as db:
            taken = {entry.id: self.merger.change(store.get(db, entry.id), "take", tip=entry.tip) for entry in entries}
        self.seen.update(dict.fromkeys(taken))
        steps.reached("taken")
        return taken

    def _settle(self, stack: list[Candidate], *, is_red: bool = False) -> None:
        """Land a stack, or find out which of it is bad. `is_red` if the stack as a whole is known to fail."""
        broken = None if is_red else self._on_base.failure()
        if broken is not None:
            (report,) = self._gate_prefixes(stack, [len(stack)])
            if report.failed is None:
                self._land(stack)  # something in it repairs the base
                return
            if is_alike(report.failed, broken):
                self._hold_for_base([candidate.entry for candidate in stack], broken)
                return
            is_red = True  # for another reason: one may repair the base, and another be bad
        if len(stack) == 1:
            self._settle_single(stack[0])
            return
        cuts = self._cuts(len(stack), is_red)
        reports = self._gate_prefixes(stack, cuts)
        green = max((cut for cut, report in zip(cuts, reports, strict=True) if report.failed is None), default=0)
        red = min((cut for cut in (*cuts, len(stack)) if cut > green), default=green)
        self._put_back(stack[red:])
        if green and not self._land(stack[:green]):
            self._put_back(stack[green:red])
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
        failed = self._gate(candidate, retries=self.merger.ctx.config.merge.retries).failed
        if failed is None:
            self._land([candidate])
        else:
            self._fail_gate(candidate, failed)

    def _fail_gate(self, candidate: Candidate, failed: GateRun, remark: str = "") -> None:
        """Blame the base if it fails the same gate, else the branch."""
        on_base = self._ask_base(failed)
        if on_base is not None and not on_base.is_ok:
            self._hold_for_base([candidate.entry], on_base)
            return
        is_flaky = on_base is not None and on_base.verdict == FLAKY
        flaky = f"; it is flaky: on {self.lease.base} itself it failed and passed on the same files" if is_flaky else ""
        reason = f"the gate {failed.name} {failed.result}{flaky}{remark}"
        merge_id, commits = candidate.entry.id, {"candidate": candidate.commit, "base_before": candidate.onto}
        self.merger.merging.keep(LANDINGS + merge_id, candidate.commit)  # so that a person can look at it
        self._fail(candidate.entry, GATE, reason, self._changed(candidate), failed, **commits)

    def _ask_base(self, failed: GateRun) -> GateRun | None:
        """The run on the base as it is of a gate that a branch failed; None if it has to do with no file there."""
        report = self._note(self._on_base.ask(failed.name))
        return next((run for run in report.runs if run.name == failed.name), None)

    def _hold_for_base(self, entries: list[Entry], on_base: GateRun) -> None:
        """Let branches wait until the base passes a gate: no failure of theirs, and no attempt that counts."""
        reason = f"{self.lease.base} itself fails this gate ({on_base.name}): it {on_base.result}"
        for entry in entries:
            with self.merger.ctx.db.write() as db:
                is_new = store.get(db, entry.id).kind != BASE_GATE
                changes = {"kind": BASE_GATE, "reason": reason, "files": (), "log": on_base.log}
                held = self._change(entry.id, "hold", **changes)
                if is_new:
                    messages.tell_base_fails(self.merger, held, on_base.last_lines)
            self._held[entry.id] = on_base.tree
            self.failed_gates[entry.id] = FailedGate(entry.id, entry.branch, True, on_base)
            self.merger.say(f"{entry.branch} waits: {reason}\n")

    def _gate(self, candidate: Candidate, *, retries: int) -> GateReport:
        """What the gates say of a candidate on the base."""
        commit, at = candidate.commit, candidate.onto
        return self._note(gates.run_gates(self.merger, commit, base=self.lease.base, at=at, retries=retries))

    def _gate_prefixes(self, stack: list[Candidate], cuts: list[int]) -> list[GateReport]:
        """What the gates say of the stack up to each cut."""
        base, at = self.lease.base, stack[0].onto
        gated = [Gated(stack[cut - 1].commit, base, at, _label(stack[:cut])) for cut in cuts]
        return [self._note(report) for report in gates.run_gates_on_all(self.merger, gated)]

    def _note(self, report: GateReport) -> GateReport:
        self.flaky.update((run.name, None) for run in report.runs if run.verdict == FLAKY and not run.is_cached)
        steps.reached("gated")
        return report

    def _land(self, stack: list[Candidate]) -> bool:
        """Land a green stack. False if the base moved or a checkout blocks it: then it is queued or held."""
        self.seen.update((candidate.entry.id, None) for candidate in stack)
        try:
            landed = land.land(self.merger, self.lease, stack)
        except Withdrawn:  # the next pass takes out of the queue what may not land any more
            self._put_back(stack)
            return False
        except RefMoved:
            self._rebuilds += 1
            if self._rebuilds <= _MOST_REBUILDS:
                self._put_back(stack)
                return False
            landed = Held(f"{self.lease.base} moved {self._rebuilds} times while it was being landed on")
        if isinstance(landed, Held):
            self._hold(stack, landed)
            return False
        for entry in landed:
            commit = str(entry.candidate)[:12]
            self.merger.say(f"{entry.branch} has landed on {entry.base} as {commit} ({entry.tier})\n")
        self._follow_up()
        return True

    def _hold(self, stack: list[Candidate], held: Held) -> None:
        """Let those wait that touch the files that block it; the others of the stack are tried again without them."""
        blocked = set(held.paths)
        touched = self.merger.merging.changed_paths([(candidate.onto, candidate.commit) for candidate in stack])
        waiting = [candidate for candidate, paths in zip(stack, touched, strict=True) if blocked & set(paths)] or stack
        for candidate in stack:
            if candidate not in waiting:
                self._put_back([candidate])
                continue
            self._hold_one(candidate.entry.id, held)

    def _hold_one(self, merge_id: str, held: Held) -> None:
        self._held[merge_id] = ""
        files = held.paths[:_MOST_FILES]
        self._change(merge_id, "hold", kind=BUSY, reason=held.reason, files=files, log=None)

    def _put_back(self, stack: list[Candidate]) -> None:
        for candidate in stack:
            if store.get(self.merger.ctx.db, candidate.entry.id).state in (TESTING, LANDING):
                self._change(candidate.entry.id, "put back")

    def _resolve(self, clash: Case) -> None:
        """Bring in a branch that conflicts: one tier after the other, each result gated."""
        merger = self.merger
        entry = store.get(merger.ctx.db, clash.entry.id)
        broken = self._on_base.failure()
        if broken is not None:  # no tier, least of all an agent, can do better than the base
            self._hold_for_base([entry], broken)
            return
        refused: GateRun | None = None
        for candidate, case in resolving.attempts(merger, clash.replace(entry=entry)):
            if self._refuse_protected(candidate):
                return
            failed = self._gate(candidate, retries=merger.ctx.config.merge.retries).failed
            if failed is None:
                case.record(merger)
                self._land([candidate])
                return
            on_base = self._ask_base(failed)
            if on_base is not None and not on_base.is_ok:
                self._hold_for_base([entry], on_base)
                return
            case.refuse(merger, failed)
            refused = failed
        kinds = ", ".join(dict.fromkeys(conflict.kind for conflict in clash.conflicts))
        gate_reason = "" if refused is None else f", and what resolved it did not pass {refused.name}"
        reason = f"it conflicts with {self.lease.base} in {_files(clash.paths)} ({kinds}){gate_reason}"
        self._fail(entry, CONFLICT, reason, clash.paths, refused, tier=HUMAN)

    def _without_open(self, entries: list[Entry]) -> tuple[list[Entry], list[tuple[Entry, OpenConflict, str]]]:
        """The entries without those whose conflict a person has open, and what persons have committed of these."""
        others, resolved, unfinished = handback.split(self.merger, entries)
        for entry in unfinished:
            self._held[entry.id] = ""
            if entry.kind != RESOLVING:
                reason = f"being resolved by a person in {shown_place(entry.id)}"
                self._change(entry.id, "resolve", kind=RESOLVING, reason=reason, log=None)
        return others, resolved

    def _hand_in(self, entry: Entry, conflict: OpenConflict, commit: str) -> None:
        """Land what a person has committed to resolve a conflict, gated as every result is."""
        merger = self.merger
        entry = self._take([entry])[entry.id]
        try:
            handed = handback.hand_in(merger, entry, conflict, commit)
        except Unclear as error:
            self._fail(entry, EMPTY, f"{error.message}; {error.hint}")
            return
        if isinstance(handed, handback.Unfinished):
            self._held[entry.id] = ""
            self._change(entry.id, "hold", kind=RESOLVING, reason=handed.reason, log=None)
            merger.say(f"{entry.branch} waits: {handed.reason}\n")
            return
        if isinstance(handed, handback.Again):
            paths = tuple(conflict.path for conflict in handed.conflicts)
            where = f" in {_files(paths)}" if paths else ""
            self._fail(entry, CONFLICT, f"{handed.reason}{where}", paths, tier=HUMAN)
            return
        if handed.remark:
            merger.say(f"{entry.branch}: {handed.remark}\n")
        if self._refuse_protected(handed.candidate):
            return
        failed = self._gate(handed.candidate, retries=merger.ctx.config.merge.retries).failed
        if failed is None:
            handed.case.record(merger)
            self._land([handed.candidate])
            return
        on_base = self._ask_base(failed)
        if on_base is None or on_base.is_ok:
            handed.case.refuse(merger, failed)
        self._fail_gate(handed.candidate, failed, f"; its resolution stays in {shown_place(entry.id)}")

    def _note_landed(self, entry: Entry, tip: str) -> None:
        """A person has landed it by hand."""
        merger = self.merger
        taken = self._take([entry.replace(tip=tip)])[entry.id]
        around = completion.look_around(merger, [taken])
        with leases.writing(merger, self.lease):
            ready = merger.change(taken, "go ahead", candidate=tip, base_before=None, tier=None)
            land.record_landed(merger, ready, merger.ctx.now(), around)
        self._follow_up()

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
            self._note_landed(entry, entry.tip)
        return True

    def _refuse_protected(self, candidate: Candidate) -> bool:
        """True if a candidate changes Rookery's own folder; then it fails for good."""
        paths = protected_paths(self._changed(candidate))
        if paths:
            reason = f"it changes {_files(paths)}, which no branch may: take that out, or change the base yourself"
            self._fail(candidate.entry, PROTECTED, reason, paths)
        return bool(paths)

    def _changed(self, candidate: Candidate) -> tuple[str, ...]:
        return self.merger.merging.changed_paths([(candidate.onto, candidate.commit)])[0]

    def _withdraw(self, entry: Entry, reason: str) -> None:
        """Take an entry out of the queue that may not land any more."""
        self._change(entry.id, "cancel", reason=reason)
        self.merger.say(f"{entry.branch} does not land: {reason}\n")

    def _follow_up(self) -> None:
        with suppress(RookError):  # it has landed, whatever becomes of the mail
            rebase_requests.follow_up(self.merger, self.lease.base)

    def _fail(
        self,
        entry: Entry,
        kind: str,
        reason: str,
        files: tuple[str, ...] = (),
        gate: GateRun | None = None,
        **more: str,
    ) -> None:
        """Take a branch out of the queue, and tell its agent and lead why."""
        changes = {"tier": None, "candidate": None, "base_before": None, **more, "files": files[:_MOST_FILES]}
        changes["log"] = None if gate is None else gate.log
        if gate is not None:
            self.failed_gates[entry.id] = FailedGate(entry.id, entry.branch, False, gate)
        with self.merger.ctx.db.write():
            failed = self._change(entry.id, "fail", kind=kind, reason=reason, attempts=entry.attempts + 1, **changes)
            messages.tell_failed(self.merger, failed, "" if gate is None else gate.last_lines)
        self.merger.say(f"{failed.branch} could not land: {reason}\n")

    def _change(self, merge_id: str, step: str, **changes: object) -> Entry:
        self.seen[merge_id] = None
        with leases.writing(self.merger, self.lease) as db:
            return self.merger.change(store.get(db, merge_id), step, **changes)


def _label(stack: list[Candidate]) -> str:
    """The last branch of a stack, and how many are below it."""
    below = f"+{len(stack) - 1}" if len(stack) > 1 else ""
    return f"{stack[-1].entry.branch}{below}"


def _files(paths: tuple[str, ...]) -> str:
    named = [path for path in paths if path]
    return (
        ", ".join(map(one_line, named[:3])) + (f" and {len(named) - 3} more" if len(named) > 3 else "") or "all of it"
    )
