"""What callers do with their mail: check, read, list, wait, purge."""

from __future__ import annotations

import time

import pytest

from rookery.base.clock import stamp
from rookery.base.errors import InvalidInput, NotFound
from rookery.db.database import Database
from rookery.mail import inbox, service, store
from rookery.mail.model import NotYourMail, UnknownRecipient
from rookery.mail.store import Query
from served import Served, make_call

from .hive import HUMAN, LATER, NOW, Agent, Hive


def test_what_a_person_checks_is_read(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "one")
    hive.send(bee, "human", "two", priority="high")
    checked = inbox.check(hive.db, HUMAN, LATER)
    assert [message.subject for message in checked.messages] == ["two", "one"]
    assert [message.read_at for message in hive.inbox("human")] == [LATER, LATER]
    assert list(checked.messages) == hive.inbox("human")[::-1]
    assert inbox.check(hive.db, HUMAN, LATER).messages == ()
    assert len(hive.events("mail.read")) == 1


def test_an_agent_outside_of_a_turn_reads_at_once(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee")
    assert len(inbox.check(hive.db, hive.as_(bee), LATER).messages) == 1
    assert hive.inbox("bee")[0].read_at == LATER


def test_what_is_not_shown_is_not_read(hive: Hive, bee: Agent) -> None:
    for number in range(3):
        hive.send(bee, "human", f"number {number}")
    checked = inbox.check(hive.db, HUMAN, NOW, limit=2)
    assert ([message.subject for message in checked.messages], checked.waiting) == (["number 2", "number 1"], 1)
    assert [message.read_at is None for message in hive.inbox("human")] == [True, False, False]


@pytest.mark.parametrize("inject", [False, True])
def test_a_person_looks_into_any_inbox_without_a_mark(hive: Hive, bee: Agent, inject: bool) -> None:
    hive.send(None, "bee", "one")
    turn = hive.begin_turn(bee)
    service.deliver(hive.db, "bee", turn, NOW)
    hive.send(None, "bee", "two")
    before = hive.everything()
    looked = inbox.check(hive.db, HUMAN, NOW, agent="bee", inject=inject)
    assert ([message.subject for message in looked.messages], looked.waiting) == (["two", "one"], 0)
    assert hive.everything() == before
    with pytest.raises(UnknownRecipient):
        inbox.check(hive.db, HUMAN, NOW, agent="beee")


def test_ones_own_name_is_ones_own_inbox(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee")
    inbox.check(hive.db, hive.as_(bee), NOW, agent="bee")
    assert hive.inbox("bee")[0].read_at == NOW


def test_injected_text_is_nothing_where_there_is_no_mail(hive: Hive) -> None:
    assert inbox.check(hive.db, HUMAN, NOW, inject=True).text == ""


def test_injected_text_counts_what_waits(hive: Hive, bee: Agent) -> None:
    for number in range(27):
        hive.send(bee, "human", f"number {number}")
    checked = inbox.check(hive.db, HUMAN, NOW, inject=True)
    assert checked.text is not None
    assert "\n7 more: rook mail list --unread --to human\n" in checked.text
    assert store.count_new(hive.db, "human") == checked.waiting == 7


def test_reading_shows_the_thread_and_marks_the_readers_own(hive: Hive, bee: Agent, queen: Agent) -> None:
    asked = hive.send(bee, "queen").id
    answer = service.reply(hive.db, hive.as_(queen), asked, "yes", NOW).id
    [by_sender] = inbox.read(hive.db, hive.as_(bee), (asked,), LATER)
    assert by_sender.read_at is None
    [by_human] = inbox.read(hive.db, HUMAN, (asked,), LATER)
    assert by_human.read_at is None
    opened = inbox.read(hive.db, hive.as_(queen), (asked, answer, asked), LATER)
    assert [message.id for message in opened] == [asked, answer]
    assert [message.read_at for message in opened] == [LATER, None]
    assert opened[0].thread == (asked, answer)
    assert opened[0].to_json()["thread"] == (asked, answer)


def test_reading_one_unknown_id_marks_nothing(hive: Hive, bee: Agent) -> None:
    sent = hive.send(None, "bee").id
    with pytest.raises(NotFound):
        inbox.read(hive.db, hive.as_(bee), (sent, "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV"), NOW)
    assert hive.inbox("bee")[0].read_at is None


def test_an_agent_sees_its_own_part_of_a_thread(hive: Hive, bee: Agent, drone: Agent, queen: Agent) -> None:
    sent = hive.send(queen, "@builders")
    mine = next(message.id for message in sent.messages if message.recipient == "bee")
    [opened] = inbox.read(hive.db, hive.as_(bee), (mine,), NOW)
    assert [message.recipient for message in opened.messages] == ["bee"]
    [by_human] = inbox.read(hive.db, HUMAN, (mine,), NOW)
    assert len(by_human.thread) == 2


def test_lists_are_filtered_and_paged(hive: Hive, bee: Agent, queen: Agent) -> None:
    first = hive.send(bee, "queen", "a", type="question")
    service.reply(hive.db, hive.as_(queen), first.id, "b", NOW)
    hive.send(queen, "human", "c")
    hive.send(None, "bee", "d", priority="urgent")

    def subjects(wanted: Query, agent: str | None = None, who: Agent | None = None) -> str:
        caller = HUMAN if who is None else hive.as_(who)
        return "".join(message.subject[-1] for message in inbox.list_mail(hive.db, caller, wanted, agent))

    assert subjects(Query()) == "dcaa"
    assert subjects(Query(), "bee") == "daa"
    assert subjects(Query(), who=queen) == "caa"
    assert subjects(Query(sender="queen")) == "ca"
    assert subjects(Query(recipient="queen")) == "a"
    assert subjects(Query(type="question")) == "a"
    assert subjects(Query(thread=first.id)) == "aa"
    assert subjects(Query(limit=2)) == "dc"
    assert subjects(Query(before=first.id)) == ""
    assert subjects(Query(limit=2, before=hive.inbox("human")[0].id)) == "aa"
    inbox.check(hive.db, hive.as_(bee), NOW)
    assert subjects(Query(unread=True)) == "ca"
    assert subjects(Query(unread=True), who=bee) == ""
    assert subjects(Query(unread=True), who=queen) == "a"
    assert subjects(Query(unread=True), "queen") == "a"
    assert subjects(Query(unread=True, sender="bee"), who=bee) == "a"
    with pytest.raises(InvalidInput):
        subjects(Query(limit=-1))
    with pytest.raises(InvalidInput):
        subjects(Query(type="gossip"))


def test_waiting_ends_at_once_where_there_is_mail(hive: Hive, bee: Agent, queen: Agent) -> None:
    hive.send(queen, "bee", "one")
    turn = hive.begin_turn(bee)
    message = inbox.wait(hive.db, hive.as_(bee, turn), Query(), 30, lambda: NOW)
    assert message is not None
    assert (message.subject, message.turn_id, message.read_at) == ("one", turn, None)
    assert inbox.wait(hive.db, hive.as_(bee, turn), Query(), 0.05, lambda: NOW) is None


def test_waiting_is_for_what_was_asked(hive: Hive, bee: Agent, queen: Agent) -> None:
    asked = hive.send(bee, "queen", type="question")
    hive.send(None, "bee", "other")
    answer = service.reply(hive.db, hive.as_(queen), asked.id, "yes", NOW, type="result")
    for wanted in (Query(sender="drone"), Query(type="error"), Query(sender="human", thread=asked.id)):
        assert inbox.wait(hive.db, hive.as_(bee), wanted, 0.05, lambda: NOW) is None
    wanted = Query(sender="queen", thread=asked.id, type="result")
    message = inbox.wait(hive.db, hive.as_(bee), wanted, 30, lambda: NOW)
    assert message is not None
    assert message.id == answer.id
    assert store.count_new(hive.db, "bee") == 1


def test_waiting_ends_with_an_interrupt_of_the_call(hive: Hive) -> None:
    def wait() -> None:
        db = Database.open(hive.db.path)
        try:
            inbox.wait(db, HUMAN, Query(), 300, lambda: NOW)
        finally:
            db.close()

    waiting = Served(make_call(), wait)
    waiting.call.interrupt()
    assert isinstance(waiting.end(), KeyboardInterrupt)


def test_waiting_ends_with_the_time(hive: Hive) -> None:
    began = time.monotonic()
    before = hive.everything()
    assert inbox.wait(hive.db, HUMAN, Query(), 0.2, lambda: NOW) is None
    assert time.monotonic() - began >= 0.2
    assert hive.everything() == before


def test_purging_deletes_what_was_read(hive: Hive, bee: Agent) -> None:
    clock = 1_800_000_000.0
    hive.send(bee, "human", "read")
    inbox.check(hive.db, HUMAN, NOW)
    hive.send(bee, "human", "unread")
    assert inbox.purge(hive.db, HUMAN, clock, older_than=86400, agent=None, unread_too=False) == 1
    assert [message.subject for message in hive.inbox("human")] == ["unread"]
    assert hive.events("mail.purged") == [
        {"deleted": 1, "before": stamp(clock - 86400), "agent": None, "unread_too": False}
    ]
    assert inbox.purge(hive.db, HUMAN, clock, older_than=None, agent="queen", unread_too=True) == 0
    assert inbox.purge(hive.db, HUMAN, 0, older_than=1, agent=None, unread_too=True) == 0
    assert inbox.purge(hive.db, HUMAN, clock, older_than=None, agent="bee", unread_too=True) == 1
    assert hive.inbox("human") == []


def test_purging_everything_by_mistake_is_refused(hive: Hive) -> None:
    with pytest.raises(InvalidInput):
        inbox.purge(hive.db, HUMAN, 0, older_than=None, agent=None, unread_too=False)


def test_an_agent_purges_nothing(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee")
    with pytest.raises(NotYourMail):
        inbox.purge(hive.db, hive.as_(bee), 0, older_than=None, agent="bee", unread_too=True)
    assert len(hive.inbox("bee")) == 1
