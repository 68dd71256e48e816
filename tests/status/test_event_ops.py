from __future__ import annotations

import json
import queue
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_rows import Agent
from conftest import Rook
from rookery.base.clock import stamp
from rookery.config.environ import now
from rookery.events import store
from rookery.events.telemetry import Telemetry
from rookery.tasks import learnings
from rookery.tasks.store import Author
from support import NOW, add, start_rook


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
        event: dict[str, Any] = json.loads(self._lines.get(timeout=30))["data"]
        return event

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
    events = [json.loads(line)["data"] for line in ran.out.splitlines()]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    return [(event["type"], event["actor"]) for event in events]


@pytest.fixture
def rook_with_events(rook: Rook) -> Rook:
    """A project with an old event, and new ones of two callers."""
    db = rook.open()
    task = add(db, "old", now=NOW)
    learnings.add(db, task, "x", Author("ada", stamp(now())))
    db.close()
    rook("task", "cancel", task)
    return rook


def test_filters(rook_with_events: Rook) -> None:
    old, learned, cancelled = ("task.created", "human"), ("learning.added", "ada"), ("task.cancelled", "human")
    assert _types(rook_with_events) == [old, learned, cancelled]
    assert _types(rook_with_events, "--since", "1h") == [learned, cancelled]
    assert _types(rook_with_events, "--since", NOW) == [old, learned, cancelled]
    assert _types(rook_with_events, "--agent", "ada") == [learned]
    assert _types(rook_with_events, "--agent", "stranger") == []
    assert _types(rook_with_events, "--type", "task") == [old, cancelled]
    assert _types(rook_with_events, "--type", "task.created", "learning") == [old, learned]
    assert _types(rook_with_events, "--type", "tas") == []
    assert _types(rook_with_events, "--limit", "2") == [learned, cancelled]
    assert _types(rook_with_events, "--limit", "1", "--type", "task") == [cancelled]
    assert _types(rook_with_events, "--errors") == []


def test_people_read_states_in_words(rook_with_events: Rook) -> None:
    assert b"state=cancelled" in rook_with_events("events").out
    assert b'"state":"CANCELLED"' in rook_with_events("events", "--json").out


def test_the_log_of_an_agent_is_followed_until_it_ends(rook: Rook) -> None:
    bee = Agent(rook.folder, "bee")
    child = start_rook(rook.folder, "logs", "bee", "--follow")
    try:
        bee.end()
        assert child.wait(30) == 0
    finally:
        child.kill()
        child.communicate()
    assert rook("logs", "bee", "--follow").status == 0


def test_the_newest_are_shown_unless_all_are_asked_for(rook: Rook) -> None:
    db = rook.open()
    with db.write():
        for number in range(60):
            store.publish(db, "test.told", str(number), {}, actor="human", at=NOW)
    db.close()
    assert len(_types(rook)) == 50
    assert len(_types(rook, "--limit", "0")) == 60
    assert len(_types(rook, "--since", NOW)) == 60


def _numbers(rook: Rook, *words: str) -> list[int]:
    ran = rook("events", "--json", *words)
    assert ran.status == 0, ran
    return [json.loads(line)["data"]["seq"] for line in ran.out.splitlines()]


def test_pages_go_on_where_the_last_one_ended(rook: Rook) -> None:
    db = rook.open()
    with db.write():
        for number in range(120):
            store.publish(db, "test.odd" if number % 2 else "test.even", str(number), {}, actor="human", at=NOW)
    first, last = (
        int(db.value(f"SELECT {function}(seq) FROM events WHERE type GLOB 'test.*'")) for function in ("min", "max")
    )
    db.close()
    assert _numbers(rook, "--after", str(first - 1)) == list(range(first, first + 50))
    pages, after = [], first - 1
    while page := _numbers(rook, "--after", str(after), "--limit", "25", "--type", "test.odd"):
        pages.append(len(page))
        after = page[-1]
    assert (pages, after) == ([25, 25, 10], last)
    assert _numbers(rook, "--after", str(last)) == []
    assert _numbers(rook, "--after", str(last - 2), "--since", "1h") == []
    assert rook.json("events", "--after", "-1").error["code"] == "invalid_input"


def test_a_follower_goes_on_from_a_number_and_misses_nothing(rook: Rook) -> None:
    db = rook.open()
    with db.write():
        for number in range(70):
            store.publish(db, "test.told", str(number), {}, actor="human", at=NOW)
    last = store.last_seq(db)
    db.close()
    follower = _Follower(rook.folder, "--after", str(last - 60), "--type", "test", "task.created")
    short = _Follower(rook.folder, "--after", str(last - 60), "--limit", "5", "--type", "test")
    try:
        assert [follower.next()["seq"] for _ in range(60)] == list(range(last - 59, last + 1))
        assert [short.next()["seq"] for _ in range(60)] == list(range(last - 59, last + 1))
        rook("task", "create", "after")
        assert follower.next()["type"] == "task.created"
    finally:
        follower.stop()
        short.stop()


