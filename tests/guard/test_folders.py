"""Relative paths are judged in the folder in which their command runs; a real bash says which that is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from guard.conftest import make_worktree
from guard.corpus import LEAVES_SRC, OWN, WRITES_ANYWHERE, WRITES_ELSEWHERE, WRITES_IN_SRC
from rookery.guard.decide import decide
from rookery.guard.model import ALLOW, DENY, Bounds, Call, Verdict
from rookery.roles.catalog import builtin_roles


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    return make_worktree(tmp_path / "project")


def judge(worktree: Path, command: str, *scope: str, cwd: str = "") -> Verdict:
    root, here = str(worktree.parents[2]), str(worktree / cwd)
    bounds = Bounds(root, str(worktree), "rook/bee/task", "main", scope, OWN, agent="bee", temp=(), cwd=here)
    role = builtin_roles()["builder"]
    return decide(role, role.profile, bounds, Call("Bash", {"command": command}))


def run(worktree: Path, command: str, cwd: str = "") -> set[str]:
    """What a shell writes, by paths from the worktree."""
    before = listing(worktree)
    subprocess.run(
        ["bash", "-c", command],
        cwd=worktree / cwd,
        timeout=20,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    after = listing(worktree)
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def listing(worktree: Path) -> dict[str, tuple[int, int]]:
    entries = {}
    for folder, _, names in os.walk(worktree.parents[2]):
        for name in names:
            stat = os.lstat(os.path.join(folder, name))
            entries[os.path.relpath(os.path.join(folder, name), worktree)] = (stat.st_mtime_ns, stat.st_size)
    return entries


@pytest.mark.parametrize("command", WRITES_IN_SRC)
def test_what_lands_inside_is_allowed(worktree: Path, command: str) -> None:
    verdict = judge(worktree, command, "src")
    assert verdict.verdict == ALLOW, verdict
    written = run(worktree, command)
    assert written
    assert all(path.startswith("src/") for path in written), written


@pytest.mark.parametrize("command", WRITES_ELSEWHERE)
def test_what_lands_outside_is_denied(worktree: Path, command: str) -> None:
    verdict = judge(worktree, command, "src")
    assert verdict.verdict == DENY, verdict
    written = run(worktree, command)
    assert any(not path.startswith("src/") for path in written), written


@pytest.mark.parametrize("command", LEAVES_SRC)
def test_what_leaves_the_folder_that_it_began_in_is_denied(worktree: Path, command: str) -> None:
    verdict = judge(worktree, command, "src", cwd="src")
    assert verdict.verdict == DENY, verdict
    written = run(worktree, command, cwd="src")
    assert any(not path.startswith("src/") for path in written), written


@pytest.mark.parametrize("command", WRITES_ANYWHERE)
def test_what_lands_anywhere_is_denied(worktree: Path, command: str) -> None:
    for scope in ((), ("src",)):
        verdict = judge(worktree, command, *scope)
        assert verdict.verdict == DENY, verdict
        assert verdict.hint


def test_an_unknown_folder_is_named_with_a_way_out(worktree: Path) -> None:
    verdict = judge(worktree, "cd - && echo x > f")
    assert (verdict.rule, verdict.reason) == ("unknown", "the folder that f is in is only known when it runs")
    assert "absolute path" in verdict.hint
    assert judge(worktree, f"cd - && echo x > {worktree}/f").verdict == ALLOW


def test_a_shell_goes_back_by_names_and_not_where_links_lead(worktree: Path) -> None:
    (worktree / "src" / "inner" / "deep").mkdir(parents=True)
    (worktree / "tests" / "link").symlink_to(worktree / "src" / "inner" / "deep")
    for command in ("cd tests/link && cd .. && echo x > f", "cd tests/link/.. && echo x > f"):
        assert judge(worktree, command, "src").verdict == DENY
        assert run(worktree, command) == {"tests/f"}
        (worktree / "tests" / "f").unlink()
    command = "cd tests/link && echo x > ../f"
    assert judge(worktree, command, "src").verdict == ALLOW
    assert run(worktree, command) == {"src/inner/f"}
