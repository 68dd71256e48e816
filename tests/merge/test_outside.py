"""What an agent changes outside of its `--files` is named and needs a reason, from the hand-in to the base."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import git
from rookery.base.ids import handle
from rookery.tasks.model import OutsideFile
from rookery.tasks.scope import outside as scopes
from rookery.tasks.scope.outside import Outside, OutsideFiles
from rookery.tasks.scope.store import BranchScope
from support import Ran, wait_until

from .yard import DONE, Yard

FORMAT = [{"run": "echo mine > a.py; echo formatted > b.py"}, {"commit": "Change a.py"}]
"""The guard sees no file that a program writes."""


def done(reason: str) -> dict[str, Any]:
    return {"mail": {**DONE["mail"], "payload": {"outside_reason": reason}}}


def branch_of(yard: Yard, name: str) -> str:
    return str(yard.agent(name)["branch"])


def commit_on(yard: Yard, branch: str, **files: str | None) -> str:
    """A commit on an agent's branch from outside of its worktree."""
    folder = yard.folder / ".rookery/worktrees" / branch.split("/")[1]
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "More")
    return git(folder, "rev-parse", "HEAD")


def refused_tools(yard: Yard, name: str) -> list[dict[str, Any]]:
    """What the tools of an agent that failed have said."""
    lines = yard.rook("logs", name, "--json").out.decode().splitlines()
    entries = [json.loads(line)["data"] for line in lines]
    return [json.loads(entry["data"]["output"]) for entry in entries if entry["is_error"]]


def failed(ran: Ran) -> dict[str, Any]:
    """The one entry that did not land."""
    assert ran.status == 1, ran
    (entry,) = ran.envelope["data"]["entries"]
    assert isinstance(entry, dict)
    return entry


def handed_in(yard: Yard, reason: str = "make format rewrites both") -> str:
    """An agent that handed in `b.py` with a reason; return its branch."""
    yard.sling("bee", [*FORMAT, done(reason)], "--files", "a.py")
    yard.wait_for("bee", "completed")
    return branch_of(yard, "bee")


@pytest.mark.slow
def test_a_hand_in_with_other_files_is_refused_and_goes_through_with_a_reason(yard: Yard) -> None:
    yard.commit(b_py="before\n")
    task = yard.sling("bee", [*FORMAT, DONE, {"wait": "mail"}, done("make format rewrites both")], "--files", "a.py")
    yard.wait_for("bee", "waiting")

    assert yard.mail(type="worker_done") == []
    error = refused_tools(yard, "bee")[0]["error"]
    assert error["code"] == "outside_files"
    assert "it changes b.py, outside of bee's files (a.py)" in error["message"]
    start = git(yard.folder, "rev-parse", "main")[:12]
    assert f"`git checkout --no-overlay {start} -- b.py`" in error["hint"]
    assert "outside_reason" in error["hint"]
    assert yard.rook.json("task", "get", task).data["outside"] == []

    yard.rook.json("mail", "send", "bee", "--subject", "Go on")
    yard.wait_for("bee", "completed")

    file = {"path": "b.py", "reason": "make format rewrites both", "by": "bee"}
    (message,) = yard.mail(type="worker_done")
    assert message["payload"] == {"outside_reason": file["reason"], "outside": ["b.py"]}
    row = yard.rook.json("task", "get", task).data
    assert (row["state"], row["outside"]) == ("PENDING_REVIEW", [file])
    assert "b.py: make format rewrites both (bee)" in yard.rook("task", "get", task).out.decode()
    assert yard.merge("--all", "--dry-run").data["predicted"][0]["outside"] == [file]
    (entry,) = yard.merge("--all").data["entries"]
    assert (entry["state"], entry["outside"]) == ("landed", [file])
    assert yard.show("b.py") == "formatted"
    assert "Outside-Scope: b.py: make format rewrites both (bee)" in git(yard.folder, "log", "-1", "--format=%B")
    assert yard.entry(entry["branch"])["outside"] == [file]
    assert yard.rook.json("merge", "explain", "bee").data["entry"]["outside"] == [file]
    assert any("b.py: make format" in message["body"] for message in yard.mail(type="merged", to="human"))


