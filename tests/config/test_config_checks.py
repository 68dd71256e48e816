"""What the doctor asks of the configuration and the project's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import git
from rookery.base.check import ERROR, OK, WARNING, Place
from rookery.config.checks import check_gitignore, check_project
from rookery.ops.config_checks import check_settings


@pytest.fixture
def place(repo: Path) -> Place:
    (repo / ".rookery").mkdir()
    (repo / ".rookery" / "rookery.db").touch()
    return Place(str(repo), str(repo))


def test_a_project_that_is_there(place: Place) -> None:
    assert [finding.status for finding in check_project(place)] == [OK]


def test_no_project_is_worth_a_warning(tmp_path: Path) -> None:
    (finding,) = check_project(Place(None, str(tmp_path)))
    assert finding.status == WARNING
    assert "rook init" in finding.hint


def test_a_wrong_root_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_ROOT", str(tmp_path))
    (finding,) = check_project(Place(None, str(tmp_path)))
    assert (finding.status, finding.message) == (ERROR, f"ROOKERY_ROOT is {tmp_path}, and there is no project there")


def test_a_folder_without_a_database_is_an_error(repo: Path) -> None:
    (repo / ".rookery").mkdir()
    (repo / "below").mkdir()
    (finding,) = check_project(Place(None, str(repo / "below")))
    assert (finding.status, finding.message) == (ERROR, f"{repo}/.rookery is there, but holds no database")


def test_every_mistake_is_a_finding_of_its_own(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [finding.status for finding in check_settings(place)] == [OK]
    path = Path(place.cwd) / ".rookery" / "config.yaml"
    path.write_text("tasks:\n  lease: soon\nnope: 1\n")
    monkeypatch.setenv("ROOKERY_VCS_BACKEND", "svn")
    findings = list(check_settings(place))
    assert [one.status for one in findings] == [ERROR] * 3
    assert [one.message.split(": ")[0] for one in findings] == [f"{path}:2:10", f"{path}:3:1", "ROOKERY_VCS_BACKEND"]


@pytest.mark.parametrize("key", ["agents", "merge"])
def test_a_runtime_that_there_is_not_is_an_error(place: Place, key: str) -> None:
    path = Path(place.cwd) / ".rookery" / "config.yaml"
    path.write_text(f"{key}:\n  runtime: clod\n")
    (finding,) = check_settings(place)
    assert (finding.status, finding.name) == (ERROR, f"{key}.runtime")
    says = f"{path}:2: {key}.runtime is clod, and there is no such runtime (did you mean claude?)"
    assert finding.message == says
    assert "one of scripted, claude" in finding.hint
    assert f"rook config explain {key}.runtime" in finding.hint


def test_a_missing_gitignore_is_written(place: Place) -> None:
    (finding,) = check_gitignore(place)
    assert finding.status == WARNING
    assert finding.repair is not None
    finding.repair()
    assert [one.status for one in check_gitignore(place)] == [OK]
    assert git(Path(place.cwd), "status", "--porcelain") == ""


def test_an_empty_gitignore_counts_as_missing(place: Place) -> None:
    (Path(place.cwd) / ".rookery" / ".gitignore").touch()
    assert [finding.status for finding in check_gitignore(place)] == [WARNING]


def test_outside_a_project_its_folder_is_not_asked_for(tmp_path: Path) -> None:
    outside = Place(None, str(tmp_path))
    assert list(check_gitignore(outside)) == []
