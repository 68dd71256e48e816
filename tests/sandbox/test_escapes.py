"""Hundreds of ways out of the sandbox, and what they change outside: nothing.

A manifest of everything around is compared, paths, modes and contents, before and after; then our own git works on what
the agent left, and again nothing may have happened. What a program that got out would do is to touch a canary.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import git
from den import DONE
from rookery.terminal.tmux import socket_path
from sandbox.cell import Cell, needs_bubblewrap
from support import manifest

pytestmark = needs_bubblewrap

SECRET = "hunter2-do-not-tell"
_ATTACK = Path(__file__).with_name("attack.py")


class Site:
    """A project with neighbours: a home with secrets, another agent, sockets, and a folder to leave canaries in."""

    def __init__(self, folder: Path, repo: Path) -> None:
        self.cell = Cell(repo)
        self.root = repo
        self.home = Path(os.environ["HOME"])
        self.outside = folder / "outside"
        self.outside.mkdir()
        (self.outside / "file").write_text("as it was\n")
        for name in (
            ".ssh/id_ed25519",
            ".aws/credentials",
            ".netrc",
            ".config/gh/hosts.yml",
            ".claude/.credentials.json",
        ):
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(SECRET)
        (self.home / ".bashrc").write_text("# as it was\n")
        self.sockets = [self._listen(folder / "agent.sock"), self._listen(self.home / "s.sock")]
        self._neighbour()

    def _listen(self, path: Path) -> socket.socket:
        """Like the agent of ssh, the bus of the desktop or docker's."""
        line = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(path.parent)  # the path may be too long for a socket
        line.bind(path.name)
        os.chdir(here)
        line.listen()
        line.setblocking(False)
        return line

    def _neighbour(self) -> None:
        """An agent that waits in a terminal: its tmux server is the shortest way out that there could be."""
        self.cell.sling(self.cell.task("Wait", [{"wait": "mail"}]), "--name", "wasp", "--tmux")
        self.cell.wait_for("wasp", "waiting")

    def facts(self) -> dict[str, object]:
        state = self.root / ".rookery"
        return {
            "root": str(self.root),
            "home": str(self.home),
            "outside": str(self.outside),
            "other": str(self.cell.worktree("wasp")),
            "pids": [os.getpid(), os.getppid()],
            "sockets": [str(self.outside.parent / "agent.sock"), str(self.home / "s.sock"), "/run/docker.sock"],
            "tmux": [socket_path(str(self.root))],
            "secrets": [f"{self.home}/.*/*", f"{self.home}/.netrc", f"{state}/sessions/*/*", f"{state}/*.db"],
        }

    def manifest(self) -> dict[str, str]:
        """Everything outside, except the agent's own files, what Rookery writes about the agent, and objects."""
        git, state = self.root / ".git", self.root / ".rookery"
        own = [git / "worktrees" / "bee", git / "refs/heads/rook/bee", git / "logs/refs/heads/rook/bee"]
        own += [state / "worktrees/bee", git / "objects", git / "refs/rookery"]
        run = ("run/cages", "run/config", "run/radar", "run/loop", "run/journals", "logs")
        ours = [state / name for name in ("sessions", "agents", "rookery.db", "telemetry.db", *run)]
        without = tuple(str(path) for path in (*own, *ours))
        return manifest(self.root, self.home, self.outside, Path("/etc"), without=without)

    @property
    def canary(self) -> Path:
        return self.outside / "canary"

    def attacked(self, *more: object) -> str:
        """Let an agent do its worst; what it printed."""
        script = (
            f"cat > attack.py <<'END'\n{_ATTACK.read_text()}\nEND\n"
            f"cat > facts.json <<'END'\n{json.dumps(self.facts())}\nEND\npython3 attack.py facts.json > said 2>&1"
        )
        self.cell.run(script, *more)
        return (self.cell.worktree("bee") / "said").read_text()


@pytest.fixture
def site(tmp_path: Path, repo: Path) -> Iterator[Site]:
    site = Site(tmp_path, repo)
    yield site
    site.cell.close()
    for line in site.sockets:
        line.close()


