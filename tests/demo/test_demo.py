"""`rook demo`: the whole job, with nothing of the user's, and nothing left of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from rookery.demo import story
from rookery.demo.stage import Stage, scenes
from support import child_environ, rook_argv, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def bare_environ(temporary: Path) -> dict[str, str]:
    """Neither a home, nor an identity for git, nor tmux or a sandbox in PATH."""
    programs = temporary.parent / "programs"
    programs.mkdir()
    for name in ("git", "sh", "grep", "cat", "env"):
        (programs / name).symlink_to(str(shutil.which(name)))
    kept = {name: value for name, value in child_environ().items() if name.startswith("ROOKERY_")}
    return kept | {"PATH": str(programs), "TMPDIR": str(temporary)}


def test_it_shows_the_whole_job_and_leaves_nothing(temporary: Path) -> None:
    done = subprocess.run(rook_argv("demo"), env=bare_environ(temporary), cwd="/", capture_output=True, timeout=180)
    out = done.stdout.decode()
    assert done.returncode == 0, (out, done.stderr)
    assert "without one: bubblewrap is not installed" in out
    assert "3 of 3 landed on main" in out
    assert "reverted by" in out
    assert [row for row in out.splitlines() if len(row) > 80 and "without one" not in row] == []
    assert list(temporary.iterdir()) == []


def test_an_interrupt_clears_the_stage(temporary: Path) -> None:
    demo = subprocess.Popen(
        rook_argv("demo"), env=child_environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    wait_until(lambda: list(temporary.glob("*/shop/.rookery/rookery.db")), 60)
    os.killpg(demo.pid, signal.SIGINT)
    demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert list(temporary.iterdir()) == []


def test_what_is_kept_can_be_looked_at(temporary: Path) -> None:
    stage = Stage(0)
    shown = list(scenes(stage, True, lambda _stage: iter(())))
    assert [scene.text for scene in shown] == [f"Look around: cd {stage.root}", f"Remove it: rm -rf {stage.folder}"]
    assert Path(stage.folder).is_dir()
    stage.clear()
    assert not Path(stage.folder).exists()


def test_the_lead_counts_its_branches() -> None:
    assert "5 branches wait" in story.lead_script(dict.fromkeys(story.PRACTICE, "task_1"))
