"""Undoing a run: what is shown is what is done, nothing is done unasked, and killed anywhere it can be finished."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import pytest

from conftest import git
from rookery.base.ids import handle
from rookery.merge import undo, undo_plan
from support import manifest, run_real_rook, start_rook
from terminals import Terminal

from .yard import DONE, Yard

pytestmark = pytest.mark.slow

_TABLES = ("runs", "sessions", "tasks", "merges", "messages", "events", "learnings", "merge_files", "gate_runs")


def _work(name: str, text: str = "text\n") -> list[Any]:
    return [{"edit": {"path": f"{name}.txt", "text": text}}, {"commit": name}]


class Scene:
    """A run with two landings and an epic of theirs, a queued entry, and a landing of another run in between."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.before = yard.main()
        self.epic = str(yard.rook.json("task", "create", "The epic").data["id"])
        self.tasks = {"one": self._finished("one", "--parent", self.epic)}
        self.run = str(yard.rook.json("run", "list").data[0]["id"])
        self.tasks["two"] = self._finished("two", "--parent", self.epic, run=self.run)
        self.tasks["three"] = self._finished("three", run=self.run)
        self.tasks["other"] = self._finished("other")
        for name in ("one", "other", "two"):
            assert yard.merge("--branch", name).status == 0
        (self.queued,) = yard.rook.json("merge", "enqueue", "three").data
        assert yard.rook.json("task", "get", self.epic).data["state"] == "COMPLETED"

    def _finished(self, name: str, *more: str, run: str = "") -> str:
        task = self.yard.task(f"Task of {name}", [*_work(name), DONE], *more)
        assert self.yard.rook("sling", task, "--name", name, *(("--run", run) if run else ())).status == 0
        self.yard.wait_for(name, "completed")
        return task

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        db = self.yard.rook.open()
        try:
            return {table: [tuple(row) for row in db.all(f"SELECT * FROM {table} ORDER BY 1")] for table in _TABLES}
        finally:
            db.close()

    def refs(self) -> str:
        return git(self.yard.folder, "for-each-ref") + git(self.yard.folder, "reflog", "main")

    def states(self) -> dict[str, str]:
        db = self.yard.rook.open()
        try:
            return dict(db.all("SELECT id, state FROM tasks"))
        finally:
            db.close()

    def undone_mail(self) -> set[tuple[str, str]]:
        messages = [
            (message["to"], message["subject"]) for message in self.yard.mail() if "was undone" in message["subject"]
        ]
        assert len(messages) == len(set(messages))
        return set(messages)

    def check_undone(self) -> None:
        """The base has what the other run landed, and nothing of this one; each thing was done once."""
        yard = self.yard
        files = git(yard.folder, "ls-tree", "--name-only", "main").split()
        assert ("one.txt" in files, "two.txt" in files, "three.txt" in files) == (False, False, False)
        assert "other.txt" in files
        assert (yard.folder / "other.txt").read_text() == "text\n"
        assert not (yard.folder / "one.txt").exists()
        assert git(yard.folder, "status", "--porcelain") == ""
        by_agent = {branch.split("/")[1]: state for branch, state in yard.states().items()}
        assert by_agent == {"one": "undone", "two": "undone", "three": "cancelled", "other": "landed"}
        states = self.states()
        assert {states[self.tasks[name]] for name in ("one", "two")} == {"PENDING"}
        assert states[self.epic] == "PENDING"
        assert states[self.tasks["other"]] == "COMPLETED"
        assert len(self.undone_mail()) == 4  # two landings, for the agent and the person each
        assert len(git(yard.folder, "branch", "--list", "rook/one/*", "rook/two/*").splitlines()) == 2
        yard.assert_tidy()


@pytest.fixture
def scene(yard: Yard) -> Scene:
    return Scene(yard)


