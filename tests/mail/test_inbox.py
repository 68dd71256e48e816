"""What callers do with their mail: check, read, list, wait, purge."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest

from rookery.base.clock import stamp
from rookery.base.errors import InvalidInput, NotFound
from rookery.db.database import Database
from rookery.mail import ops, service, store
from rookery.mail.model import NotYourMail, UnknownRecipient
from rookery.ops.context import Context
from served import Served, make_call

from .hive import LATER, NOW, Agent, Hive


def test_what_a_person_checks_is_read(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "one")
    hive.send(bee, "human", "two", priority="high")
    checked = ops.check(hive.ctx(now=LATER))
    assert [message.subject for message in checked.messages] == ["two", "one"]
    assert [message.read_at for message in hive.inbox("human")] == [LATER, LATER]
    assert list(checked.messages) == hive.inbox("human")[::-1]
    assert ops.check(hive.ctx(now=LATER)).messages == ()
    assert len(hive.events("mail.read")) == 1


def test_an_agent_outside_of_a_turn_reads_at_once(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee")
    assert len(ops.check(hive.ctx(bee, now=LATER)).messages) == 1
    assert hive.inbox("bee")[0].read_at == LATER


def test_what_is_not_shown_is_not_read(hive: Hive, bee: Agent) -> None:
    for number in range(3):
        hive.send(bee, "human", f"number {number}")
    checked = ops.check(hive.ctx(), limit=2)
    assert ([message.subject for message in checked.messages], checked.waiting) == (["number 2", "number 1"], 1)
    assert [message.read_at is None for message in hive.inbox("human")] == [True, False, False]


@pytest.mark.parametrize("inject", [False, True])
def test_a_person_looks_into_any_inbox_without_a_mark(hive: Hive, bee: Agent, inject: bool) -> None:
    hive.send(None, "bee", "one")
    turn = hive.begin_turn(bee)
    service.deliver(hive.db, "bee", turn, NOW)
    hive.send(None, "bee", "two")
    before = hive.everything()
    looked = ops.check(hive.ctx(), agent="bee", inject=inject)
    assert ([message.subject for message in looked.messages], looked.waiting) == (["two", "one"], 0)
    assert hive.everything() == before
    with pytest.raises(UnknownRecipient):
        ops.check(hive.ctx(), agent="beee")


def test_ones_own_name_is_ones_own_inbox(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee")
    ops.check(hive.ctx(bee), agent="bee")
    assert hive.inbox("bee")[0].read_at == NOW


def test_injected_text_is_nothing_where_there_is_no_mail(hive: Hive) -> None:
    assert ops.check(hive.ctx(), inject=True).text == ""


def test_injected_text_counts_what_waits(hive: Hive, bee: Agent) -> None:
    for number in range(27):
        hive.send(bee, "human", f"number {number}")
    checked = ops.check(hive.ctx(), inject=True)
    assert checked.text is not None
    assert "\n7 more: rook mail check\n" in checked.text
    assert store.count_new(hive.db, "human") == checked.waiting == 7


def test_reading_shows_the_thread_and_marks_the_readers_own(hive: Hive, bee: Agent, queen: Agent) -> None:
    asked = hive.send(bee, "queen").id
    answer = ops.reply(hive.ctx(queen), asked, body="yes").id
    [by_sender] = ops.read(hive.ctx(bee, now=LATER), (asked,))
    assert by_sender.read_at is None
    [by_human] = ops.read(hive.ctx(now=LATER), (asked,))
    assert by_human.read_at is None
    opened = ops.read(hive.ctx(queen, now=LATER), (asked, answer, asked))
    assert [message.id for message in opened] == [asked, answer]
    assert [message.read_at for message in opened] == [LATER, None]
    assert opened[0].thread == (asked, answer)
    assert opened[0].to_json()["thread"] == (asked, answer)


def test_reading_one_unknown_id_marks_nothing(hive: Hive, bee: Agent) -> None:
    sent = hive.send(None, "bee").id
    with pytest.raises(NotFound):
        ops.read(hive.ctx(bee), (sent, "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    assert hive.inbox("bee")[0].read_at is None


def test_an_agent_sees_its_own_part_of_a_thread(hive: Hive, bee: Agent, drone: Agent, queen: Agent) -> None:
    sent = hive.send(queen, "@builders")
    mine = next(message.id for message in sent.messages if message.to == "bee")
    [opened] = ops.read(hive.ctx(bee), (mine,))
    assert [message.recipient for message in opened.messages] == ["bee"]
    [by_human] = ops.read(hive.ctx(), (mine,))
    assert len(by_human.thread) == 2


def test_lists_are_filtered_and_paged(hive: Hive, bee: Agent, queen: Agent) -> None:
    first = hive.send(bee, "queen", "a", type="question")
    ops.reply(hive.ctx(queen), first.id, body="b")
    hive.send(queen, "human", "c")
    hive.send(None, "bee", "d", priority="urgent")

    def subjects(who: Agent | None = None, **wanted: Any) -> str:
        return "".join(message.subject[-1] for message in ops.list_mail(hive.ctx(who), **wanted))

    assert subjects() == "dcaa"
    assert subjects(agent="bee") == "daa"
    assert subjects(who=queen) == "caa"
    assert subjects(from_="queen") == "ca"
    assert subjects(to="queen") == "a"
    assert subjects(type="question") == "a"
    assert subjects(thread=first.id) == "aa"
    assert subjects(limit=2) == "dc"
    assert subjects(cursor=first.id) == ""
    assert subjects(limit=2, cursor=hive.inbox("human")[0].id) == "aa"
    ops.check(hive.ctx(bee))
    assert subjects(unread=True) == "ca"
    assert subjects(unread=True, who=bee) == ""
    assert subjects(unread=True, who=queen) == "a"
    assert subjects(unread=True, agent="queen") == "a"
    assert subjects(unread=True, from_="bee", who=bee) == "a"
    with pytest.raises(InvalidInput):
        subjects(limit=-1)
    with pytest.raises(InvalidInput):
        subjects(type="gossip")


def test_waiting_ends_at_once_where_there_is_mail(hive: Hive, bee: Agent, queen: Agent) -> None:
    hive.send(queen, "bee", "one")
    turn = hive.begin_turn(bee)
    received = ops.wait(hive.ctx(bee, turn), timeout="30s")
    assert received is not None
    assert (received.subject, received.turn_id, received.read_at) == ("one", turn, None)
    assert ops.wait(hive.ctx(bee, turn), timeout="0.05s") is None


def test_waiting_is_for_what_was_asked(hive: Hive, bee: Agent, queen: Agent, drone: Agent) -> None:
    asked = hive.send(bee, "queen", type="question")
    hive.send(None, "bee", "other")
    answer = ops.reply(hive.ctx(queen), asked.id, body="yes", type="result")
    for wanted in ({"from_": "drone"}, {"type": "error"}, {"from_": "human", "thread": asked.id}):
        assert ops.wait(hive.ctx(bee), timeout="0.05s", **wanted) is None
    received = ops.wait(hive.ctx(bee), timeout="30s", from_="queen", thread=asked.id, type="result")
    assert received is not None
    assert received.id == answer.id
    assert store.count_new(hive.db, "bee") == 1


def test_waiting_ends_with_an_interrupt_of_the_call(hive: Hive) -> None:
    def wait() -> None:
        with closing(Database.open(hive.db.path)) as db:
            ops.wait(Context.at(str(hive.folder), db), timeout="300s")

    waiting = Served(make_call(), wait)
    waiting.call.interrupt()
    assert isinstance(waiting.end(), KeyboardInterrupt)


def test_waiting_ends_with_the_time(hive: Hive) -> None:
    began = time.monotonic()
    before = hive.everything()
    assert ops.wait(hive.ctx(), timeout="0.2s") is None
    assert time.monotonic() - began >= 0.2
    assert hive.everything() == before


def test_purging_deletes_what_was_read(hive: Hive, bee: Agent) -> None:
    at = stamp(1_800_000_000.0)
    hive.send(bee, "human", "read")
    ops.check(hive.ctx())
    hive.send(bee, "human", "unread")
    assert ops.purge(hive.ctx(now=at), older_than="1d").deleted == 1
    assert [message.subject for message in hive.inbox("human")] == ["unread"]
    assert hive.events("mail.purged") == [
        {"deleted": 1, "before": stamp(1_800_000_000.0 - 86400), "agent": None, "unread_too": False}
    ]
    assert ops.purge(hive.ctx(now=at), agent="queen", all=True).deleted == 0
    assert ops.purge(hive.ctx(now=stamp(1)), older_than="1s", all=True).deleted == 0
    assert ops.purge(hive.ctx(now=at), agent="bee", all=True).deleted == 1
    assert hive.inbox("human") == []


def test_purging_everything_by_mistake_is_refused(hive: Hive) -> None:
    with pytest.raises(InvalidInput):
        ops.purge(hive.ctx())


def test_an_agent_purges_nothing(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee")
    with pytest.raises(NotYourMail):
        ops.purge(hive.ctx(bee), agent="bee", all=True)
    assert len(hive.inbox("bee")) == 1
