"""Several mergers at once: every landing is recorded and announced once."""

from __future__ import annotations

import pytest

from rookery.base.ids import MERGE, new_id
from rookery.merge import queue, service, store
from rookery.merge.landing.eligibility import survey
from rookery.merge.landing.history import landed_branches
from support import start_rook

from .yard import Yard

pytestmark = pytest.mark.slow

WORK = [{"edit": {"path": "bee.txt", "text": "bee\n"}}, {"commit": "Bee"}]


@pytest.mark.parametrize("words", [("--all",), ("--branch", "bee")])
def test_mergers_that_looked_at_the_same_moment_land_it_once(yard: Yard, words: tuple[str, ...]) -> None:
    """The second one has looked before the first has landed anything, and queues afterwards."""
    yard.settings("merge:\n  clean: false\n")
    yard.finished("bee", WORK)
    one, other = yard.merger(), yard.merger()
    try:
        names = ["bee"] if words[0] == "--branch" else list(survey(other, "main").ready)
        assert len(names) == 1
        looked = landed_branches

        def land_meanwhile(*args: object) -> set[str]:
            branches = looked(*args)  # type: ignore[arg-type]
            (first,) = service.enqueue(one, names, "main")
            queue.work(one, "main", {first.id})
            return branches

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(service, "landed_branches", _once(land_meanwhile, looked))
            (second,) = service.enqueue(other, names, "main")
        outcome = queue.work(other, "main", {second.id})
        assert [entry.state for entry in outcome.entries] == ["landed"]
        rows = store.select(one.ctx.db)
    finally:
        one.ctx.db.close()
        other.ctx.db.close()
    assert len(rows) == 1
    assert len(yard.mail(to="bee", type="merged")) == 1
    assert yard.merge("undo", "bee").status == 0
    assert not (yard.folder / "bee.txt").exists()


def _once(first: object, then: object) -> object:
    """A function that is `first` when it is called for the first time, and `then` afterwards."""
    calls = iter([first])
    return lambda *args: next(calls, then)(*args)  # type: ignore[operator]


def test_four_processes_land_each_branch_once(yard: Yard) -> None:
    yard.finished("bee", WORK)
    children = [start_rook(yard.folder, "merge", "--all", "--json") for _ in range(4)]
    for child in children:
        child.communicate(timeout=60)
    merger = yard.merger()
    try:
        assert [entry.state for entry in store.select(merger.ctx.db)] == ["landed"]
    finally:
        merger.ctx.db.close()
    assert len(yard.mail(to="bee", type="merged")) == 1
    assert yard.show("bee.txt") == "bee"
    assert yard.merge("undo", "bee").status == 0


def test_the_newest_landing_that_can_be_undone_is_meant(yard: Yard) -> None:
    """A branch that was landed by hand beside our own landing does not hide that."""
    yard.branch("work", a_txt="a\n")
    assert yard.merge("--branch", "work").status == 0
    db = yard.rook.open()
    try:
        (entry,) = store.select(db)
        with db.write():
            store.insert(db, entry.replace(id=new_id(MERGE), base_before=None))
    finally:
        db.close()
    assert yard.merge("undo", "work").status == 0
    assert not (yard.folder / "a.txt").exists()
