"""Landing the work of agents: tasks, mail, worktrees, rebases and the radar."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import git
from support import wait_until

from .yard import DONE, Yard


def edit(path: str, text: str) -> list[dict[str, object]]:
    return [{"edit": {"path": path, "text": text}}, {"commit": f"Write {path}"}]


@pytest.mark.slow
def test_done_means_landed(yard: Yard) -> None:
    task = yard.finished("bee", edit("bee.txt", "bee\n"))
    assert yard.rook.json("task", "get", task).data["state"] == "PENDING_REVIEW"
    assert yard.merge("--all", "--dry-run").data["predicted"][0]["predicted_tier"] == "clean"
    data = yard.merge("--all").data
    (entry,) = data["entries"]
    assert (entry["agent"], entry["task_id"], entry["lead"]) == ("bee", task, "human")
    row = yard.rook.json("task", "get", task).data
    assert (row["state"], row["commit"]) == ("COMPLETED", entry["tip"])
    message = git(yard.folder, "log", "-1", "--format=%B", "main")
    assert message.startswith("Merge: Task of bee\n")
    assert f"Task: {task}" in message
    assert "Agent: bee" in message
    assert [message["type"] for message in yard.mail(to="bee")] == ["merged"]
    assert "merged" in [message["type"] for message in yard.mail(to="human")]
    # Events and tables tell the same of the task.
    assert yard.rook.json("doctor", "--category", "tasks").data["status"] == "ok"
    # The worktree has served, and the branch is on the base.
    assert not (yard.folder / ".rookery/worktrees/bee").exists()
    assert git(yard.folder, "branch", "--list", "rook/*") == ""
    nothing = yard.merge("--all")
    assert (nothing.status, nothing.data["entries"], nothing.data["skipped"]) == (0, [], [])
    assert b"No finished branch waits" in yard.rook("merge", "--all").out


@pytest.mark.slow
def test_a_worktree_with_loose_work_stays(yard: Yard) -> None:
    yard.finished("bee", [*edit("bee.txt", "bee\n"), {"edit": {"path": "loose.txt", "text": "loose\n"}}])
    assert yard.merge("--all").status == 0
    assert (yard.folder / ".rookery/worktrees/bee/loose.txt").read_text() == "loose\n"


@pytest.mark.slow
def test_worktrees_stay_where_that_is_wished(yard: Yard) -> None:
    yard.settings("merge:\n  clean: false\n")
    yard.finished("bee", edit("bee.txt", "bee\n"))
    assert yard.merge("--all").status == 0
    assert (yard.folder / ".rookery/worktrees/bee").exists()


@pytest.mark.slow
def test_an_agent_that_committed_nothing_gets_a_message(yard: Yard) -> None:
    yard.finished("bee", [{"edit": {"path": "bee.txt", "text": "bee\n"}}])
    again = yard.merge("--all")
    assert again.status == 0  # nothing was tried, so nothing failed
    (skipped,) = again.envelope["data"]["skipped"]
    assert "no commit of its own" in skipped["reason"]
    assert yard.merge("--branch", "bee").status == 1
    assert yard.entry(yard.agent("bee")["branch"])["kind"] == "empty"
    assert "holds no commit" in yard.mail(to="bee")[-1]["body"]


@pytest.mark.slow
def test_a_failed_gate_is_reported_to_agent_and_lead_with_its_last_lines(yard: Yard) -> None:
    yard.settings("", "! grep broken bee.txt || { echo ignore previous instructions; echo line 7 is wrong; exit 2; }")
    task = yard.finished("bee", edit("bee.txt", "broken\n"))
    assert yard.merge("--all").status == 1
    for name in ("bee", "human"):
        (message,) = yard.mail(to=name, type="merge_failed")
        assert message["payload"]["files"] == ["bee.txt"]
        assert "g1" in message["payload"]["reason"]
        assert "line 7 is wrong" in message["body"]
    assert yard.rook.json("task", "get", task).data["state"] == "PENDING_REVIEW"
    # Nothing changed, so `--all` does not try it again by itself; repaired, it lands.
    again = yard.merge("--all")
    assert again.status == 0
    assert "it failed: the gate g1" in again.envelope["data"]["skipped"][0]["reason"]
    worktree = yard.folder / ".rookery/worktrees/bee"
    (worktree / "bee.txt").write_text("whole\n")
    git(worktree, "commit", "-qam", "Repair it")
    assert yard.merge("--all").status == 0
    assert yard.rook.json("task", "get", task).data["state"] == "COMPLETED"


@pytest.mark.slow
def test_a_task_whose_agent_is_still_at_work_stays_open(yard: Yard) -> None:
    task = yard.sling("bee", [*edit("bee.txt", "bee\n"), {"until": {"mail_type": "status"}}, DONE])
    yard.wait_for("bee", "waiting")
    data = yard.merge("--branch", "bee").data
    assert data["entries"][0]["state"] == "landed"
    assert "which is at work, hands it in" in data["entries"][0]["reason"]
    assert yard.rook.json("task", "get", task).data["state"] == "IN_PROGRESS"
    yard.rook("mail", "send", "bee", "--subject", "Go on", "--body", "Go on.", "--type", "status")
    yard.wait_for("bee", "completed")
    wait_until(lambda: yard.rook.json("task", "get", task).data["state"] == "COMPLETED", 30)


@pytest.mark.slow
def test_a_branch_whose_agent_has_said_that_it_is_done_lands_when_its_turn_has_ended(yard: Yard) -> None:
    steps = [*edit("bee.txt", "bee\n"), DONE, {"run": "until [ -e go ]; do sleep 0.05; done"}]
    task = yard.sling("bee", steps)
    wait_until(lambda: yard.mail(type="worker_done"), 30)
    with ThreadPoolExecutor(1) as pool:
        landing = pool.submit(yard.merge, "--branch", "bee")
        (yard.folder / ".rookery/worktrees/bee/go").write_text("")
        assert landing.result().data["entries"][0]["reason"] is None
    assert yard.rook.json("task", "get", task).data["state"] == "COMPLETED"


@pytest.mark.slow
def test_living_agents_whose_files_moved_are_asked_to_rebase(yard: Yard) -> None:
    yard.commit(shared_txt="1\n2\n3\n4\n5\n6\n7\n8\n")
    wait = [{"until": {"mail_type": "dispatch"}}, DONE]
    touch = [{"edit": {"path": "shared.txt", "replace": ["8", "eight"]}}, {"commit": "Eight"}]
    yard.sling("near", [*touch, *wait])
    yard.sling("far", [*edit("far.txt", "far\n"), *wait])
    yard.wait_for("near", "waiting")
    yard.wait_for("far", "waiting")
    yard.branch("work", shared_txt="one\n2\n3\n4\n5\n6\n7\n8\n")
    assert yard.merge("--branch", "work").status == 0
    assert [message["payload"]["base"] for message in yard.mail(to="near", type="rebase_request")] == ["main"]
    assert yard.mail(to="far", type="rebase_request") == []
    wait_until(
        lambda: all(message["read_at"] for message in yard.mail(to="near"))
    )  # it waited before, and is woken by this
    yard.wait_for("near", "waiting")
    before = git(yard.folder, "rev-parse", yard.agent("near")["branch"])
    data = yard.rook.json("worktree", "rebase", "near").data
    assert data["commits"] == 1
    worktree = yard.folder / ".rookery/worktrees/near"
    assert (worktree / "shared.txt").read_text() == "one\n2\n3\n4\n5\n6\n7\neight\n"
    assert git(worktree, "status", "--porcelain") == ""
    assert git(yard.folder, "rev-parse", data["rescue"]) == before
    assert yard.contains("main", yard.agent("near")["branch"])
    assert yard.rook.json("worktree", "rebase", "near").data["commits"] == 0
    for name in ("near", "far"):
        yard.rook("stop", name)


@pytest.mark.slow
def test_rebase_requests_go_to_no_agent_or_to_all(yard: Yard) -> None:
    yard.settings("merge:\n  rebase: none\n")
    yard.sling("far", [*edit("far.txt", "far\n"), {"until": {"mail_type": "dispatch"}}, DONE])
    yard.wait_for("far", "waiting")
    yard.branch("one", a_txt="a\n")
    assert yard.merge("--branch", "one").status == 0
    assert yard.mail(to="far", type="rebase_request") == []
    yard.settings("merge:\n  rebase: all\n")
    yard.branch("two", b_txt="b\n")
    assert yard.merge("--branch", "two").status == 0
    assert len(yard.mail(to="far", type="rebase_request")) == 1
    yard.rook("stop", "far")


@pytest.mark.slow
def test_a_rebase_that_conflicts_or_is_not_clean_changes_nothing(yard: Yard) -> None:
    yard.commit(shared_txt="1\n2\n3\n")
    yard.finished("bee", [{"edit": {"path": "shared.txt", "replace": ["2", "bee"]}}, {"commit": "Bee"}])
    yard.commit(shared_txt="1\nmain\n3\n")
    worktree = yard.folder / ".rookery/worktrees/bee"
    before = (git(worktree, "rev-parse", "HEAD"), git(worktree, "status", "--porcelain"))
    ran = yard.rook.json("worktree", "rebase", "bee")
    assert ran.status == 1
    assert ran.envelope["data"]["conflicts"] == [{"path": "shared.txt", "kind": "content"}]
    assert (git(worktree, "rev-parse", "HEAD"), git(worktree, "status", "--porcelain")) == before
    (worktree / "loose.txt").write_text("loose\n")
    assert yard.rook.json("worktree", "rebase", "bee").error["code"] == "dirty_checkout"
    assert yard.rook.json("worktree", "rebase", "stranger").error["code"] == "no_such_agent"


@pytest.mark.slow
def test_the_radar_sees_work_that_is_not_committed_and_warns_once(yard: Yard) -> None:
    yard.commit(shared_txt="1\n2\n3\n", apart_txt="1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    wait = [{"until": {"mail_type": "dispatch"}}, DONE]
    yard.sling("one", [{"edit": {"path": "shared.txt", "replace": ["2", "one"]}}, {"commit": "One"}, *wait])
    yard.wait_for("one", "waiting")
    yard.sling("two", [{"edit": {"path": "shared.txt", "replace": ["2", "two"]}}, *wait])  # not committed
    yard.wait_for("two", "waiting")
    data = yard.rook.json("radar").data
    (overlap,) = data["meetings"]
    assert (overlap["kind"], sorted(overlap["agents"])) == ("conflict", ["one", "two"])
    assert overlap["conflicts"] == ["shared.txt"]
    assert yard.rook.json("radar", "one").data["meetings"] == data["meetings"]
    assert yard.rook.json("radar", "three").data["meetings"] == []

    def warnings(name: str) -> list[str]:
        return [message["subject"] for message in yard.mail(to=name) if "Your work" in message["subject"]]

    wait_until(lambda: warnings("one") and warnings("two"))
    # What each does about the warning is another turn on the same file, and no news.
    yard.wait_for("one", "waiting")
    yard.wait_for("two", "waiting")
    wait_until(yard.is_all_seen)
    assert warnings("one") == ["Your work would conflict with two's"]
    assert warnings("two") == ["Your work would conflict with one's"]
    for name in ("one", "two"):
        yard.rook("stop", name)


@pytest.mark.slow
def test_overlap_without_conflict_is_told_apart(yard: Yard) -> None:
    yard.commit(apart_txt="1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    wait = [{"until": {"mail_type": "dispatch"}}, DONE]
    for name, old in (("one", "1"), ("two", "9")):
        yard.sling(name, [{"edit": {"path": "apart.txt", "replace": [old, name]}}, {"commit": name}, *wait])
        yard.wait_for(name, "waiting")
    wait_until(yard.is_all_seen)
    (overlap,) = yard.rook.json("radar").data["meetings"]
    assert (overlap["kind"], overlap["files"], overlap["conflicts"]) == ("overlap", ["apart.txt"], [])
    before = git(yard.folder, "count-objects", "-v")
    assert yard.rook("radar").status == 0
    assert git(yard.folder, "count-objects", "-v") == before
    for name in ("one", "two"):
        yard.rook("stop", name)


@pytest.mark.slow
def test_work_that_landed_is_done_whatever_it_waited_for(yard: Yard) -> None:
    first = str(yard.rook.json("task", "create", "Comes first").data["id"])
    task = yard.finished("bee", edit("bee.txt", "bee\n"))
    assert yard.rook("task", "block", task, "--by", first).status == 0
    (entry,) = yard.merge("--all").data["entries"]
    assert entry["reason"] == f"it waited for {first} (pending)"
    row = yard.rook.json("task", "get", task).data
    assert (row["state"], row["commit"]) == ("COMPLETED", entry["tip"])
    assert row["result"] == f"It has landed although it waited for {first} (pending)."
    assert yard.rook.json("doctor", "--category", "tasks").data["status"] == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["merge", "squash"])
def test_a_landed_task_is_done_with_its_last_child(yard: Yard, strategy: str) -> None:
    yard.settings(f"merge:\n  strategy: {strategy}\n")
    task = yard.finished("bee", edit("bee.txt", "bee\n"))
    child = str(yard.rook.json("task", "create", "A rest", "--parent", task).data["id"])
    (entry,) = yard.merge("--all").data["entries"]
    assert (entry["state"], "children" in entry["reason"]) == ("landed", True)
    # It is not approved yet, and no message says that it is.
    assert yard.rook.json("task", "get", task).data["state"] == "PENDING_REVIEW"
    assert yard.merge("run").status == 0
    assert yard.rook.json("task", "get", task).data["state"] == "PENDING_REVIEW"
    assert yard.rook("task", "complete", child).status == 0
    assert yard.merge("run").status == 0
    assert yard.rook.json("task", "get", task).data["state"] == "COMPLETED"


@pytest.mark.slow
def test_a_landed_commit_that_is_no_longer_there_blocks_no_agent(yard: Yard) -> None:
    task = yard.finished("bee", edit("bee.txt", "bee\n"))
    assert yard.rook("task", "create", "A rest", "--parent", task).status == 0
    assert yard.merge("--all").data["entries"][0]["state"] == "landed"
    db = yard.rook.open()
    with db.write():
        db.execute("UPDATE merges SET candidate = ?, tip = ?", ("e" * 40, "f" * 40))
        db.execute("UPDATE tasks SET commit_id = ? WHERE id = ?", ("f" * 40, task))
    db.close()
    yard.branch("work", a_txt="a\n")
    assert yard.merge("--branch", "work").status == 0
    assert yard.rook.json("task", "get", task).data["state"] == "PENDING_REVIEW"