def test_the_plan_changes_nothing_and_is_what_then_happens(scene: Scene) -> None:
    yard, epic, tasks = scene.yard, scene.epic, scene.tasks
    yard.wait_for_loop()
    rows, refs = scene.rows(), scene.refs()
    objects = manifest(yard.folder / ".git" / "objects")
    plan = yard.rook.json("run", "undo", scene.run, "--dry-run").data
    assert (scene.rows(), scene.refs()) == (rows, refs)
    assert manifest(yard.folder / ".git" / "objects") == objects
    assert (plan["run_id"], plan["is_done"], plan["kept"]) == (scene.run, False, [])
    assert [one["entry"]["agent"] for one in plan["landings"]] == ["two", "one"]
    assert [one["how"] for one in plan["landings"]] == ["moved back", "reverted"]  # the other run's is in between
    assert [one["commits"] for one in plan["landings"]] == [2, 2]
    assert [entry["id"] for entry in plan["withdrawn"]] == [scene.queued["id"]]
    assert [(task["id"], task["is_above"]) for task in plan["tasks"]] == [
        (tasks["two"], False),
        (epic, True),
        (tasks["one"], False),
    ]
    done = yard.rook.json("run", "undo", scene.run[:20], "--yes").data
    assert done["is_done"]
    assert set(done) == set(plan)
    for key in ("tasks", "mail", "kept"):
        assert done[key] == plan[key]
    for key in ("how", "commits"):
        assert [one[key] for one in done["landings"]] == [one[key] for one in plan["landings"]]
    assert [one["entry"]["id"] for one in done["landings"]] == [one["entry"]["id"] for one in plan["landings"]]
    assert [entry["id"] for entry in done["withdrawn"]] == [entry["id"] for entry in plan["withdrawn"]]
    # The rows say the same.
    assert {task for task, state in scene.states().items() if state == "PENDING"} == {
        task["id"] for task in plan["tasks"]
    }
    assert scene.undone_mail() == {(message["to"], message["subject"]) for message in plan["mail"]}
    assert done["landings"][-1]["commit"] == yard.main()
    assert git(yard.folder, "rev-parse", done["landings"][0]["rescue"]) == refs_to_main(refs)
    scene.check_undone()
    # A second time there is nothing to do, also for one that only looks.
    again = yard.rook.json("run", "undo", scene.run, "--yes").data
    assert (again["landings"], again["withdrawn"], again["tasks"], again["mail"]) == ([], [], [], [])
    assert b"Nothing to undo" in yard.rook("run", "undo", scene.run, "--dry-run").out


def refs_to_main(refs: str) -> str:
    return next(line.split()[0] for line in refs.splitlines() if line.endswith("refs/heads/main"))


def test_without_a_terminal_it_has_to_be_said_and_the_hint_works(scene: Scene) -> None:
    yard = scene.yard
    yard.wait_for_loop()
    rows, refs = scene.rows(), scene.refs()
    for words in ((), ("--json",)):
        ran = yard.rook("run", "undo", scene.run, *words)
        assert ran.status == 2
    error = yard.rook.json("run", "undo", scene.run).error
    assert (scene.rows(), scene.refs()) == (rows, refs)
    shown, done = re.findall(r"`rook ([^`]+)`", error["hint"])
    shown_plan = yard.rook(*shown.split())
    assert shown_plan.status == 0
    assert max(map(len, shown_plan.out.decode().splitlines())) <= 80
    assert (scene.rows(), scene.refs()) == (rows, refs)
    assert yard.rook(*done.split()).status == 0
    scene.check_undone()


