"""A worktree as the cases of the guard expect it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from guard.corpus import BENEATH, FOREIGN, OWN
from rookery.db.database import Database
from rookery.guard.model import Bounds
from rookery.guard.ownership import check_owned
from rookery.ops.model import Caller
from rookery.ops.operation import Op
from support import add


@pytest.fixture(scope="session")
def bounds(tmp_path_factory: pytest.TempPathFactory) -> Bounds:
    """What the agent `bee` has of its own; another agent's worktree lies beside it."""
    root = tmp_path_factory.mktemp("project")
    worktree = make_worktree(root)
    bounds = Bounds(str(root), str(worktree), "rook/bee/task", "main", task_id=OWN, agent="bee")
    return bounds.replace(check_own=make_check(str(root / ".rookery" / "rookery.db"), bounds))


def make_check(path: str, bounds: Bounds) -> Callable[[Op, Mapping[str, Any], str, str], None]:
    """Asks a state with the agent's own task, one under it and a foreign one, as the hook does."""
    db = Database.create(path)
    for task_id, parent in ((OWN, None), (BENEATH, OWN), (FOREIGN, None)):
        new_id = add(db, "work", parent)
        with db.write():
            db.execute("UPDATE tasks SET id = ? WHERE id = ?", (task_id, new_id))
    who = Caller("bee", "ses_1", "builder", OWN, "queen", bounds.worktree)
    return lambda operation, values, folder, reach: check_owned(db, who, operation, values, folder, reach)


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, _own_home: None) -> None:
    """A home that is not under a temporary folder, as a user's is not."""
    monkeypatch.setenv("HOME", "/home/user-of-the-guard")


def make_worktree(root: Path) -> Path:
    """The files that the cases name."""
    worktree = root / ".rookery" / "worktrees" / "bee"
    for folder in ("src", "tests", ".claude"):
        (worktree / folder).mkdir(parents=True)
    for folder in (".git", "elsewhere", ".rookery/worktrees/other", ".rookery/sessions/ses_1"):
        (root / folder).mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {root}/.git/worktrees/bee\n")
    for name in ("src/a.py", "src/b.py", "tests/t.py", "README.md", "setup.sh"):
        (worktree / name).write_text("x = 1\n")
    (root / "elsewhere" / "passwd").write_text("secret\n")
    (worktree / "src" / "out").symlink_to(root / "elsewhere")
    (worktree / "src" / "passwd").symlink_to(root / "elsewhere" / "passwd")
    return worktree
