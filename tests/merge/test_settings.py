"""What the settings of landing turn that no other test shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rookery.base.clock import stamp
from rookery.merge import lease, lease_store, store
from rookery.merge.model import Entry

from . import standin
from .test_tiers import clash, land, script  # noqa: F401 - `land` is a fixture
from .yard import Yard


@pytest.fixture(autouse=True)
def _resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    standin.install(monkeypatch)


def test_the_runtime_and_the_model_that_resolve_conflicts(yard: Yard, land: Callable[..., Entry]) -> None:  # noqa: F811
    clash(yard)
    script(yard, [{"spend": {"input": 1}}, {"run": "printf '1\\nours\\ntheirs\\n3\\n' > a.txt"}])
    yard.settings("merge:\n  tiers: [agent]\n  runtime: nothing\n")
    entry = land("work")
    assert entry.state == "failed"
    merger = yard.merger()
    assert any("no runtime nothing" in outcome.why for outcome in store.outcomes(merger.ctx.db, entry.id))
    merger.ctx.db.close()
    yard.settings("merge:\n  tiers: [agent]\n  model: the-wise-one\n")
    merger = yard.merger()
    merger.ctx.db.close()
    yard.rook("merge", "cancel", "work")
    entry = land("work")
    assert entry.state == "landed"
    assert "the-wise-one" in (yard.folder / ".rookery" / "merges" / f"{entry.id}-agent.log").read_text()


def test_how_long_a_silent_merger_keeps_its_place(yard: Yard) -> None:
    yard.settings("merge:\n  lease: 7s\n")
    merger = yard.merger()
    merger.ctx.clock = lambda: 1000.0
    lease.acquire(merger, "main")
    assert merger.ctx.db.value("SELECT expires_at FROM merge_leases") == stamp(1007.0)
    merger.ctx.clock = lambda: 1006.0
    assert isinstance(lease.acquire(merger, "main"), lease_store.LeaseRow)
    merger.ctx.clock = lambda: 1008.0
    assert isinstance(lease.acquire(merger, "main"), lease.Lease)
    merger.ctx.db.close()
