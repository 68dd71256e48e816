"""Undoing landings: code, tasks, events and mail; nothing is lost by it."""

from __future__ import annotations

import pytest

from conftest import git
from rookery.base.errors import Refused
from rookery.base.ids import handle
from rookery.merge import store, undo, undo_plan
from terminals import Terminal

from .yard import Yard


@pytest.mark.slow
def test_the_last_landing_is_undone_by_moving_the_base(yard: Yard) -> None:
    before = yard.main()
    yard.branch("work", a_txt="a\n")
    landed = yard.merge("--branch", "work").data["entries"][0]
    (undone,) = yard.merge("undo", landed["id"]).data["landings"]
    assert (undone["how"], undone["commit"]) == ("moved back", before)
    assert yard.main() == before
    assert not (yard.folder / "a.txt").exists()
    assert git(yard.folder, "status", "--porcelain") == ""
    assert git(yard.folder, "rev-parse", undone["rescue"]) == landed["commit"]
    assert git(yard.folder, "rev-parse", f"refs/rookery/merge/{landed['id']}") == landed["commit"]
    assert yard.states() == {"work": "undone"}
    assert yard.merge("undo", landed["id"]).error["code"] == "invalid_state"
    assert "merge.undone" in yard.rook("events").out.decode()
    # It can land again.
    assert yard.merge("retry", landed["id"]).status == 0
    assert yard.merge("run").status == 0
    assert yard.show("a.txt") == "a"


@pytest.mark.slow
def test_an_earlier_landing_is_reversed_on_top(yard: Yard) -> None:
    yard.commit(f_txt="1\n2\n3\n4\n5\n6\n7\n")
    yard.branch("one", f_txt="one\n2\n3\n4\n5\n6\n7\n", a_txt="a\n")
    yard.branch("two", f_txt="1\n2\n3\n4\n5\n6\nseven\n")
    yard.rook("merge", "enqueue", "one", "two")
    assert yard.merge("run").status == 0
    before = yard.main()
    (undone,) = yard.merge("undo", "one").data["landings"]
    assert undone["how"] == "reverted"
    assert git(yard.folder, "rev-parse", "main^") == before
    assert yard.show("f.txt") == "1\n2\n3\n4\n5\n6\nseven"
    assert (yard.folder / "f.txt").read_text() == "1\n2\n3\n4\n5\n6\nseven\n"
    assert not (yard.folder / "a.txt").exists()
    assert yard.states() == {"one": "undone", "two": "landed"}


@pytest.mark.slow
def test_a_landing_that_later_work_needs_cannot_be_undone_alone(yard: Yard) -> None:
    yard.commit(f_txt="1\n2\n3\n")
    yard.branch("one", f_txt="1\none\n3\n")
    yard.merge("--branch", "one")
    yard.branch("two", f_txt="1\none two\n3\n")
    yard.merge("--branch", "two")
    before = yard.main()
    error = yard.merge("undo", "one").error
    assert error["code"] == "invalid_state"
    assert "f.txt" in error["message"]
    assert yard.main() == before


@pytest.mark.slow
def test_a_reversal_has_to_pass_the_gates(yard: Yard) -> None:
    yard.settings("", "! test -e needs.txt || test -e base.txt")
    yard.branch("one", base_txt="b\n")
    yard.merge("--branch", "one")
    yard.branch("two", needs_txt="n\n")
    yard.merge("--branch", "two")
    before = yard.main()
    assert "does not pass g1" in yard.merge("undo", "one").error["message"]
    assert yard.main() == before
    yard.assert_tidy()


@pytest.mark.slow
def test_a_gate_that_the_base_fails_already_does_not_hold_an_undo(yard: Yard) -> None:
    """Two landings that break it could not be undone one after the other."""
    yard.branch("one", one_txt="1\n")
    yard.branch("two", two_txt="2\n")
    for name in ("one", "two"):
        assert yard.merge("--branch", name).status == 0
    yard.settings("", "! test -e one.txt && ! test -e two.txt", "test -e two.txt || test -e one.txt")
    assert yard.merge("undo", "one").data["landings"][0]["how"] == "reverted"
    assert git(yard.folder, "ls-tree", "--name-only", "main").split() == ["README.md", "two.txt"]
    yard.commit(three_txt="3\n")
    assert "does not pass g2" in yard.merge("undo", "two").error["message"]  # the base passes that one
    assert yard.states() == {"one": "undone", "two": "landed"}
    yard.assert_tidy()