@pytest.mark.parametrize("mode", ["off", "on"])
def test_a_person_is_shown_everything_and_asked(scene: Scene, mode: str) -> None:
    yard = scene.yard
    yard.wait_for_loop()
    rows, refs = scene.rows(), scene.refs()
    try:
        for answer in ("\n", "n\n", "\x04"):
            terminal = Terminal(yard.folder, "run", "undo", scene.run, ROOKERY_DAEMON=mode)
            terminal.wait_for_question()
            terminal.type(answer)
            assert terminal.end() == 1
            assert "nothing was undone" in terminal.shown
            assert (scene.rows(), scene.refs()) == (rows, refs)
        terminal = Terminal(yard.folder, "run", "undo", scene.run, ROOKERY_DAEMON=mode)
        terminal.wait_for_question()
        plan = terminal.shown
        terminal.type("y\n")
        assert terminal.end() == 0
        for text in (
            *(f"rook/{name}/" for name in ("one", "two", "three")),
            handle(scene.epic),
            "reverted by a commit",
        ):
            assert text in plan
        assert max(map(len, terminal.shown.splitlines())) <= 80
        scene.check_undone()
    finally:
        if mode == "on":
            run_real_rook(yard.folder, "daemon", "stop", env={"ROOKERY_DAEMON": "on"})


def test_what_has_changed_since_it_was_shown_is_asked_again(scene: Scene) -> None:
    yard = scene.yard
    yard.wait_for_loop()
    terminal = Terminal(yard.folder, "run", "undo", scene.run)
    terminal.wait_for_question()
    assert yard.merge("run").status == 0  # what was queued lands, which no one has agreed to undo
    rows, refs = scene.rows(), scene.refs()
    yard.wait_for_loop()
    terminal.type("y\n")
    terminal.wait_for_question(2)
    assert "rook/three/" in terminal.shown
    assert (scene.rows()["merges"], git(yard.folder, "rev-parse", "main")) == (rows["merges"], refs_to_main(refs))
    terminal.type("n\n")
    assert terminal.end() == 1
    assert set(yard.states().values()) == {"landed"}


def test_what_the_run_has_landed_since_is_shown_and_asked(yard: Yard) -> None:
    yard.finished("one", _work("one"))
    run = yard.rook.json("run", "list").data[0]["id"]
    yard.finished("two", _work("two"), "--run", run)
    yard.branch("other", b_txt="b\n")
    for name in ("one", "other"):
        assert yard.merge("--branch", name).status == 0
    yard.wait_for_loop()
    terminal = Terminal(yard.folder, "run", "undo", run)
    terminal.wait_for_question()
    assert "rook/two/" not in terminal.shown
    assert yard.merge("--branch", "two").status == 0
    tip = yard.main()
    yard.wait_for_loop()
    terminal.type("y\n")
    terminal.wait_for_question(2)
    assert "rook/two/" in terminal.shown
    assert yard.main() == tip
    terminal.type("y\n")
    assert terminal.end() == 0
    assert sorted(git(yard.folder, "ls-tree", "--name-only", "main").split()) == ["README.md", "b.txt"]


def test_what_changes_while_it_is_done_stops_it(scene: Scene) -> None:
    """The gates may take long: what is not in the plan is not undone."""
    yard, merger = scene.yard, scene.yard.merger()
    plans: list[undo_plan.Undo] = []

    def make() -> undo_plan.Undo:
        plans.append(undo_plan.plan_run(merger, scene.run))
        if len(plans) == 2:  # after it was compared with what was agreed to
            assert yard.rook("task", "reopen", scene.tasks["one"]).status == 0
        return plans[-1]

    agreed: list[undo_plan.Undo] = []

    def agree(plan: undo_plan.Undo) -> bool:
        agreed.append(plan)
        return True

    try:
        undo.undo(merger, make, agree)
    finally:
        merger.ctx.db.close()
    assert [len(plan.tasks) for plan in agreed] == [3, 1]
    scene.check_undone()


_STEPS = ("lease taken", "undo recorded", "undo checked", "undo moved", "undo written")


@pytest.mark.parametrize("step", _STEPS)
def test_one_that_is_killed_is_finished_by_the_next(scene: Scene, step: str) -> None:
    yard = scene.yard
    yard.wait_for_loop()
    yard.killed(step, "run", "undo", scene.run, "--yes")
    yard.wait_for_loop()
    done = yard.rook.json("run", "undo", scene.run, "--yes")
    assert done.status == 0
    assert bool(done.data["landings"]) is (step not in ("undo moved", "undo written"))
    scene.check_undone()


