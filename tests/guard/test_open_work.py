"""What an agent answers for before it may say that it is finished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from den import DONE, Den
from rookery.base.ids import handle
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.credentials import agent_environ
from support import Ran


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


class Stage:
    """A lead that waits, with a builder under it."""

    def __init__(self, den: Den, *worker: Any) -> None:
        self.den = den
        self.epic = den.task("Lead", [{"wait": "mail"}, {"wait": "mail"}, {"wait": "mail"}])
        den.sling(self.epic, "--role", "lead", "--name", "queen")
        den.wait_for("queen", "waiting")
        self.part = den.task("Part", list(worker), "--parent", self.epic)
        den.sling(self.part, "--name", "bee", "--parent", "queen")

    def as_agent(self, name: str, *words: str) -> Ran:
        """Run `rook` as a living agent does."""
        db = self.den.rook.open()
        ctx = Context.at(str(self.den.folder), db, load_config(str(self.den.folder), read_environ({}), {}).config)
        session = store.living(db, name)
        assert session is not None
        env = agent_environ(ctx, session, {})
        db.close()
        # Not its mark: whatever bears it ends with the turn.
        names = ("ROOKERY_ROOT", "ROOKERY_AGENT", "ROOKERY_TOKEN")
        return self.den.rook(*words, "--json", env={name: env[name] for name in names})

    def finish(self) -> Ran:
        """The lead says that it is done."""
        return self.as_agent("queen", "mail", "send", "human", "--type", "worker_done", "--subject", "Done")


@pytest.mark.slow
def test_a_lead_cannot_end_while_a_worker_works(den: Den) -> None:
    stage = Stage(den, {"hang": True})
    refused = stage.finish()
    assert refused.error["code"] == "not_finished"
    assert "bee is still" in refused.error["message"]
    assert "rook stop bee" in refused.error["hint"]
    assert stage.as_agent("queen", "task", "complete", stage.epic).error["code"] == "not_finished"
    den.rook("stop", "bee")
    assert stage.finish().status == 0


@pytest.mark.slow
def test_a_lead_cannot_end_with_a_question_unanswered(den: Den) -> None:
    stage = Stage(
        den,
        {"mail": {"to": "{parent}", "type": "question", "subject": "Which colour?"}},
        {"until": {"mail_from": "queen"}},
        {"hang": True},
    )
    den.wait_for("bee", "waiting")
    refused = stage.finish()
    assert "Which colour?" in refused.error["message"]
    assert "rook mail reply" in refused.error["hint"]


@pytest.mark.slow
def test_a_lead_cannot_end_before_it_handed_over_each_branch(den: Den) -> None:
    stage = Stage(den, {"edit": {"path": "a.txt", "text": "a\n"}}, {"commit": "Work"}, DONE)
    den.wait_for("bee", "completed")
    refused = stage.finish()
    assert f"rook/bee/{handle(stage.part)}" in refused.error["message"]
    assert "merge_ready" in refused.error["hint"]
    payload = f'{{"branch": "rook/bee/{handle(stage.part)}", "task_id": "{stage.part}"}}'
    words = ("mail", "send", "human", "--type", "merge_ready", "--subject", "Ready", "--payload", payload)
    assert stage.as_agent("queen", *words).status == 0
    assert stage.finish().status == 0


@pytest.mark.slow
def test_foreign_tasks_cannot_be_closed(den: Den) -> None:
    stage = Stage(den, {"hang": True})
    foreign = den.task("Another agent's")
    for verb in ("complete", "cancel", "fail", "delete", "archive"):
        refused = stage.as_agent("bee", "task", verb, foreign)
        assert refused.error["code"] == "foreign_task", verb
    assert stage.as_agent("bee", "task", "cancel", stage.epic).error["code"] == "foreign_task"
    assert den.rook.json("task", "get", foreign).data["state"] == "PENDING"
    other = den.task("Beneath the lead", None, "--parent", stage.epic)
    assert stage.as_agent("queen", "task", "cancel", other).status == 0
    den.rook("stop", "queen")
