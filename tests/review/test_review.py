"""The review queue: looked at, approved, sent back, and what lands of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import git
from den import DONE, Den
from rookery.base.errors import InvalidState
from rookery.base.ids import handle
from rookery.config.environ import read_environ
from rookery.ops.context import Context
from rookery.review.service import Decision
from support import wait_until

pytestmark = pytest.mark.slow

FIRST = [{"edit": {"path": "work.txt", "text": "first\n"}}, {"commit": "First"}, DONE]
SECOND = [
    {"until": {"mail_from": "human"}},
    {"edit": {"path": "work.txt", "text": "{mail.body}\n"}},
    {"commit": "Second"},
    DONE,
]


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


def handed_in(den: Den, name: str = "bee", *steps: object) -> str:
    """A task that an agent has handed in."""
    task = den.task("Write work", [*(steps or (*FIRST, *SECOND))])
    den.sling(task, "--name", name)
    den.wait_for(name, "completed")
    return task


def state(den: Den, task: str) -> str:
    return str(den.rook.json("task", "get", task).data["state"])


def test_work_is_sent_back_to_its_agent_which_goes_on_and_hands_in_again(den: Den) -> None:
    task = handed_in(den)
    branch = f"rook/bee/{handle(task)}"
    first = git(den.folder, "rev-parse", branch)
    assert den.rook("merge", "enqueue", branch).status == 0
    (review,) = den.rook.json("review", "list").data
    assert (review["task_id"], review["agent"], review["files"], review["added"]) == (task, "bee", 1, 1)
    known = den.rook.json("task", "get", task).data
    assert (review["attempt"], review["attempts"]) == (known["attempt"], known["attempts"]) == (1, 0)
    assert ", 1 attempt\n" in den.rook("review", "show", task).out.decode()

    decided = den.rook.json("review", "request-changes", task, "use the better word").data

    assert (decided["action"], decided["commit"], decided["state"]) == ("changes_requested", first, "IN_PROGRESS")
    assert decided["session"]["agent"] == "bee"
    assert len(decided["withdrawn"]) == 1
    den.wait_for("bee", "completed")
    assert git(den.folder, "show", f"{branch}:work.txt").startswith("use the better word")
    shown = den.rook.json("review", "show", task).data
    assert [step["action"] for step in shown["steps"]] == ["submitted", "changes_requested", "submitted"]
    assert shown["steps"][1]["comment"] == "use the better word"
    assert shown["state"] == "PENDING_REVIEW"
    since = den.rook.json("diff", task, "--since", "review").data
    assert since["start"] == first
    assert [file["path"] for file in since["files"]] == ["work.txt"]
    assert den.rook("review", "approve", task, "good", "--merge").status == 0
    assert state(den, task) == "COMPLETED"
    assert den.rook.json("review", "show", task).data["files"] == 1
    assert f"landed on main as ({git(den.folder, 'rev-parse', 'main')[:12]})" in den.rook("diff", "bee").out.decode()
    landed = den.rook.json("diff", "bee").data
    assert (landed["landed_on"], [file["path"] for file in landed["files"]]) == ("main", ["work.txt"])


def test_what_an_agent_says_before_it_has_seen_the_request_hands_nothing_in(den: Den, tmp_path: Path) -> None:
    edit, commit, done = FIRST
    submit = {"rook": ["task", "submit", "{task}"]}
    waits = {"run": f"while test ! -e {tmp_path}/go; do sleep 0.05; done"}
    asks = [SECOND[0], {"wait": "mail"}]
    task = den.task("Write work", [edit, commit, submit, waits, done, *asks, *SECOND[1:]])
    den.sling(task, "--name", "bee")
    wait_until(lambda: state(den, task) == "PENDING_REVIEW", 60)
    assert den.rook.json("review", "request-changes", task, "use the better word").data["is_told"]
    (tmp_path / "go").touch()
    wait_until(lambda: den.agent("bee").get("turns") == 2, 60)
    den.wait_for("bee", "waiting")
    assert state(den, task) == "IN_PROGRESS"
    assert den.rook.json("merge", "--all").data["entries"] == []
    den.rook("mail", "send", "bee", "--subject", "Go on")
    den.wait_for("bee", "completed")
    assert git(den.folder, "log", "--format=%s", f"main..rook/bee/{handle(task)}") == "Second\nFirst"
    assert state(den, task) == "PENDING_REVIEW"


def test_an_author_that_ends_meanwhile_is_resumed_and_a_second_request_is_refused(den: Den) -> None:
    edit, commit, _ = FIRST
    submit = {"rook": ["task", "submit", "{task}"]}
    task = den.task("Write work", [edit, commit, submit, {"wait": "mail"}, *SECOND])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "waiting")
    with den.without_loop():
        ctx = Context(cwd=str(den.folder), environ=read_environ(), clock=lambda: 2_000_000_000.0)
        one, other = (Decision(ctx, task, "request changes", comment) for comment in ("one word", "other word"))
        den.rook("stop", "bee")
        decided = one.request_changes()
        assert decided.session is not None
        with pytest.raises(InvalidState):
            other.request_changes()
        ctx.close()
    asked = [message for message in den.mail(to="bee") if "word" in message["body"]]
    assert [message["body"].split("\n")[0] for message in asked] == ["one word"]


def test_a_rebase_is_asked_for_also_if_its_author_cannot_be_resumed(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST)
    den.rook("worktree", "clean", "bee")
    decided = den.rook.json("review", "request-rebase", task, "-c", "provision.setup=exit 7").data
    assert (decided["state"], decided["session"]) == ("NEEDS_REBASE", None)
    assert "bee could not be resumed" in decided["problem"]
    steps = den.rook.json("review", "show", task).data["steps"]
    assert [step["action"] for step in steps] == ["submitted", "rebase_requested"]


def test_an_approval_whose_landing_fails_says_so_and_what_to_do(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST)
    (den.folder / "work.txt").write_text("other\n")
    git(den.folder, "add", "-A")
    git(den.folder, "commit", "-qm", "Other")
    ran = den.rook("-c", "merge.tiers=mechanical", "review", "approve", task, "--merge")
    assert (ran.status, state(den, task)) == (1, "APPROVED")
    assert b"rook merge resolve " in ran.out
    assert b"rook merge resolve " in den.rook("merge", "--all").out
    assert git(den.folder, "show", "main:work.txt") == "other"


def test_an_approval_whose_gate_fails_shows_what_it_printed(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST)
    config = den.folder / ".rookery" / "config.local.yaml"
    config.write_text(config.read_text() + "gates:\n  - {name: check, run: 'echo the reason; test ! -e work.txt'}\n")
    ran = den.rook("review", "approve", task, "--merge")
    assert ran.status == 1
    assert b"the reason" in ran.out
    assert b"`rook resume bee " in ran.out


def test_rejected_work_does_not_land(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST, {"until": {"mail_type": "question"}})
    den.rook.json("review", "request-changes", task, "no")
    den.wait_for("bee", "waiting")
    assert den.rook("stop", "bee").status == 0
    den.rook("merge", "--all")
    refused = den.rook("merge", "--branch", "bee")
    assert refused.status == 1
    assert b"asked for changes" in refused.err
    assert git(den.folder, "log", "--format=%s", "main").splitlines()[0] != "First"
    assert den.rook("merge", "--branch", "bee", "--force").status == 0
    assert git(den.folder, "show", "main:work.txt") == "first"


def test_an_approval_is_for_a_commit(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST)
    assert den.rook("task", "approve", task).status == 0
    assert state(den, task) == "APPROVED"
    assert den.rook("review", "approve", task).status == 1
    tree = den.folder / ".rookery/worktrees/bee"
    (tree / "more.txt").write_text("more\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "More")

    den.rook("merge", "--all")

    assert state(den, task) == "APPROVED"
    (review,) = den.rook.json("review", "list").data
    assert review["is_moved"]
    assert den.rook("review", "approve", task).status == 0
    assert den.rook("merge", "--all").status == 0
    assert state(den, task) == "COMPLETED"


def test_work_whose_agent_cannot_go_on_is_open_for_others(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST)
    den.rook("worktree", "clean", "bee")
    den.sling(den.task("Other", [{"hang": True}]), "--name", "bee")
    decided = den.rook.json("review", "request-changes", task, "no").data
    assert (decided["state"], decided["session"]) == ("PENDING", None)
    assert "another task" in decided["problem"]
    den.rook("stop", "bee")
    den.sling(task, "--name", "wasp")
    den.wait_for("wasp", "completed")


def test_a_rebase_is_asked_for_and_handed_in_again(den: Den) -> None:
    rebase = [{"wait": "mail"}, {"run": "rook worktree rebase bee"}, DONE]
    task = handed_in(den, "bee", *FIRST, *rebase)
    (den.folder / "base.txt").write_text("base\n")
    git(den.folder, "add", "-A")
    git(den.folder, "commit", "-qm", "Base")
    decided = den.rook.json("review", "request-rebase", task).data
    assert (decided["state"], decided["session"]["agent"]) == ("NEEDS_REBASE", "bee")
    den.wait_for("bee", "completed")
    assert state(den, task) == "PENDING_REVIEW"
    assert git(den.folder, "merge-base", "main", f"rook/bee/{handle(task)}") == git(den.folder, "rev-parse", "main")
    since = den.rook.json("diff", task, "--since", "review").data
    assert since["files"] == []


def test_a_review_goes_by_the_agents_name_while_its_branch_is_the_tasks(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST)
    assert den.rook.json("review", "show", "bee").data["task_id"] == task
    assert den.rook.json("compare", "bee").data["task_id"] == task
    assert den.rook("task", "fail", task, "--reason", "again").status == 0
    assert den.rook("task", "reopen", task).status == 0
    den.sling(task, "--name", "wasp")
    den.wait_for("wasp", "completed")
    earlier = den.rook("review", "approve", "bee")
    assert (earlier.status, b"is not the current attempt" in earlier.err) == (1, True)
    assert state(den, task) == "PENDING_REVIEW"
    assert den.rook("review", "approve", "wasp").status == 0
    assert state(den, task) == "APPROVED"


def test_the_log_of_an_agent_ends_with_how_it_ended(den: Den) -> None:
    task = den.task("Crash", [{"edit": {"path": "half.txt", "text": "half"}}, {"crash": 3}])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "crashed")
    for level in ((), ("--level", "error")):
        last = json.loads(den.rook("logs", "bee", "--json", *level).out.splitlines()[-1])["data"]
        assert (last["kind"], last["is_error"]) == ("agent.ended", True)
        assert last["text"].startswith("crashed: exited with status 3")


def test_quiet_prints_what_the_next_command_accepts(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST)
    printed = {
        "review list": task,
        "review show bee": task,
        "diff bee": "work.txt",
        "path bee": str(den.folder / ".rookery/worktrees/bee"),
        "task tree": task,
        "merge predict bee": f"rook/bee/{handle(task)}",
    }
    for command, expected in printed.items():
        assert den.rook(*command.split(), "-q").out.decode() == f"{expected}\n", command
    (item,) = den.rook("inbox", "-q").out.decode().splitlines()
    assert den.rook("inbox", "ack", item).status == 0
    assert den.rook("inbox", "-q").out == b""
    assert den.rook("review", "approve", den.rook("review", "list", "-q").out.decode().strip(), "-q").status == 0
    assert state(den, task) == "APPROVED"


def test_approving_and_landing_at_once_goes_on_after_a_kill_between_both(den: Den) -> None:
    task = handed_in(den, "bee", *FIRST)
    assert den.rook("review", "approve", task).status == 0
    assert b"rook merge --branch" in den.rook("review", "approve", task).err
    assert den.rook.json("review", "approve", task, "--merge").data["state"] == "COMPLETED"


def test_a_person_hands_in_what_a_crashed_agent_has_left(den: Den) -> None:
    task = den.task("Write work", [*FIRST[:2], {"crash": 3}, *SECOND])
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "crashed")
    assert state(den, task) == "PENDING"

    assert den.rook("task", "submit", task).status == 0

    (review,) = den.rook.json("review", "list").data
    assert (review["agent"], review["branch"]) == ("bee", f"rook/bee/{handle(task)}")
    assert den.rook.json("review", "request-changes", task, "better").data["session"]["agent"] == "bee"
    den.wait_for("bee", "completed")
    assert den.rook("merge", "--all").status == 0
    assert git(den.folder, "show", "main:work.txt").startswith("better")


@pytest.mark.parametrize("verb", ["approve", "request-changes", "request-rebase"])
def test_a_second_task_or_agent_is_no_comment(den: Den, verb: str) -> None:
    task = handed_in(den)
    other = den.task("Another", [])
    for name in (other, handle(other), handle(other).upper(), "bee"):
        refused = den.rook.json("review", verb, task, name)
        assert refused.error["code"] == "invalid_input"
        assert f"`rook review {verb}`" in refused.error["hint"]
    assert state(den, task) == "PENDING_REVIEW"
    assert den.rook("review", verb, task, f"see {handle(other)}").status == 0


def test_what_was_handed_in_stays_so_if_its_agent_is_stopped_before_its_turn_has_ended(den: Den) -> None:
    task = den.task("Write work", [*FIRST, {"hang": True}])
    den.sling(task, "--name", "bee")
    wait_until(lambda: bool(den.mail(type="worker_done")), 30)
    assert den.rook("stop", "--all", "--yes").status == 0
    assert (den.agent("bee")["outcome"], state(den, task)) == ("completed", "PENDING_REVIEW")
    assert den.rook("merge", "--all").status == 0
    assert git(den.folder, "show", "main:work.txt") == "first"