@pytest.mark.parametrize("step", ["undo recorded", "undo moved"])
def test_the_next_need_not_wait_for_the_loop(scene: Scene, step: str) -> None:
    yard = scene.yard
    yard.wait_for_loop()
    yard.killed_alone(step, "run", "undo", scene.run, "--yes")
    assert run_real_rook(yard.folder, "run", "undo", scene.run, "--yes").status == 0
    scene.check_undone()


def test_two_at_once_undo_it_once(scene: Scene) -> None:
    yard = scene.yard
    yard.wait_for_loop()
    children = [start_rook(yard.folder, "run", "undo", scene.run, "--yes", "--json") for _ in range(2)]
    ended = [(child.wait(120), child.communicate()) for child in children]
    assert 0 in [status for status, _ in ended]
    assert {status for status, _ in ended} <= {0, 1}
    for status, (out, _) in ended:
        assert status == 0 or b"merge_busy" in out or b"undo_changed" in out or b"just now" in out
    assert git(yard.folder, "log", "--format=%s", "main").count("Revert:") == 1
    db = yard.rook.open()
    try:
        assert db.value("SELECT count(*) FROM events WHERE type = 'merge.undone'") == 2
    finally:
        db.close()
    scene.check_undone()


@pytest.mark.parametrize("step", ["undo recorded:2", "undo written:1", "undo withdrawn"])
def test_a_run_that_landed_on_several_bases(yard: Yard, step: str) -> None:
    git(yard.folder, "branch", "release")
    git(yard.folder, "branch", "next")
    befores = {base: git(yard.folder, "rev-parse", base) for base in ("main", "release", "next")}
    yard.finished("one", _work("one"))
    run = yard.rook.json("run", "list").data[0]["id"]
    yard.finished("two", _work("two"), "--run", run)
    assert yard.merge("--branch", "one").status == 0
    assert yard.merge("--branch", "two", "--into", "release").status == 0
    assert yard.rook("merge", "enqueue", "two", "--into", "next").status == 0
    yard.wait_for_loop()
    plan = yard.rook.json("run", "undo", run, "--dry-run").data
    assert [one["entry"]["base"] for one in plan["landings"]] == ["release", "main"]
    yard.killed(step, "run", "undo", run, "--yes")
    yard.wait_for_loop()
    assert yard.rook("run", "undo", run, "--yes").status == 0
    assert {base: git(yard.folder, "rev-parse", base) for base in befores} == befores
    db = yard.rook.open()
    try:
        assert dict(db.all("SELECT base, state FROM merges")) == {
            "main": "undone",
            "release": "undone",
            "next": "cancelled",
        }
    finally:
        db.close()


def test_a_whole_run_is_gated_as_it_ends_up_and_in_one_move(yard: Yard) -> None:
    """One step of a batch alone does not pass; a run is undone whole or not at all."""
    yard.settings("", "! test -e one.txt || test -e two.txt")
    yard.finished("one", _work("one"))
    run = yard.rook.json("run", "list").data[0]["id"]
    yard.finished("two", _work("two"), "--run", run)
    before = yard.main()
    yard.rook("merge", "enqueue", "one", "two")
    assert yard.merge("run").status == 0
    assert "does not pass" in yard.merge("undo", "two").error["message"]
    log = git(yard.folder, "reflog", "main").count("\n")
    done = yard.rook.json("run", "undo", run, "--yes").data
    assert [(one["entry"]["agent"], one["how"]) for one in done["landings"]] == [
        ("two", "moved back"),
        ("one", "moved back"),
    ]
    assert yard.main() == before
    assert git(yard.folder, "reflog", "main").count("\n") == log + 1


