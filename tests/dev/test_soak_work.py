"""The checks of commits, landings, tasks and caps complain of what they are there for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from dev.soak import processes
from dev.soak.chaos import Sampler
from dev.soak.checks import commits, tasks
from dev.soak.processes import Process
from dev.soak.repository import BASE
from soaked import Place, texts
from soaked import place as place

from conftest import git


def test_a_commit_that_nothing_leads_to_is_lost(place: Place) -> None:
    lost = place.work("k1", "begin", branch="rook/a/1")
    assert not list(commits.check_commits(place.repo, {lost: "a"}))
    git(place.repo, "switch", "-q", BASE)
    git(place.repo, "branch", "-D", "rook/a/1")
    assert texts(commits.check_commits(place.repo, {lost: "a"})) == [
        f"commit {lost} of a is lost: no branch, rescue or snapshot leads to it"
    ]
    git(place.repo, "update-ref", "refs/rookery/elsewhere/a", lost)
    assert list(commits.check_commits(place.repo, {lost: "a"}))
    git(place.repo, "update-ref", "refs/rookery/rescue/a", lost)
    assert not list(commits.check_commits(place.repo, {lost: "a"}))
    gone = "0" * 39 + "1"
    assert texts(commits.check_commits(place.repo, {gone: "a"})) == [
        f"commit {gone} of a is lost: it is not there any more"
    ]


@pytest.mark.slow
def test_a_commit_of_the_base_that_fails_the_gate_is_named(place: Place, tmp_path: Path) -> None:
    bad = place.work("k1", "begin")
    place.work("k1", "finish")
    (complaint,) = texts(commits.check_base(place.repo, tmp_path / "clone", BASE))
    assert bad in complaint
    assert "parts/k1.sum" in complaint


@pytest.mark.slow
def test_a_base_that_got_work_whole_is_fine(place: Place, tmp_path: Path) -> None:
    place.work("k1", "begin", "finish", branch="rook/a/1")
    git(place.repo, "switch", "-q", BASE)
    git(place.repo, "merge", "-q", "--no-ff", "-m", "Merge", "rook/a/1")
    assert not list(commits.check_base(place.repo, tmp_path / "clone", BASE))


def test_a_landed_task_is_completed(place: Place) -> None:
    place.land("k1")
    assert not list(tasks.check_tasks(place.repo, place.db, {"task_1": "k1"}, BASE))
    assert not list(tasks.check_finished(place.db, {"task_1": "k1"}))


def test_a_completed_task_without_its_work_is_found(place: Place) -> None:
    place.add("tasks", id="task_1", title="k1", state="COMPLETED")
    complaints = texts(tasks.check_tasks(place.repo, place.db, {"task_1": "k1"}, BASE))
    assert complaints == [
        "task task_1 (k1) is completed, and its line is on main 0 times",
        "task task_1 (k1) is completed, and no entry of the queue has landed for it",
    ]


def test_work_on_the_base_of_an_open_task_is_found(place: Place) -> None:
    place.land("k1")
    place.db.execute("UPDATE tasks SET state = 'PENDING_REVIEW'")
    (complaint,) = texts(tasks.check_tasks(place.repo, place.db, {"task_1": "k1"}, BASE))
    assert complaint == "task task_1 (k1) is PENDING_REVIEW, and its line is on main 1 times"


def test_work_that_landed_twice_is_found(place: Place) -> None:
    place.land("k1")
    with (place.repo / "registry.md").open("a") as file:
        file.write("- k1\n")
    git(place.repo, "commit", "-qam", "Again")
    (complaint,) = texts(tasks.check_tasks(place.repo, place.db, {"task_1": "k1"}, BASE))
    assert "on main 2 times" in complaint


@pytest.mark.slow
def test_a_landing_that_is_not_on_the_base_is_found(place: Place) -> None:
    place.land("k1")
    elsewhere = place.work("k2", "begin", branch="rook/b/2")
    place.db.execute("UPDATE merges SET candidate = ?", (elsewhere,))
    (complaint,) = texts(tasks.check_tasks(place.repo, place.db, {"task_1": "k1"}, BASE))
    assert complaint == f"mrg_task_1 of task task_1 (k1) has landed as {elsewhere}, which is not on main"


def test_a_task_that_is_gone_is_found(place: Place) -> None:
    assert texts(tasks.check_tasks(place.repo, place.db, {"task_1": "k1"}, BASE)) == ["task task_1 (k1) is gone"]


def test_what_did_not_come_to_an_end_is_found(place: Place) -> None:
    place.add("sessions", id="ses_1", agent="bee", state="waiting", step="ready")
    place.add("tasks", id="task_1", title="k1", state="IN_PROGRESS", attempts=2)
    place.add("tasks", id="task_2", title="k2", state="PENDING", attempts=0)
    complaints = texts(tasks.check_finished(place.db, {"task_1": "k1", "task_2": "k2"}))
    assert complaints == [
        "bee (ses_1) is still waiting, step ready, reason None",
        "task task_1 (k1) is IN_PROGRESS after 2 attempts, branch None; queue: None",
    ]


def test_caps_are_counted_in_the_order_of_the_events(place: Place) -> None:
    for number in (1, 2):
        place.event("agent.reserved", session={"id": f"ses_{number}"})
    place.event("agent.ended", session_id="ses_1")
    place.event("agent.reserved", session={"id": "ses_3"})
    assert not list(tasks.check_caps(place.db, 2, 2, 2, []))
    assert texts(tasks.check_caps(place.db, 1, 2, 2, ["ses_1: processes [4, 5]"])) == [
        "2 agents were alive at event 2, and 1 may be",
        "programs of 2 agents ran at once, and 1 may",
        "rook status showed 2 living agents, and 1 may be",
        "two programs ran for one session at once: ses_1: processes [4, 5]",
    ]


def test_the_sampler_sees_agents_that_run_twice(place: Place) -> None:
    sampler = Sampler(place.site)
    agent = Process(100, 1, 50, "S", processes.AGENT, "", "ses_1")
    sampler.take([agent, replace(agent, pid=101, parent=100), replace(agent, pid=102, state="Z")])
    assert (sampler.most_agents, sampler.doubles) == (1, [])  # a child before its exec, and a dead one
    sampler.take([agent, replace(agent, pid=103)])
    assert sampler.doubles == ["ses_1: processes [100, 103]"]
    sampler.take([agent, replace(agent, pid=104, session="ses_2")])
    assert sampler.most_agents == 2
