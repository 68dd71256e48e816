"""`.rookery` is deleted under a daemon, runners and agents: they end, make nothing again, and leave a new one alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from den import Den
from rookery.base.errors import NotInitialised
from rookery.config.presence import Presence
from rookery.config.project import database_path, find_root, make_state_folder, make_state_folders
from rookery.daemon import start
from rookery.db import commits
from rookery.db.database import Database
from rookery.processes.locks import is_locked
from rookery.processes.proctable import MARK, SERVES, pids_with
from support import everyone, wait_until

_WORK = "echo one > one; git add one; git commit -qm One; touch begun; sleep 300"
SECONDS = 20


def living(folder: Path, session_id: str) -> set[int]:
    """The processes of the project and of its agent."""
    return pids_with(SERVES, str(folder)) | pids_with(MARK, session_id) | pids_with("ROOKERY_RUNNER", session_id)


@pytest.fixture(params=["on", "off"])
def den(repo: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Den:
    monkeypatch.setenv("ROOKERY_DAEMON", request.param)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Den(repo)


def begin(den: Den) -> dict[str, Any]:
    """An agent at work, and the loop that drives it. A process that has only started belongs to neither project."""
    bee = den.sling(den.task("Work", [{"run": _WORK}]), "--name", "bee")
    wait_until(lambda: (den.folder / ".rookery/worktrees/bee/begun").exists(), SECONDS)
    wait_until(lambda: is_locked(str(den.folder / ".rookery/run/loop.lock")), SECONDS)
    return bee


def delete(folder: Path) -> None:
    subprocess.run(["rm", "-rf", str(folder / ".rookery")], check=True)


@pytest.mark.slow
def test_everything_ends_and_nothing_comes_again(den: Den, tmp_path: Path) -> None:
    bee = begin(den)
    assert living(den.folder, bee["id"])
    delete(den.folder)
    wait_until(lambda: not living(den.folder, bee["id"]), SECONDS)
    assert not (den.folder / ".rookery").exists()
    text = (tmp_path / "state/rookery/removed.log").read_text()
    assert f"{den.folder}/.rookery was deleted" in text
    refused = den.rook.json("status").error
    assert refused["code"] == "not_initialised"
    assert "rook init" in refused["hint"]
    assert not (den.folder / ".rookery").exists()
    assert git(den.folder, "log", "-1", "--format=%s", bee["branch"]) == "One"
    notes = den.rook.json("init", "--yes").data["notes"]
    assert any(bee["branch"] in note for note in notes)


@pytest.mark.slow
def test_a_new_project_at_the_same_path_gets_nothing_of_the_old_one(den: Den) -> None:
    bee = begin(den)
    old = living(den.folder, bee["id"])
    delete(den.folder)
    assert den.rook("init", "--yes").status == 0
    wait_until(lambda: not old & living(den.folder, bee["id"]), SECONDS)
    assert everyone(den.rook.json("status", "--all").data) == []
    db = Database.open(database_path(str(den.folder)))
    assert [db.value(f"SELECT count(*) FROM {table}") for table in ("events", "sessions", "turns")] == [0, 0, 0]
    db.close()
    assert not (den.folder / ".rookery/sessions").exists()
    assert not (den.folder / ".rookery/worktrees").exists()


def test_a_state_without_its_database_is_refused_and_stays_as_it_is(den: Den) -> None:
    (den.folder / ".rookery/worktrees/bee").mkdir(parents=True)
    assert den.rook("daemon", "stop").status == 0
    os.unlink(database_path(str(den.folder)))
    before = sorted(str(path) for path in (den.folder / ".rookery").rglob("*"))
    for words in (["status"], ["task", "list"], ["sling", "Work"]):
        refused = den.rook.json(*words).error
        assert refused["code"] == "not_initialised"
        assert "rookery.db, is missing" in refused["message"]
    assert sorted(str(path) for path in (den.folder / ".rookery").rglob("*")) == before
    notes = den.rook.json("init", "--yes").data["notes"]
    assert any("bee" in note for note in notes)
    assert den.rook.json("task", "list").data == []


def test_no_folder_file_or_daemon_is_made_for_a_project_that_is_gone(project: Path) -> None:
    root, state = str(project), project / ".rookery"
    (state / "rookery.db-commits").unlink()  # the first that `rm -rf` may delete
    commits.announce(database_path(root))
    assert not (state / "rookery.db-commits").exists()
    (state / "rookery.db").unlink()
    before = sorted(os.listdir(state))
    for make in (make_state_folder, make_state_folders):
        with pytest.raises(FileNotFoundError):
            make(str(state / "logs/of"))
    commits.announce(database_path(root))
    with pytest.raises(start.NotServed):
        start.start_daemon(root)
    assert sorted(os.listdir(state)) == before
    shutil.rmtree(state)
    with pytest.raises(FileNotFoundError):
        make_state_folders(str(state / "sessions/ses_1/runtime"))
    with pytest.raises(start.NotServed):
        start.start_daemon(root)
    with pytest.raises(NotInitialised):
        find_root(root)
    assert not state.exists()


def test_a_folder_is_known_by_more_than_its_path(project: Path) -> None:
    presence = Presence(str(project))
    assert not presence.is_gone()
    project.rename(project.with_name("moved"))
    assert not presence.is_gone()
    project.with_name("moved").rename(project)
    shutil.copytree(project / ".rookery", project / "copy")
    shutil.rmtree(project / ".rookery")
    assert presence.is_gone()
    (project / "copy").rename(project / ".rookery")
    assert presence.is_gone()
    assert not Presence(str(project)).is_gone()