@pytest.mark.slow
def test_nothing_gets_out(site: Site) -> None:
    before = site.manifest()
    output = site.attacked()
    assert int(re.findall(r"attempts: (\d+)", output)[0]) > 300, output
    assert site.manifest() == before
    assert not site.canary.exists()
    for line in site.sockets:
        with pytest.raises(BlockingIOError):
            line.accept()
    assert SECRET not in output
    token = (site.cell.session_folder("wasp") / "token").read_text()
    assert token not in output
    assert (site.cell.session_folder("bee") / "token").read_text() not in output
    went = json.loads(re.findall(r"went through: (.*)", output)[0])
    assert [name for name in went if name not in _OWN and name.rpartition(" ")[2] not in _EMPTIED] == []


# Within the sandbox these lie in folders that are empty there, and the agent's own.
_EMPTIED = {
    *("absolute", "user_home", "user_home_new", "authorized_keys", "database", "configuration", "local_configuration"),
    *("role_prompt", "cage", "other_worktree", "git_main_index", "git_other_worktree"),
}
# What can be done to the agent's own worktree and branch, for our own git to stumble over.
_OWN = {
    *("a_pipe_for_the_outside", "settings_of_git", "a_repository_inside", "a_repository_of_the_other_kind", "a_daemon"),
    *("files_that_git_writes", "a_branch_that_leads_to_main", "an_index_that_is_a_pipe", "links_among_the_objects"),
}


@pytest.mark.slow
def test_our_own_git_obeys_nothing_that_was_planted(site: Site) -> None:
    before, main = site.manifest(), git(site.root, "rev-parse", "main")
    site.attacked({"rook": ["vcs", "status"]}, {"rook": ["vcs", "commit", "--message", f"; touch {site.canary}"]})
    rook = site.cell.rook
    rook("worktree", "list")
    rook("worktree", "snapshots", "bee")
    rook("vcs", "status", "-C", str(site.cell.worktree("bee")))
    rook("vcs", "diff", "-C", str(site.cell.worktree("bee")))
    rook("vcs", "status", "-C", str(site.cell.worktree("bee") / "evil"))
    git(site.root, "gc", "-q")
    cleaned = rook.json("worktree", "clean", "bee", "--force")
    assert cleaned.data[0]["verdict"] in ("removed", "kept"), cleaned
    rook("stop", "wasp")
    assert not site.canary.exists()
    after = site.manifest()
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    ours = ("/.git/", "/.rookery/worktrees/", "/.rookery/run/clean.lock")
    assert {path for path in changed if not any(part in path for part in ours)} == set()
    assert git(site.root, "rev-parse", "main") == main


@pytest.mark.slow
def test_a_branch_that_leads_to_main_does_not_take_main_along(site: Site) -> None:
    """An agent can make its own branch a name for another; deleting it must not delete that other."""
    site.cell.run(
        "b=$(git symbolic-ref HEAD); g=$(git rev-parse --git-common-dir); "
        "git update-ref --no-deref -d $b; printf 'ref: refs/heads/main\\n' > $g/$b; cat $g/$b"
    )
    main = git(site.root, "rev-parse", "main")
    site.cell.rook("worktree", "clean", "bee", "--force")
    assert git(site.root, "rev-parse", "main") == main
    shutil.rmtree(site.outside)


@pytest.mark.slow
def test_the_main_branch_can_be_read_and_not_be_moved(site: Site) -> None:
    outputs = site.cell.run(
        "git log -1 --format=%s main; git update-ref refs/heads/main HEAD~0 HEAD; git branch evil; echo $?"
    )
    assert outputs[0].startswith("Begin\n")
    assert git(site.root, "branch", "--list", "evil") == ""


@pytest.mark.slow
def test_a_turn_that_leaves_a_pipe_for_an_index_ends(site: Site) -> None:
    """The snapshot at its end must not wait for a process that writes into the pipe."""
    site.cell.sling(
        site.cell.task("Pipe", [{"run": "i=$(git rev-parse --git-path index); rm $i; mkfifo $i"}, DONE]),
        "--name",
        "bee",
    )
    site.cell.wait_for("bee", "completed", "crashed")
