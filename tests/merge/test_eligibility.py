"""Only the current attempt of a task in review or approved lands by itself."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from conftest import git
from rookery.merge import queue, run, service
from rookery.merge.gates import service as gates
from rookery.merge.merger import Merger
from rookery.tasks import lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.store import Author
from support import NOW, wait_until

from .yard import DONE, Yard

pytestmark = pytest.mark.slow

PART = [{"edit": {"path": "part.txt", "text": "half\n"}}, {"commit": "Half of it"}]
WHOLE = [{"edit": {"path": "whole.txt", "text": "all\n"}}, {"commit": "All of it"}, DONE]


def files_of_main(yard: Yard) -> set[str]:
    return set(git(yard.folder, "ls-tree", "--name-only", "main").splitlines())


def state_of(yard: Yard, task: str) -> str:
    return str(yard.rook.json("task", "get", task).data["state"])


@pytest.fixture
def replaced(yard: Yard) -> str:
    """A task in review that ada finished after bee had crashed with half of it committed."""
    task = yard.task("Write it", [*PART, {"crash": 3}])
    assert yard.rook("sling", task, "--name", "bee").status == 0
    yard.wait_for("bee", "crashed", "failed")
    assert state_of(yard, task) == "PENDING"
    script = yard.rook("task", "update", task, "--description", _script(WHOLE))
    assert script.status == 0, script
    assert yard.rook("sling", task, "--name", "ada").status == 0
    yard.wait_for("ada", "completed")
    return task


def _script(steps: list[Any]) -> str:
    return f"```rook-script\n{yaml.safe_dump(steps)}```"


def test_an_earlier_attempt_does_not_land_with_all(yard: Yard, replaced: str) -> None:
    data = yard.merge("--all").data
    (entry,), (skipped,) = data["entries"], data["skipped"]
    assert (entry["agent"], entry["state"]) == ("ada", "landed")
    assert (skipped["agent"], skipped["task_id"]) == ("bee", replaced)
    assert "later attempt replaced it: rook/ada/" in skipped["reason"]
    assert files_of_main(yard) == {"README.md", "whole.txt"}
    assert state_of(yard, replaced) == "COMPLETED"


def test_an_earlier_attempt_lands_by_name_and_force_and_completes_nothing(yard: Yard, replaced: str) -> None:
    before = yard.main()
    refused = yard.merge("--branch", "bee").error
    assert refused["code"] == "invalid_state"
    assert "--force" in refused["hint"]
    assert yard.merge("enqueue", "bee").error["code"] == "invalid_state"
    assert (yard.main(), yard.states()) == (before, {})
    (entry,) = yard.merge("--branch", "bee", "--force").data["entries"]
    assert (entry["state"], entry["forced"]) == ("landed", True)
    assert "forced" in entry["reason"]
    assert files_of_main(yard) == {"README.md", "part.txt"}
    assert state_of(yard, replaced) == "PENDING_REVIEW"
    # The real attempt still lands, and completes the task.
    assert yard.merge("--all").status == 0
    assert files_of_main(yard) == {"README.md", "part.txt", "whole.txt"}
    assert state_of(yard, replaced) == "COMPLETED"


@pytest.mark.parametrize(("word", "state"), [("cancel", "cancelled"), ("fail", "failed")])
def test_work_of_a_task_that_was_given_up_does_not_land(yard: Yard, word: str, state: str) -> None:
    task = yard.finished("bee", WHOLE[:-1])
    before = yard.main()
    assert yard.merge("enqueue", "bee").status == 0  # queued before it was given up
    assert yard.rook("task", word, task).status == 0
    done = yard.merge("--all")
    assert done.status == 1
    assert state in done.envelope["data"]["entries"][0]["reason"]
    assert yard.main() == before
    assert list(yard.states().values()) == ["cancelled"]
    assert yard.merge("retry", "bee").error["code"] == "invalid_state"
    assert state in yard.merge("--all").envelope["data"]["skipped"][0]["reason"]
    # A dry run says the same, and a person can still want it.
    for words in (("--all",), ("--branch", "bee")):
        assert [entry["predicted_tier"] for entry in yard.merge(*words, "--dry-run").data["predicted"]] == ["skipped"]
    assert yard.merge("--branch", "bee", "--force", "--dry-run").data["predicted"][0]["predicted_tier"] == "clean"
    assert yard.merge("--branch", "bee", "--force").status == 0
    assert "whole.txt" in files_of_main(yard)
    assert state_of(yard, task) == state.upper()


def test_force_is_for_people_and_for_branches_that_are_named(yard: Yard) -> None:
    assert yard.merge("--all", "--force").error["code"] == "invalid_input"
    lead = yard.sling("lea", [{"wait": "mail"}], "--role", "merger")
    assert lead
    wait_until(lambda: yard.agent("lea").get("state") == "waiting")
    merger = yard.merger()
    try:
        session = merger.ctx.db.one("SELECT id FROM sessions WHERE agent = 'lea'")
        assert session is not None
        token = (yard.folder / ".rookery/sessions" / session[0] / "token").read_text().strip()
    finally:
        merger.ctx.db.close()
    yard.branch("work", a_txt="a\n")
    env = {"ROOKERY_AGENT": "lea", "ROOKERY_TOKEN": token, "ROOKERY_SESSION": session[0]}
    refused = yard.rook.json("merge", "--branch", "work", "--force", env=env).error
    assert "only a person" in refused["message"]
    assert "a.txt" not in files_of_main(yard)


@pytest.mark.parametrize("has_gate", [True, False])
def test_a_task_given_up_while_its_gate_runs_or_its_candidate_is_built_does_not_land(
    yard: Yard, has_gate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = yard.finished("bee", WHOLE[:-1])
    place, name = (gates, "run_gates") if has_gate else (run, "build")
    before, step = yard.main(), getattr(place, name)

    def cancel_meanwhile(merger: Merger, *args: Any, **named: Any) -> Any:
        with merger.ctx.db.write() as db:
            lifecycle.cancel(db, task, Author("human", NOW))
        return step(merger, *args, **named)

    monkeypatch.setattr(place, name, cancel_meanwhile)
    if has_gate:
        yard.settings("", "true")
    merger = yard.merger()
    try:
        (entry,) = service.enqueue(merger, ["bee"], "main")
        (settled,) = queue.work(merger, "main", {entry.id}).entries
    finally:
        merger.ctx.db.close()
    assert (settled.state, "is cancelled" in str(settled.reason)) == ("cancelled", True)
    assert yard.main() == before
    assert state_of(yard, task) == "CANCELLED"


@pytest.mark.parametrize("is_queued", [False, True])
def test_a_task_that_was_reopened_is_not_landed_by_all(yard: Yard, is_queued: bool) -> None:
    task = yard.finished("bee", WHOLE[:-1])
    if is_queued:
        assert yard.merge("enqueue", "bee").status == 0
    merger = yard.merger()
    try:
        author = Author("human", NOW)
        with merger.ctx.db.write() as db:
            lifecycle.fail(db, task, author.replace(name="human"))
            lifecycle.reopen(db, task, author)
        assert tasks.get(merger.ctx.db, task).state == "PENDING"
    finally:
        merger.ctx.db.close()
    done = yard.merge("--all")
    assert done.status == 0
    assert " is pending" in done.envelope["data"]["skipped"][0]["reason"]
    assert files_of_main(yard) == {"README.md"}


def test_what_a_crashed_agent_left_lands_by_name_and_completes_nothing(yard: Yard) -> None:
    task = yard.task("Write it", [*PART, {"crash": 3}])
    assert yard.rook("sling", task, "--name", "bee").status == 0
    yard.wait_for("bee", "crashed", "failed")
    (entry,) = yard.merge("--branch", "bee").data["entries"]
    assert (entry["state"], "before it was done" in entry["reason"]) == ("landed", True)
    assert "part.txt" in files_of_main(yard)
    assert state_of(yard, task) == "PENDING"
    # The undone task was not completed, so no message calls it open again.
    yard.commit(o_txt="o\n")
    assert yard.merge("undo", "bee").status == 0
    assert "open again" not in yard.mail(to="bee")[-1]["body"]
    assert state_of(yard, task) == "PENDING"
