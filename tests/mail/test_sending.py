"""Recipients, threads, replies, and what a message may be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rookery.base.errors import AmbiguousId, InvalidInput, NotFound, RookError
from rookery.mail import group_ops, ops, service, store
from rookery.mail.model import (
    MAX_BODY,
    MAX_SUBJECT,
    PRIORITIES,
    Draft,
    EmptyGroup,
    InvalidPayload,
    UnknownRecipient,
)
from rookery.mail.validation import read_payload
from rookery.roles.messages import TYPES
from rookery.sessions.store import session

from .hive import HUMAN, NOW, Agent, Hive


def test_a_message_is_stored_as_it_was_written(hive: Hive, bee: Agent, queen: Agent) -> None:
    payload = {"task_id": "task_1", "files": ["a.py", "ü.py"], "exit_status": 0}
    sent = hive.send(bee, "queen", "done ✓", "all\tof\nit", type="worker_done", priority="high", payload=payload)
    [message] = hive.inbox("queen")
    assert message == hive.get(sent)
    assert message.to_json() == {
        "id": sent.id,
        "thread_id": sent.id,
        "reply_to": None,
        "from": "bee",
        "to": "queen",
        "audience": None,
        "type": "worker_done",
        "priority": "high",
        "subject": "done ✓",
        "body": "all\tof\nit",
        "payload": payload,
        "created_at": NOW,
        "read_at": None,
        "delivered_turn": None,
    }
    assert message.session_id == bee.session_id


def test_the_event_tells_everything_but_the_body(hive: Hive, bee: Agent) -> None:
    sent = hive.send(bee, "human", "hello", "a secret", type="question", priority="urgent")
    assert hive.events("mail.sent") == [
        {"id": sent.id, "from": "bee", "to": "human", "type": "question", "priority": "urgent", "subject": "hello"}
    ]
    assert "a secret" not in json.dumps(hive.everything()[2])


def test_mail_to_an_ended_agent_is_kept_and_the_sender_is_told(hive: Hive, bee: Agent, drone: Agent) -> None:
    hive.end(drone)
    sent = service.send(hive.db, hive.as_(bee), Draft(("drone", "queen"), "hello"), NOW)
    assert sent.not_alive == ("drone",)
    assert sent.to == ("drone", "queen")
    hive.add("drone")
    assert store.count_new(hive.db, "drone") == 1


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("beee", "bee"), ("humna", "human"), ("@builder", "@builders"), ("@hiive", "@hive"), ("@lead of quen", "queen")],
)
def test_an_unknown_recipient_is_refused_with_a_suggestion(hive: Hive, bee: Agent, wrong: str, meant: str) -> None:
    group_ops.create(hive.ctx(), "hive", ("bee",))
    before = hive.everything()
    with pytest.raises(UnknownRecipient) as caught:
        hive.send(None, wrong)
    assert caught.value.hint == f"did you mean `{meant}`?"
    assert hive.everything() == before


@pytest.mark.parametrize("name", ["", "@", "rook", "\x1b[31m", "bee\nqueen", "@lead of", "@lead:", "BEE"])
def test_an_unknown_recipient_is_refused(hive: Hive, bee: Agent, name: str) -> None:
    with pytest.raises(UnknownRecipient):
        hive.send(None, name)


def test_one_unknown_name_among_many_refuses_them_all(hive: Hive, bee: Agent) -> None:
    before = hive.everything()
    with pytest.raises(UnknownRecipient):
        service.send(hive.db, HUMAN, Draft(("bee", "@all", "stranger"), "hello"), NOW)
    assert hive.everything() == before


def test_no_recipient_is_refused(hive: Hive) -> None:
    with pytest.raises(InvalidInput, match="no recipient"):
        service.send(hive.db, HUMAN, Draft((), "hello"), NOW)


@pytest.mark.parametrize(
    ("sender", "group", "members"),
    [
        ("queen", "@all", {"bee", "drone", "merge", "scout"}),
        ("human", "@all", {"bee", "drone", "merge", "scout", "queen"}),
        ("queen", "@builders", {"bee", "drone"}),
        ("bee", "@Builders", {"drone"}),
        ("bee", "@workers", {"drone"}),
        ("bee", "@leads", {"queen"}),
        ("bee", "@scouts", {"scout"}),
        ("bee", "@mergers", {"merge"}),
        ("queen", "@children", {"bee", "drone", "scout"}),
        ("human", "@children", {"queen", "merge"}),
        ("bee", "@siblings", {"drone", "scout"}),
        ("bee", "@lead", {"queen"}),
        ("bee", "parent", {"queen"}),
        ("bee", "@parent", {"queen"}),
        ("queen", "@lead", {"human"}),
        ("human", "@lead of bee", {"queen"}),
        ("human", "@lead:bee", {"queen"}),
        ("human", "@hive", {"bee", "gone"}),
        ("bee", "@hive", {"gone"}),
    ],
)
def test_groups_reach_their_members_and_not_the_sender(
    hive: Hive, bee: Agent, drone: Agent, queen: Agent, sender: str, group: str, members: set[str]
) -> None:
    hive.add("scout", "scout", "queen")
    hive.add("merge", "merger")
    hive.add("gone", "builder", "queen", "ended")
    group_ops.create(hive.ctx(), "hive", ("bee", "gone"))
    sent = hive.send({"bee": bee, "queen": queen, "human": None}[sender], group, "all of you")
    assert set(sent.to) == members
    assert {store.get(hive.db, message.id).thread_id for message in sent.messages} == {sent.thread_id}
    assert {message.audience for message in sent.messages} == {"@lead" if group == "parent" else group}
    assert len(hive.events("mail.sent")) == len(members)


def test_a_member_of_two_groups_gets_it_once_and_by_name_if_named(hive: Hive, bee: Agent, drone: Agent) -> None:
    sent = service.send(hive.db, HUMAN, Draft(("@builders", "@all", "bee"), "hello"), NOW)
    assert sorted((message.to, message.audience) for message in sent.messages if message.to != "queen") == [
        ("bee", None),
        ("drone", "@builders"),
    ]


@pytest.mark.parametrize("group", ["@reviewers", "@children", "@siblings", "@lead of queen"])
def test_an_empty_group_is_refused(hive: Hive, group: str) -> None:
    hive.add("queen", "lead", "human")
    only = hive.add("bee", "builder", "queen")
    hive.end(only)
    lonely = hive.add("wasp", "builder", "bee")
    with pytest.raises(EmptyGroup):
        hive.send(None if "lead" in group else lonely, group)


def test_a_person_has_no_parent(hive: Hive) -> None:
    with pytest.raises(EmptyGroup):
        hive.send(None, "@lead")


def test_a_reply_goes_to_the_sender_in_the_same_thread(hive: Hive, bee: Agent, queen: Agent) -> None:
    asked = hive.send(bee, "queen", "which way?", type="question", priority="high")
    answer = hive.get(ops.reply(hive.ctx(queen), asked.id, body="left"))
    assert (answer.recipient, answer.thread_id, answer.reply_to) == ("bee", asked.id, asked.id)
    assert (answer.subject, answer.priority, answer.type) == ("Re: which way?", "high", "status")
    again = hive.get(ops.reply(hive.ctx(bee), answer.id, body="thanks", type="result", priority="low"))
    assert (again.recipient, again.subject, again.priority) == ("queen", "Re: which way?", "low")
    assert again.thread_id == asked.id


def test_what_a_person_answers_counts_as_read(hive: Hive, bee: Agent) -> None:
    asked = hive.send(bee, "human", "which way?", type="question")
    assert hive.get(asked).read_at is None
    ops.reply(hive.ctx(None), asked.id, body="left")
    assert hive.get(asked).read_at is not None


def test_a_reply_to_ones_own_message_goes_on_to_its_recipient(hive: Hive, bee: Agent, queen: Agent) -> None:
    asked = hive.send(bee, "queen", "which way?")
    more = ops.reply(hive.ctx(bee), asked.id, body="quickly please")
    assert more.to == ("queen",)


def test_a_reply_to_rookery_is_refused(hive: Hive, bee: Agent) -> None:
    sent = service.send_from_system(hive.db, "bee", "hello", now=NOW)
    with pytest.raises(UnknownRecipient):
        ops.reply(hive.ctx(bee), sent.id, body="thanks")


def test_an_empty_reply_is_refused(hive: Hive, bee: Agent) -> None:
    sent = hive.send(None, "bee")
    with pytest.raises(InvalidInput):
        ops.reply(hive.ctx(bee), sent.id, body=" \n")
    with pytest.raises(InvalidInput, match="stands for your answer"):
        ops.reply(hive.ctx(bee), sent.id, body="…")


def test_the_longest_subject_can_be_answered(hive: Hive, bee: Agent) -> None:
    sent = hive.send(None, "bee", "é" * (MAX_SUBJECT // 2))
    answer = hive.get(ops.reply(hive.ctx(bee), sent.id, body="yes"))
    assert answer.subject.startswith("Re: é")
    assert len(answer.subject.encode()) <= MAX_SUBJECT


def test_a_thread_goes_on_by_any_of_its_messages(hive: Hive, bee: Agent, queen: Agent) -> None:
    first = hive.send(bee, "queen")
    second = ops.reply(hive.ctx(queen), first.id, body="yes")
    third = hive.send(bee, "queen", thread=second.id)
    assert third.thread_id == first.id


def test_a_thread_whose_first_message_is_purged_goes_on(hive: Hive, bee: Agent, queen: Agent) -> None:
    first = hive.send(bee, "queen")
    second = ops.reply(hive.ctx(queen), first.id, body="yes")
    with hive.db.write():
        hive.db.execute("DELETE FROM messages WHERE id = ?", (first.id,))
    assert hive.send(bee, "queen", thread=first.id).thread_id == second.thread_id


def test_ids_are_accepted_by_their_beginnings(hive: Hive, bee: Agent) -> None:
    sent = hive.send(None, "bee")
    assert hive.get(ops.reply(hive.ctx(bee), sent.id[:-3].lower(), body="yes")).reply_to == sent.id
    with pytest.raises(AmbiguousId):
        ops.reply(hive.ctx(bee), sent.id[:9], body="yes")
    with pytest.raises(NotFound) as caught:
        ops.reply(hive.ctx(bee), "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV", body="yes")
    assert "rook mail list" in caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        {"subject": ""},
        {"subject": " \n"},
        {"subject": "é" * (MAX_SUBJECT // 2 + 1)},
        {"subject": "a\0b"},
        {"subject": "\ud800"},
        {"body": "a\0b"},
        {"body": "\ud800"},
        {"body": "x" * (MAX_BODY + 1)},
        {"body": "é" * (MAX_BODY // 2 + 1)},
        {"body": "x" * 1_000_000},
        {"type": "gossip"},
        {"type": ""},
        {"priority": "asap"},
        {"thread": "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
        {"thread": "nonsense!"},
    ],
)
def test_a_wrong_message_is_refused_and_nothing_changes(hive: Hive, bee: Agent, change: dict[str, Any]) -> None:
    before = hive.everything()
    with pytest.raises(RookError) as caught:
        service.send(hive.db, HUMAN, Draft(("bee",), "hello").replace(**change), NOW)
    assert caught.value.exit_status == 1
    assert caught.value.hint
    assert hive.everything() == before


def test_a_body_that_is_too_long_belongs_in_a_file(hive: Hive, bee: Agent) -> None:
    with pytest.raises(InvalidInput) as caught:
        hive.send(None, "bee", body="x" * 1_000_000)
    assert "file" in caught.value.hint
    assert hive.get(hive.send(None, "bee", body="x" * MAX_BODY)).body == "x" * MAX_BODY


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("status", {"task_id": "task_1"}),
        ("assign", None),
        ("assign", {}),
        ("assign", {"task_id": ""}),
        ("assign", {"task_id": 7}),
        ("assign", {"task_id": None}),
        ("assign", {"task_id": "task_1", "extra": 1}),
        ("assign", {"task_id": "a\0b"}),
        ("assign", {"task_id": "\ud800"}),
        ("worker_done", {"exit_status": "0"}),
        ("worker_done", {"exit_status": True}),
        ("worker_done", {"exit_status": 0.5}),
        ("worker_done", {"files": "a.py"}),
        ("worker_done", {"files": [1]}),
        ("worker_done", {"files": ["x" * MAX_BODY]}),
        ("merge_ready", {"branch": "b"}),
        ("merge_ready", {"task_id": "t"}),
        ("merge_failed", {"branch": "b"}),
        ("decision_gate", {"options": []}),
        ("decision_gate", {"options": {"a": 1}}),
        ("rebase_request", {"branch": "b"}),
        ("review_request", {"branch": ["b"], "task_id": "t"}),
    ],
)
def test_a_wrong_payload_is_refused(hive: Hive, bee: Agent, kind: str, payload: dict[str, Any] | None) -> None:
    before = hive.everything()
    with pytest.raises(InvalidPayload) as caught:
        hive.send(bee, "human", type=kind, payload=payload)
    assert caught.value.hint
    assert hive.everything() == before


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", '"text"', "[" * 100_000, '{"a": ' + "9" * 5_000 + "}"])
def test_what_is_no_json_object_is_no_payload(text: str) -> None:
    with pytest.raises(InvalidPayload):
        read_payload(text)


@pytest.mark.parametrize(
    "kind", [type_ for type_ in TYPES.values() if not type_.is_system], ids=lambda type_: type_.name
)
def test_every_type_goes_with_all_of_its_fields(hive: Hive, bee: Agent, kind: Any) -> None:
    values: dict[str, object] = {"text": "t", "integer": 1, "list": ["a"]}
    payload = {field.name: values[field.kind] for field in kind.fields if not field.is_ours} or None
    for priority in PRIORITIES:
        hive.send(bee, "human", type=kind.name, priority=priority, payload=payload)
    assert [message.payload for message in hive.inbox("human")] == [payload] * len(PRIORITIES)


@pytest.mark.parametrize(
    ("role", "kind", "payload", "ends"),
    [
        ("builder", "worker_done", None, True),
        ("builder", "status", None, False),
        ("builder", "merged", {"branch": "b"}, False),
        ("merger", "merged", {"branch": "b"}, True),
        ("merger", "merge_failed", {"branch": "b", "reason": "r"}, True),
        ("merger", "worker_done", None, True),
    ],
)
def test_a_terminal_message_ends_the_senders_work(
    hive: Hive, role: str, kind: str, payload: dict[str, Any] | None, ends: bool
) -> None:
    agent = hive.add("bee", role)
    other = hive.add("drone", role)
    sent = hive.send(agent, "human", type=kind, payload=payload)
    message = store.terminal_message(hive.db, session(hive.db, agent.session_id))
    assert (message.id if message else None) == (sent.id if ends else None)
    assert store.terminal_message(hive.db, session(hive.db, other.session_id)) is None


def test_a_terminal_message_of_an_earlier_session_does_not_count(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", type="worker_done")
    hive.end(bee)
    assert store.terminal_message(hive.db, session(hive.db, hive.add("bee").session_id)) is None


def test_rookerys_own_message_joins_the_callers_transaction(hive: Hive, bee: Agent) -> None:
    with hive.db.write():
        assert service.send_from_system(hive.db, "bee", "hello", now=NOW).to == ("bee",)
        hive.db.connection.execute("ROLLBACK; BEGIN IMMEDIATE")
    assert hive.everything()[0] == []
