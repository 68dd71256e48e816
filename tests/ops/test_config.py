"""`rook config show` and `rook config explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.base.errors import ConfigInvalid, NotFound, NotInitialised
from rookery.config.environ import read_environ
from rookery.config.schema import keys
from rookery.ops.config import explain, show
from rookery.ops.context import Context
from rookery.ops.index import find


@pytest.fixture
def project(repo: Path) -> Path:
    (repo / ".rookery").mkdir()
    (repo / ".rookery" / "rookery.db").touch()
    (repo / ".rookery" / "config.yaml").write_text("tasks:\n  lease: 1h\n")
    return repo


def context(cwd: Path, env: dict[str, str] | None = None, **flags: str) -> Context:
    dotted = {name.replace("_", "."): text for name, text in flags.items()}
    return Context(cwd=str(cwd), environ=read_environ({"HOME": str(cwd / "home")} | (env or {})), flags=dotted)


def test_show_lists_every_key_with_its_origin(project: Path) -> None:
    shown = {one.key: one for one in show(context(project, {"ROOKERY_VCS_BACKEND": "git"}))}
    assert list(shown) == list(keys())
    assert (shown["tasks.lease"].value, shown["tasks.lease"].shown) == (3600.0, "1h")
    assert str(shown["tasks.lease"].origin) == f"{project}/.rookery/config.yaml:2"
    assert (shown["vcs.backend"].value, str(shown["vcs.backend"].origin)) == ("git", "ROOKERY_VCS_BACKEND")
    assert (shown["vcs.timeout"].shown, shown["vcs.timeout"].origin.layer) == ("2m", "default")


def test_explain_tells_what_every_layer_says(project: Path) -> None:
    setting = explain(context(project, {"ROOKERY_TASKS_LEASE": "2h"}, tasks_lease="3h"), "tasks.lease")
    assert (setting.value, setting.shown, setting.default, setting.default_shown) == (10800.0, "3h", 1800.0, "30m")
    assert [(one.layer, one.shown) for one in setting.layers] == [
        ("default", "30m"),
        ("project", "1h"),
        ("environment", "2h"),
        ("flag", "3h"),
    ]
    assert setting.layers[1].origin.line == 2
    assert str(setting.origin) == "-c tasks.lease"
    assert "claimed task" in setting.documentation
    assert (setting.accepts, setting.variable) == ("duration", "ROOKERY_TASKS_LEASE")


def test_explain_tells_the_choices(project: Path) -> None:
    assert explain(context(project), "vcs.backend").choices == ("auto", "git", "jj")


def test_both_work_outside_a_project(tmp_path: Path) -> None:
    assert len(show(context(tmp_path))) == len(keys())
    assert explain(context(tmp_path, tasks_lease="5m"), "tasks.lease").value == 300.0


def test_a_wrong_root_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(NotInitialised, match="ROOKERY_ROOT"):
        show(context(tmp_path, {"ROOKERY_ROOT": str(tmp_path / "gone")}))


def test_an_unknown_key_is_not_found_and_a_close_one_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"did you mean tasks\.lease\?"):
        explain(context(tmp_path), "tasks.leese")
    with pytest.raises(NotFound) as caught:
        explain(context(tmp_path), "vcs")
    assert caught.value.hint == "vcs holds vcs.backend, vcs.timeout"


def test_a_broken_file_is_reported(project: Path) -> None:
    (project / ".rookery" / "config.yaml").write_text("tasks: [")
    with pytest.raises(ConfigInvalid, match=r"config\.yaml:\d+:\d+: it is not YAML"):
        show(context(project))


def test_they_are_offered_and_only_read() -> None:
    for name, view in (("show", "environment.settings"), ("explain", "environment.setting")):
        operation, words = find(["config", name])
        assert operation is not None
        assert words == 2
        assert (operation.view, operation.changes_state) == (view, False)
