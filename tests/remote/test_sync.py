"""`rook sync`: the base follows its upstream, and what diverged is told."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import Rook, git
from merge.yard import DONE, Yard
from support import start_rook
from vcs.repositories import ColocatedRepository, find_jj

from .team import Team

pytestmark = pytest.mark.slow


def test_equal(team: Team) -> None:
    synced = team.synced()
    assert (synced["state"], synced["moved"], synced["upstream"]) == ("equal", None, "origin/main")
    assert synced["commit"] == team.upstream() == team.yard.main()


def test_a_base_that_is_behind_moves_forward_with_its_checkout(team: Team) -> None:
    yard = team.yard
    yard.commit(mine_txt="m\n")
    git(yard.folder, "push", "-q", "origin", "main")
    git(team.other, "pull", "-q")
    theirs = team.push_theirs(b_txt="b\n", README_md="theirs\n")
    (yard.folder / "mine.txt").write_text("changed\n")
    (yard.folder / "loose.txt").write_text("loose\n")
    synced = team.synced()
    assert (synced["state"], synced["moved"], synced["behind"]) == ("behind", "fast-forwarded", 1)
    assert [(line["author"], line["subject"]) for line in synced["theirs"]] == [("Bob", "Theirs")]
    assert yard.main() == theirs
    assert (yard.folder / "b.txt").read_text() == "b\n"
    assert (yard.folder / "README.md").read_text() == "theirs\n"
    assert git(yard.folder, "status", "--porcelain").splitlines() == ["M mine.txt", "?? loose.txt"]
    assert git(yard.folder, "rev-parse", "origin/main") == theirs
    assert [event["commit"] for event in team.events("remote.synced")] == [theirs]
    assert team.synced()["state"] == "equal"
    assert len(team.events("remote.synced")) == 1
    yard.assert_tidy()


@pytest.mark.parametrize("name", ["README.md", "new.txt"])
def test_a_file_with_changes_of_its_own_holds_it(team: Team, name: str) -> None:
    yard, before = team.yard, team.yard.main()
    theirs = team.push_theirs(README_md="theirs\n", new_txt="n\n")
    (yard.folder / name).write_text("mine\n")
    synced = team.synced(status=1)
    assert (synced["moved"], synced["files"]) == (None, [name])
    assert name in synced["held"]
    assert yard.main() == before
    assert (yard.folder / name).read_text() == "mine\n"
    assert team.events("remote.synced") == []
    (yard.folder / name).unlink()
    git(yard.folder, "checkout", "-q", ".")
    assert team.synced()["commit"] == yard.main() == theirs


@pytest.mark.parametrize("step", ["rebase", "merge"])
def test_a_step_of_git_that_needs_the_base_holds_it(team: Team, step: str) -> None:
    yard = team.yard
    yard.branch("side", README_md="side\n")
    yard.commit(README_md="mine\n")
    git(yard.folder, "push", "-q", "origin", "main")
    before = yard.main()
    git(team.other, "pull", "-q")
    theirs = team.push_theirs(b_txt="b\n")
    done = subprocess.run(["git", step, "side"], cwd=yard.folder, capture_output=True, check=False)
    assert done.returncode != 0
    assert f"a {step} that uses main is in progress in {yard.folder}" in team.synced(status=1)["held"]
    assert yard.main() == before
    git(yard.folder, step, "--abort")
    assert team.synced()["commit"] == yard.main() == theirs


def test_what_upstream_brings_for_rookery_itself_is_left_to_a_person(team: Team) -> None:
    before = team.yard.main()
    (team.other / ".rookery" / "roles").mkdir(parents=True)
    (team.other / ".rookery" / "roles" / "builder.md").write_text("Do as I say.\n")
    team.push_theirs()
    synced = team.synced(status=1)
    assert synced["files"] == [".rookery/roles/builder.md"]
    assert team.yard.main() == before
    assert not (team.yard.folder / ".rookery" / "roles" / "builder.md").exists()


def test_what_is_queued_builds_on_the_new_base(team: Team) -> None:
    yard = team.yard
    yard.branch("work", a_txt="a\n")
    assert yard.merge("enqueue", "work").status == 0
    theirs = team.push_theirs(b_txt="b\n")
    team.synced()
    assert yard.merge("run").status == 0
    assert git(yard.folder, "rev-parse", "main^1") == theirs
    assert (yard.show("a.txt"), yard.show("b.txt")) == ("a", "b")


def test_what_is_only_here_is_told_with_its_landings(team: Team) -> None:
    yard = team.yard
    yard.commit(own_txt="o\n")
    task = yard.finished("bee", [{"edit": {"path": "bee.txt", "text": "b"}}, {"commit": "Buzz"}])
    assert yard.merge("--all").status == 0
    before = team.upstream()
    synced = team.synced()
    assert (synced["state"], synced["ahead"], synced["push"]) == ("ahead", 3, None)
    landing, own = synced["ours"]
    assert (landing["task_id"], landing["title"]) == (task, "Task of bee")
    assert landing["branch"].startswith("rook/bee/")
    assert (own["subject"], own["branch"]) == ("Change own_txt", None)
    assert team.upstream() == before
    shown = yard.rook("sync").out.decode()
    assert "Task of bee" in shown
    assert "rook sync --push" in shown


def test_what_diverged_is_told_and_nothing_changes(team: Team) -> None:
    yard = team.yard
    mine = yard.commit(README_md="mine\n", own_txt="o\n")
    team.push_theirs("Their words", README_md="theirs\n")
    for words in ((), ("--merge",), ("--push",), ("--merge", "--push")):
        synced = team.synced(*words, status=1)
        assert (synced["state"], synced["ahead"], synced["behind"]) == ("diverged", 1, 1)
        assert [line["subject"] for line in synced["theirs"]] == ["Their words"]
        assert [line["commit"] for line in synced["ours"]] == [mine]
        assert [file["path"] for file in synced["conflicts"]] == ["README.md"]
        assert yard.main() == mine
        assert git(team.bare, "log", "-1", "--format=%s", "main") == "Their words"
    assert (yard.folder / "README.md").read_text() == "mine\n"
    yard.assert_tidy()


def test_a_merge_of_the_upstream_passes_the_gates_first(team: Team) -> None:
    yard = team.yard
    yard.settings("", "! test -e bad.txt || test -e good.txt")
    mine = yard.commit(own_txt="o\n")
    theirs = team.push_theirs(bad_txt="b\n")
    assert team.synced(status=1)["conflicts"] == []
    assert "g1" in team.synced("--merge", status=1)["held"]
    assert yard.main() == mine
    assert not (yard.folder / "bad.txt").exists()
    good = yard.commit(good_txt="g\n")
    synced = team.synced("--merge")
    assert synced["moved"] == "merged"
    assert git(yard.folder, "rev-parse", "main^1", "main^2").split() == [good, theirs]
    assert (yard.folder / "bad.txt").read_text() == "b\n"
    assert git(yard.folder, "status", "--porcelain") == ""
    assert team.synced("--push")["push"]["state"] == "pushed"
    assert team.upstream() == yard.main()
    yard.assert_tidy()


@pytest.mark.parametrize("push", ["ask", "always"])
def test_a_rewritten_upstream_is_told_and_nothing_is_pushed_back(team: Team, push: str) -> None:
    yard, first = team.yard, team.yard.main()
    theirs = team.push_theirs(secret_txt="s\n")
    assert team.synced()["commit"] == theirs
    git(team.other, "push", "-qf", "origin", f"{first}:main")
    for _ in range(2):  # it stays so until a person has decided
        synced = team.synced("--push", "-c", f"remote.push={push}", status=1)
        assert (synced["state"], synced["is_rewritten"], synced["has_dropped"]) == ("ahead", True, True)
        assert [line["is_dropped"] for line in synced["ours"]] == [True]
        assert "rewritten" in synced["push"]["reason"]
        assert team.upstream() == first
        assert yard.main() == theirs
    git(yard.folder, "reset", "-q", "--hard", first)
    synced = team.synced()
    assert (synced["state"], synced["has_dropped"]) == ("equal", False)
    assert team.synced()["is_rewritten"] is False


@pytest.mark.parametrize("push", ["ask", "always"])
def test_merging_a_rewritten_upstream_does_not_push_back_what_it_dropped(team: Team, push: str) -> None:
    yard, first = team.yard, team.yard.main()
    dropped = team.push_theirs(secret_txt="s\n")
    assert team.synced()["commit"] == dropped
    git(team.other, "reset", "-q", "--hard", first)
    (team.other / "b.txt").write_text("b\n")
    git(team.other, "add", "-A")
    git(team.other, "commit", "-qm", "Again")
    git(team.other, "push", "-qf", "origin", "HEAD:main")
    theirs = team.upstream()
    synced = team.synced("--merge", "-c", f"remote.push={push}", status=1)
    assert (synced["moved"], synced["has_dropped"]) == ("merged", True)
    for _ in range(2):  # it stays so until a person has decided
        synced = team.synced("--push", "-c", f"remote.push={push}", status=1)
        assert (synced["state"], synced["has_dropped"], synced["push"]["state"]) == ("ahead", True, "left")
        assert team.upstream() == theirs
    assert [event["commit"] for event in team.events("remote.synced")] == [dropped, theirs]
    git(yard.folder, "push", "-q", "origin", "main")
    assert team.synced("--push")["state"] == "equal"


def test_a_rewritten_upstream_of_which_the_base_has_nothing_is_followed(team: Team) -> None:
    yard, first = team.yard, team.yard.main()
    team.push_theirs(README_md="theirs\n")
    (yard.folder / "README.md").write_text("mine\n")
    team.synced(status=1)
    git(team.other, "reset", "-q", "--hard", first)
    (team.other / "b.txt").write_text("b\n")
    git(team.other, "add", "-A")
    git(team.other, "commit", "-qm", "Again")
    git(team.other, "push", "-qf")
    synced = team.synced()
    assert (synced["is_rewritten"], synced["has_dropped"], synced["moved"]) == (True, False, "fast-forwarded")
    assert (yard.folder / "b.txt").read_text() == "b\n"


def test_the_commands_that_are_named_work(team: Team) -> None:
    yard, first = team.yard, team.yard.main()
    git(yard.folder, "branch", "side", first)
    assert "`rook sync --into side --push` pushes it." in yard.rook("sync", "--into", "side").out.decode()
    git(yard.folder, "config", "--unset-all", "remote.origin.fetch")  # so that there is no origin/main
    git(yard.folder, "update-ref", "-d", "refs/remotes/origin/main")
    for theirs in ("conflicting", "unrelated"):
        yard.commit(**{f"{theirs}_txt": "mine\n"})
        if theirs == "unrelated":
            git(team.other, "checkout", "-q", "--orphan", "new")
        (team.other / f"{theirs}.txt").write_text("theirs\n")
        git(team.other, "add", "-A")
        git(team.other, "commit", "-qm", theirs)
        git(team.other, "push", "-qf", "origin", "HEAD:main")
        merge = re.search(r"`git merge ([^`]*)`", yard.rook("sync").out.decode())
        assert merge is not None
        git(yard.folder, "merge", "-q", "-s", "ours", *merge[1].split())
        assert team.sync().envelope["data"]["behind"] == 0


def test_a_dry_run_changes_nothing(team: Team) -> None:
    yard = team.yard
    yard.commit(own_txt="o\n")
    team.push_theirs(b_txt="b\n")
    refs, upstream, events = team.refs(), team.upstream(), yard.rook.count_events()
    objects = git(yard.folder, "count-objects", "-v")
    synced = team.synced("--dry-run", "--merge", "--push")
    assert (synced["state"], synced["is_dry_run"], synced["conflicts"]) == ("diverged", True, [])
    assert [line["subject"] for line in synced["theirs"]] == ["Theirs"]
    assert (team.refs(), team.upstream(), yard.rook.count_events()) == (refs, upstream, events)
    assert git(yard.folder, "count-objects", "-v") == objects
    assert not (yard.folder / ".git" / "FETCH_HEAD").read_text().count("b.txt")
    yard.assert_tidy()


def test_another_branch_than_the_base(team: Team) -> None:
    git(team.yard.folder, "branch", "next")
    git(team.yard.folder, "push", "-q", "origin", "next:next")
    theirs = team.push_theirs(b_txt="b\n")
    git(team.other, "push", "-q", "origin", "main:next")
    before = team.yard.main()
    assert team.synced("--into", "next")["moved"] == "fast-forwarded"
    assert git(team.yard.folder, "rev-parse", "next", "main").split() == [theirs, before]
    assert team.sync("--into=-x").error["code"] == "invalid_input"


def test_agents_whose_work_overlaps_are_asked_to_rebase_once(team: Team) -> None:
    yard = team.yard
    steps = [{"edit": {"path": "README.md", "text": "bee\n"}}, {"commit": "Buzz"}]
    yard.sling("bee", [*steps, {"until": {"mail_type": "dispatch"}}, DONE])
    yard.wait_for("bee", "waiting")
    team.push_theirs(README_md="theirs\n")
    yard.killed("sync moved", "sync")
    for _ in range(2):
        team.synced()
    assert len(yard.mail(to="bee", type="rebase_request")) == 1
    team.push_theirs(other_txt="o\n")
    team.synced()
    assert len(yard.mail(to="bee", type="rebase_request")) == 1
    yard.rook("stop", "bee")


def test_a_task_whose_work_was_merged_upstream_is_completed_by_the_next_look(team: Team) -> None:
    yard = team.yard
    task = yard.finished("bee", [{"edit": {"path": "bee.txt", "text": "b"}}, {"commit": "Buzz"}])
    branch = yard.agent("bee")["branch"]
    git(yard.folder, "push", "-q", "origin", branch)
    git(team.other, "fetch", "-q")
    git(team.other, "merge", "-q", "--no-ff", "-m", "By hand", f"origin/{branch}")
    git(team.other, "push", "-q")
    assert yard.rook.json("task", "get", task).data["state"] == "PENDING_REVIEW"
    team.synced()
    assert yard.merge("--all").status == 0
    assert yard.rook.json("task", "get", task).data["state"] == "COMPLETED"
    assert yard.main() == team.upstream()


def test_two_at_once(team: Team) -> None:
    theirs = team.push_theirs(b_txt="b\n")
    started = [start_rook(team.yard.folder, "sync", env={"ROOKERY_DAEMON": "off"}) for _ in range(2)]
    outputs = [(child.communicate(timeout=120), child.returncode) for child in started]
    for (_out, err), status in outputs:
        assert status == 0 or b"just now" in err, err
    assert any(status == 0 for _, status in outputs)
    assert team.yard.main() == theirs
    assert (team.yard.folder / "b.txt").read_text() == "b\n"
    assert len(team.events("remote.synced")) == 1
    team.yard.assert_tidy()


def test_the_doctor_says_what_diverged_without_asking_the_remote(team: Team) -> None:
    def upstream() -> dict[str, str]:
        report = team.yard.rook.json("doctor", "--category", "remote").envelope["data"]
        finding: dict[str, str] = report["checks"][0]
        return finding

    assert upstream()["status"] == "ok"
    team.yard.commit(own_txt="o\n")
    team.push_theirs(b_txt="b\n")
    team.sync()
    os.rename(team.bare, team.bare.with_name("away"))
    assert upstream()["status"] == "warning"
    assert "diverged" in upstream()["message"]


def test_jj_is_refused_with_the_commands_that_do_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_jj(monkeypatch)
    place = ColocatedRepository(tmp_path / "repo")
    place.begin()
    rook = Rook(place.path)
    assert rook("init", "--yes").status == 0
    error = rook.json("sync").error
    assert (error["code"], "jj git fetch" in error["hint"]) == ("invalid_state", True)


def test_a_project_without_version_control(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    rook = Rook(tmp_path / "plain")
    assert rook("init", "--force").status == 0
    assert rook.json("sync").error["code"] == "no_repository"


def test_a_project_without_a_remote(repo: Path) -> None:
    yard = Yard(repo)
    error = yard.rook.json("sync").error
    assert (error["code"], "git remote add" in error["hint"]) == ("no_upstream", True)
