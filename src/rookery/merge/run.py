"""One merger's way through the queue of one base.

Branches that go together are stacked and gated once. A red stack is halved until the culprit is alone; what is green
lands as soon as it is known to be. Branches that conflict are resolved one by one, when nothing clean is left.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from rookery.base.errors import RookError
from rookery.config import steps
from rookery.merge import batch, store
from rookery.merge import lease as leases
from rookery.merge.gates import service as gates
from rookery.merge.gates.service import Verdict
from rookery.merge.landing import after, attempts, land, news
from rookery.merge.landing.attempts import Withdrawn
from rookery.merge.landing.candidate import Candidate, Clash, build
from rookery.merge.landing.land import Held, Moved
from rookery.merge.landing.landed import Unclear, landed_branches
from rookery.merge.landing.protected import protected_paths
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import (
    BUSY,
    CONFLICT,
    EMPTY,
    GATE,
    GONE,
    HUMAN,
    LANDING,
    MERGE,
    PROTECTED,
    SAID,
    TESTING,
    Entry,
)
from rookery.merge.tiers import ladder as resolving
from rookery.vcs.ref_names import LANDINGS

_MOST_REBUILDS = 20
_MOST_FILES = 200


class Run:
    """One merger's way through the queue of one base."""

    def __init__(self, merger: Merger, lease: Lease, only: Collection[str]) -> None:
        self.merger = merger
        self.lease = lease
        self.only = frozenset(only)
        self.seen: dict[str, None] = {}
        self.flaky: dict[str, None] = {}
        self._held: set[str] = set()
        self._rebuilds = 0
        self._size = self._sized_at = 0
        self._beat = leases.Renewal(merger, lease)

    def carry_out(self) -> None:
        """Go on until nothing is left that could land."""
        for entry in land.recover(self.merger, self.lease):
            if not self.only or entry.id in self.only:
                self.seen[entry.id] = None
        self._follow_up()
        while True:
            queued = self._queued()
            if not queued:
                return
            entries = self._landable(queued)
            if not entries:
                continue
            stack, clashes = self._stack(entries)
            if stack:
                self._settle(stack)
            elif clashes:
                self._resolve(clashes[0])

    def _queued(self) -> list[Entry]:
        return [
            each
            for each in store.queue(self.merger.ctx.db, self.lease.base)
            if each.id not in self._held and (not self.only or each.id in self.only)
        ]

    def _landable(self, entries: list[Entry]) -> list[Entry]:
        """Entries as their branches are now; what is gone, empty or there already is settled at once."""
        if not entries:
            return []
        tips = self.merger.merging.tips([each.branch for each in entries])
        landed = landed_branches(self.merger, tips, self.lease.base)
        found = []
        for entry in entries:
            tip = tips.get(entry.branch)
            objection = "" if entry.forced else attempts.objection(self.merger.ctx.db, entry.branch, entry.task_id)
            if tip is None:
                self._fail(entry, GONE, f"there is no branch {entry.branch}")
            elif objection:
                self._withdraw(entry, objection)
            elif entry.branch not in landed:
                found.append(entry.replace(tip=tip))
            elif after.has_own_work(self.merger, entry, tip):
                self._note_landed(entry, tip)
            else:
                self._fail(entry, EMPTY, f"{entry.branch} holds no commit of its own; was the work committed?")
        return found

    def _base_tip(self) -> str:
        tip = self.merger.merging.tip(self.lease.base)
        assert tip is not None  # noqa: S101 - it was there when the lease was taken
        return tip

    def _stack(self, entries: list[Entry]) -> tuple[list[Candidate], list[Clash]]:
        """The first branches that go together, each on top of the one before; and what conflicts meanwhile."""
        size = self._batch_size()
        stack: list[Candidate] = []
        clashes: list[Clash] = []
        onto = self._base_tip()
        for entry in entries:
            try:
                built = build(self.merger, entry, onto)
            except Unclear as error:
                self._fail(entry, EMPTY, f"{error.message}; {error.hint}")
                continue
            if isinstance(built, Clash):
                clashes.append(built)
                continue
            if self._is_there(built, is_settled=not stack) or self._refuse_protected(built):
                continue
            stack.append(built)
            onto = built.commit
            if len(stack) == size:
                break
        if stack and not self.merger.ctx.config.gates:
            return stack, clashes  # nothing takes time, so they are taken by the step that begins the landing
        taken = self._take([each.entry for each in (stack or clashes[:1])])
        return [each.replace(entry=taken[each.entry.id]) for each in stack], clashes

    def _batch_size(self) -> int:
        if self._size == 0 or len(self.seen) >= self._sized_at + batch.SEASON:
            gated, failed = store.recent_failures(self.merger.ctx.db, batch.WINDOW)
            self._size = batch.batch_size(gated, failed, self.merger.ctx.config.merge.batch)
            self._sized_at = len(self.seen)
        return self._size

    def _take(self, entries: list[Entry]) -> dict[str, Entry]:
        with leases.writing(self.merger, self.lease) as db:
            taken = {each.id: self.merger.change(store.get(db, each.id), "take", tip=each.tip) for each in entries}
        self.seen.update(dict.fromkeys(taken))
        steps.reached("taken")
        return taken

    def _settle(self, stack: list[Candidate], *, is_red: bool = False) -> None:
        """Land a stack, or find out which of it is bad. `is_red` if that is known of it as a whole."""
        if not is_red and not self.merger.ctx.config.gates:
            self._land(stack)
            return
        if not is_red and self._gate(stack, retries=self._retries(stack)).is_ok:
            self._land(stack)
            return
        if len(stack) == 1:
            self._settle_culprit(stack[0], tested=not is_red)
            return
        cut = batch.halves(len(stack))
        left, right = stack[:cut], stack[cut:]
        if self._gate(left).is_ok:
            if self._land(left):
                self._settle(right, is_red=True)
            else:
                self._put_back(right)
            return
        self._put_back(right)
        self._settle(left, is_red=True)

    def _retries(self, stack: list[Candidate]) -> int:
        return self.merger.ctx.config.merge.retries if len(stack) == 1 else 0

    def _settle_culprit(self, suspect: Candidate, *, tested: bool) -> None:
        """A single red branch: tried once more unless that has been done, and then it leaves."""
        verdict = self._gate([suspect], retries=0 if tested else self._retries([suspect]))
        if verdict.is_ok:
            self._land([suspect])
            return
        failed = verdict.failed
        assert failed is not None  # noqa: S101
        reason = f"the gate {failed.name} {SAID[failed.verdict]}"
        reason += f" (exit status {failed.status})" if failed.status is not None else ""
        self._fail(suspect.entry, GATE, reason, details=failed.last_lines, candidate=suspect)

    def _gate(self, stack: list[Candidate], *, retries: int = 0) -> Verdict:
        """What the gates say of the last of a stack, that is of all of it."""
        commit, at = stack[-1].commit, stack[0].onto
        verdict = gates.run_gates(self.merger, commit, base=self.lease.base, at=at, retries=retries, beat=self._beat)
        self.flaky.update((run.name, None) for run in verdict.runs if run.verdict == "flaky" and not run.is_cached)
        steps.reached("gated")
        return verdict

    def _land(self, stack: list[Candidate]) -> bool:
        """Land a green stack. False if the base moved or a checkout is in the way: then it is queued or held."""
        self.seen.update((each.entry.id, None) for each in stack)
        try:
            landed = land.land(self.merger, self.lease, stack)
        except Withdrawn:  # the next look at the queue takes out what may not land any more
            self._put_back(stack)
            return False
        if isinstance(landed, list):
            for each in landed:
                self.merger.say(
                    f"{each.branch} has landed on {each.base} as {str(each.candidate)[:12]} ({each.tier})\n"
                )
            self._follow_up()
            return True
        if isinstance(landed, Moved):
            self._rebuilds += 1
            if self._rebuilds > _MOST_REBUILDS:
                reason = f"{self.lease.base} moved {self._rebuilds} times while it was being landed on"
                self._hold(stack, Held(reason, ()))
            else:
                self._put_back(stack)
            return False
        self._hold(stack, landed)
        return False

    def _hold(self, stack: list[Candidate], held: Held) -> None:
        """Let wait what touches the files in the way; the others of the stack are tried again without it."""
        blocked = set(held.paths)
        touched = self.merger.merging.changed_paths([(each.onto, each.commit) for each in stack])
        waits = [
            each
            for each, paths in zip(stack, touched, strict=True)
            if len(stack) == 1 or not blocked or blocked & set(paths)
        ] or stack
        for each in stack:
            if each not in waits:
                self._put_back([each])
                continue
            self._held.add(each.entry.id)
            self._change(each.entry.id, "hold", kind=BUSY, reason=held.reason, files=held.paths[:_MOST_FILES])

    def _put_back(self, stack: list[Candidate]) -> None:
        for each in stack:
            if store.get(self.merger.ctx.db, each.entry.id).state in (TESTING, LANDING):
                self._change(each.entry.id, "put back")

    def _resolve(self, clash: Clash) -> None:
        """Bring in a branch that conflicts: one tier after the other, each result gated."""
        merger = self.merger
        entry = store.get(merger.ctx.db, clash.entry.id)
        clash = clash.replace(entry=entry)
        verdict: Verdict | None = None
        for case in resolving.attempts(merger, clash, self._beat):
            candidate = Candidate(entry, clash.onto, case.commit, case.tier)
            if self._refuse_protected(candidate):
                return
            verdict = self._gate([candidate], retries=merger.ctx.config.merge.retries)
            if verdict.is_ok:
                case.record(merger)
                self._land([candidate])
                return
            case.refuse(merger, verdict)
        failed = verdict.failed if verdict is not None else None
        kinds = ", ".join(dict.fromkeys(each.kind for each in clash.merged.conflicts))
        reason = f"it conflicts with {self.lease.base} in {_files(clash.paths)} ({kinds})"
        if failed is not None:
            reason += f", and what resolved it did not pass {failed.name}"
        details = "" if failed is None else failed.last_lines
        self._fail(entry, CONFLICT, reason, details=details, files=clash.paths, tier=HUMAN)

    def _note_landed(self, entry: Entry, tip: str) -> None:
        """A person has landed it by hand."""
        merger = self.merger
        taken = self._take([entry.replace(tip=tip)])[entry.id]
        with leases.writing(merger, self.lease):
            ready = merger.change(taken, "go ahead", candidate=tip, base_before=None, tier=None)
            land.record_landed(merger, ready, merger.ctx.now())
        self._follow_up()

    def _is_there(self, candidate: Candidate, *, is_settled: bool) -> bool:
        """True if a candidate brings nothing that its base lacks; `is_settled` if it stands on the base itself.

        A merge joins the histories all the same, unless they are joined.
        """
        merging, entry = self.merger.merging, candidate.entry
        if merging.changes(candidate.onto, candidate.commit):
            return False
        if self.merger.ctx.config.merge.strategy == MERGE and not merging.store.contains(entry.tip, candidate.onto):
            return False
        if is_settled:
            self._note_landed(entry, entry.tip)
        return True

    def _refuse_protected(self, candidate: Candidate) -> bool:
        """True if a candidate changes Rookery's own folder; then it fails for good."""
        paths = protected_paths(self.merger.merging.changed_paths([(candidate.onto, candidate.commit)])[0])
        if paths:
            reason = (
                f"it changes {_files(paths)}, which no branch may: take that out of it, or change the base yourself"
            )
            self._fail(candidate.entry, PROTECTED, reason, files=paths)
        return bool(paths)

    def _withdraw(self, entry: Entry, reason: str) -> None:
        """Take an entry out of the queue that may not land any more."""
        self.seen[entry.id] = None
        self._change(entry.id, "cancel", reason=reason)
        self.merger.say(f"{entry.branch} does not land: {reason}\n")

    def _follow_up(self) -> None:
        with suppress(RookError):  # it has landed, whatever comes of the mail
            after.follow_up(self.merger, self.lease.base)

    def _fail(
        self,
        entry: Entry,
        kind: str,
        reason: str,
        *,
        details: str = "",
        candidate: Candidate | None = None,
        files: tuple[str, ...] = (),
        tier: str | None = None,
    ) -> None:
        """A branch leaves the queue, and its agent and lead hear why."""
        if candidate is not None:
            self.merger.merging.keep(LANDINGS + entry.id, candidate.commit)  # so that it can be looked at
            files = self.merger.merging.changed_paths([(candidate.onto, candidate.commit)])[0]
        self.seen[entry.id] = None
        with self.merger.ctx.db.write():
            failed = self._change(
                entry.id,
                "fail",
                kind=kind,
                reason=reason,
                files=files[:_MOST_FILES],
                tier=tier,
                attempts=entry.attempts + 1,
                candidate=None if candidate is None else candidate.commit,
                base_before=None if candidate is None else candidate.onto,
            )
            news.tell_failed(self.merger, failed, details)
        self.merger.say(f"{failed.branch} could not land: {reason}\n")

    def _change(self, merge_id: str, step: str, **changes: object) -> Entry:
        with leases.writing(self.merger, self.lease) as db:
            return self.merger.change(store.get(db, merge_id), step, **changes)


def _files(paths: tuple[str, ...]) -> str:
    named = [path for path in paths if path]
    return ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "") or "all of it"
