"""Git's housekeeping outside, while an agent is at work in its sandbox: it can go on to commit, and nothing is lost."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import git
from den import DONE
from rookery.sandbox.housekeeping import Branch, Packed
from sandbox.cell import Cell, needs_bubblewrap
from support import wait_until

pytestmark = [needs_bubblewrap, pytest.mark.slow]

# Runs within: does what a file in the worktree says, and writes what came of it into another.
_SERVE = """
touch ready
for i in $(seq 1200); do
    if test -e do.sh; then
        mv do.sh doing.sh
        sh doing.sh > answer.new 2>&1; echo "exit $?" >> answer.new
        mv answer.new answer
    fi
    test -e stop && break
    sleep 0.05
done
"""
_COMMIT = "set -e; date +%N >> {name}; git add {name}; git commit -qm {name}; git log -1 --format=%s"


class Worker:
    """An agent in the middle of a turn that runs commands when a test asks it to."""

    def __init__(self, cell: Cell, *more: str) -> None:
        self.cell = cell
        self.folder = cell.worktree("bee")
        cell.sling(cell.task("Work", [{"run": _SERVE}, DONE]), "--name", "bee", *more)
        wait_until(lambda: (self.folder / "ready").exists(), 30)
        self.branch = str(cell.agent("bee")["branch"])

    def run(self, script: str) -> str:
        """Run a script within the sandbox; its output and its exit status."""
        answer = self.folder / "answer"
        answer.unlink(missing_ok=True)
        (self.folder / "do.new").write_text(script)
        (self.folder / "do.new").rename(self.folder / "do.sh")
        wait_until(answer.exists, 30)
        return answer.read_text()

    def commit(self, name: str) -> None:
        """Commit within, and find the commit outside on the agent's branch, after the one before."""
        before = git(self.cell.folder, "rev-parse", self.branch)
        output = self.run(_COMMIT.format(name=name))
        assert output == f"{name}\nexit 0\n", output
        assert git(self.cell.folder, "log", "-1", "--format=%s", self.branch) == name
        assert git(self.cell.folder, "rev-parse", f"{self.branch}~1") == before

    def outside(self, command: str) -> None:
        """Run a command in the main checkout."""
        subprocess.run(["sh", "-ec", command.format(branch=self.branch)], cwd=self.cell.folder, check=True)

    def end(self) -> None:
        """Let the turn end."""
        (self.folder / "stop").touch()
        self.cell.wait_for("bee", "completed")


@pytest.fixture
def cell(repo: Path) -> Iterator[Cell]:
    cell = Cell(repo)
    yield cell
    cell.close()


# Each is run by the user, or by git itself after a commit in the main checkout.
_HOUSEKEEPING = {
    "gc": "git gc -q",
    "gc, all at once": "git gc -q --prune=now",
    "gc by itself": "git -c gc.auto=1 -c gc.autoDetach=false gc -q --auto",
    "no reflogs": "git reflog expire --expire=now --all",
    "no unreachable reflogs": "git reflog expire --expire=now --expire-unreachable=now --rewrite --updateref --all",
    "one entry of the reflog": "git reflog delete {branch}@{{0}}",
    "packed refs": "git pack-refs --all --prune",
    "pruned": "git prune --expire=now",
    "repacked": "git repack -adq && git prune-packed",
    "unpacked": "git repack -Adq --unpack-unreachable=now",
    "maintenance": "git maintenance run --quiet --task=gc --task=loose-objects --task=pack-refs --task=commit-graph",
    "worktrees": "git worktree prune && git worktree repair",
    "another branch": "git branch rook/bee/other && git pack-refs --all && git branch -qD rook/bee/other",
    "settings": "git config core.abbrev 12",
    "another checkout": "git checkout -q --detach",
}


