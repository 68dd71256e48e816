"""Cleaning worktrees: nothing is ever lost, whatever is in them and whenever the process dies."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from places import Agent, Place, make_place, run_killed
from rookery.base.errors import InvalidState
from rookery.config.model import ProvisionConfig, VcsConfig
from rookery.events.store import read
from rookery.processes import locks
from rookery.sessions.model import NoSuchAgent
from rookery.worktrees.cleaning import Cleaned, Cleaner, Listed, list_worktrees
from selection import Sample
from support import wait_until
from vcs.repositories import KINDS, run

pytestmark = pytest.mark.slow


@pytest.fixture(params=list(KINDS))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place(request.param, tmp_path, monkeypatch)


@pytest.fixture
def git_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return make_place("git", tmp_path, monkeypatch)


def clean(
    place: Place, *names: str, completed: bool = False, everything: bool = False, **wishes: Any
) -> dict[str, Cleaned]:
    ctx = place.context()
    try:
        cleaned = Cleaner(ctx, **wishes).clean(names, completed=completed, everything=everything)
        return {verdict.agent: verdict for verdict in cleaned}
    finally:
        ctx.close()


def listed(place: Place) -> dict[str, Listed]:
    ctx = place.context()
    try:
        return {row.agent: row for row in list_worktrees(ctx, size=True)}
    finally:
        ctx.close()


def events(place: Place) -> Iterator[tuple[str, object]]:
    ctx = place.context()
    for event in read(ctx.db, kinds=("worktree",)):
        yield event.subject, event.data["rescue"]
    ctx.close()


def rescued(place: Place, agent: str) -> str:
    refs = place.vcs().saved_refs(f"rescue/{agent}/")
    assert len(refs) == 1
    return next(iter(refs.values()))


def test_an_unused_worktree_goes_with_its_branch(place: Place) -> None:
    ann = place.add("ann")
    cleaned = clean(place)["ann"]
    assert (cleaned.verdict, cleaned.branch_deleted, cleaned.rescue) == ("removed", True, None)
    assert not ann.path.exists()
    assert place.vcs().branches() == {"main": place.base}
    assert list(place.vcs().checkouts()) == [str(place.root)]
    assert list(events(place)) == [("ann", None)]
    assert clean(place) == {}


def test_what_is_not_committed_is_saved_and_recorded(place: Place) -> None:
    ann = place.add("ann")
    ann.put("README.md", "changed\n")
    ann.put("new/file", "new\n")
    cleaned = clean(place)["ann"]
    assert cleaned.verdict == "removed"
    assert not ann.path.exists()
    commit = rescued(place, "ann")
    assert place.repository.content(commit, "README.md") == "changed"
    assert place.repository.content(commit, "new/file") == "new"
    assert list(events(place)) == [("ann", cleaned.rescue)]
    run(place.root, "sh", "-c", cleaned.restore_with)
    assert place.vcs().resolve("rescued-ann") == commit


def test_a_branch_that_has_not_landed_stays(place: Place) -> None:
    ann, bob = place.add("ann"), place.add("bob")
    tips = {}
    for agent in (ann, bob):
        agent.put(agent.name)
        tips[agent.branch] = agent.vcs().commit("Work")
    if place.repository.kind == "git":
        run(place.root, "git", "merge", "-q", "--ff-only", bob.branch)
    else:
        run(place.root, "jj", "--quiet", "bookmark", "set", "main", "-r", tips[bob.branch])
    cleaned = clean(place)
    assert (cleaned["ann"].branch_deleted, cleaned["bob"].branch_deleted) == (False, True)
    assert "lacks 1" in cleaned["ann"].reason
    assert place.vcs().branches("rook/") == {ann.branch: tips[ann.branch]}
    assert not ann.path.exists()
    assert not bob.path.exists()


def test_the_living_are_left_alone(place: Place) -> None:
    ann, bob = place.add("ann", state="waiting"), place.add("bob")
    ann.put("new")
    with pytest.raises(InvalidState, match="ann is waiting"):
        clean(place, "bob", "ann")
    assert bob.path.exists()
    assert set(clean(place)) == {"bob"}
    assert (ann.path / "new").exists()
    assert place.vcs().saved_refs() == {}


def test_only_completed_ones_go_where_asked(git_place: Place) -> None:
    ann, bob = git_place.add("ann", outcome="crashed"), git_place.add("bob")
    assert set(clean(git_place, completed=True)) == {"bob"}
    assert ann.path.exists()
    assert not bob.path.exists()
    with pytest.raises(NoSuchAgent):
        clean(git_place, "stranger")


def test_a_dry_run_changes_nothing(git_place: Place) -> None:
    ann = git_place.add("ann")
    ann.put("new")
    cleaned = clean(git_place, dry_run=True)["ann"]
    assert (cleaned.verdict, cleaned.reason) == ("removable", "its work would be saved")
    assert (ann.path / "new").exists()
    assert git_place.vcs().saved_refs() == {}
    assert list(events(git_place)) == []


def test_a_lock_is_respected_and_its_reason_shown(git_place: Place) -> None:
    ann = git_place.add("ann")
    run(git_place.root, "git", "worktree", "lock", "--reason", "on a stick", str(ann.path))
    cleaned = clean(git_place)["ann"]
    assert (cleaned.verdict, cleaned.reason) == ("kept", "it is locked: on a stick")
    assert ann.path.exists()


def test_a_link_in_its_place_goes_alone(place: Place, tmp_path: Path) -> None:
    ann = place.add("ann")
    ann.put("new", "precious\n")
    ann.path.rename(tmp_path / "elsewhere")
    ann.path.symlink_to(tmp_path / "elsewhere")
    assert clean(place)["ann"].verdict == "removed"
    assert not ann.path.is_symlink()
    assert (tmp_path / "elsewhere" / "new").read_text() == "precious\n"


def test_a_folder_that_is_gone_is_forgotten(place: Place) -> None:
    ann = place.add("ann")
    run(place.root, "rm", "-r", str(ann.path))
    assert listed(place)["ann"].worktree.is_missing
    assert clean(place)["ann"].verdict == "removed"
    assert list(place.vcs().checkouts()) == [str(place.root)]
    assert place.vcs().branches() == {"main": place.base}


def test_a_folder_that_is_no_checkout_any_more_is_kept(git_place: Place) -> None:
    ann = git_place.add("ann")
    (ann.path / ".git").unlink()
    ann.put("new", "precious\n")
    assert clean(git_place)["ann"].verdict == "kept"
    assert (ann.path / "new").exists()


def test_read_only_files_and_folders_go_too(git_place: Place) -> None:
    ann = git_place.add("ann")
    ann.put("cache/deep/file").chmod(0o400)
    (ann.path / "cache" / "deep").chmod(0o500)
    assert clean(git_place)["ann"].verdict == "removed"
    assert not ann.path.exists()


def test_other_worktrees_of_the_user_are_not_touched(git_place: Place, tmp_path: Path) -> None:
    git_place.add("ann")
    run(git_place.root, "git", "worktree", "add", "-q", str(tmp_path / "mine"))
    run(git_place.root, "git", "worktree", "add", "-q", "-b", "x", str(git_place.root / ".rookery/worktrees/own"))
    assert set(clean(git_place)) == {"ann"}
    assert (tmp_path / "mine" / "README.md").exists()
    assert clean(git_place, everything=True)["own"].verdict == "removed"
    assert "x" not in git_place.vcs().branches()
    assert (tmp_path / "mine" / "README.md").exists()


def test_commits_on_no_branch_are_saved(git_place: Place) -> None:
    ann = git_place.add("ann")
    run(ann.path, "git", "switch", "-q", "--detach")
    ann.put("new")
    commit = ann.vcs().commit("On no branch")
    assert clean(git_place)["ann"].verdict == "removed"
    assert rescued(git_place, "ann") == commit


def test_a_merge_under_way_is_saved_as_it_lies_there(git_place: Place) -> None:
    ann = git_place.add("ann")
    for side in ("left", "right"):
        run(ann.path, "git", "switch", "-qc", side, git_place.base)
        ann.put("README.md", f"{side}\n")
        run(ann.path, "git", "commit", "-qam", side)
    run(ann.path, "git", "merge", "left", check=False)
    assert clean(git_place)["ann"].verdict == "removed"
    assert "<<<<<<<" in git_place.repository.content(rescued(git_place, "ann"), "README.md")
    assert {"left", "right"} < set(git_place.vcs().branches())


def test_ignored_files_are_saved_where_asked_and_counted_where_not(git_place: Place) -> None:
    git_place.repository.write(".gitignore", "*.log\n")
    git_place.base = git_place.vcs().commit("Ignore logs")
    ann, bob = git_place.add("ann"), git_place.add("bob")
    for agent in (ann, bob):
        agent.put("x.log", "log\n")
    verdict = clean(git_place, "ann", saves_ignored=True)["ann"]
    assert (verdict.verdict, verdict.ignored) == ("removed", 0)
    assert git_place.repository.content(rescued(git_place, "ann"), "x.log") == "log"
    lost = clean(git_place, "bob")["bob"]
    assert (lost.verdict, lost.ignored, lost.rescue) == ("removed", 1, None)


def test_ignored_files_above_the_limit_are_saved_only_by_force(git_place: Place) -> None:
    git_place.repository.write(".gitignore", "*.log\n")
    git_place.base = git_place.vcs().commit("Ignore logs")
    ann = git_place.add("ann")
    ann.put("x.log", "x" * 1_000_001)
    git_place.flags = {"worktrees.rescue_limit": "1"}
    kept = clean(git_place, saves_ignored=True)["ann"]
    assert (kept.verdict, "--force" in kept.reason) == ("kept", True)
    assert ann.path.exists()
    assert clean(git_place, saves_ignored=True, force=True)["ann"].verdict == "removed"
    assert len(git_place.repository.content(rescued(git_place, "ann"), "x.log")) == 1_000_001


def test_provisioned_files_are_no_work_to_save(git_place: Place) -> None:
    from rookery.worktrees.provision import provision

    git_place.repository.write(".gitignore", ".env\n")
    git_place.base = git_place.vcs().commit("Ignore")
    git_place.repository.write(".env", "A=1\n")
    ann = git_place.add("ann")
    settings = ProvisionConfig(copy=(".env",), setup="echo x > made")
    provision(str(git_place.root), str(ann.path), settings, vcs_config=VcsConfig(), session_folder=str(ann.folder))
    state = listed(git_place)["ann"].worktree
    assert (state.ignored, state.untracked) == ((), ())
    verdict = clean(git_place, saves_ignored=True)["ann"]
    assert (verdict.verdict, verdict.rescue) == ("removed", None)


def test_a_submodule_keeps_the_worktree_until_its_work_is_elsewhere(git_place: Place, tmp_path: Path) -> None:
    place, allow = git_place, ("-c", "protocol.file.allow=always")
    library = KINDS["git"](tmp_path / "library")
    library.begin()
    run(place.root, "git", *allow, "submodule", "add", "-q", str(library.path), "lib")
    place.base = place.vcs().commit("Add a submodule")
    ann = place.add("ann")
    run(ann.path, "git", *allow, "submodule", "update", "-q", "--init")
    ann.put("lib/new", "precious\n")
    assert "lib in it has changes" in clean(place)["ann"].reason
    run(ann.path / "lib", "git", "add", "-A")
    run(ann.path / "lib", "git", "commit", "-qm", "Work")
    assert "1 commit that no remote has" in clean(place)["ann"].reason
    assert (ann.path / "lib" / "new").exists()
    run(ann.path / "lib", "git", "push", "-q", "origin", "HEAD:refs/heads/work")
    assert clean(place)["ann"].verdict == "removed"
    assert not ann.path.exists()


def test_a_repository_inside_keeps_the_worktree(place: Place) -> None:
    ann = place.add("ann")
    ann.put("inner/file")
    run(ann.path / "inner", "git", "init", "-q")
    assert clean(place)["ann"].verdict == "kept"
    assert (ann.path / "inner" / "file").exists()


def test_a_repository_in_an_ignored_folder_keeps_the_worktree_until_its_commits_are_elsewhere(place: Place) -> None:
    ann = place.add("ann")
    ann.put(".gitignore", "vendor/\n")
    inner = ann.path / "vendor" / "lib"
    ann.put("vendor/lib/file")
    run(inner, "git", "init", "-q")
    assert clean(place)["ann"].verdict == "kept"
    run(inner, "git", "add", ".")
    run(inner, "git", "commit", "-qm", "Only here")
    kept = clean(place)["ann"]
    assert (kept.verdict, "1 commit that no remote has" in kept.reason) == ("kept", True)
    run(inner, "git", "update-ref", "refs/remotes/origin/main", "HEAD")
    assert clean(place)["ann"].verdict == "removed"


_CLEAN = """
from rookery.worktrees.cleaning import Cleaner
from rookery.ops.context import Context
Cleaner(Context()).clean()
"""


def test_killed_at_any_step_nothing_is_lost(place: Place, sample: Sample) -> None:
    for step in sample(range(1, 8), 3):
        ann = place.add("ann" + str(step))
        ann.put("done", "landed\n")
        tip = ann.vcs().commit("Work")
        ann.put("new", f"precious {step}\n")
        status = run_killed(_CLEAN, step, place.root)
        assert (ann.path / "new").exists() or place.vcs().saved_refs(f"rescue/{ann.name}/")
        clean(place)
        assert not ann.path.exists()
        assert str(ann.path) not in place.vcs().checkouts()
        assert place.repository.content(rescued(place, ann.name), "new") == f"precious {step}"
        assert place.vcs().branches()[ann.branch] == tip
        assert [bool(rescue) for subject, rescue in events(place) if subject == ann.name] == [True]
        assert status == (0 if step > 6 else -signal.SIGKILL)


def test_every_worktree_is_listed_with_what_is_in_it(place: Place) -> None:
    ann, _ = place.add("ann", state="working"), place.add("bob", outcome="crashed")
    _fill(ann)
    rows = listed(place)
    assert list(rows) == ["ann", "bob"]
    assert (rows["ann"].state, rows["bob"].outcome) == ("working", "crashed")
    state = rows["ann"].worktree
    assert (len(state.uncommitted) + len(state.untracked), state.unmerged) == (2, 1)
    assert rows["bob"].worktree.is_clean
    assert (rows["ann"].size or 0) > 10_000


def _fill(agent: Agent) -> None:
    agent.put("done")
    agent.vcs().commit("Work")
    agent.put("README.md", "changed\n")
    agent.put("new", "x" * 10_000)


def test_two_at_once_take_a_worktree_away_and_tell_of_it_once(
    git_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: set[int] = set()

    def lock(file: int) -> None:
        waiting.add(threading.get_ident())
        fcntl.flock(file, fcntl.LOCK_EX)

    monkeypatch.setattr("rookery.base.call.lock", lock)
    ann = git_place.add("ann")
    (ann.path / "loose.txt").write_text("loose")
    (git_place.root / ".rookery" / "run").mkdir(exist_ok=True)
    held = locks.take(str(git_place.root / ".rookery" / "run" / "clean.lock"))
    assert held is not None
    with ThreadPoolExecutor() as pool:
        # Both have chosen it before either begins.
        asked = [pool.submit(clean, git_place, "ann") for _ in range(2)]
        wait_until(lambda: len(waiting) == 2)
        os.close(held)
        reasons = sorted(cleaning.result()["ann"].reason for cleaning in asked)
    assert "another process has removed it just now" in reasons
    assert [subject for subject, _ in events(git_place)] == ["ann"]
    rescued(git_place, "ann")
    assert not ann.path.exists()


def test_an_agent_that_is_resumed_meanwhile_keeps_its_worktree(
    git_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = git_place.add("ann"), git_place.add("bob")
    bob.put("loose.txt")

    def resume(step: str) -> None:
        if step == "told" and not ann.path.exists():  # ann is cleaned, and bob is chosen
            git_place.insert(git_place.session("bob", state="waiting"))
            monkeypatch.undo()

    monkeypatch.setattr("rookery.config.steps.reached", resume)
    cleaned = clean(git_place)
    assert {name: (row.verdict, row.reason) for name, row in cleaned.items()} == {
        "ann": ("removed", "rook/ann/task landed on main"),
        "bob": ("kept", "bob is waiting"),
    }
    assert (bob.path / "loose.txt").exists()


def test_one_that_is_resumed_while_its_work_is_saved_keeps_it_too(
    git_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = git_place.add("ann")
    ann.put("loose.txt")

    def resume(step: str) -> None:
        if step == "rescued":
            git_place.insert(git_place.session("ann", state="waiting"))
            monkeypatch.undo()

    monkeypatch.setattr("rookery.config.steps.reached", resume)
    cleaned = clean(git_place)["ann"]
    assert (cleaned.verdict, cleaned.reason) == ("kept", "ann is waiting")
    assert (ann.path / "loose.txt").exists()
