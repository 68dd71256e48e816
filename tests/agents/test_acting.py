"""An agent acts as itself: neither an option nor the environment makes it act as another agent, or as a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_rows import Agent
from conftest import Rook
from den import Den
from rookery.ops import index
from support import add, everything

pytestmark = pytest.mark.slow

NAMES_ACTORS = {
    *("task claim", "task renew", "task release", "task fail", "task start", "task submit", "task complete"),
    "prime",
}
"""The operations with an option that names who acts."""
OTHERS = {
    "mail check": "looks into an inbox; refused to agents by the mail itself",
    "mail list": "looks into an inbox; refused to agents by the mail itself",
    "mail purge": "is for people alone",
    **dict.fromkeys(
        ("costs", "events", "feed", "errors", "logs", "trace", "replay", "metrics"), "only chooses what is shown"
    ),
}


@pytest.fixture
def ada(project: Path) -> Agent:
    return Agent(project, "ada")


@pytest.fixture
def bee(project: Path) -> Agent:
    return Agent(project, "bee")


def state(rook: Rook) -> object:
    db = rook.open()
    try:
        return everything(db), db.all("SELECT * FROM sessions ORDER BY seq")
    finally:
        db.close()


def test_every_option_that_names_an_agent_is_known_for_what_it_does() -> None:
    for operation in index.load_all():
        for param in operation.params:
            if param.name in ("agent", "author", "assignee", "sender", "actor", "as"):
                known = NAMES_ACTORS if param.acts_as else OTHERS
                assert operation.name in known, f"{operation.name} {param.flag}"


@pytest.mark.parametrize("command", sorted(NAMES_ACTORS))
@pytest.mark.parametrize("name", ["ada", "human", "stranger", ""])
def test_an_agent_cannot_act_as_another_by_an_option(
    rook: Rook, ada: Agent, bee: Agent, command: str, name: str
) -> None:
    before = state(rook)
    words = [*command.split(), *([] if command in ("task claim", "prime") else [ada.task])]
    for task_of in (ada, bee):
        call = [task_of.task if word == ada.task else word for word in words]
        refused = rook.json(*call, "--agent", name, env=bee.env)
        assert (refused.status, refused.error["code"]) == (1, "not_permitted"), refused
        assert "--agent" in refused.error["hint"]
    assert state(rook) == before


def test_an_agent_may_name_itself(rook: Rook, bee: Agent) -> None:
    db = rook.open()
    task = add(db, "free")
    db.close()
    claimed = rook.json("task", "claim", "--agent", "bee", env=bee.env).data
    assert (claimed["id"], claimed["assignee"]) == (task, "bee")
    assert rook.json("task", "release", task, "--agent", "bee", env=bee.env).data["assignee"] is None
    assert "`bee`" in rook.json("prime", "--agent", "bee", env=bee.env).data


def test_people_act_as_an_agent(rook: Rook, ada: Agent) -> None:
    db = rook.open()
    task = add(db, "free")
    db.close()
    assert rook.json("task", "claim", "--agent", "eve").data["assignee"] == "eve"
    assert rook.json("task", "release", task, "--agent", "eve").data["assignee"] is None
    assert "`ada`" in rook.json("prime", "--agent", "ada").data


def test_an_agent_cannot_act_as_another_by_its_environment(rook: Rook, ada: Agent, bee: Agent) -> None:
    before = state(rook)
    nameless = {name: value for name, value in bee.env.items() if name != "ROOKERY_AGENT"}
    without_token = {name: value for name, value in bee.env.items() if name != "ROOKERY_TOKEN"}
    session_alone = {name: value for name, value in nameless.items() if name != "ROOKERY_TOKEN"}
    environments = [
        bee.env | {"ROOKERY_AGENT": "ada"},
        bee.env | {"ROOKERY_AGENT": "human"},
        bee.env | {"ROOKERY_AGENT": "stranger"},
        bee.env | {"ROOKERY_TOKEN": "wrong"},
        nameless,
        without_token,
        without_token | {"ROOKERY_AGENT": "ada"},
        session_alone,
    ]
    for env in environments:
        for words in (("task", "release", ada.task), ("task", "claim"), ("task", "create", "more"), ("gate", "run")):
            refused = rook.json(*words, env=env)
            assert (refused.status, refused.error["code"]) == (1, "forged_sender"), (env, refused)
    assert state(rook) == before


def test_a_worktree_that_an_agent_cleans_is_cleaned_by_that_agent(repo: Path) -> None:
    den = Den(repo)
    queen = Agent(repo, "queen", "lead")
    den.sling(den.task("Rest", [{"hang": True}], "--parent", queen.task), "--name", "bee", "--parent", "queen")
    assert den.rook("stop", "bee", "--clean", env=queen.env).status == 0
    db = den.rook.open()
    assert db.value("SELECT actor FROM events WHERE type = 'worktree.cleaned'") == "queen"
    db.close()
