"""An agent that has ended goes on: same branch, worktree, conversation; killed or refused, all is as before."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_rows import Agent
from conftest import git
from den import DONE, Den
from rookery.base.ids import handle
from support import run_rook, wait_until

pytestmark = pytest.mark.slow

FIRST = [{"edit": {"path": "work.txt", "text": "first\n"}}, {"commit": "First"}]
SECOND = [{"edit": {"path": "work.txt", "text": "second\n"}}, {"commit": "Second"}, DONE]


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def stopped(den: Den, *steps: object) -> str:
    """An agent `bee` that did these steps and was stopped; its task."""
    task = den.task("Task", [*steps, {"wait": "mail"}, *SECOND])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "waiting")
    assert den.rook("stop", "bee").status == 0
    return task


def sessions(den: Den) -> list[tuple[str, str, str, str]]:
    db = den.rook.open()
    rows = db.all(
        "SELECT id, coalesce(outcome, state), coalesce(json_extract(settings, '$.resumed_from'), ''), runtime_session "
        "FROM sessions WHERE agent = 'bee' ORDER BY seq"
    )
    db.close()
    return rows


def test_a_second_agent_is_no_text(den: Den) -> None:
    stopped(den)
    refused = den.rook.json("resume", "bee", "bee")
    assert (refused.error["code"], "`rook resume`" in refused.error["hint"]) == ("invalid_input", True)
    assert len(sessions(den)) == 1


@pytest.mark.parametrize("mode", ["--headless", "--tmux"])
def test_a_stopped_agent_goes_on_with_branch_worktree_and_conversation(den: Den, mode: str) -> None:
    loose = {"edit": {"path": "loose.txt", "text": "loose\n"}}
    task = den.task("Task", [*FIRST, loose, {"wait": "mail"}, *SECOND])
    den.sling(task, "--name", "bee", mode)
    den.wait_for("bee", "waiting")
    assert den.rook("stop", "bee").status == 0
    assert den.rook.json("task", "get", task).data["state"] == "PENDING"

    resumed = den.rook.json("resume", "bee").data

    assert (resumed["is_recreated"], resumed["restored"], resumed["has_conversation"]) == (False, None, True)
    assert den.rook.json("task", "get", task).data["assignee"] == "bee"
    den.wait_for("bee", "completed")
    (old, outcome, _, conversation), (_, now, earlier, same) = sessions(den)
    assert (outcome, now, earlier, conversation) == ("stopped", "completed", old, same)
    assert git(den.folder, "log", "--format=%s", f"rook/bee/{handle(task)}", "^main").splitlines() == [
        "Second",
        "First",
    ]
    assert (den.folder / ".rookery/worktrees/bee/loose.txt").read_text() == "loose\n"
    assert den.rook.json("task", "get", task).data["state"] == "PENDING_REVIEW"
    den.assert_no_process()


@pytest.mark.parametrize("how", ["cleaned", "lost"])
def test_a_worktree_that_is_gone_is_made_again_with_what_was_not_committed(den: Den, how: str) -> None:
    task = stopped(den, *FIRST, {"edit": {"path": "loose.txt", "text": "loose\n"}})
    tree = den.folder / ".rookery/worktrees/bee"
    if how == "cleaned":
        assert den.rook("worktree", "clean", "bee").status == 0
    else:
        shutil.rmtree(tree)
    assert not tree.exists()

    resumed = den.rook.json("resume", "bee").data

    assert resumed["is_recreated"]
    assert resumed["restored"].startswith("refs/rookery/" + ("rescue" if how == "cleaned" else "snapshots"))
    den.wait_for("bee", "completed")
    assert (tree / "loose.txt").read_text() == "loose\n"
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "second"


def test_an_agent_that_committed_nothing_goes_on_with_what_a_cleaning_saved(den: Den) -> None:
    steps = [{"edit": {"path": "loose.txt", "text": "loose\n"}}, {"wait": "mail"}, {"commit": "Work"}, DONE]
    task = den.task("Write", steps)
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "waiting")
    assert den.rook("stop", "bee", "--clean").status == 0
    assert den.rook("worktree", "clean", "--all").status == 0
    assert not (den.folder / ".rookery/worktrees/bee").exists()
    assert den.rook.json("resume", "bee").data["restored"].startswith("refs/rookery/rescue/bee/")
    den.wait_for("bee", "completed")
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:loose.txt") == "loose"


def test_an_agent_that_left_nothing_begins_where_it_began(den: Den) -> None:
    task = stopped(den)
    assert den.rook("worktree", "clean", "bee").status == 0
    assert git(den.folder, "branch", "--list", f"rook/bee/{handle(task)}") == ""

    assert den.rook.json("resume", "bee").data["is_recreated"]

    den.wait_for("bee", "completed")
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "second"


def test_it_is_told_how_its_last_session_ended_and_what_is_asked(den: Den) -> None:
    stopped(den, *FIRST)
    resumed = den.rook.json("resume", "bee", "mind the `gap`").data
    prompt = resumed["session"]["settings"]["prompt"]
    assert "ended (stopped: stopped by human)" in prompt
    assert prompt.endswith("human asks:\n\nmind the `gap`")
    den.wait_for("bee", "completed")


def test_work_in_review_is_sent_back_only_with_a_text(den: Den) -> None:
    task = den.task("Task", [*FIRST, DONE, {"until": {"mail_from": "human"}}, *SECOND])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")
    refused = den.rook("resume", "bee")
    assert refused.status == 1
    assert b"rook review request-changes" in refused.err
    assert den.agent("bee")["outcome"] == "completed"
    assert den.rook.json("resume", "bee", "use the second").status == 0
    den.wait_for("bee", "completed")
    wait_until(lambda: git(den.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "second", 30)
    assert [message["body"].splitlines()[0] for message in den.mail(to="bee")] == ["use the second"]


def test_what_cannot_be_resumed_is_refused_and_changes_nothing(den: Den) -> None:
    task = stopped(den, *FIRST)
    events = den.rook.count_events()
    assert b"no agent wasp" in den.rook("resume", "wasp").err
    assert den.rook("resume", "bee", "--tmux", "--headless").status == 1
    den.rook("task", "cancel", task)
    refused = den.rook("resume", "bee")
    assert (refused.status, b"rook task reopen" in refused.err) == (1, True)
    den.rook("task", "reopen", task)
    den.sling(task, "--name", "wasp")
    refused = den.rook("resume", "bee")
    assert (refused.status, b"wasp is at work" in refused.err) == (1, True)
    den.rook("stop", "wasp")
    assert [session[1] for session in sessions(den)] == ["stopped"]
    assert den.rook.count_events() > events
    assert den.rook("resume", "bee").status == 0
    alive = den.rook("resume", "bee")
    assert (alive.status, b"has not ended" in alive.err) == (1, True)
    den.rook("stop", "bee")


def test_one_whose_work_has_landed_gets_a_new_task(den: Den) -> None:
    task = den.task("Task", [*FIRST, DONE])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")
    assert den.rook("merge", "--all").status == 0
    assert b'`rook sling "..." --name bee`' in den.rook("mail", "send", "bee", "--subject", "More").out.replace(
        "…".encode(), b"..."
    )
    refused = den.rook.json("resume", "bee")
    assert (refused.status, "is completed" in refused.error["message"]) == (1, True)
    assert '`rook sling "…" --name bee`' in refused.error["hint"]
    again = den.task("Again", [{"until": {"mail_from": "human"}}, {"edit": {"path": "more.txt", "text": "more\n"}}])
    den.sling(again, "--name", "bee")
    wait_until(lambda: (den.folder / ".rookery/worktrees/bee/more.txt").exists(), 30)
    den.rook("stop", "bee")


def test_a_branch_that_is_gone_is_not_invented(den: Den) -> None:
    task = stopped(den, *FIRST)
    den.rook("worktree", "clean", "bee")
    git(den.folder, "branch", "-D", f"rook/bee/{handle(task)}")
    refused = den.rook("resume", "bee")
    assert (refused.status, b"is gone" in refused.err) == (1, True)
    assert len(sessions(den)) == 1
    assert b"`rook diff bee`" in den.rook("path", "bee").err
    assert b"`rook worktree snapshots bee`" in den.rook("diff", "bee").err
    assert den.rook("sling", task, "--name", "bee").status == 0
    den.rook("stop", "bee")


@pytest.mark.parametrize("is_cleaned", [True, False])
def test_a_resume_that_fails_leaves_the_earlier_session_the_last(den: Den, is_cleaned: bool) -> None:
    task = stopped(den, *FIRST, {"edit": {"path": "loose.txt", "text": "loose\n"}})
    tree = den.folder / ".rookery/worktrees/bee"
    if is_cleaned:
        den.rook("worktree", "clean", "bee")
    conversation = next((den.folder / ".rookery/sessions").glob("*/runtime/scripted.json"))
    kept = conversation.read_text()
    conversation.chmod(0o600)
    conversation.unlink()
    conversation.parent.rmdir()
    conversation.parent.write_text("no folder")

    assert den.rook("resume", "bee").status == 1

    assert [session[1] for session in sessions(den)] == ["stopped", "failed"]
    assert den.agent("bee")["outcome"] == "stopped"
    assert den.rook.json("task", "get", task).data["state"] == "PENDING"
    assert tree.exists() != is_cleaned
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "first"
    conversation.parent.unlink()
    conversation.parent.mkdir()
    conversation.write_text(kept)
    resumed = den.rook.json("resume", "bee").data
    assert (resumed["is_recreated"], resumed["restored"] is not None) == (is_cleaned, is_cleaned)
    den.wait_for("bee", "completed")
    assert (tree / "loose.txt").read_text() == "loose\n"


@pytest.mark.sweep
@pytest.mark.parametrize(
    "step", ["reserved", "worktree made", "checked_out", "provisioned", "work restored", "instructed", "ready"]
)
def test_a_resume_that_is_killed_is_undone_or_goes_on(den: Den, step: str) -> None:
    task = stopped(den, *FIRST, {"edit": {"path": "loose.txt", "text": "loose\n"}})
    den.rook("worktree", "clean", "bee")
    den.killed(step, "resume", "bee")

    assert den.rook("loop", "run").status == 0

    if step != "ready":
        wait_until(lambda: den.rook.json("task", "get", task).data["state"] == "PENDING", 30)
        wait_until(lambda: den.agent("bee")["outcome"] == "stopped", 30)
        assert den.rook("resume", "bee").status == 0
    den.wait_for("bee", "completed")
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "second"
    assert (den.folder / ".rookery/worktrees/bee/loose.txt").read_text() == "loose\n"


def test_of_two_resumes_at_once_one_wins(den: Den) -> None:
    stopped(den, *FIRST)
    with ThreadPoolExecutor(2) as pool:
        ran = list(pool.map(lambda _: den.rook("resume", "bee"), range(2)))
    assert sorted(one.status for one in ran) == [0, 1]
    assert len(sessions(den)) == 2
    den.wait_for("bee", "completed")


def test_a_lead_resumes_what_is_below_it_and_nothing_else(project: Path) -> None:
    lead, other = Agent(project, "queen", "lead"), Agent(project, "wasp")
    other.end()
    refused = run_rook(project, "resume", "wasp", env=lead.env)
    assert (refused.status, b"answers to human" in refused.err) == (1, True)
    builder = Agent(project, "bee", under=lead)
    refused = run_rook(project, "resume", "queen", env=builder.env)
    assert (refused.status, b"may not" in refused.err) == (1, True)


def test_mail_to_an_agent_whose_work_is_in_review_is_what_it_is_resumed_for(den: Den) -> None:
    task = den.task("Task", [*FIRST, DONE, {"until": {"mail_from": "human"}}, *SECOND])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")
    assert b"`rook resume bee`" in den.rook("mail", "send", "bee", "--subject", "Use the second").out
    assert b"was in review and goes back to it" in den.rook("resume", "bee").out
    den.wait_for("bee", "completed")
    shown = den.rook.json("review", "show", task).data
    assert [step["action"] for step in shown["steps"]] == ["submitted", "changes_requested", "submitted"]
    assert "Use the second" in shown["steps"][1]["comment"]


def test_of_two_attempts_the_one_that_is_not_in_review_can_be_kept_instead(den: Den) -> None:
    task = stopped(den, *FIRST)
    den.sling(task, "--name", "wasp", "--from", "bee")
    den.wait_for("wasp", "waiting")
    den.rook("task", "submit", task)
    den.rook("stop", "wasp")
    assert f"`rook compare {handle(task)} --keep bee`".encode() in den.rook("resume", "bee").err
    assert den.rook("compare", handle(task), "--keep", "bee").status == 0
    assert b"rook review request-changes" in den.rook("resume", "bee").err
    den.rook("review", "approve", task)
    hint = den.rook.json("resume", "wasp").error["hint"]
    commands = [text for text in hint.split("`") if text.startswith("rook ")]
    assert [den.rook(*command.split()[1:]).status for command in commands] == [0, 0, 0]
    assert den.rook.json("task", "get", task).data["branch"] == f"rook/wasp/{handle(task)}"


def test_one_whose_task_was_deleted_goes_on_with_what_it_is_asked(den: Den) -> None:
    task = stopped(den, *FIRST)
    assert den.rook("task", "delete", task).status == 0
    resumed = den.rook.json("resume", "bee", "finish it all the same").data["session"]
    assert resumed["task_id"] is None
    den.wait_for("bee", "completed")
    assert git(den.folder, "show", f"{resumed['branch']}:work.txt") == "second"
    den.rook("worktree", "clean", "bee")
    git(den.folder, "branch", "-D", resumed["branch"])
    assert den.rook.json("resume", "bee").error["hint"] == '`rook sling "…" --name bee` begins again'


def test_one_that_is_paused_is_handed_back(den: Den) -> None:
    den.sling(den.task("Task", [{"wait": "mail"}, DONE]), "--name", "bee")
    den.wait_for("bee", "waiting")
    den.rook("pause", "bee")
    assert b"`rook handback bee`" in den.rook("resume", "bee").err
    assert b"`rook handback bee`" in den.rook("mail", "send", "bee", "--subject", "Go").out
    den.rook("handback", "bee")
    den.wait_for("bee", "completed")


def test_a_resumed_lead_hears_of_its_agents_that_ended_with_it(den: Den) -> None:
    epic = den.task("Epic", [{"wait": "mail"}, {"rook": ["resume", "bee"]}, {"wait": "mail"}])
    den.sling(epic, "--role", "lead", "--name", "queen")
    den.wait_for("queen", "waiting")
    den.rook("pause", "queen")  # the mail of its agents must not wake it yet
    plans: dict[str, list[Any]] = {"bee": [{"wait": "mail"}], "wasp": [{"wait": "mail"}], "ant": [*FIRST, DONE]}
    for name, steps in plans.items():
        part = den.task(name, steps, "--parent", epic)
        den.sling(part, "--name", name, "--parent", "queen")
        den.wait_for(name, "completed" if name == "ant" else "waiting")
    den.rook("stop", "wasp")
    assert den.rook("stop", "queen").status == 0

    resumed = den.rook.json("resume", "queen").data

    assert resumed["workers"] == ["bee", "wasp"]
    prompt = resumed["session"]["settings"]["prompt"]
    assert f"- bee, branch {den.agent('bee')['branch']}, stopped: queen was stopped" in prompt
    assert "- wasp, branch" in prompt
    assert "- ant" not in prompt
    den.wait_for("bee", "waiting")
    den.wait_for("queen", "waiting")
    den.rook("stop", "queen")
    shown = den.rook("resume", "queen").out.decode()
    assert "`rook resume bee` starts it again" in shown
    assert "rook resume ant" not in shown
    assert den.rook("stop", "--all", "--yes").status == 0


@pytest.mark.slow
def test_one_that_is_resumed_is_no_further_agent_of_its_lead_and_run(den: Den) -> None:
    wait = [{"wait": "mail"}]
    den.sling(den.task("Lead", wait), "--role", "lead", "--name", "queen", "--max-agents", "1")
    den.sling(den.task("Part", wait), "--parent", "queen", "--name", "bee")
    den.wait_for("bee", "waiting")
    den.rook("stop", "bee")
    assert den.rook.json("resume", "bee", "-c", "agents.max_per_run=2").data["session"]["parent"] == "queen"
    refused = den.rook.json("sling", den.task("More", wait), "--parent", "queen").error
    assert (refused["code"], refused["message"]) == ("cap_reached", "queen may sling 1 agent in all, and has")
