"""A copy of a project with everything in it, while agents of the original wait and work."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Rook, git
from daemons import end_daemon
from den import DONE, Den
from places import make_place
from process_tools import copy_live, end_agents
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.processes.proctree import Identity, marked
from rookery.vcs import cage
from rookery.vcs.git import relocate as git_relocate
from support import everyone, start_rook, wait_until

WAITS = [
    {"edit": {"path": "first.txt", "text": "first\n"}},
    {"commit": "First"},
    {"wait": "mail"},
    {"edit": {"path": "second.txt", "text": "second\n"}},
    {"commit": "Second"},
    DONE,
]
WORKS = [{"edit": {"path": "own.txt", "text": "own\n"}}, {"commit": "Own"}, DONE]


class Scene:
    """A project in which ann waits for mail and bob works, and a copy of it."""

    def __init__(self, repo: Path) -> None:
        self.den = Den(repo)
        self.original = repo
        self.ann = self.den.sling(self.den.task("Wait", WAITS), "--name", "ann")
        self.bob = self.den.sling(self.den.task("Work", [{"hang": True}]), "--name", "bob")
        self.den.wait_for("ann", "waiting")
        wait_until(lambda: len(self.processes()) >= 1)
        self.copy = repo.parent / "copy"
        self.outside = repo.parent / "outside"
        git(repo, "worktree", "add", "-q", "--detach", str(self.outside))
        git(self.outside, "commit", "-q", "--allow-empty", "-m", "Loose")
        self.before = self.pointers(repo)

    def make_copy(self) -> Rook:
        """Copy it as a person does."""
        copy_live(self.original, self.copy)
        return Rook(self.copy)

    def processes(self) -> list[Identity]:
        """What bob runs."""
        return marked("ROOKERY_SESSION", str(self.bob["id"]))

    def pointers(self, root: Path) -> dict[str, str]:
        """Every file by which git finds worktrees, and the agents' own files."""
        paths = [*root.glob(".git/worktrees/*/gitdir"), *root.glob(".git/worktrees/*/config.worktree")]
        paths += [*root.glob(".rookery/worktrees/*/.git"), *root.glob(".rookery/worktrees/*/*"), self.outside / ".git"]
        return {str(path): path.read_text() for path in sorted(paths) if path.is_file()}


@pytest.fixture
def scene(repo: Path) -> Iterator[Scene]:
    copied = Scene(repo)
    yield copied
    if copied.copy.exists():
        end_agents(copied.copy)
        end_daemon(copied.copy)


def _worktrees(folder: Path) -> list[str]:
    listed = git(folder, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]


@pytest.mark.slow
def test_no_agent_of_the_original_runs_in_a_copy_and_the_original_goes_on(scene: Scene) -> None:
    working = scene.processes()
    rook = scene.make_copy()
    first = rook.json("status", "--all")
    output = first.err.decode()
    assert output.count("\n") == 1, output
    assert f"copied from {scene.original}" in output
    states = {agent["agent"]: agent for agent in everyone(first.data)}
    for name in ("ann", "bob"):
        assert (states[name]["state"], states[name]["outcome"]) == ("ended", "stopped")
        assert states[name]["reason"] == f"copied from {scene.original}"
        assert states[name]["worktree"] == str(scene.copy / ".rookery" / "worktrees" / name)
    assert rook("status").err == b""
    assert rook.json("task", "get", str(scene.ann["task_id"])).data["state"] == "PENDING"
    # Nothing in the copy touches the original, whatever is done there.
    assert _worktrees(scene.copy)[1:] == [str(scene.copy / ".rookery/worktrees" / name) for name in ("ann", "bob")]
    git(scene.copy, "worktree", "prune")
    git(scene.copy, "worktree", "repair")
    assert git(scene.copy / ".rookery/worktrees/ann", "status", "--porcelain") == ""
    assert rook("doctor", "--fix").status == 0
    assert [cleaned["verdict"] for cleaned in rook.json("worktree", "clean").data] == ["removed", "removed"]
    assert git(scene.copy, "for-each-ref", "refs/rookery/rescue/outside")
    assert scene.pointers(scene.original) == scene.before
    assert scene.processes() == working
    # The copy works by itself.
    copied = Den.at(scene.copy)
    copied.sling(copied.task("Own", WORKS), "--name", "cid")
    copied.wait_for("cid", "completed")
    assert rook("merge", "--all").status == 0
    assert (scene.copy / "own.txt").exists()
    assert not (scene.original / "own.txt").exists()
    # And so does the original.
    assert {agent["agent"]: agent["state"] for agent in scene.den.rook.json("status").data["agents"]} == {
        "ann": "waiting",
        "bob": "working",
    }
    assert scene.den.rook("mail", "send", "ann", "--subject", "Go", "--body", "on").status == 0
    scene.den.wait_for("ann", "completed")
    assert scene.den.rook("merge", "--all").status == 0
    assert (scene.original / "second.txt").read_text() == "second\n"
    assert scene.processes() == working
    assert scene.den.rook("stop", "bob").status == 0


@pytest.mark.slow
@pytest.mark.parametrize("step", ["copy repaired", "copy dropped", "copy stopped", "notice kept"])
def test_a_command_that_is_killed_on_the_way_is_followed_up(scene: Scene, step: str) -> None:
    rook = scene.make_copy()
    killed = rook("status", env={"ROOKERY_TEST_KILL": step})
    assert killed.status == -9, killed
    listed = rook.json("status", "--all")
    assert listed.err.decode().count("copied from") == 1
    states = {agent["agent"]: agent["reason"] for agent in everyone(listed.data)}
    assert states == dict.fromkeys(("ann", "bob"), f"copied from {scene.original}")
    assert _worktrees(scene.copy)[1:] == [str(scene.copy / ".rookery/worktrees" / name) for name in ("ann", "bob")]
    assert scene.pointers(scene.original) == scene.before
    assert len(scene.processes()) >= 1


