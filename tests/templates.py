"""Repositories and projects that many tests begin with: made once per pytest worker, and copied for each test."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from rookery.config.layout import FOLDER
from rookery.db import commits
from rookery.db.database import Database
from support import run_rook

_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
}
"""Fixtures of a whole module are made before a test has a home with settings of its own."""


def copy_repository(folder: Path) -> Path:
    """A git repository with one commit on `main`."""
    shutil.copytree(_repository(), folder)
    _git(folder, "update-index", "-q", "--refresh")  # the index knows the files by their numbers, which are new
    return folder


def copy_database(path: str) -> None:
    """A new database at the current schema."""
    shutil.copyfile(_database(), path)
    commits.prepare(path)


def init_project(repo: Path) -> None:
    """What `rook init --yes` makes of a repository in which there is nothing to guess gates from."""
    if {path.name for path in repo.iterdir()} - {".git", "README.md"}:
        assert run_rook(repo, "init", "--yes").status == 0
    else:
        shutil.copytree(_project(), repo / FOLDER)


@cache
def _place() -> Path:
    folder = tempfile.mkdtemp(prefix="rookery-templates-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _new_place() -> Path:
    """A folder of its own for every attempt: one that fails is made again by the next test."""
    return Path(tempfile.mkdtemp(dir=_place()))


@cache
def _repository() -> Path:
    folder = _new_place() / "repository"
    folder.mkdir()
    _git(folder, "init", "-q", "--template=")
    (folder / "README.md").write_text("hello\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "Begin")
    for name in ("hooks", "info"):
        (folder / ".git" / name).mkdir()
    return folder


@cache
def _database() -> str:
    path = str(_new_place() / "rookery.db")
    Database.create(path).close()
    return path


@cache
def _project() -> Path:
    folder = copy_repository(_new_place() / "initialised")
    assert run_rook(folder, "init", "--yes").status == 0
    return folder / FOLDER


def _git(folder: Path, *args: str) -> None:
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, *args], cwd=folder, check=False, capture_output=True, env=os.environ)
    assert done.returncode == 0, (args, done.stderr)
