"""No agent can send or read mail as another."""

from __future__ import annotations

import hashlib

import pytest

from rookery.base.errors import InvalidInput
from rookery.base.token import hash_token
from rookery.config.environ import read_environ
from rookery.mail import group_ops, ops, service, store
from rookery.mail.model import Draft, NotYourMail, TurnOver
from rookery.ops.caller import ForgedSender, prove
from rookery.ops.model import Caller

from .hive import NOBODYS, NOW, Agent, Hive


def test_a_person_needs_no_proof(hive: Hive) -> None:
    assert prove(NOBODYS, lambda: hive.db) == Caller("human", None)


def test_an_agent_proves_itself_with_its_token(hive: Hive, bee: Agent) -> None:
    assert hive.as_(bee) == Caller("bee", bee.session_id, "builder", None, "queen")


def test_tokens_are_kept_as_their_sha256() -> None:
    assert hash_token("secret") == hashlib.sha256(b"secret").hexdigest()


@pytest.mark.parametrize(
    "variables",
    [
        {"ROOKERY_AGENT": "bee"},
        {"ROOKERY_AGENT": "bee", "ROOKERY_TOKEN": ""},
        {"ROOKERY_AGENT": "bee", "ROOKERY_TOKEN": "wrong"},
        {"ROOKERY_AGENT": "bee", "ROOKERY_TOKEN": "\udcff"},
        {"ROOKERY_AGENT": "stranger", "ROOKERY_TOKEN": "wrong"},
        {"ROOKERY_AGENT": "rook", "ROOKERY_TOKEN": "wrong"},
        {"ROOKERY_AGENT": "human", "ROOKERY_TOKEN": "anything"},
        {"ROOKERY_TOKEN": "anything"},
        {"ROOKERY_TURN": "trn_1"},
        {"ROOKERY_SESSION": "ses_1"},
        {"ROOKERY_CONFINED": "1"},
    ],
)
def test_a_forged_sender_is_refused_and_nothing_changes(hive: Hive, bee: Agent, variables: dict[str, str]) -> None:
    environ = read_environ({"HOME": "/nowhere", **variables})
    before = hive.everything()
    with pytest.raises(ForgedSender):
        service.send(hive.db, prove(environ, lambda: hive.db), Draft(("human",), "hello"), NOW)
    assert hive.everything() == before


def test_another_agents_token_is_refused(hive: Hive, bee: Agent, queen: Agent) -> None:
    with pytest.raises(ForgedSender):
        hive.as_(bee._replace(token=queen.token))


def test_the_token_of_an_ended_session_is_refused(hive: Hive, bee: Agent) -> None:
    hive.end(bee)
    with pytest.raises(ForgedSender):
        hive.as_(bee)


def test_the_token_of_an_earlier_session_is_refused(hive: Hive, bee: Agent) -> None:
    hive.end(bee)
    again = hive.add("bee")
    with pytest.raises(ForgedSender):
        hive.as_(bee)
    assert hive.as_(again).session_id == again.session_id


def test_the_other_variables_must_fit_the_token(hive: Hive, bee: Agent, queen: Agent) -> None:
    turn, foreign = hive.begin_turn(bee), hive.begin_turn(queen)
    own = bee.environ()
    for environ in (
        own.replace(agent="queen"),
        own.replace(agent="human"),
        own.replace(session=queen.session_id),
        own.replace(turn=foreign),
        own.replace(turn="trn_1"),
    ):
        with pytest.raises(ForgedSender):
            prove(environ, lambda: hive.db)
    fitting = prove(own.replace(session=bee.session_id, turn=turn), lambda: hive.db)
    assert (fitting.name, fitting.turn) == ("bee", turn)


def test_nothing_changes_for_an_agent_that_has_ended_since_it_called(hive: Hive, bee: Agent) -> None:
    message = hive.send(None, "bee").id
    ctx = hive.ctx(bee)
    assert ctx.caller == hive.as_(bee)
    hive.end(bee)
    for act in (
        lambda: ops.send(ctx, "human", subject="hello"),
        lambda: ops.reply(ctx, message, body="hello"),
        lambda: ops.check(ctx),
        lambda: ops.read(ctx, (message,)),
        lambda: ops.wait(ctx, timeout="0.01s"),
        lambda: group_ops.create(ctx, "hive", ("human",)),
    ):
        with pytest.raises(ForgedSender):
            act()
    assert hive.inbox("bee")[0].read_at is None


def test_only_rookery_speaks_as_rookery(hive: Hive, bee: Agent) -> None:
    sent = service.send_from_system(
        hive.db, "bee", "gone", type="worker_died", payload={"agent": "drone", "reason": "killed"}, now=NOW
    )
    assert hive.get(sent).sender == "rook"
    with pytest.raises(InvalidInput, match="only Rookery"):
        hive.send(None, "bee", type="worker_died", payload={"agent": "drone", "reason": "killed"})


def test_an_agent_looks_only_into_its_own_inbox(hive: Hive, bee: Agent, queen: Agent) -> None:
    message = hive.send(None, "queen", "secret").id
    for act in (
        lambda: ops.check(hive.ctx(bee), agent="queen"),
        lambda: ops.list_mail(hive.ctx(bee), agent="queen"),
        lambda: ops.read(hive.ctx(bee), (message,)),
        lambda: ops.reply(hive.ctx(bee), message, body="hello"),
        lambda: hive.send(bee, "queen", thread=message),
    ):
        with pytest.raises(NotYourMail):
            act()
    assert ops.list_mail(hive.ctx(bee), to="queen") == []
    assert ops.list_mail(hive.ctx(bee), from_="human") == []


def test_the_turn_is_the_sessions_own(hive: Hive, bee: Agent) -> None:
    assert service.current_turn(hive.db, hive.as_(bee)) is None
    turn = hive.begin_turn(bee)
    assert service.current_turn(hive.db, hive.as_(bee, turn)) == turn
    assert service.current_turn(hive.db, hive.as_(bee)) == turn
    hive.end_turn(turn)
    with pytest.raises(TurnOver):
        service.current_turn(hive.db, hive.as_(bee, turn))


def test_what_a_turn_left_running_takes_no_mail_away(hive: Hive, bee: Agent) -> None:
    turn = hive.begin_turn(bee)
    hive.end_turn(turn, "lost")
    hive.send(None, "bee")
    with pytest.raises(TurnOver):
        ops.check(hive.ctx(bee, turn))
    assert store.count_new(hive.db, "bee") == 1
