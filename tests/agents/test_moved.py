"""A project that was moved, or is seen by another path, while its agents wait and work."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import git
from daemons import end_daemon, loops_of
from den import DONE, Den
from process_tools import copy_live, end_agents
from rookery.config import layout
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.ops import location
from rookery.ops.location import COPIED, GONE, HERE, MOVED, SAME, SHARED, TWIN
from rookery.ops.model import Location
from rookery.ops.store import read_location
from rookery.processes.locks import is_locked
from rookery.processes.proctable import environ_of
from rookery.processes.proctree import Identity, is_alive, marked
from support import child_environ, rook_argv, wait_until

WAITS = [
    {"edit": {"path": "first.txt", "text": "first\n"}},
    {"commit": "First"},
    {"wait": "mail"},
    {"edit": {"path": "second.txt", "text": "second\n"}},
    {"commit": "Second"},
    DONE,
]


class Scene:
    """A project in which ann waits for mail."""

    def __init__(self, repo: Path) -> None:
        self.old = repo
        self.new = repo.parent / "new place" / "project"
        self.new.parent.mkdir()
        self.den = Den(repo)
        self.ann = self.den.sling(self.den.task("Wait", WAITS), "--name", "ann")
        self.den.wait_for("ann", "waiting")

    def move(self) -> Den:
        """Move it as a person does."""
        self.old.rename(self.new)
        return Den.at(self.new)


@pytest.fixture
def scene(repo: Path) -> Iterator[Scene]:
    moved = Scene(repo)
    yield moved
    for folder in (moved.new, moved.new.parent):
        end_agents(folder)
        end_daemon(folder)


def _worktrees(folder: Path) -> list[str]:
    listed = git(folder, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]


def _is_at(process: Identity, root: Path) -> bool:
    """True if the process runs for the project at that place."""
    return f"ROOKERY_ROOT={root}" in environ_of(process.pid)


def _lands(den: Den) -> None:
    """Ann gets its next turn where the project is, and its work lands."""
    assert den.rook("mail", "send", "ann", "--subject", "Go", "--body", "on").status == 0
    den.wait_for("ann", "completed")
    assert den.rook("merge", "--all").status == 0
    assert (den.folder / "second.txt").read_text() == "second\n"


@pytest.mark.slow
def test_a_waiting_agent_goes_on_at_the_new_place(scene: Scene) -> None:
    outside = scene.old.parent / "outside"
    git(scene.old, "worktree", "add", "-q", "--detach", str(outside))
    den = scene.move()
    first = den.rook.json("status")
    assert first.err.decode() == f"rook: this project was moved from {scene.old}: 2 worktrees repaired\n"
    assert [(agent["agent"], agent["state"]) for agent in first.data["agents"]] == [("ann", "waiting")]
    assert den.rook("status").err == b""
    tree = scene.new / ".rookery" / "worktrees" / "ann"
    assert _worktrees(scene.new) == [str(scene.new), str(tree), str(outside)]
    assert git(outside, "rev-parse", "HEAD") == git(scene.new, "rev-parse", "main")
    assert git(tree, "status", "--porcelain") == ""
    assert str(tree) in (tree / "AGENTS.md").read_text()
    assert str(scene.old) not in (tree / "AGENTS.md").read_text()
    assert git(tree, "config", "core.excludesFile").startswith(str(scene.new))
    _lands(den)
    den.assert_tidy(worktrees=1, branches=0)
    assert not scene.old.exists()


@pytest.mark.slow
def test_a_working_agent_begins_its_turn_again_at_the_new_place(scene: Scene) -> None:
    steps = [{"edit": {"path": "begun.txt", "text": "begun"}}, {"hang": True}]
    bob = scene.den.sling(scene.den.task("Work", steps), "--name", "bob")
    wait_until((scene.old / ".rookery/worktrees/bob/begun.txt").exists)  # it has read its task at the old place
    before = marked("ROOKERY_SESSION", bob["id"])
    den = scene.move()
    assert den.rook("loop", "run").status == 0
    assert not any(is_alive(process) for process in before)

    def is_back() -> bool:
        return any(_is_at(process, scene.new) for process in marked("ROOKERY_SESSION", bob["id"]))

    wait_until(is_back)
    assert den.agent("bob")["state"] == "working"
    assert den.rook("stop", "bob").status == 0
    _lands(den)


@pytest.mark.slow
def test_the_loop_of_the_old_place_ends_and_one_runs_at_the_new_place(scene: Scene) -> None:
    """It holds the lock of the loop, which has moved too, and can do nothing for the agents any more."""
    bob = scene.den.sling(scene.den.task("Work", [{"hang": True}]), "--name", "bob")
    wait_until(lambda: is_locked(layout.path(str(scene.old), layout.LOOP_LOCK)))
    den = scene.move()
    assert den.rook("status").status == 0
    assert loops_of(scene.old) == []
    assert den.rook("loop", "run").status == 0
    wait_until(lambda: any(_is_at(process, scene.new) for process in marked("ROOKERY_SESSION", bob["id"])))
    assert den.rook("stop", "bob").status == 0


@pytest.mark.slow
def test_moved_to_another_disk_it_is_the_same_project(scene: Scene) -> None:
    """Between disks `mv` copies the project, and then deletes the old one."""
    copy_live(scene.old, scene.new)
    shutil.rmtree(scene.old)
    _lands(Den.at(scene.new))


@pytest.mark.slow
def test_another_project_at_the_old_path_is_not_the_original(scene: Scene) -> None:
    den = scene.move()
    scene.old.mkdir()
    git(scene.old, "init", "-q")
    git(scene.old, "commit", "-q", "--allow-empty", "-m", "Other")
    other = Den(scene.old)
    assert other.rook("task", "create", "Other").status == 0
    _lands(den)


@pytest.mark.slow
def test_a_moved_folder_with_a_copy_in_its_place_is_the_copy(scene: Scene) -> None:
    """Whatever is at the old path goes on there: agents never run twice."""
    scene.old.rename(scene.new)
    copy_live(scene.new, scene.old)
    assert Den.at(scene.new).agent("ann")["reason"] == f"copied from {scene.old}"
    assert scene.den.agent("ann")["state"] == "waiting"
    assert _worktrees(scene.new)[1:] == [str(scene.new / ".rookery/worktrees/ann")]
    assert _worktrees(scene.old)[1:] == [str(scene.old / ".rookery/worktrees/ann")]
    _lands(scene.den)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["move ended", "move repaired", "move instructed", "notice kept"])
def test_a_command_that_is_killed_on_the_way_is_followed_up(scene: Scene, step: str) -> None:
    den = scene.move()
    assert den.rook("status", env={"ROOKERY_TEST_KILL": step}).status == -9
    _lands(den)


@pytest.mark.slow
def test_the_doctor_says_what_became_of_it_and_repairs_it(scene: Scene) -> None:
    den = scene.move()
    pointer = scene.new / ".rookery" / "worktrees" / "ann" / ".git"
    was = pointer.read_text()
    checks = {check["name"]: check for check in den.rook.json("doctor", "--category", "location").data["checks"]}
    assert f"was moved from {scene.old}" in checks["place"]["message"]
    assert pointer.read_text() == was
    fixed = {check["name"]: check for check in den.rook.json("doctor", "--fix").data["checks"]}
    assert "1 worktree repaired" in fixed["place"]["fixed"]
    assert pointer.read_text() == f"gitdir: {scene.new}/.git/worktrees/ann\n"
    # As after `git worktree repair` in a copy, which makes the original's worktree its own.
    pointer.write_text("gitdir: /gone/.git/worktrees/ann\n")
    (scene.new / ".git/worktrees/ann/gitdir").write_text("/gone/.rookery/worktrees/ann/.git\n")
    fixed = {check["name"]: check for check in den.rook.json("doctor", "--fix").data["checks"]}
    assert fixed["worktrees"]["fixed"] == "repaired 1 worktree"
    _lands(den)


@pytest.mark.slow
def test_by_a_link_it_is_the_same_project(scene: Scene) -> None:
    link = scene.old.parent / "link"
    link.symlink_to(scene.old)
    seen = Den.at(link).rook.json("status")
    assert seen.err == b""
    assert [agent["agent"] for agent in seen.data["agents"]] == ["ann"]
    _lands(Den.at(link))


def _in_container(scene: Scene, *words: str, hides: bool) -> subprocess.CompletedProcess[bytes]:
    """Run `rook` where the project has another path, in a pid namespace of its own."""
    seen = "/mnt/project"
    mounts = ["--dev-bind", "/", "/", "--tmpfs", "/mnt", "--bind", str(scene.old), seen]
    mounts += ["--tmpfs", str(scene.old.parent)] if hides else []
    argv = ["bwrap", *mounts, "--unshare-pid", "--proc", "/proc", "--chdir", seen, *rook_argv(*words)]
    if shutil.which("bwrap") is None or subprocess.run([*argv[: -len(rook_argv(*words))], "true"]).returncode:
        pytest.skip("nothing can be mounted here")
    return subprocess.run(argv, env=child_environ(), capture_output=True, timeout=60, check=False)


@pytest.mark.slow
def test_seen_from_a_container_nothing_is_repaired_while_an_agent_works_outside(scene: Scene) -> None:
    steps = [{"edit": {"path": "begun.txt", "text": "begun"}}, {"hang": True}]
    bob = scene.den.sling(scene.den.task("Work", steps), "--name", "bob")
    wait_until((scene.old / ".rookery/worktrees/bob/begun.txt").exists)  # it has read its task at the old place
    working = marked("ROOKERY_SESSION", bob["id"])
    pointer = scene.old / ".rookery" / "worktrees" / "ann" / ".git"
    was = pointer.read_text()
    db = Database.open(database_path(str(scene.old)))
    before = read_location(db)
    seen = _in_container(scene, "status", "--json", hides=True)
    assert seen.returncode == 0, seen
    refused = _in_container(scene, "sling", scene.den.task("More"), hides=True)
    assert refused.returncode == 1
    assert f"in use as {scene.old}".encode() in refused.stderr
    assert _in_container(scene, "mail", "send", "ann", "--subject", "Go", hides=True).returncode == 0
    assert pointer.read_text() == was
    assert read_location(db) == before
    db.close()
    assert marked("ROOKERY_SESSION", bob["id"]) == working
    scene.den.wait_for("ann", "completed")  # the next command here wakes it
    assert scene.den.agent("bob")["state"] == "working"
    assert scene.den.rook("stop", "bob").status == 0


@pytest.mark.slow
def test_by_a_bind_mount_it_is_the_same_project(scene: Scene) -> None:
    pointer = scene.old / ".rookery" / "worktrees" / "ann" / ".git"
    was = pointer.read_text()
    seen = _in_container(scene, "status", "--json", hides=False)
    assert (seen.returncode, seen.stderr) == (0, b"")
    assert pointer.read_text() == was
    _lands(scene.den)


BEFORE = Location("id", "/old", "1:2", 77, "here", "ns")


@pytest.mark.parametrize(
    ("changes", "at_old", "is_held", "verdict"),
    [
        ({}, SAME, False, HERE),
        ({"folder": "9:9", "changed": 0}, SAME, False, HERE),  # restored from a backup
        ({"host": "there", "namespace": "other"}, SAME, True, HERE),  # a container with the same path
        ({"host": "there", "folder": "9:9"}, SAME, False, HERE),  # another host of a shared disk
        ({"host": "there", "folder": "9:9", "changed": 88}, SAME, False, COPIED),  # copied to another host
        ({"path": "/new"}, GONE, False, MOVED),
        ({"path": "/new"}, GONE, True, SHARED),
        ({"path": "/new", "namespace": "other"}, GONE, True, SHARED),
        ({"path": "/new", "namespace": "other"}, GONE, False, MOVED),
        ({"path": "/new"}, SAME, True, HERE),  # a bind mount
        ({"path": "/new"}, TWIN, False, COPIED),
        ({"path": "/new", "folder": "9:9", "changed": 88}, TWIN, False, COPIED),
        ({"path": "/new", "folder": "9:9", "changed": 88}, GONE, False, MOVED),  # to another disk
        ({"path": "/new", "folder": "9:9", "changed": 88, "host": "there"}, GONE, False, COPIED),
        ({"path": "/new", "folder": "9:9", "changed": 88, "namespace": "other"}, GONE, False, COPIED),
        ({"path": "/new", "folder": "9:9"}, GONE, False, MOVED),  # mounted elsewhere, other numbers
    ],
)
def test_what_became_of_a_project_follows_from_what_can_be_seen(
    changes: dict[str, object], at_old: str, is_held: bool, verdict: str
) -> None:
    assert location.decide(BEFORE, BEFORE.replace(**changes), at_old, is_held_elsewhere=is_held) == verdict


@pytest.mark.parametrize(("at_old", "verdict"), [(TWIN, COPIED), (GONE, MOVED)])
def test_of_an_older_project_only_the_path_is_known(at_old: str, verdict: str) -> None:
    before = Location("", "/old", "", 0, "", "")
    now = BEFORE.replace(path="/new")
    assert location.decide(before, now, at_old, is_held_elsewhere=False) == verdict
    assert location.decide(before, now.replace(path="/old"), SAME, is_held_elsewhere=False) == HERE
