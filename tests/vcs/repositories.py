"""Repositories for tests: made, looked at and broken with the real programs, never with the code under test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rookery.vcs.backend import Vcs
from rookery.vcs.git.checkout import Git
from rookery.vcs.jj.workspace import Jj

TIMEOUT = 60.0
LOCAL_JJ = Path(__file__).parents[2] / ".dev" / "jj" / "bin"


def find_jj(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put jj on PATH, with a user; skips the test where there is none."""
    if shutil.which("jj") is None:
        if not (LOCAL_JJ / "jj").exists():
            pytest.skip("jj is not installed: run `dev/jj.sh .dev/jj` to get it")
        monkeypatch.setenv("PATH", f"{LOCAL_JJ}{os.pathsep}{os.environ['PATH']}")
    config = Path(os.environ["HOME"]) / ".config" / "jj" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('user.name = "Test"\nuser.email = "test@example.org"\n')


def run(folder: Path, *argv: str, env: dict[str, str] | None = None, check: bool = True) -> str:
    """Run a program and give back what it printed."""
    done = subprocess.run(
        argv, cwd=folder, check=check, capture_output=True, env=None if env is None else {**os.environ, **env}
    )
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def start(
    code: str,
    *args: str,
    cwd: Path,
    path: str | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
) -> subprocess.Popen[bytes]:
    """A child that runs our code in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if path is not None:
        env["PATH"] = path
    return subprocess.Popen([sys.executable, "-c", code, *args], cwd=cwd, env=env, stdin=stdin, stdout=stdout)


class Repository:
    """A repository of one kind, with what a test needs to do to it by hand."""

    kind = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.init()

    def init(self) -> None:
        """Make it, without a commit."""
        raise NotImplementedError

    def vcs(self, path: Path | None = None) -> Vcs:
        """What is under test."""
        raise NotImplementedError

    @property
    def store(self) -> Path:
        """Its git folder."""
        raise NotImplementedError

    def begin(self) -> str:
        """A first commit on main, by hand; returns it."""
        raise NotImplementedError

    def add_checkout(self, path: Path, branch: str) -> None:
        """Another checkout, by hand."""
        raise NotImplementedError

    def make_conflict(self) -> None:
        """Leave the checkout with a conflict in `shared.txt`."""
        raise NotImplementedError

    def collect_garbage(self) -> None:
        """Throw away every object that nothing leads to."""
        raise NotImplementedError

    def write(self, name: str, data: str | bytes = "text\n") -> None:
        """Write a file, its folders too."""
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def git(self, *args: str) -> str:
        """Run git on the store."""
        return run(self.path, "git", f"--git-dir={self.store}", *args)

    def tree(self, commit: str) -> dict[str, str]:
        """The paths of a commit and their modes."""
        listed = self.git("ls-tree", "-r", "-z", commit).split("\0")
        return {entry.partition("\t")[2]: entry[:6] for entry in listed if entry}

    def content(self, commit: str, path: str) -> str:
        """What a commit holds under a path."""
        return self.git("cat-file", "blob", f"{commit}:{path}")


class GitRepository(Repository):
    """A git repository."""

    kind = "git"

    def init(self) -> None:
        run(self.path, "git", "init", "-q")

    def vcs(self, path: Path | None = None) -> Vcs:
        return Git(str(path or self.path), TIMEOUT)

    @property
    def store(self) -> Path:
        return self.path / ".git"

    def begin(self) -> str:
        self.write("README.md", "hello\n")
        run(self.path, "git", "add", ".")
        run(self.path, "git", "commit", "-qm", "Begin")
        return run(self.path, "git", "rev-parse", "HEAD")

    def add_checkout(self, path: Path, branch: str) -> None:
        run(self.path, "git", "worktree", "add", "-q", str(path), branch)

    def make_conflict(self) -> None:
        self._commit("shared.txt", "base\n")
        run(self.path, "git", "branch", "other")
        self._commit("shared.txt", "ours\n")
        run(self.path, "git", "switch", "-q", "other")
        self._commit("shared.txt", "theirs\n")
        run(self.path, "git", "merge", "main", check=False)

    def _commit(self, name: str, data: str) -> None:
        self.write(name, data)
        run(self.path, "git", "add", name)
        run(self.path, "git", "commit", "-qm", data)

    def collect_garbage(self) -> None:
        run(self.path, "git", "reflog", "expire", "--expire=now", "--all")
        run(self.path, "git", "gc", "-q", "--prune=now")


class JjRepository(Repository):
    """A jj repository that keeps its git store to itself."""

    kind = "jj"
    init_options = ("--no-colocate",)

    def init(self) -> None:
        self.jj("git", "init", *self.init_options, ".")

    def jj(self, *args: str, check: bool = True) -> str:
        """Run jj."""
        return run(self.path, "jj", "--no-pager", "--color=never", "--quiet", *args, check=check)

    def vcs(self, path: Path | None = None) -> Vcs:
        return Jj(str(path or self.path), TIMEOUT)

    @property
    def store(self) -> Path:
        return self.path / ".jj" / "repo" / "store" / "git"

    def begin(self) -> str:
        self.write("README.md", "hello\n")
        self.jj("commit", "-m", "Begin")
        self.jj("bookmark", "create", "main", "-r", "@-")
        return self.jj("log", "--no-graph", "-r", "main", "-T", "commit_id")

    def add_checkout(self, path: Path, branch: str) -> None:
        # Without a git worktree beside it, for which jj wants a newer git than every machine has.
        self.jj("workspace", "add", "--no-colocate", "-r", branch, str(path))

    def make_conflict(self) -> None:
        self.write("shared.txt", "base\n")
        self.jj("commit", "-m", "base")
        base = self.jj("log", "--no-graph", "-r", "@-", "-T", "commit_id")
        sides = []
        for text in ("ours", "theirs"):
            self.jj("new", base)
            self.write("shared.txt", text + "\n")
            self.jj("commit", "-m", text)
            sides.append(self.jj("log", "--no-graph", "-r", "@-", "-T", "commit_id"))
        self.jj("new", *sides)

    def collect_garbage(self) -> None:
        self.jj("op", "abandon", "..@-")
        self.jj("util", "gc", "--expire=now")


class ColocatedRepository(JjRepository):
    """A jj repository with a `.git` beside its `.jj`."""

    init_options = ("--colocate",)

    @property
    def store(self) -> Path:
        return self.path / ".git"

    def collect_garbage(self) -> None:
        super().collect_garbage()
        run(self.path, "git", "reflog", "expire", "--expire=now", "--all")
        run(self.path, "git", "gc", "-q", "--prune=now")


KINDS: dict[str, type[Repository]] = {"git": GitRepository, "jj": JjRepository, "jj-colocated": ColocatedRepository}