@pytest.mark.slow
def test_a_step_within_a_batch_is_gated_before_the_base_goes_back_to_it(yard: Yard) -> None:
    """The base never was there, only beyond it."""
    yard.settings("", "! test -e a.txt || test -e b.txt")
    yard.branch("one", a_txt="a\n")
    yard.branch("two", b_txt="b\n")
    yard.rook("merge", "enqueue", "one", "two")
    assert yard.merge("run").data["gate_runs"] == 1
    before = yard.main()
    assert "does not pass" in yard.merge("undo", "two").error["message"]
    assert yard.main() == before


def test_files_in_the_way_stop_an_undo(yard: Yard) -> None:
    yard.branch("one", a_txt="a\n")
    yard.merge("--branch", "one")
    (yard.folder / "a.txt").write_text("mine\n")
    before = yard.main()
    assert yard.merge("undo", "one").error["code"] == "checkout_in_the_way"
    assert yard.main() == before
    assert (yard.folder / "a.txt").read_text() == "mine\n"
    assert yard.states() == {"one": "landed"}
    assert yard.rook("loop", "run").status == 0
    git(yard.folder, "checkout", "-q", "a.txt")
    assert yard.merge("undo", "one").status == 0


@pytest.mark.slow
def test_a_whole_run_is_undone_with_its_tasks(yard: Yard) -> None:
    before = yard.main()
    tasks = [yard.finished("one", [{"edit": {"path": "one.txt", "text": "one"}}, {"commit": "one"}])]
    run = yard.rook.json("run", "list").data[0]["id"]
    steps = [{"edit": {"path": "two.txt", "text": "two"}}, {"commit": "two"}]
    tasks.append(yard.finished("two", steps, "--run", run))
    assert yard.merge("--all").status == 0
    assert {yard.rook.json("task", "get", task).data["state"] for task in tasks} == {"COMPLETED"}
    undone = yard.rook.json("run", "undo", run, "--yes").data
    assert len(undone["landings"]) == 2
    assert yard.main() == before
    assert {yard.rook.json("task", "get", task).data["state"] for task in tasks} == {"PENDING"}
    assert any(
        "was undone" in message["subject"] and "open again" in message["body"] for message in yard.mail(to="one")
    )
    # The branches, which had been removed, are there again, and can land again.
    assert len(git(yard.folder, "branch", "--list", "rook/*").splitlines()) == 2
    assert yard.merge("retry", "one").status == 0
    assert yard.merge("run").status == 0
    assert yard.show("one.txt") == "one"
    assert yard.rook.json("task", "get", tasks[0]).data["state"] == "COMPLETED"
    assert yard.merge("undo", "one").status == 0
    assert git(yard.folder, "status", "--porcelain") == ""
    assert yard.rook.json("run", "undo", "run_nothing").error["code"] == "invalid_id"


def _task(yard: Yard, title: str, at: str = "main", **files: str) -> tuple[str, str]:
    """A task that was begun by hand, and its branch with a commit."""
    task = str(yard.rook.json("task", "create", title).data["id"])
    branch = str(yard.rook.json("task", "start", task, "--base", at).data["branch"])
    git(yard.folder, "switch", "-q", branch)
    yard.commit(**files)
    git(yard.folder, "switch", "-q", "main")
    return task, branch