@pytest.mark.slow
def test_many_commands_at_once_settle_a_copy_once(scene: Scene) -> None:
    scene.make_copy()
    children = [start_rook(scene.copy, "status", "--json") for _ in range(4)]
    ended = [child.communicate(timeout=60) for child in children]
    assert [child.returncode for child in children] == [0] * 4
    assert sum(err.decode().count("copied from") for _, err in ended) == 1
    db = Database.open(database_path(str(scene.copy)))
    assert db.value("SELECT count(*) FROM events WHERE type = 'agent.ended'") == 2
    db.close()


@pytest.mark.slow
def test_what_the_original_holds_is_free_in_a_copy(scene: Scene) -> None:
    """A lease, a scratch folder and a cleaning of a living process have no owner in the copy."""
    from rookery.processes import holder

    me = holder.myself()
    db = scene.den.rook.open()
    db.execute(
        "INSERT INTO merge_leases VALUES ('main', 7, 'human', ?, ?, '2999-01-01T00:00:00.000Z')", (me.pid, me.text)
    )
    row = (".rookery/worktrees/ann", "ann", "rook/ann", None, 7, "human", me.pid, me.text, "2999-01-01T00:00:00.000Z")
    db.execute(f"INSERT INTO cleanings VALUES ({', '.join('?' * len(row))})", row)
    db.close()
    folder = scene.original / ".rookery" / "scratch" / "held"
    folder.parent.mkdir(exist_ok=True)
    folder.with_name("held.owner").symlink_to(f"{me.pid} {me.text}")
    folder.mkdir()
    rook = scene.make_copy()
    copied = Den.at(scene.copy)
    copied.sling(copied.task("Own", WORKS), "--name", "cid")
    copied.wait_for("cid", "completed")
    assert rook("merge", "--all").status == 0
    assert (scene.copy / "own.txt").exists()
    assert not (scene.copy / ".rookery/scratch/held").exists()
    assert (scene.copy / ".rookery/worktrees/ann").is_dir()
    db = rook.open()
    assert db.value("SELECT count(*) FROM cleanings") == 0
    db.close()
    assert folder.with_name("held.owner").is_symlink()
    assert os.path.exists(scene.original / ".rookery/worktrees/ann")


def test_a_copy_within_the_original_is_told_apart_from_it(project: Path) -> None:
    """Paths of one begin with those of the other."""
    git(project, "worktree", "add", "-q", "-b", "ann", ".rookery/worktrees/ann")
    inner = project / "inner"
    subprocess.run(f"mkdir {inner} && cp -a .git .rookery {inner}/", shell=True, cwd=project, check=True)
    pointers = [".git/worktrees/ann/gitdir", ".rookery/worktrees/ann/.git"]
    before = [(project / pointer).read_text() for pointer in pointers]
    for _ in range(2):
        assert git_relocate.relocate(str(inner), str(project), 60, is_copy=True) in (0, 1)
        assert [(inner / pointer).read_text() for pointer in pointers] == [
            f"{inner}/.rookery/worktrees/ann/.git\n",
            f"gitdir: {inner}/.git/worktrees/ann\n",
        ]
    assert [(project / pointer).read_text() for pointer in pointers] == before
    # And the other way round: the original lies in its copy.
    for pointer in pointers:
        (project / pointer).write_text((inner / pointer).read_text())
    git_relocate.relocate(str(project), str(inner), 60, is_copy=True)
    assert [(project / pointer).read_text() for pointer in pointers] == before


def test_the_words_before_git_in_a_sandboxed_worktree_name_the_new_root(tmp_path: Path) -> None:
    """Without them git would run there unguarded; with the old ones it would write into the original."""
    words = [
        "bwrap",
        "--bind",
        "/old/.rookery/worktrees/ann",
        "/old/.rookery/worktrees/ann",
        "--ro-bind",
        "/older",
        "/",
    ]
    (tmp_path / ".rookery").mkdir()
    (tmp_path / ".rookery/rookery.db").touch()
    cage.keep(str(tmp_path / ".rookery/worktrees/ann"), words, "/old/.git")
    for _ in range(2):
        cage.relocate(str(tmp_path), "/old")
        kept = cage.find(str(tmp_path / ".rookery/worktrees/ann"))
        assert kept is not None
        tree = str(tmp_path / ".rookery/worktrees/ann")
        assert kept.words == ("bwrap", "--bind", tree, tree, "--ro-bind", "/older", "/")
        assert kept.common == str(tmp_path / ".git")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jj", "git"])
def test_a_copy_of_either_kind_has_its_own_worktrees(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place(kind, tmp_path, monkeypatch)
    ann = place.add("ann", state="waiting")
    place.context().db.close()
    copy_live(Path(place.root), tmp_path / "copy")
    listed = Rook(tmp_path / "copy").json("worktree", "list").data
    assert [(worktree["path"], worktree["state"], worktree["worktree"]["is_broken"]) for worktree in listed] == [
        (str(tmp_path / "copy/.rookery/worktrees/ann"), "ended", False)
    ]
    assert [cleaned["verdict"] for cleaned in Rook(tmp_path / "copy").json("worktree", "clean").data] == ["removed"]
    assert ann.vcs().status().is_clean
    assert ann.vcs().current_branch() == ann.branch
