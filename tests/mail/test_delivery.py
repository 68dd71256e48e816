"""A message counts as delivered only when the turn that saw it has ended well."""

from __future__ import annotations

import pytest

from rookery.db.database import Database
from rookery.mail import ops, service, store
from support import run_together

from .hive import LATER, NOW, Agent, Hive


def test_what_a_turn_sees_is_read_when_it_ends_well(hive: Hive, bee: Agent) -> None:
    sent = hive.send(None, "bee")
    turn = hive.begin_turn(bee)
    [seen] = service.deliver(hive.db, "bee", turn, NOW)
    assert (seen.id, seen.turn_id, seen.read_at) == (sent.id, turn, None)
    assert hive.inbox("bee") == [seen]
    assert hive.settle(turn, LATER) == 1
    assert hive.inbox("bee")[0].read_at == LATER
    assert hive.events("mail.delivered") == [{"ids": [sent.id], "turn_id": turn}]
    assert hive.events("mail.read") == [{"ids": [sent.id], "turn_id": turn}]


def test_one_turn_sees_a_message_once(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee", "one")
    turn = hive.begin_turn(bee)
    assert len(service.deliver(hive.db, "bee", turn, NOW)) == 1
    assert service.deliver(hive.db, "bee", turn, NOW) == []
    assert store.count_new(hive.db, "bee") == 0
    hive.send(None, "bee", "two")
    assert [message.subject for message in service.deliver(hive.db, "bee", turn, NOW)] == ["two"]


def test_a_crash_delivers_again(hive: Hive, bee: Agent) -> None:
    sent = hive.send(None, "bee")
    lost = hive.begin_turn(bee)
    service.deliver(hive.db, "bee", lost, NOW)
    hive.end_turn(lost, "lost")
    assert hive.settle(lost, NOW, read=False) == 1
    assert hive.inbox("bee")[0].turn_id is None
    turn = hive.begin_turn(bee)
    assert [message.id for message in service.deliver(hive.db, "bee", turn, NOW)] == [sent.id]
    assert hive.settle(lost, NOW) == 0
    assert hive.settle(turn, NOW) == 1
    assert hive.events("mail.returned") == [{"ids": [sent.id], "turn_id": lost}]


def test_a_turn_that_is_gone_holds_no_mail_even_if_its_end_was_not_recorded(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee")
    lost = hive.begin_turn(bee)
    service.deliver(hive.db, "bee", lost, NOW)
    hive.end_turn(lost, "failed")
    assert store.count_new(hive.db, "bee") == 1
    turn = hive.begin_turn(bee)
    assert len(service.deliver(hive.db, "bee", turn, NOW)) == 1
    assert hive.settle(lost, NOW, read=False) == 0


def test_what_was_read_is_not_delivered_again(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee")
    turn = hive.begin_turn(bee)
    service.deliver(hive.db, "bee", turn, NOW)
    hive.settle(turn, NOW)
    assert hive.settle(turn, NOW, read=False) == 0
    hive.end_turn(turn)
    assert service.deliver(hive.db, "bee", hive.begin_turn(bee), NOW) == []


def test_delivery_of_nothing_tells_nothing(hive: Hive, bee: Agent) -> None:
    turn = hive.begin_turn(bee)
    before = hive.everything()
    assert service.deliver(hive.db, "bee", turn, NOW) == []
    assert hive.settle(turn, NOW) == 0
    assert hive.everything() == before


def test_what_does_not_fit_waits_unseen(hive: Hive, bee: Agent) -> None:
    for number in range(25):
        hive.send(None, "bee", f"number {number}")
    hive.send(None, "bee", "first of all", priority="urgent")
    turn = hive.begin_turn(bee)
    seen = [message.subject for message in service.deliver(hive.db, "bee", turn, NOW)]
    assert seen == ["first of all", *(f"number {number}" for number in range(24, 5, -1))]
    assert store.count_new(hive.db, "bee") == 6
    assert len(service.deliver(hive.db, "bee", turn, NOW)) == 6
    assert hive.settle(turn, NOW) == 26


def test_what_does_not_fit_waits(hive: Hive, bee: Agent) -> None:
    for number in range(4):
        hive.send(None, "bee", f"number {number}", "x" * 3_500)
    turn = hive.begin_turn(bee)
    assert len(service.deliver(hive.db, "bee", turn, NOW)) == 3
    assert store.count_new(hive.db, "bee") == 1


def test_an_agents_own_look_counts_as_its_turns(hive: Hive, bee: Agent) -> None:
    turn = hive.begin_turn(bee)
    one, two = hive.send(None, "bee", "one").id, hive.send(None, "bee", "two").id
    [opened] = ops.read(hive.ctx(bee, turn), (one,))
    assert (opened.turn_id, opened.read_at) == (turn, None)
    checked = ops.check(hive.ctx(bee, turn))
    assert [message.id for message in checked.messages] == [two]
    assert ops.check(hive.ctx(bee, turn)).messages == ()
    assert [message.read_at for message in hive.inbox("bee")] == [None, None]
    hive.settle(turn, LATER)
    assert [message.read_at for message in hive.inbox("bee")] == [LATER, LATER]


def test_a_crash_brings_back_what_the_agent_looked_at_itself(hive: Hive, bee: Agent) -> None:
    turn = hive.begin_turn(bee)
    hive.send(None, "bee")
    assert len(ops.check(hive.ctx(bee, turn), inject=True).messages) == 1
    hive.end_turn(turn, "lost")
    hive.settle(turn, NOW, read=False)
    assert store.count_new(hive.db, "bee") == 1


def test_reading_again_does_not_unread(hive: Hive, bee: Agent) -> None:
    sent = hive.send(None, "bee").id
    turn = hive.begin_turn(bee)
    service.deliver(hive.db, "bee", turn, NOW)
    hive.settle(turn, NOW)
    hive.end_turn(turn)
    later = hive.begin_turn(bee)
    [opened] = ops.read(hive.ctx(bee, later, LATER), (sent,))
    assert (opened.turn_id, opened.read_at) == (turn, NOW)
    assert hive.settle(later, LATER, read=False) == 0


_DELIVER = """
import sys
from rookery.db.database import Database
from rookery.mail import service
db = Database.open(sys.argv[1])
print("here", flush=True)
sys.stdin.readline()
for message in service.deliver(db, "bee", sys.argv[2], "2026-01-31T12:00:00.000Z"):
    print(message.id)
"""


def test_two_turns_never_see_the_same_message(hive: Hive, bee: Agent) -> None:
    """Only one turn of an agent runs at a time; if two ever did, each message would still go to one."""
    ids = {hive.send(None, "bee", f"number {number}").id for number in range(10)}
    turns = [hive.begin_turn(bee) for _ in range(4)]
    outputs = run_together([hive.start_python(_DELIVER, turn) for turn in turns])
    claimed = [line for out in outputs for line in out.split()]
    assert sorted(claimed) == sorted(ids)
    for turn, out in zip(turns, outputs, strict=True):
        assert {message.id for message in hive.inbox("bee") if message.turn_id == turn} == set(out.split())


def test_looking_for_mail_reads_only_what_is_unread(hive: Hive, bee: Agent) -> None:
    """Years of read mail must not slow down the question that every hook asks."""
    asked: list[tuple[str, object]] = []

    class Listening(Database):
        def all(self, sql: str, values: object = ()) -> list[tuple[object, ...]]:
            asked.append((sql, values))
            return []

        def one(self, sql: str, values: object = ()) -> tuple[object, ...]:
            asked.append((sql, values))
            return (0,)

    listening = Listening(hive.db.connection, hive.path)
    store.new_ids(listening, "bee", limit=1)
    store.count_new(listening, "bee")
    store.unread_ids(listening, "bee")
    store.count_unread(listening, "bee")
    assert len(asked) == 4
    for sql, values in asked:
        plan = " ".join(str(row[3]) for row in hive.db.connection.execute("EXPLAIN QUERY PLAN " + sql, values))  # type: ignore[arg-type]
        assert "messages_unread" in plan


@pytest.mark.parametrize("count", [600])
def test_a_flood_is_settled_whole(hive: Hive, bee: Agent, count: int) -> None:
    with hive.db.write():
        for _ in range(count):
            service.send_from_system(hive.db, "bee", "the same again", now=NOW)
    turn = hive.begin_turn(bee)
    seen = 0
    while shown := service.deliver(hive.db, "bee", turn, NOW):
        seen += len(shown)
    assert seen == count
    assert hive.settle(turn, NOW) == count