@pytest.mark.slow
def test_a_file_that_came_after_the_hand_in_is_held_until_a_person_gives_a_reason(yard: Yard) -> None:
    branch = handed_in(yard)
    commit_on(yard, branch, c_py="later\n")
    before = yard.main()

    (predicted,) = yard.rook.json("merge", "predict", "bee").data
    assert (predicted["predicted_tier"], predicted["files"]) == ("outside", ["c.py"])
    entry = failed(yard.merge("--all"))
    assert (entry["state"], entry["kind"], entry["files"]) == ("failed", "outside", ["c.py"])
    reasons = {file["path"]: file["reason"] for file in entry["outside"]}
    assert reasons == {"b.py": "make format rewrites both", "c.py": None}
    assert yard.main() == before
    (message,) = yard.mail(type="merge_failed", to="human")
    assert "- c.py" in message["body"]
    assert f"rook merge --branch {branch} --outside" in message["body"]

    skipped = yard.merge("--all").envelope["data"]["skipped"]
    assert "c.py" in skipped[0]["reason"]  # it is not tried over and over
    assert yard.rook.json("merge", "retry", "bee").data["state"] == "queued"
    assert failed(yard.rook.json("merge", "run"))["kind"] == "outside"

    (entry,) = yard.merge("--branch", "bee", "--outside", "c.py is needed by b.py").data["entries"]
    assert entry["state"] == "landed"
    assert entry["outside"][1] == {"path": "c.py", "reason": "c.py is needed by b.py", "by": "human"}
    assert yard.show("c.py") == "later"
    assert "c.py: c.py is needed by b.py (human)" in git(yard.folder, "log", "-1", "--format=%B")


def _named(steps: list[Any], task: str) -> str:
    """A script that names a task and its branch."""
    return json.dumps(steps).replace("{part}", task).replace("{handle}", handle(task))


@pytest.mark.slow
def test_a_lead_gives_the_reason_with_merge_ready_and_others_cannot(yard: Yard) -> None:
    payload = {"branch": "rook/bee/{handle}", "task_id": "{part}"}
    ready = {"mail": {"to": "human", "type": "merge_ready", "subject": "Part", "payload": payload}}
    explained = {"mail": {**ready["mail"], "payload": {**payload, "outside_reason": "the lead wants it"}}}
    sling = {"sling": {"task": "{part}", "name": "bee", "files": "a.py"}}
    steps = [sling, *({"until": {"mail_type": kind}} for kind in ("worker_done", "status")), ready, explained]
    steps.append({"wait": "mail"})
    epic = yard.task("Build", [])
    part = yard.task("Part", [*FORMAT, done("format")], "--parent", epic)
    script = f"```rook-script\n{_named(steps, part)}\n```"
    yard.rook.json("task", "update", epic, "--description", script)
    other = [explained, {"wait": "mail"}]
    stranger = yard.task("Other", json.loads(_named(other, part)))
    yard.rook.json("sling", epic, "--role", "lead", "--name", "queen")
    yard.wait_for("queen", "waiting")
    yard.wait_for("bee", "completed")
    branch = branch_of(yard, "bee")
    commit_on(yard, branch, c_py="later\n")
    assert failed(yard.merge("--all"))["kind"] == "outside"

    yard.rook.json("sling", stranger, "--role", "lead", "--name", "wasp")
    yard.wait_for("wasp", "waiting")
    assert yard.mail(type="merge_ready") == []
    yard.rook.json("mail", "send", "queen", "--subject", "Go on")
    yard.wait_for("queen", "waiting", "completed")
    wait_until(lambda: bool(yard.mail(type="merge_ready")))
    (message,) = yard.mail(type="merge_ready")  # the one without a reason was refused
    assert message["payload"]["outside"] == ["b.py", "c.py"]
    assert message["payload"]["outside_reason"] == "format; the lead wants it"
    (entry,) = yard.merge("--all").data["entries"]  # it is tried again by itself, now that there is a reason
    assert (entry["state"], entry["outside"][1]["by"]) == ("landed", "queen")
    assert yard.show("c.py") == "later"


