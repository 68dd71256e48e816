from __future__ import annotations

import json
import queue
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rookery.base.clock import stamp
from rookery.config.environ import now
from rookery.events import store
from rookery.tasks import learnings
from rookery.tasks.store import Author
from support import NOW, add, start_rook

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Rook


class _Follower:
    """`rook events --follow`, read line by line before a deadline."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.child = start_rook(folder, "events", "--follow", "--json", *words)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self._lines.put(line)

    def next(self) -> dict[str, Any]:
        """The next event that it tells."""
        found: dict[str, Any] = json.loads(self._lines.get(timeout=30))["data"]
        return found

    def stop(self) -> None:
        """End it."""
        self.child.kill()
        self._reader.join()
        self.child.communicate()


def test_a_follower_sees_what_others_commit(rook: Rook) -> None:
    rook("task", "create", "before")
    follower = _Follower(rook.folder, "--type", "task.created", "--limit", "1")
    try:
        assert follower.next()["data"]["task"]["title"] == "before"
        after = rook.json("task", "create", "after").data["id"]
        rook("task", "cancel", after)
        rook("task", "create", "last")
        event = follower.next()
        assert (event["type"], event["subject"], event["actor"]) == ("task.created", after, "human")
        assert follower.next()["data"]["task"]["title"] == "last"
    finally:
        follower.stop()


def _types(rook: Rook, *words: str) -> list[tuple[str, str]]:
    ran = rook("events", "--json", *words)
    assert ran.status == 0
    told = [json.loads(each)["data"] for each in ran.out.splitlines()]
    assert [each["seq"] for each in told] == sorted(each["seq"] for each in told)
    return [(each["type"], each["actor"]) for each in told]


@pytest.fixture
def told(rook: Rook) -> Rook:
    """A project with an old event, and new ones of two callers."""
    db = rook.open()
    task = add(db, "old", now=NOW)
    learnings.add(db, task, "x", Author("ada", stamp(now())))
    db.close()
    rook("task", "cancel", task)
    return rook


def test_filters(told: Rook) -> None:
    old, learned, cancelled = ("task.created", "human"), ("learning.added", "ada"), ("task.cancelled", "human")
    assert _types(told) == [old, learned, cancelled]
    assert _types(told, "--since", "1h") == [learned, cancelled]
    assert _types(told, "--since", NOW) == [old, learned, cancelled]
    assert _types(told, "--agent", "ada") == [learned]
    assert _types(told, "--agent", "nobody") == []
    assert _types(told, "--type", "task") == [old, cancelled]
    assert _types(told, "--type", "task.created", "learning") == [old, learned]
    assert _types(told, "--type", "tas") == []
    assert _types(told, "--limit", "2") == [learned, cancelled]
    assert _types(told, "--limit", "1", "--type", "task") == [cancelled]


def test_the_newest_are_shown_unless_all_are_asked_for(rook: Rook) -> None:
    db = rook.open()
    with db.write():
        for number in range(60):
            store.publish(db, "test.told", str(number), {}, actor="human", at=NOW)
    db.close()
    assert len(_types(rook)) == 50
    assert len(_types(rook, "--limit", "0")) == 60
    assert len(_types(rook, "--since", NOW)) == 60