def _state(yard: Yard, task: str) -> str:
    return str(yard.rook.json("task", "get", task).data["state"])


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["merge", "squash"])
@pytest.mark.parametrize("step", ["", "undo moved"])
def test_work_that_came_with_a_landing_goes_with_it(yard: Yard, strategy: str, step: str) -> None:
    """The branch was built on that of another task, and landed first."""
    yard.settings(f"merge:\n  strategy: {strategy}\n")
    lower, below = _task(yard, "Lower", a_txt="a\n")
    upper, above = _task(yard, "Upper", at=below, b_txt="b\n")
    other, _ = _task(yard, "Other", c_txt="c\n")
    assert yard.merge("--branch", f"rook/human/{handle(other)}").status == 0
    assert yard.merge("--branch", above).status == 0
    assert yard.merge("--branch", below).status == 0  # it was there
    assert _state(yard, lower) == "COMPLETED"
    git(yard.folder, "branch", "-q", "-D", below)
    if step:
        yard.killed(step, "merge", "undo", above)
        yard.wait_for_loop()
    else:
        plan = yard.merge("undo", above, "--dry-run").data
        assert [(task["id"], task["came_with"]) for task in plan["tasks"]] == [(upper, False), (lower, True)]
        undone = yard.merge("undo", above).data
        assert undone["tasks"] == plan["tasks"]
    assert git(yard.folder, "ls-tree", "--name-only", "main").split() == ["README.md", "c.txt"]
    assert [_state(yard, task) for task in (upper, lower, other)] == ["PENDING", "PENDING", "COMPLETED"]
    assert yard.states()[below] == "undone"
    # Both land again, in the same way.
    for branch in (above, below):
        assert yard.merge("--branch", branch).status == 0
    assert (yard.show("a.txt"), yard.show("b.txt")) == ("a", "b")
    assert {_state(yard, task) for task in (upper, lower, other)} == {"COMPLETED"}


@pytest.mark.slow
def test_a_task_stays_completed_while_another_base_has_its_work(yard: Yard) -> None:
    git(yard.folder, "branch", "release")
    task, branch = _task(yard, "Work", a_txt="a\n")
    (first,) = yard.merge("--branch", branch, "--into", "release").data["entries"]
    (second,) = yard.merge("--branch", branch).data["entries"]
    assert yard.merge("undo", first["id"], "--dry-run").data["tasks"] == []
    assert yard.merge("undo", first["id"]).data["tasks"] == []
    assert _state(yard, task) == "COMPLETED"
    assert [one["id"] for one in yard.merge("undo", second["id"]).data["tasks"]] == [task]
    assert _state(yard, task) == "PENDING"


@pytest.mark.slow
def test_one_landing_is_shown_and_asked_on_a_terminal(yard: Yard) -> None:
    before = yard.main()
    yard.branch("work", a_txt="a\n")
    assert yard.merge("--branch", "work").status == 0
    landed, question = yard.main(), "Undo this? [y/N]: "
    yard.wait_for_loop()
    for answer, status, tip in (("n\n", 1, landed), ("y\n", 0, before)):
        terminal = Terminal(yard.folder, "merge", "undo", "work", ROOKERY_DAEMON="off")
        terminal.wait_for_question(question=question)
        assert "moved back" in terminal.shown
        assert yard.main() == landed
        terminal.type(answer)
        assert (terminal.end(), yard.main()) == (status, tip)
    assert yard.merge("--branch", "work").status == 0
    terminal = Terminal(yard.folder, "merge", "undo", "work", "--yes", ROOKERY_DAEMON="off")
    assert (terminal.end(), yard.main()) == (0, before)
    assert question not in terminal.shown


@pytest.mark.slow
def test_a_refusal_says_which_bases_are_undone_before_it(yard: Yard) -> None:
    git(yard.folder, "branch", "release")
    for name in ("one", "two", "later"):
        yard.branch(name, **{f"{name}_txt": f"{name}\n"})
    ids = [yard.merge("--branch", "one", "--into", "release").data["entries"][0]["id"]]
    ids.append(yard.merge("--branch", "two").data["entries"][0]["id"])
    merger = yard.merger()
    answers: list[bool] = []

    def make() -> undo_plan.Undo:
        entries = [store.get(merger.ctx.db, merge_id) for merge_id in ids]
        return undo_plan.together(undo_plan.plan_landing(merger, entry) for entry in entries if entry.state == "landed")

    def agree(_plan: undo_plan.Undo) -> bool:
        answers.append(not answers)
        if answers == [True]:
            assert yard.merge("--branch", "later").status == 0  # so that the second cannot be moved back
        return answers[-1]

    try:
        with pytest.raises(Refused) as refused:
            undo.undo(merger, make, agree)
        assert refused.value.message == "nothing more was undone; on release everything is undone"
    finally:
        merger.ctx.db.close()
    assert yard.states() == {"one": "undone", "two": "landed", "later": "landed"}
