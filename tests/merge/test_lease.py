"""Leases and folders of a holder that cannot be seen from here: its missing process is no proof that it is dead."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rookery.base.call import serving
from rookery.base.clock import stamp
from rookery.flows import landings, sessions
from rookery.mail.model import SYSTEM
from rookery.merge import lease, store
from rookery.merge.gates import scratch
from rookery.merge.lease import Lease
from rookery.merge.lease_store import LeaseRow
from rookery.processes import holder as holders
from rookery.processes import owned_folders, proctable
from rookery.processes.holder import HolderId
from rookery.processes.proctree import Identity
from rookery.turns.stop import is_abandoned, read_stopper
from rookery.vcs.git.index_claim import Claim
from served import Served, make_call

from .yard import Yard, unfenced


def away() -> list[HolderId]:
    """Processes on another host, and in another namespace of this one, whose number no process has here."""
    me = holders.myself()
    return [
        me.replace(identity=Identity(4_000_000, "0a1b2c3d-123"), host="another"),
        me.replace(identity=Identity(4_000_000, f"{proctable.this_boot()}-123"), namespace="1"),
    ]


@pytest.mark.parametrize("number", [0, 1], ids=["another host", "another namespace"])
def test_a_lease_elsewhere_ends_with_its_time_alone(number: int, yard: Yard) -> None:
    merger, holder = yard.merger(), away()[number]

    def left_behind() -> list[str]:
        plan = landings.decide(landings.read(merger.ctx), merger.ctx.clock())
        return [action.subject for action in plan.actions]

    merger.ctx.db.execute(
        "INSERT INTO merge_leases (base, token, holder, pid, pid_start, expires_at) VALUES (?, 7, 'bee', ?, ?, ?)",
        ("main", holder.pid, holder.text, "2999-01-01T00:00:00.000Z"),
    )
    held = lease.acquire(merger, "main")
    assert isinstance(held, LeaseRow)
    assert (held.actor, held.process.pid) == ("bee", holder.pid)
    assert left_behind() == []
    merger.ctx.db.execute("UPDATE merge_leases SET expires_at = '2000-01-01T00:00:00.000Z'")
    assert left_behind() == ["main"]
    assert unfenced(lease.acquire(merger, "main")) == Lease("main", 8, is_inherited=True)
    merger.ctx.db.close()


def test_a_holder_that_came_after_the_look_is_not_replaced(yard: Yard) -> None:
    merger = yard.merger()
    dead = Identity(4_000_000, f"{proctable.this_boot()}-123")
    gone = holders.myself().replace(identity=dead)
    merger.ctx.db.execute(
        "INSERT INTO merge_leases (base, token, holder, pid, pid_start, expires_at) VALUES ('main', 7, 'bee', ?, ?, ?)",
        (gone.pid, gone.text, "2999-01-01T00:00:00.000Z"),
    )
    seen = lease.read_state(merger, "main")
    assert seen.is_gone
    assert lease.take(merger, "main", seen) == Lease("main", 8, is_inherited=True)
    assert isinstance(lease.take(merger, "main", seen), LeaseRow)
    merger.ctx.db.close()


def test_each_call_of_one_process_is_a_holder_of_its_own(yard: Yard) -> None:
    def acquire() -> Lease | LeaseRow:
        merger = yard.merger()
        try:
            return lease.acquire(merger, "main")
        finally:
            merger.ctx.db.close()

    with serving(make_call()):
        assert acquire() == Lease("main", 1)
        assert isinstance(Served(make_call(), acquire).value(), LeaseRow)
    # It has ended without letting go, and its process goes on.
    assert unfenced(Served(make_call(), acquire).value()) == Lease("main", 2, is_inherited=True)


@pytest.mark.parametrize("number", [0, 1], ids=["another host", "another namespace"])
def test_a_scratch_folder_of_one_elsewhere_is_kept_for_a_day(number: int, yard: Yard) -> None:
    merger, holder = yard.merger(), away()[number]
    top = merger.scratch("gate")
    os.makedirs(top)
    owner = top + owned_folders.NOTE
    os.symlink(f"{holder.pid} {holder.text}", owner)
    scratch.sweep(merger)
    assert os.path.isdir(top)
    os.utime(owner, (0, 0), follow_symlinks=False)
    scratch.sweep(merger)
    assert not os.path.exists(top)
    merger.ctx.db.close()


def test_a_scratch_folder_of_a_living_call_is_kept_and_of_one_that_ended_is_not(yard: Yard) -> None:
    merger = yard.merger()
    top = merger.scratch("gate")
    with serving(make_call()):
        owned_folders.make(top)
        scratch.sweep(merger)
        assert os.path.isdir(top)
    scratch.sweep(merger)
    assert not os.path.exists(top)
    merger.ctx.db.close()


@pytest.mark.parametrize("number", [0, 1], ids=["another host", "another namespace"])
def test_an_agent_that_is_stopped_from_elsewhere_is_not_taken_for_abandoned_at_once(number: int, yard: Yard) -> None:
    merger, holder = yard.merger(), away()[number]
    now = merger.ctx.clock()
    reason = f"stopping {holder.pid} {holder.text}"
    for age, is_over in ((1, False), (3600, True)):
        session: Any = SimpleNamespace(reason=reason, updated_at=stamp(now - age))
        assert is_abandoned(merger.ctx, session) is is_over
        facts = _facts(state="working", updated=now - age, stopper=sessions._driver(read_stopper(reason)))
        assert [action.name for action in sessions.decide([facts], now).actions] == ["finish stop"] * is_over
    merger.ctx.db.close()


def test_a_sling_from_elsewhere_is_left_to_it() -> None:
    for holder in away():
        driver = sessions._driver(holder)
        facts = _facts(state="booting", step="reserved", driver=driver)
        assert sessions.decide([facts], 1e9).actions == ()
    gone = sessions._driver(holders.read(4_000_000, f"{proctable.this_boot()}-123"))
    facts = _facts(state="booting", step="reserved", driver=gone)
    assert [action.name for action in sessions.decide([facts], 1e9).actions] == ["undo sling"]


def _facts(**changes: Any) -> sessions.Facts:
    whole: dict[str, Any] = {
        "id": "ses_x",
        "agent": "bee",
        "mode": "headless",
        "state": "waiting",
        "step": "ready",
        "updated": 0.0,
        "driver": sessions.Driver(),
        "stopper": sessions.Driver(),
        "turn": "",
        "turn_ended": 0.0,
        "is_run": False,
        "lost": 0,
        "mail": 0,
        "nudged": 0,
    }
    return sessions.Facts(**(whole | changes))


@pytest.mark.parametrize("number", [0, 1], ids=["another host", "another namespace"])
def test_a_claim_of_one_elsewhere_holds_for_a_while(number: int, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Claim(str(yard.folder), str(yard.folder / ".git"))
    holder = away()[number]
    monkeypatch.setattr(holders, "myself", lambda: holder)
    claim.take("a" * 40, "b" * 40)
    assert claim.is_owned()
    os.utime(claim.place + owned_folders.NOTE, (0, 0), follow_symlinks=False)
    assert not claim.is_owned()
    claim.drop()


def test_a_claim_of_a_call_ends_with_it(yard: Yard) -> None:
    claim = Claim(str(yard.folder), str(yard.folder / ".git"))
    with serving(make_call()):
        claim.take("a" * 40, "b" * 40)
        assert claim.is_owned()
    assert not claim.is_owned()
    claim.drop()


def test_a_merger_waits_while_the_loop_tidies_up(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = threading.Event()
    monkeypatch.setattr("rookery.base.call.sleep", lambda _seconds: waits.set())

    def acquire() -> Lease | LeaseRow:
        landing = yard.merger()
        try:
            return lease.acquire(landing, "main")
        finally:
            landing.ctx.db.close()

    tidying = yard.merger()
    tidying.actor = SYSTEM
    with serving(make_call()):
        held = lease.acquire(tidying, "main")
        assert isinstance(held, Lease)
        landing = Served(make_call(), acquire)
        assert waits.wait(20)
        lease.release(tidying, held)
    tidying.ctx.db.close()
    assert unfenced(landing.value()) == Lease("main", 2)


def test_a_step_alone_says_which_state_of_an_entry_follows(yard: Yard) -> None:
    yard.branch("one", a_txt="a\n")
    yard.rook("merge", "enqueue", "one")
    merger = yard.merger()
    [entry] = store.queue(merger.ctx.db)
    with pytest.raises(ValueError, match="step"):
        store.change(merger.ctx.db, entry, "take", actor="human", at=merger.ctx.now(), state="landed")
    assert store.queue(merger.ctx.db) == [entry]
    merger.ctx.db.close()
