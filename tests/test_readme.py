"""README and guides, word for word: every block of commands runs, or says before it why it does not.

`rook` is what `pip install .` makes of a clone, in an environment of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import git
from guide_blocks import PAGES, ROOT, CommandBlock, read_blocks
from support import child_environ

_GUIDED = (ROOT / "docs/guides/claude-code.md", ROOT / "docs/guides/first-day.md")
"""They have tests of their own."""
_PATIENCE = 300
_HANDLE = re.compile(r"^id +([0-9a-z]{6})$", re.MULTILINE)
_BLOCKS = [block for page in PAGES for block in read_blocks(page)]
_PIP = """#!/bin/sh
# The packages that Rookery needs are those of the tests; nothing else may come from elsewhere.
verb=$1; shift
exec {python} -m pip --python {target} "$verb" -q --no-deps --no-build-isolation "$@"
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of Rookery's repository, as far as it is installed, with a repository of the reader's in it."""
    clone = tmp_path / "clone"
    for folder in ("src", "bin"):
        shutil.copytree(ROOT / folder, clone / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    repo = clone / "your-repository"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "commit", "-q", "--allow-empty", "-m", "Begin")
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "upstream")
    git(repo, "remote", "add", "origin", str(tmp_path / "upstream"))
    git(repo, "push", "-q", "-u", "origin", "main")
    return clone


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A virtual environment that is active, with nothing in it but what Rookery needs."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    [packages] = venv.glob("lib/python*/site-packages")
    # A path file adds the folder, but not what path files in it add: Rookery itself is not there.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = venv / "bin/pip"
    pip.write_text(_PIP.format(python=sys.executable, target=venv / "bin/python"))
    pip.chmod(0o755)
    own = {name: value for name, value in child_environ().items() if name != "PYTHONPATH"}
    return own | {
        "HOME": os.environ["HOME"],
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "ROOKERY_PYTHON": str(venv / "bin/python"),
        "GH_TOKEN": "not-a-token",
        "EDITOR": "true",
    }


class Reader:
    """A reader who types what a page says, and puts in the ids that the commands before have shown."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.environ = environ
        self.ids: dict[str, str] = {}

    def follow(self, block: CommandBlock) -> None:
        """Type a block line by line; all of them have to work."""
        for line in block.commands:
            command = line
            for name, id_ in self.ids.items():
                command = command.replace(name, id_)
            if command.startswith("cd ") and "$(" not in command:  # else it only has to work: he goes back
                self.folder /= command.split()[1]
                continue
            output = self.type(command)
            if shown := _HANDLE.search(output):
                self.ids["EPIC_ID" if command.startswith("rook epic create") else "TASK_ID"] = shown[1]
            elif command.startswith("rook backup"):
                self.ids["BACKUP"] = output.split()[1].rstrip(",")

    def type(self, command: str) -> str:
        """Run one line, and return what it printed."""
        done = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def reader(clone: Path, environ: dict[str, str]) -> Iterator[Reader]:
    reader = Reader(clone, environ)
    yield reader
    if reader.folder != clone:
        subprocess.run(["rook", "daemon", "stop"], cwd=reader.folder, env=environ, check=False, capture_output=True)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in _GUIDED], ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(page: Path, reader: Reader) -> None:
    pytest.importorskip("hatchling", reason="`pip install .` builds with hatchling, which is not installed here")
    blocks = [block for block in read_blocks(page) if not block.reason]
    if not blocks:
        pytest.skip("; ".join(f"{block}: {block.reason}" for block in read_blocks(page)) or "no commands in it")
    if page.name != "README.md":
        reader.type("pip install .")
        reader.folder /= "your-repository"
        reader.type("rook init --yes --no-gates")
    for block in blocks:
        reader.follow(block)
    assert reader.type("rook --version").startswith("rook ")
    if page.name == "README.md":
        assert git(reader.folder, "log", "--oneline", "main").count("\n") >= 1  # what bee did has landed
        assert "venv" in reader.type("command -v rook")


@pytest.mark.parametrize("block", [block for block in _BLOCKS if block.reason], ids=str)
def test_a_block_that_no_test_runs_says_why(block: CommandBlock) -> None:
    pytest.skip(block.reason)


def test_every_page_is_looked_at() -> None:
    pages = {block.page.name for block in _BLOCKS}
    assert {"README.md", "tasks.md", "daemon.md", "claude-code.md"} <= pages
    assert not [str(block) for block in _BLOCKS if block.page in _GUIDED and block.reason]