@pytest.mark.parametrize("command", _HOUSEKEEPING.values(), ids=_HOUSEKEEPING.keys())
def test_a_running_turn_goes_on_to_commit(cell: Cell, command: str) -> None:
    worker = Worker(cell)
    worker.commit("one")
    for name in ("two", "three"):
        worker.outside(command)
        worker.commit(name)
    amended = worker.run("git rev-parse HEAD; git commit -q --amend -m amended; echo staged > staged; git add staged")
    worker.outside(command)
    worker.outside("git reset -q --hard")
    output = worker.run("git diff --cached --name-only; git reset -q --hard HEAD@{1}; git rev-parse HEAD")
    assert output == f"staged\n{amended}"
    worker.commit("four")
    worker.end()
    assert git(cell.folder, "log", "--format=%s", f"main..{worker.branch}").split() == ["four", "three", "two", "one"]
    git(cell.folder, "fsck", "--strict")
    assert list((cell.folder / ".git").rglob(".rook*")) == []


def test_the_reflog_outside_tells_what_the_agent_did(cell: Cell) -> None:
    """After git has written the reflogs again, its entries go on to protect what the agent amended or reset."""
    worker = Worker(cell)
    worker.outside("git gc -q")
    worker.commit("one")
    amended = worker.run("git rev-parse HEAD; git commit -q --amend -m amended").split()[0]
    worker.outside("git gc -q --prune=now")
    for ref in (worker.branch, "worktrees/bee/HEAD"):
        assert git(cell.folder, "rev-parse", f"{ref}@{{1}}") == amended
    assert git(cell.folder, "log", "-1", "--format=%s", amended) == "one"
    worker.end()


def test_no_commit_is_made_without_its_parent_while_refs_are_packed(cell: Cell) -> None:
    """Between two looks of the host, the agent sees its branch neither as a file nor among the packed ones."""
    worker = Worker(cell)
    script = "for i in $(seq 150); do echo $i > n; git add n; git commit -qm $i || echo failed; done"
    (worker.folder / "do.new").write_text(script)
    (worker.folder / "do.new").rename(worker.folder / "do.sh")
    while not (worker.folder / "answer").exists():
        worker.outside("git pack-refs --all --prune")
    answer = (worker.folder / "answer").read_text()
    # A commit in the middle of it may be refused; one that was made is there, after all others.
    commits = git(cell.folder, "log", "--format=%s", f"main..{worker.branch}").split()
    assert len(commits) == 150 - answer.count("failed"), answer
    assert len(git(cell.folder, "rev-list", "--max-parents=0", worker.branch, "main").split()) == 1
    worker.end()


def test_packed_refs_of_a_repository_with_long_ids_can_be_read(tmp_path: Path) -> None:
    """An id that is too short would let git within fail at every command."""
    for kind in ("sha1", "sha256"):
        folder = tmp_path / kind
        git(tmp_path, "init", "-q", f"--object-format={kind}", str(folder))
        git(folder, "commit", "-q", "--allow-empty", "-m", "Begin")
        git(folder, "branch", "rook/bee/task")
        for _ in range(2):  # without packed refs, and with them
            packed, copy = folder / ".git" / "packed-refs", folder / "copy"
            copy.touch()
            branch = Branch(str(folder / ".git" / "refs/heads/rook/bee/task"), str(packed))
            branch.hold()
            branch.unpack()
            Packed(str(packed), str(copy), branch).refresh()
            inside = tmp_path / f"{kind}-inside"
            shutil.rmtree(inside, ignore_errors=True)
            shutil.copytree(folder / ".git", inside)
            shutil.copy(copy, inside / "packed-refs")
            names = git(inside, "for-each-ref", "--format=%(refname:short)").split()
            assert names[-1:] == ["rook/bee/task"]
            (inside / "refs/heads/rook/bee/task").unlink()
            with pytest.raises(subprocess.CalledProcessError):
                git(inside, "log", "-1", "rook/bee/task")
            git(folder, "pack-refs", "--all", "--prune")
