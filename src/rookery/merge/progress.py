"""What becomes of the entries of one merger's run: each step is written under its lease, and told."""

from __future__ import annotations

from contextlib import suppress

from rookery.base.errors import RookError
from rookery.config import steps
from rookery.merge import lease as leases
from rookery.merge import store
from rookery.merge.landing import completion, land, messages, rebase_requests
from rookery.merge.landing.candidate import Candidate
from rookery.merge.landing.land import Held
from rookery.merge.lease import Lease
from rookery.merge.merger import Merger
from rookery.merge.model import BASE_GATE, BUSY, LANDING, TESTING, Entry, FailedGate, GateRun

_MOST_FILES = 200


class Progress:
    """The entries that one run has changed (`seen`), and those that wait until the next one (`held`)."""

    def __init__(self, merger: Merger, lease: Lease) -> None:
        self.merger = merger
        self.lease = lease
        self.seen: dict[str, None] = {}
        self.held: dict[str, str] = {}
        """The entries that wait, and the tree of the base that fails a gate if they wait for that."""
        self.failed_gates: dict[str, FailedGate] = {}

    def change(self, merge_id: str, step: str, **changes: object) -> Entry:
        """Take an entry one step further."""
        self.seen[merge_id] = None
        with leases.writing(self.merger, self.lease) as db:
            return self.merger.change(store.get(db, merge_id), step, **changes)

    def take(self, entries: list[Entry]) -> dict[str, Entry]:
        """Begin with entries, at the tips that they have now."""
        with leases.writing(self.merger, self.lease) as db:
            taken = {
                entry.id: self.merger.change(store.get(db, entry.id), "take", tip=entry.tip, outside=entry.outside)
                for entry in entries
            }
        self.seen.update(dict.fromkeys(taken))
        steps.reached("taken")
        return taken

    def put_back(self, stack: list[Candidate]) -> None:
        """Queue again what was taken."""
        for candidate in stack:
            if store.get(self.merger.ctx.db, candidate.entry.id).state in (TESTING, LANDING):
                self.change(candidate.entry.id, "put back")

    def hold(self, merge_id: str, held: Held) -> None:
        """Let an entry wait for a person."""
        self.held[merge_id] = ""
        files = held.paths[:_MOST_FILES]
        self.change(merge_id, "hold", kind=BUSY, reason=held.reason, files=files, log=None)

    def hold_for_base(self, entries: list[Entry], on_base: GateRun) -> None:
        """Let branches wait until the base passes a gate: no failure of theirs, and no attempt that counts."""
        reason = f"{self.lease.base} itself fails this gate ({on_base.name}): it {on_base.result}"
        for entry in entries:
            with self.merger.ctx.db.write() as db:
                is_new = store.get(db, entry.id).kind != BASE_GATE
                changes = {"kind": BASE_GATE, "reason": reason, "files": (), "log": on_base.log}
                held = self.change(entry.id, "hold", **changes)
                if is_new:
                    messages.tell_base_fails(self.merger, held, on_base.last_lines)
            self.held[entry.id] = on_base.tree
            self.failed_gates[entry.id] = FailedGate(entry.id, entry.branch, True, on_base)
            self.merger.say(f"{entry.branch} waits: {reason}\n")

    def fail(
        self,
        entry: Entry,
        kind: str,
        reason: str,
        files: tuple[str, ...] = (),
        gate: GateRun | None = None,
        **more: object,
    ) -> None:
        """Take a branch out of the queue, and tell its agent and lead why."""
        changes = {"tier": None, "candidate": None, "base_before": None, **more, "files": files[:_MOST_FILES]}
        changes["log"] = None if gate is None else gate.log
        if gate is not None:
            self.failed_gates[entry.id] = FailedGate(entry.id, entry.branch, False, gate)
        with self.merger.ctx.db.write():
            failed = self.change(entry.id, "fail", kind=kind, reason=reason, attempts=entry.attempts + 1, **changes)
            messages.tell_failed(self.merger, failed, "" if gate is None else gate.last_lines)
        self.merger.say(f"{failed.branch} could not land: {reason}\n")

    def withdraw(self, entry: Entry, reason: str) -> None:
        """Take an entry out of the queue that may not land any more."""
        self.change(entry.id, "cancel", reason=reason)
        self.merger.say(f"{entry.branch} does not land: {reason}\n")

    def note_landed(self, entry: Entry, tip: str) -> None:
        """A person has landed it by hand."""
        merger = self.merger
        taken = self.take([entry.replace(tip=tip)])[entry.id]
        around = completion.look_around(merger, [taken])
        with leases.writing(merger, self.lease):
            ready = merger.change(taken, "go ahead", candidate=tip, base_before=None, tier=None)
            land.record_landed(merger, ready, merger.ctx.now(), around)
        self.follow_up()

    def follow_up(self) -> None:
        """Ask running agents to rebase onto what has landed."""
        with suppress(RookError):  # it has landed, whatever becomes of the mail
            rebase_requests.follow_up(self.merger, self.lease.base)