@pytest.mark.slow
def test_only_what_the_branch_itself_changed_counts(yard: Yard) -> None:
    yard.commit(b_py="before\n", old_py="to be renamed, with enough text to be found as a rename\n", gone_py="x\n")
    steps = [{"run": "echo mine > a.py"}, {"commit": "Mine"}, {"wait": "mail"}, {"hang": True}]
    yard.sling("bee", steps, "--files", "a.py,new.py")
    yard.wait_for("bee", "waiting")
    branch = branch_of(yard, "bee")
    worktree = yard.folder / ".rookery/worktrees/bee"
    yard.commit(b_py="the base goes on\n", base_py="new on the base\n")

    def outside() -> list[str]:
        merger = yard.merger()
        try:
            result = scopes.check_hand_in(
                merger.ctx.db, merger.vcs, branch, "main", reason="because", by="human", how="-"
            )
        finally:
            merger.ctx.db.close()
        return [] if result is None else [file.path for file in result.files]

    assert outside() == []
    git(worktree, "merge", "-q", "-m", "Bring main in", "main")
    assert outside() == []
    yard.commit(b_py="and on\n")
    git(worktree, "rebase", "-q", "main")
    assert outside() == []

    git(worktree, "mv", "old.py", "new.py")
    git(worktree, "rm", "-q", "gone.py")
    (worktree / "b.py").write_text("before\n")  # what the base changed is undone: that is a change
    git(worktree, "commit", "-qam", "More")
    assert outside() == ["b.py", "gone.py", "old.py"]

    git(worktree, "checkout", "--no-overlay", "main", "--", "b.py", "gone.py", "old.py")
    git(worktree, "commit", "-qm", "Put them back")
    assert outside() == []


@pytest.mark.slow
def test_a_branch_on_top_of_another_agents_is_not_blamed_for_that_ones_files(yard: Yard) -> None:
    yard.finished("ant", [{"edit": {"path": "ant.py", "text": "ant\n"}}, {"commit": "Ant"}])
    steps = [{"edit": {"path": "a.py", "text": "mine\n"}}, {"commit": "Bee"}, DONE]
    yard.sling("bee", steps, "--files", "a.py", "--base", branch_of(yard, "ant"))
    yard.wait_for("bee", "completed")
    (entry,) = yard.merge("--branch", "bee").data["entries"]
    assert (entry["state"], entry["outside"]) == ("landed", [])
    assert (yard.show("a.py"), yard.show("ant.py")) == ("mine", "ant")


@pytest.mark.slow
def test_a_sling_that_failed_on_the_branch_does_not_widen_what_its_agent_was_given(yard: Yard) -> None:
    task = yard.sling("bee", [*FORMAT, {"wait": "mail"}], "--files", "a.py")
    yard.wait_for("bee", "waiting")
    assert yard.rook("stop", "bee").status == 0
    branch = branch_of(yard, "bee")
    assert failed(yard.merge("--branch", branch, "--force"))["kind"] == "outside"
    again = yard.rook.json("sling", task, "--name", "bee")
    assert (again.status, yard.agent("bee")["state"]) == (1, "ended")
    assert failed(yard.merge("--branch", branch, "--force"))["kind"] == "outside"

    yard.settings("", "test ! -e b.py")
    assert failed(yard.merge("--branch", branch, "--force", "--outside", "make format rewrites both"))["kind"] == "gate"
    assert yard.rook.json("sling", task, "--name", "bee").status == 1
    yard.settings("")
    (entry,) = yard.merge("--branch", branch, "--force").data["entries"]
    assert (entry["state"], entry["outside"][0]["reason"]) == ("landed", "make format rewrites both")
    assert yard.show("b.py") == "formatted"


@pytest.mark.slow
def test_hostile_names_are_shown_safely_and_land_with_a_reason(yard: Yard) -> None:
    names = ["-x", "new\nline", "ü.py", '"quoted"', "esc\x1b[31m"]
    quoted = ["-x", '"new\\nline"', "ü.py", '"\\"quoted\\""', '"esc\\u001b[31m"']
    yard.sling("bee", [{"edit": {"path": "a.py", "text": "mine\n"}}, {"commit": "a"}, DONE], "--files", "a.py")
    yard.wait_for("bee", "completed")
    worktree = yard.folder / ".rookery/worktrees/bee"
    for name in names:
        (worktree / name).write_text("hostile\n")
    (worktree / "plain").write_text("x\n")
    with open(bytes(worktree) + b"/not-utf8-\xff", "wb") as file:
        file.write(b"x\n")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-qm", "Hostile")

    ran = yard.rook("merge", "--branch", "bee")
    assert ran.status == 1
    shown = ran.out.decode()
    assert "\x1b[31m" not in shown
    entry = yard.entry(branch_of(yard, "bee"))
    assert entry["kind"] == "outside"
    assert set(entry["files"]) == {*quoted, "plain", '"not-utf8-\\udcff"'}
    assert yard.mail(type="merge_failed", to="human")
    (entry,) = yard.merge("--branch", "bee", "--outside", "a\nreason\x1b[31m").data["entries"]
    assert entry["state"] == "landed"
    trailer = git(yard.folder, "log", "-1", "--format=%B")
    assert "\x1b" not in trailer
    assert "a reason\\x1b[31m (human)" in trailer
    assert git(yard.folder, "show", "main:new\nline") == "hostile"


