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
from rookery.merge.model import BUSY, LANDING, TESTING, Entry

_MOST_FILES = 200


class Progress:
    """The entries that one run has changed (`seen`), and those that wait until the next one (`held`)."""

    def __init__(self, merger: Merger, lease: Lease) -> None:
        self.merger = merger
        self.lease = lease
        self.seen: dict[str, None] = {}
        self.held: set[str] = set()

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
        self.held.add(merge_id)
        self.change(merge_id, "hold", kind=BUSY, reason=held.reason, files=held.paths[:_MOST_FILES])

    def fail(
        self, entry: Entry, kind: str, reason: str, files: tuple[str, ...] = (), output: str = "", **more: object
    ) -> None:
        """Take a branch out of the queue, and tell its agent and lead why."""
        changes = {"tier": None, "candidate": None, "base_before": None, **more, "files": files[:_MOST_FILES]}
        with self.merger.ctx.db.write():
            failed = self.change(entry.id, "fail", kind=kind, reason=reason, attempts=entry.attempts + 1, **changes)
            messages.tell_failed(self.merger, failed, output)
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
