"""The commands as people and agents call them."""

from __future__ import annotations

import json

import pytest

from rookery.base.ids import handle
from rookery.config.environ import read_environ

from .hive import Agent, Hive


def test_a_question_and_its_answer(hive: Hive, bee: Agent, queen: Agent) -> None:
    asked = hive.rook(
        "mail", "send", "--to", "queen", "--subject", "Which way?", "--body", "-", "--type", "question", "--json",
        as_=bee, stdin=b"left\nor right",
    ).data  # fmt: skip
    assert asked == {
        "id": asked["id"],
        "thread_id": asked["id"],
        "to": ["queen"],
        "not_alive": [],
        "held": [],
        "done": [],
        "messages": [{"id": asked["id"], "to": "queen", "audience": None}],
    }
    checked = hive.rook("mail", "check", "--json", as_=queen).data
    assert [message["body"] for message in checked["messages"]] == ["left\nor right"]
    assert (checked["agent"], checked["waiting"]) == ("queen", 0)
    hive.rook("mail", "reply", asked["id"], "--body", "left", "--type", "result", as_=queen)
    answer = hive.rook("mail", "wait", "--from", "queen", "--thread", asked["id"], "--json", as_=bee).data
    assert (answer["subject"], answer["reply_to"], answer["type"]) == ("Re: Which way?", asked["id"], "result")


def test_mail_of_an_unknown_sender_is_not_waited_for(hive: Hive, bee: Agent, queen: Agent) -> None:
    refused = hive.rook("mail", "wait", "--from", "quen", "--timeout", "0.1s", "--json", as_=bee)
    assert refused.code == "unknown_recipient"
    assert json.loads(refused.out)["error"]["hint"] == "did you mean `queen`?"
    for known in ("human", "rook"):
        waited = hive.rook("mail", "wait", "--from", known, "--timeout", "0.1s", "--json", as_=bee)
        assert json.loads(waited.out)["data"] is None


def test_an_inbox_for_people(hive: Hive, bee: Agent) -> None:
    assert hive.rook("mail", "check").out == "No mail.\n"
    assert hive.rook("mail", "list").out == "No mail.\n"
    sent = hive.send(bee, "human", "look \x1b[31mhere", "one\n\x1b[2Jtwo", priority="urgent")
    table = hive.rook("mail", "list").out
    assert table.split("\n")[0].split() == ["id", "from", "to", "type", "age", "subject"]
    assert table.startswith(" ")
    assert "status urgent" in table
    assert "●" in table
    assert "look \\x1b[31mhere" in table
    shown = hive.rook("mail", "check").out
    assert "  one\n  \\x1b[2Jtwo\n" in shown
    assert "●" not in hive.rook("mail", "list").out
    assert handle(sent.id) in hive.rook("mail", "read", sent.id).out


def test_a_message_is_shown_with_its_thread(hive: Hive, bee: Agent) -> None:
    sent = hive.send(bee, "human", "hello")
    hive.rook("mail", "reply", sent.id, "--body", "well?")
    lines = hive.rook("mail", "read", sent.id).out.splitlines()
    at = lines.index("thread")
    assert lines[at + 1].startswith(f"  ▸ {handle(sent.id)}  bee → human")
    assert "human → bee" in lines[at + 2]


def test_recipients_by_place_and_by_option_add_up(hive: Hive, bee: Agent, drone: Agent) -> None:
    hive.end(drone)
    ran = hive.rook("mail", "send", "bee", "--to", "drone", "--to", "human", "--subject", "hello")
    assert [line.split()[-1] for line in ran.out.splitlines()[:3]] == ["bee", "drone", "human"]
    assert "drone has ended" in ran.out
    assert len(hive.rook("mail", "send", "--to", "bee", "human", "--subject", "hello", "-q").out.split()) == 2


def test_refusals_have_a_code_and_a_hint(hive: Hive, bee: Agent) -> None:
    assert hive.rook("mail", "send", "beee", "--subject", "s", "--json").code == "unknown_recipient"
    assert hive.rook("mail", "send", "@scouts", "--subject", "s", "--json").code == "empty_group"
    assert hive.rook("mail", "send", "bee", "--subject", "s", "--payload", "{}x", "--json").code == "invalid_payload"
    assert hive.rook("mail", "check", "--json", as_=bee._replace(token="no")).code == "forged_sender"
    assert hive.rook("mail", "check", "--agent", "queen", "--json", as_=bee).code == "not_your_mail"
    hive.send(None, "bee")
    turn = hive.begin_turn(bee)
    hive.end_turn(turn)
    assert hive.rook("mail", "check", "--json", as_=bee, turn=turn).code == "turn_over"
    big = hive.rook("mail", "send", "bee", "--subject", "s", "--body", "-", "--json", stdin=b"x" * 1_000_000)
    assert big.code == "invalid_input"
    assert hive.rook("mail", "send", "bee", "--subject", "s", "--type", "worker_died").status == 2
    assert "did you mean `bee`?" in hive.rook("mail", "send", "beee", "--subject", "s").err


def test_groups_by_command(hive: Hive, bee: Agent, drone: Agent) -> None:
    assert hive.rook("group", "create", "hive", "bee", "drone", "--json").data == {
        "name": "hive",
        "members": ["bee", "drone"],
    }
    assert hive.rook("group", "remove", "hive", "drone").out == "@hive  bee\n"
    assert hive.rook("group", "add", "@hive", "human").status == 0
    assert hive.rook("group", "list").out.splitlines()[1].split() == ["@hive", "bee,", "human"]
    assert hive.rook("mail", "send", "@hive", "--subject", "s", "--json").data["to"] == ["bee"]
    assert hive.rook("group", "delete", "hive").out == "deleted @hive: bee, human\n"
    assert hive.rook("group", "list").out.startswith("No groups")


def test_purging_tells_how_many(hive: Hive, bee: Agent) -> None:
    hive.send(bee, "human")
    assert hive.rook("mail", "purge", "--older-than", "30d").out == "deleted 0 messages\n"
    assert hive.rook("mail", "purge", "--all", "--json").data == {"deleted": 1}
    assert hive.rook("mail", "purge", "--json").code == "invalid_input"


def test_tokens_and_turns_are_no_settings() -> None:
    environ = read_environ({"HOME": "/", "ROOKERY_TOKEN": "t", "ROOKERY_TURN": "u", "ROOKERY_TASKS_LEASE": "1h"})
    assert (environ.token, environ.turn) == ("t", "u")
    assert environ.settings == {"ROOKERY_TASKS_LEASE": "1h"}


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_check_of_nothing_is_refused(hive: Hive, limit: str) -> None:
    assert hive.rook("mail", "check", f"--limit={limit}", "--json").code == "invalid_input"