def test_a_clock_that_was_set_back_hides_nothing(rook: Rook) -> None:
    db = rook.open()
    times = ["2026-05-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z", "2026-05-02T00:00:00.000Z"]
    with db.write():
        for at in times:
            store.publish(db, "test.told", at, {}, actor="human", at=at)
    since = "2026-04-01T00:00:00.000Z"
    assert [event.subject for event in store.read(db, since=since)] == [times[0], times[2]]
    assert [event.subject for event in store.read(db, since=since, kinds=("test",))] == [times[0], times[2]]
    db.close()


@pytest.mark.parametrize("kinds", [(), ("test",)])
def test_a_clock_that_was_set_back_for_long_hides_nothing(rook: Rook, kinds: tuple[str, ...]) -> None:
    days = [*range(1, 20), *range(5, 12), *range(3, 28)]  # forty events a day; the clock is set back twice
    times = [f"2026-01-{day:02}T00:00:00.{number:03}Z" for day in days for number in range(40)]
    db = rook.open()
    with db.write():
        for at in times:
            store.publish(db, "test.told", at, {}, actor="human", at=at)
    for since in (f"2026-01-{day:02}T00:00:00.000Z" for day in range(1, 30)):
        expected = [at for at in times if at >= since]
        assert [event.subject for event in store.read(db, since=since, kinds=kinds)] == expected
        newest = store.read(db, since=since, kinds=kinds, limit=3, newest=True)
        assert [event.subject for event in newest] == expected[-3:]
    db.close()


@pytest.fixture
def worked(project: Path) -> tuple[Rook, str]:
    """A project in which an agent worked on one of two tasks, called two tools, and failed twice."""
    rook = Rook(project)
    bee = Agent(project, "bee")
    db = rook.open()
    add(db, "other")
    with db.write():
        store.publish(db, "merge.failed", bee.task, {"reason": "conflict"}, actor="bee", at=stamp(now()))
        store.publish(db, "agent.told", "bee", {}, actor="human", at=stamp(now()))
    db.close()
    telemetry = Telemetry(str(project / ".rookery/telemetry.db"))
    for name, failed in (("Read", False), ("Bash", True)):
        at = stamp(now())
        telemetry.add(
            at=at, agent="bee", session_id="s", turn_id=None, kind="tool", name=name, is_error=failed, data={}
        )
    telemetry.close()
    return rook, bee.task


def _shown(rook: Rook, *words: str) -> bytes:
    ran = rook(*words)
    assert ran.status == 0, ran
    assert ran.out
    return ran.out


@pytest.mark.parametrize("json", [(), ("--json",)])
@pytest.mark.parametrize(
    ("alias", "filters"),
    [
        ("logs", "--source tools"),
        ("logs bee", "--source tools --agent bee"),
        ("trace bee", "--source all --agent bee"),
        ("trace TASK", "--source all --task TASK"),
        ("errors", "--source all --errors"),
        ("errors --agent bee --since 1h", "--source all --errors --agent bee --since 1h"),
        ("replay --run run_01", "--source all --run run_01"),
    ],
)
def test_an_alias_shows_the_same_as_the_filters(
    worked: tuple[Rook, str], alias: str, filters: str, json: tuple[str, ...]
) -> None:
    rook, task = worked
    by_alias = _shown(rook, *alias.replace("TASK", task).split(), *json)
    assert by_alias == _shown(rook, "events", *filters.replace("TASK", task).split(), *json)


def test_events_of_a_task_a_run_and_errors(worked: tuple[Rook, str]) -> None:
    rook, task = worked
    assert _types(rook, "--errors") == [("merge.failed", "bee")]
    assert ("agent.told", "human") in _types(rook, "--task", task)
    assert _types(rook, "--task", task, "--agent", "bee", "--type", "merge") == [("merge.failed", "bee")]
    assert _types(rook, "--run", "run_01", "--type", "agent.told", "merge") == [
        ("merge.failed", "bee"),
        ("agent.told", "human"),
    ]
    assert rook.json("events", "--run", "run_7ZZZZ").error["code"] == "not_found"
    assert rook.json("events", "--source", "all", "--after", "1").error["code"] == "invalid_input"
    assert _shown(rook, "logs").count(b"\n") == 2
    assert _shown(rook, "errors").count(b"\n") == 2


def test_a_turn_that_ended_badly_says_how(rook: Rook) -> None:
    db = rook.open()
    for data in (
        {"ok": True},
        {"ok": False, "exit_status": 3},
        {"ok": False, "interrupted_by": "human"},
        {"ok": False},
    ):
        with db.write():
            store.publish(db, "turn.ended", "bee", data, actor="bee", at=NOW)
    db.close()
    shown = rook("errors").out.decode().splitlines()
    assert [line.split("turn.ended")[1].strip() for line in shown] == [
        "exit status 3",
        "interrupted by human",
        "ended without a result",
    ]
