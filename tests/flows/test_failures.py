"""The loop: what fails is tried again ever more slowly, and nothing is done for ever without an effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.flows import loop, store
from rookery.flows.model import Action, NeedsPerson, Plan
from rookery.inbox.model import MOST_FAILURES
from rookery.ops.context import Context


class Broken:
    """A flow whose action fails, or has no effect."""

    NAME = "broken"

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.tries = 0
        self.ACTIONS = {"repair": self._mend}

    def _mend(self, _home: Context, _subject: str) -> None:
        self.tries += 1
        if self._error is not None:
            raise self._error

    def read(self, _home: Context) -> str:
        return "broken"

    def decide(self, facts: str, now: float) -> Plan:
        del now
        return Plan((Action("broken", "repair", "it", "it is broken", seen=facts),))


@pytest.fixture
def ctx(project: Path) -> Context:
    db = Database.open(database_path(str(project)))
    return Context.at(str(project), db, load_config(str(project), read_environ({}), {}).config)


@pytest.mark.parametrize("error", [ValueError("no"), None])
def test_what_fails_or_changes_nothing_waits_longer_each_time_and_is_left_to_a_person(
    ctx: Context, error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow: Any = Broken(error)
    monkeypatch.setattr(loop, "FLOWS", {"broken": flow})
    clock = [1_800_000_000.0]
    ctx.clock = lambda: clock[0]
    waits = []
    for number in range(1, MOST_FAILURES + 1):
        loop.run_once(ctx, lambda _text: None)
        loop.run_once(ctx, lambda _text: None)
        assert flow.tries == number
        failure = store.failures(ctx.db)["repair it"]
        assert failure.count == number
        waits.append(failure.next_at - clock[0])
        clock[0] = failure.next_at
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]
    assessment = loop.run_once(ctx, lambda _text: None)
    assert (flow.tries, assessment.plan) == (MOST_FAILURES, Plan())
    messages = ctx.db.all("SELECT recipient, type FROM messages")
    assert messages == [("human", "escalation")]
    ctx.db.close()


def test_what_only_a_person_can_repair_is_reported_at_once(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    flow: Any = Broken(NeedsPerson("it is broken"))
    monkeypatch.setattr(loop, "FLOWS", {"broken": flow})
    for _ in range(3):
        assert loop.run_once(ctx, lambda _text: None).plan == Plan()
    assert flow.tries == 1
    (body,) = (row[0] for row in ctx.db.all("SELECT body FROM messages WHERE recipient = 'human'"))
    assert "Only you can repair it:\nit is broken" in body
    ctx.db.close()


def test_what_succeeds_is_forgotten_and_a_clock_that_is_set_back_does_not_make_it_wait(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow: Any = Broken(ValueError("no"))
    monkeypatch.setattr(loop, "FLOWS", {"broken": flow})
    clock = [1_800_000_000.0]
    ctx.clock = lambda: clock[0]
    loop.run_once(ctx, lambda _text: None)
    clock[0] -= 86_400
    flow._error, flow.decide = (
        None,
        lambda _facts, _now: Plan((Action("broken", "repair", "it", "", seen=str(flow.tries)),)),
    )
    loop.run_once(ctx, lambda _text: None)
    assert flow.tries >= 2
    assert store.failures(ctx.db) == {}
    ctx.db.close()


def test_what_was_given_up_is_tried_again_once_something_new_has_happened(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow: Any = Broken(ValueError("no"))
    monkeypatch.setattr(loop, "FLOWS", {"broken": flow})
    clock = [1_800_000_000.0]
    ctx.clock = lambda: clock[0]
    for _ in range(MOST_FAILURES + 3):
        loop.run_once(ctx, lambda _text: None)
        clock[0] += 300
    assert flow.tries == MOST_FAILURES
    flow.read = lambda _home: "broken, and there is mail"
    assessment = loop.assess(ctx)
    assert [action.name for action in assessment.plan.actions] == ["repair"]
    for _ in range(3):  # without anything new it is tried once
        loop.run_once(ctx, lambda _text: None)
        clock[0] += 300
    assert flow.tries == MOST_FAILURES + 1
    assert loop.assess(ctx).plan == Plan()
    ctx.db.close()


def test_what_a_failing_action_changes_itself_is_nothing_new(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    flow: Any = Broken(ValueError("no"))
    flow.read = lambda _home: f"tried {flow.tries} times"
    monkeypatch.setattr(loop, "FLOWS", {"broken": flow})
    clock = [1_800_000_000.0]
    ctx.clock = lambda: clock[0]
    for _ in range(MOST_FAILURES + 5):
        loop.run_once(ctx, lambda _text: None)
        clock[0] += 300
    assert flow.tries == MOST_FAILURES
    ctx.db.close()


def test_what_was_given_up_leaves_the_inbox_once_it_is_not_wanted_any_more(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow: Any = Broken(NeedsPerson("no"))
    monkeypatch.setattr(loop, "FLOWS", {"broken": flow})
    loop.run_once(ctx, lambda _text: None)
    loop.run_once(ctx, lambda _text: None)
    assert store.failures(ctx.db).keys() == {"repair it"}
    flow.decide = lambda _facts, _now: Plan()  # a person has repaired it
    loop.run_once(ctx, lambda _text: None)
    assert store.failures(ctx.db) == {}
    ctx.db.close()


def test_a_failure_that_is_still_tried_keeps_its_count_while_it_is_not_wanted(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow: Any = Broken(ValueError("no"))
    monkeypatch.setattr(loop, "FLOWS", {"broken": flow})
    loop.run_once(ctx, lambda _text: None)
    flow.decide = lambda _facts, _now: Plan()
    loop.run_once(ctx, lambda _text: None)
    assert store.failures(ctx.db)["repair it"].count == 1
    ctx.db.close()
