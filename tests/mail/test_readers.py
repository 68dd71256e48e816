"""A person and the person's own agent sessions share one inbox, and each has a mark of its own."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from rookery.base.clock import seconds_of
from rookery.config.environ import Environ, read_environ
from rookery.hooks.service import inform_person
from rookery.mail import ops, readers, store
from rookery.mail.model import Message
from rookery.ops.context import Context
from rookery.runtimes.hooks import PROMPT, SESSION_START, hook_command

from .hive import LATER, NOW, Agent, Hive


def own(hive: Hive, session: str, now: str = NOW) -> Context:
    """What an operation runs in that a person's own agent session calls."""
    ctx = hive.ctx(now=now)
    ctx.environ = read_environ({"HOME": "/nowhere", "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session})
    return ctx


def shown(hive: Hive, session: str, **wanted: Any) -> list[str]:
    """The subjects of what `rook mail check` shows to a session."""
    return [message.subject for message in ops.check(own(hive, session), **wanted).messages]


def prompt(hive: Hive, session: str, event: str = PROMPT) -> str:
    """What the hook adds to a session."""
    payload = json.dumps({"cwd": str(hive.folder), "session_id": session}).encode()
    return inform_person(nobodys(), event, payload)


def nobodys() -> Environ:
    return read_environ({"HOME": "/nowhere"})


def test_the_hook_shows_each_session_each_message_once_and_leaves_it_unread(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "Which port?", type="question")
    assert "Which port?" in prompt(hive, "one")
    assert prompt(hive, "one") == ""
    assert "Which port?" in prompt(hive, "two")
    assert hive.inbox("human")[0].read_at is None
    assert [message.subject for message in ops.check(hive.ctx()).messages] == ["Which port?"]
    assert (prompt(hive, "one"), prompt(hive, "two"), prompt(hive, "three")) == ("", "", "")


def test_what_a_person_reads_is_still_new_for_a_session_that_was_there(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "old")
    ops.check(hive.ctx())
    prompt(hive, "one", SESSION_START)
    hive.send(bee, "human", "new")
    ops.check(hive.ctx())
    text = prompt(hive, "one")
    assert "new" in text
    assert "old" not in text
    assert prompt(hive, "one") == ""


def test_an_own_session_that_calls_check_reads_for_itself(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "one")
    assert shown(hive, "s1") == ["one"]
    assert (shown(hive, "s1"), prompt(hive, "s1")) == ([], "")
    assert store.count_unread(hive.db, "human") == 1
    assert ops.check(own(hive, "s1"), inject=True).text == ""


def test_reading_and_waiting_in_an_own_session_leave_it_unread_too(hive: Hive, bee: Agent) -> None:
    first, second = hive.send(bee, "human", "one").id, hive.send(bee, "human", "two").id
    [opened] = ops.read(own(hive, "s1"), (first,))
    assert opened.read_at is None
    waited = ops.wait(own(hive, "s1"), timeout="1s")
    assert isinstance(waited, Message)
    assert waited.id == second
    assert shown(hive, "s1") == []
    assert store.count_unread(hive.db, "human") == 2


def test_a_long_backlog_comes_in_parts_without_repetition(hive: Hive, bee: Agent) -> None:
    for number in range(45):
        hive.send(bee, "human", f"number {number}")
    parts = []
    while part := ops.check(own(hive, "s1"), limit=20).messages:
        parts.append([message.id for message in part])
    assert [len(part) for part in parts] == [20, 20, 5]
    assert len({message_id for part in parts for message_id in part}) == 45
    assert hive.db.value("SELECT count(*) FROM mail_readings") == 0
    hive.send(bee, "human", "46")
    assert shown(hive, "s1") == ["46"]


def test_a_session_without_a_known_id_never_reads_for_the_person(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "one")
    ctx = hive.ctx()
    ctx.environ = read_environ({"HOME": "/nowhere", "CLAUDECODE": "1"})
    assert len(ops.check(ctx).messages) == 1
    assert store.count_unread(hive.db, "human") == 1


def test_an_agent_in_a_claude_session_still_reads_its_own_mail(hive: Hive, bee: Agent) -> None:
    hive.send(None, "bee", "do this")
    ctx = hive.ctx(bee)
    ctx.environ = ctx.environ.replace(own_session="s1")
    ops.check(ctx)
    assert hive.inbox("bee")[0].read_at == NOW


def test_sessions_that_are_long_gone_are_forgotten(hive: Hive, bee: Agent) -> None:
    for number in range(readers._MOST + 20):
        prompt_at(hive, f"s{number}", NOW)
    assert hive.db.value("SELECT count(*) FROM mail_readers") == readers._MOST
    prompt_at(hive, "later", "2026-03-31T12:00:00.000Z")
    assert hive.db.all("SELECT reader FROM mail_readers") == [("later",)]
    assert hive.db.value("SELECT count(*) FROM mail_readings") == 0


def prompt_at(hive: Hive, session: str, now: str) -> None:
    readers.register(own(hive, session, now), session)


def test_a_session_that_stays_is_not_forgotten(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "one")
    assert shown(hive, "s1") == ["one"]
    for day in range(1, 60, 2):
        now = Context.at(str(hive.folder), hive.db, clock=lambda: seconds_of(NOW) + day * 86400)  # noqa: B023
        now.environ = own(hive, "s1").environ
        assert ops.check(now).messages == ()


def test_a_question_is_open_until_it_is_answered(hive: Hive, bee: Agent) -> None:
    asked = hive.send(bee, "human", "Which port?", type="question")
    hive.send(bee, "human", "It goes well")
    ops.check(hive.ctx())
    assert store.count_unread(hive.db, "human") == 0
    assert store.count_unanswered(hive.db, "human") == 1
    assert [message.id for message in ops.list_mail(hive.ctx(), unanswered=True)] == [asked.id]
    ops.reply(hive.ctx(now=LATER), asked.id, body="8080")
    assert store.count_unanswered(hive.db, "human") == 0
    assert ops.list_mail(hive.ctx(), unanswered=True) == []


def test_purging_keeps_a_question_that_was_read_and_not_answered(hive: Hive, bee: Agent) -> None:
    asked = hive.send(bee, "human", "Which port?", type="question")
    hive.send(bee, "human", "It goes well")
    ops.check(hive.ctx())
    assert ops.purge(hive.ctx(now=LATER), older_than="1s").deleted == 1
    assert [message.id for message in hive.inbox("human")] == [asked.id]
    ops.reply(hive.ctx(now=LATER), asked.id, body="8080")
    assert ops.purge(hive.ctx(now=LATER), older_than="1s").deleted == 1


def test_an_answer_before_a_question_in_the_same_thread_answers_nothing(hive: Hive, bee: Agent) -> None:
    asked = hive.send(bee, "human", "one", type="question")
    ops.reply(hive.ctx(), asked.id, body="yes")
    again = ops.reply(hive.ctx(bee), asked.id, body="and two?", type="question")
    assert [message.id for message in ops.list_mail(hive.ctx(), unanswered=True)] == [again.id]


def test_an_agent_lists_what_it_has_not_answered_itself(hive: Hive, bee: Agent, queen: Agent) -> None:
    asked = hive.send(bee, "queen", "one", type="question")
    hive.send(queen, "bee", "other", type="question")
    assert [message.id for message in ops.list_mail(hive.ctx(queen), unanswered=True)] == [asked.id]


def test_prime_tells_what_is_unanswered_apart_from_what_is_unread(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "Which port?", type="question")
    ops.check(hive.ctx())
    hive.send(bee, "human", "It goes well")
    text = prompt(hive, "s1", SESSION_START)
    assert "1 question waits for an answer: `rook inbox`" in text
    assert "1 message is unread for the person" in text
    assert hive.inbox("human")[1].read_at is None


@pytest.mark.slow
def test_the_hook_of_a_real_process_marks_nothing_read(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human", "Which port?", type="question")
    data = json.dumps({"cwd": str(hive.folder), "session_id": "one"})
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "ROOKERY_DAEMON": "off"}
    outputs = [
        subprocess.run(hook_command(PROMPT), input=data, capture_output=True, text=True, env=env, check=True).stdout
        for _ in range(2)
    ]
    assert "Which port?" in outputs[0]
    assert outputs[1] == ""
    checked = hive.rook("mail", "check", "--json")
    assert [message["subject"] for message in checked.data["messages"]] == ["Which port?"]