def test_what_cannot_be_undone_stops_all_of_it(yard: Yard) -> None:
    task = yard.finished("one", _work("one"))
    run = yard.rook.json("run", "list").data[0]["id"]
    yard.finished("two", _work("two"), "--run", run)
    for name in ("one", "two"):
        assert yard.merge("--branch", name).status == 0
    yard.wait_for_loop()
    tip = yard.main()

    def check_refused(*parts: str, hint: str = "") -> None:
        for word in ("--dry-run", "--yes"):
            error = yard.rook.json("run", "undo", run, word).error
            assert error["code"] == "invalid_state"
            assert all(part in error["message"] for part in parts), error
            assert hint in error["hint"]
            assert yard.main() == tip
            assert set(yard.states().values()) == {"landed"}

    # A task that was put away has to be brought back first, and the hint says how.
    assert yard.rook("task", "archive", task).status == 0
    check_refused(task, "archived", hint=f"rook task unarchive {task}")
    assert yard.rook("task", "unarchive", task).status == 0
    # Later work on the same lines.
    tip = yard.commit(one_txt="changed\n")
    check_refused("one.txt", "rook/one/")
    git(yard.folder, "reset", "-q", "--hard", "main^")
    tip = yard.main()
    # An agent that is alive.
    more = yard.task("More", [{"wait": "mail"}])
    assert yard.rook("sling", more, "--name", "bee", "--run", run).status == 0
    check_refused("still alive: bee", hint="rook stop")
    yard.rook("stop", "bee")
    # Your own changes.
    (yard.folder / "two.txt").write_text("mine\n")
    assert yard.rook.json("run", "undo", run, "--yes").error["code"] == "checkout_in_the_way"
    assert yard.main() == tip
    assert (yard.folder / "two.txt").read_text() == "mine\n"
    git(yard.folder, "checkout", "-q", "two.txt")
    # What you have reverted yourself stays as it is, and the rest is undone.
    git(yard.folder, "revert", "--no-edit", "-m", "1", "main^")
    done = yard.rook.json("run", "undo", run, "--yes").data
    assert [one["entry"]["agent"] for one in done["landings"]] == ["two"]
    assert [(kept["entry"]["agent"], "reverted" in kept["reason"]) for kept in done["kept"]] == [("one", True)]
    assert not (yard.folder / "one.txt").exists()
    assert not (yard.folder / "two.txt").exists()


def test_one_landing_is_planned_in_the_same_shape(yard: Yard) -> None:
    task = yard.finished("one", _work("one"))
    assert yard.merge("--branch", "one").status == 0
    yard.wait_for_loop()
    before = yard.main(), git(yard.folder, "for-each-ref")
    plan = yard.merge("undo", "one", "--dry-run").data
    assert (yard.main(), git(yard.folder, "for-each-ref")) == before
    assert yard.states() == {plan["landings"][0]["entry"]["branch"]: "landed"}
    assert (plan["run_id"], plan["is_done"], plan["landings"][0]["how"]) == (None, False, "moved back")
    assert [reopened["id"] for reopened in plan["tasks"]] == [task]
    assert [message["to"] for message in plan["mail"]] == ["one", "human"]
    done = yard.merge("undo", "one").data
    assert (done["is_done"], done["tasks"], done["mail"]) == (True, plan["tasks"], plan["mail"])
    assert done["landings"][0]["commit"] == plan["landings"][0]["commit"] == yard.main()
    assert yard.merge("undo", "one", "--dry-run").error["code"] == "invalid_state"


def test_an_interrupt_at_the_question_changes_nothing(scene: Scene) -> None:
    scene.yard.wait_for_loop()
    rows, refs = scene.rows(), scene.refs()
    terminal = Terminal(scene.yard.folder, "run", "undo", scene.run, ROOKERY_DAEMON="off")
    terminal.wait_for_question()
    os.kill(terminal.program.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert (scene.rows(), scene.refs()) == (rows, refs)
