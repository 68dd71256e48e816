"""Nobody speaks as somebody else."""

from __future__ import annotations

import hashlib

import pytest

from rookery.base.errors import InvalidInput
from rookery.base.token import hash_token
from rookery.config.environ import read_environ
from rookery.mail import identity, inbox, service
from rookery.mail.model import Draft, ForgedSender, NotYourMail, TurnOver

from .hive import HUMAN, NOW, Agent, Hive


def test_a_person_needs_no_proof(hive: Hive) -> None:
    assert identity.prove(hive.db, HUMAN) == identity.Caller("human", None)


def test_an_agent_proves_itself_with_its_token(hive: Hive, bee: Agent) -> None:
    assert identity.prove(hive.db, bee.environ()) == identity.Caller("bee", bee.session_id)


def test_tokens_are_kept_as_their_sha256() -> None:
    assert hash_token("secret") == hashlib.sha256(b"secret").hexdigest()


@pytest.mark.parametrize(
    "variables",
    [
        {"ROOKERY_AGENT": "bee"},
        {"ROOKERY_AGENT": "bee", "ROOKERY_TOKEN": ""},
        {"ROOKERY_AGENT": "bee", "ROOKERY_TOKEN": "wrong"},
        {"ROOKERY_AGENT": "bee", "ROOKERY_TOKEN": "\udcff"},
        {"ROOKERY_AGENT": "nobody", "ROOKERY_TOKEN": "wrong"},
        {"ROOKERY_AGENT": "rook", "ROOKERY_TOKEN": "wrong"},
        {"ROOKERY_AGENT": "human", "ROOKERY_TOKEN": "anything"},
        {"ROOKERY_TOKEN": "anything"},
        {"ROOKERY_TURN": "trn_1"},
    ],
)
def test_a_forged_sender_is_refused_and_nothing_changes(hive: Hive, bee: Agent, variables: dict[str, str]) -> None:
    environ = read_environ({"HOME": "/nowhere", **variables})
    before = hive.everything()
    with pytest.raises(ForgedSender):
        service.send(hive.db, environ, Draft(("human",), "hello"), NOW)
    assert hive.everything() == before


def test_another_agents_token_is_refused(hive: Hive, bee: Agent, queen: Agent) -> None:
    with pytest.raises(ForgedSender):
        identity.prove(hive.db, bee._replace(token=queen.token).environ())


def test_the_token_of_an_ended_session_is_refused(hive: Hive, bee: Agent) -> None:
    hive.end(bee)
    with pytest.raises(ForgedSender):
        identity.prove(hive.db, bee.environ())


def test_the_token_of_an_earlier_life_is_refused(hive: Hive, bee: Agent) -> None:
    hive.end(bee)
    again = hive.add("bee")
    with pytest.raises(ForgedSender):
        identity.prove(hive.db, bee.environ())
    assert identity.prove(hive.db, again.environ()).session_id == again.session_id


def test_every_operation_of_an_agent_asks_for_proof(hive: Hive, bee: Agent) -> None:
    message = hive.send(None, "bee").id
    forged = bee._replace(token="wrong").environ()
    for act in (
        lambda: service.reply(hive.db, forged, message, "hello", NOW),
        lambda: inbox.check(hive.db, forged, NOW),
        lambda: inbox.read(hive.db, forged, (message,), NOW),
        lambda: inbox.list_mail(hive.db, forged, inbox.Filter()),
        lambda: inbox.wait(hive.db, forged, inbox.Filter(), 0.01, lambda: NOW),
        lambda: inbox.purge(hive.db, forged, 0, older_than=None, agent=None, unread_too=True),
    ):
        with pytest.raises(ForgedSender):
            act()
    assert hive.inbox("bee")[0].read_at is None


def test_only_rookery_speaks_as_rookery(hive: Hive, bee: Agent) -> None:
    sent = service.send_from_system(
        hive.db, "bee", "gone", type="worker_died", payload={"agent": "drone", "reason": "killed"}, now=NOW
    )
    assert sent.messages[0].sender == "rook"
    with pytest.raises(InvalidInput, match="only Rookery"):
        hive.send(None, "bee", type="worker_died", payload={"agent": "drone", "reason": "killed"})


def test_an_agent_looks_only_into_its_own_inbox(hive: Hive, bee: Agent, queen: Agent) -> None:
    message = hive.send(None, "queen", "secret").id
    for act in (
        lambda: inbox.check(hive.db, bee.environ(), NOW, agent="queen"),
        lambda: inbox.list_mail(hive.db, bee.environ(), inbox.Filter(), "queen"),
        lambda: inbox.read(hive.db, bee.environ(), (message,), NOW),
        lambda: service.reply(hive.db, bee.environ(), message, "hello", NOW),
        lambda: hive.send(bee, "queen", thread=message),
    ):
        with pytest.raises(NotYourMail):
            act()
    assert inbox.list_mail(hive.db, bee.environ(), inbox.Filter(recipient="queen")) == []
    assert inbox.list_mail(hive.db, bee.environ(), inbox.Filter(sender="human")) == []


def test_the_turn_is_the_sessions_own(hive: Hive, bee: Agent, queen: Agent) -> None:
    caller = identity.prove(hive.db, bee.environ())
    assert identity.current_turn(hive.db, caller, bee.environ()) is None
    turn, foreign = hive.begin_turn(bee), hive.begin_turn(queen)
    assert identity.current_turn(hive.db, caller, bee.environ(turn)) == turn
    assert identity.current_turn(hive.db, caller, bee.environ()) == turn
    with pytest.raises(TurnOver):
        identity.current_turn(hive.db, caller, bee.environ(foreign))
    hive.end_turn(turn)
    with pytest.raises(TurnOver):
        identity.current_turn(hive.db, caller, bee.environ(turn))


def test_what_a_turn_left_running_takes_no_mail_away(hive: Hive, bee: Agent) -> None:
    turn = hive.begin_turn(bee)
    hive.end_turn(turn, "lost")
    hive.send(None, "bee")
    with pytest.raises(TurnOver):
        inbox.check(hive.db, bee.environ(turn), NOW)
    assert service.waiting(hive.db, "bee") == 1