@pytest.mark.slow
def test_reasons_are_refused_where_there_is_nothing_to_explain(yard: Yard) -> None:
    yard.finished("ant", [{"run": "echo x > anything"}, {"commit": "Anything"}])  # no --files: nothing is outside
    before = yard.main()
    for words, code in (
        (("--branch", "ant", "--outside", "why"), "invalid_input"),
        (("--all", "--outside", "why"), "invalid_input"),
    ):
        ran = yard.merge(*words)
        assert (ran.status, ran.error["code"]) == (1, code)
    branch = handed_in(yard)
    commit_on(yard, branch, c_py="later\n")
    ran = yard.merge("--branch", "bee", "--outside", "  ")
    assert (ran.status, ran.error["code"]) == (1, "invalid_input")
    assert (yard.main(), yard.states()) == (before, {})
    assert yard.merge("--branch", "ant").data["entries"][0]["outside"] == []
    ran = yard.rook.json(
        "mail", "send", "human", "--type=worker_done", "--subject=x", '--payload={"outside": ["b.py"]}'
    )
    assert ran.error["code"] == "invalid_payload"  # what Rookery fills in, no one else does


@pytest.mark.slow
def test_a_reason_that_was_given_survives_an_undo_and_lands_again(yard: Yard) -> None:
    branch = handed_in(yard)
    assert yard.merge("--branch", "bee").data["entries"][0]["state"] == "landed"
    yard.commit(later_txt="on top\n")  # so that the undo is a commit that reverts
    yard.rook.json("merge", "undo", "bee")
    assert "b.py" not in git(yard.folder, "ls-files").split()
    (entry,) = yard.merge("--branch", branch).data["entries"]
    assert (entry["state"], [file["path"] for file in entry["outside"]]) == ("landed", ["b.py"])
    assert yard.show("b.py") == "formatted"


def test_the_hint_names_files_only_where_a_shell_reads_them_as_they_are() -> None:
    scope = BranchScope("rook/bee/t", "bee", None, "0" * 40, "", ("a.py",))
    files = [OutsideFile(name) for name in ("b c.py", "-x")]
    outside = Outside(scope, "1" * 40, tuple(files))
    assert outside.put_back == "git checkout --no-overlay 111111111111 -- 'b c.py' -x"
    odd = outside.replace(files=(*files, OutsideFile('"a\\nb"')))
    assert odd.put_back.endswith("-- FILE…")
    assert OutsideFiles.exit_status == 1


@pytest.mark.slow
def test_a_person_hands_a_branch_in_by_hand_with_a_reason_only(yard: Yard) -> None:
    task = yard.sling("bee", [*FORMAT, {"hang": True}], "--files", "a.py")
    wait_until(lambda: "b.py" in git(yard.folder, "ls-tree", "--name-only", branch_of(yard, "bee")).split())
    yard.rook.json("stop", "bee")
    yard.rook.json("task", "start", task, "--agent", "bee")

    refused = yard.rook.json("task", "submit", task)
    assert (refused.status, refused.error["code"]) == (1, "outside_files")
    assert "`rook task submit --outside WHY`" in refused.error["hint"]
    assert yard.rook.json("task", "get", task).data["state"] == "IN_PROGRESS"

    row = yard.rook.json("task", "submit", task, "--outside", "make format rewrites both").data
    file = {"path": "b.py", "reason": "make format rewrites both", "by": "human"}
    assert (row["state"], row["outside"]) == ("PENDING_REVIEW", [file])
    (entry,) = yard.merge("--branch", "bee").data["entries"]
    assert (entry["state"], entry["outside"]) == ("landed", [file])
    assert yard.show("b.py") == "formatted"
