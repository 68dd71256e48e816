"""What the doctor says of the sandbox, and which words and environment an agent's program gets. Nothing is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from rookery.base import secret_paths
from rookery.base.check import Place
from rookery.base.errors import InvalidState
from rookery.sandbox import mounts, probe
from rookery.sandbox.checks import check_sandbox
from rookery.sandbox.model import BLANK, HIDE, RO, build_environ
from support import run_rook


@pytest.fixture
def working(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if bubblewrap worked, wherever the test runs."""
    monkeypatch.setattr(probe, "probe", lambda: probe.Probe(("bwrap",), version="bwrap 9"))


def findings(project: Path, **settings: object) -> dict[str, tuple[str, str]]:
    (project / ".rookery" / "config.yaml").write_text(yaml.safe_dump({"sandbox": settings}))
    return {
        finding.name: (finding.status, finding.message) for finding in check_sandbox(Place(str(project), str(project)))
    }


def test_off_is_a_warning(project: Path) -> None:
    assert findings(project, mode="off")["files"][0] == "warning"


@pytest.mark.usefixtures("working")
def test_what_holds_is_reported(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "x")
    checks = findings(project, network="allow", allow=["example.org"], credentials=["API_KEY"])
    assert {status for status, _ in checks.values()} == {"ok"}
    assert "example.org" in checks["network"][1]
    assert "API_KEY" in checks["credentials"][1]


@pytest.mark.usefixtures("working")
def test_a_credential_counts_as_it_is_recorded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents do not get what the shell of the moment has."""
    assert run_rook(project, "env", "refresh", env={"OLD_KEY": "x"}).status == 0
    monkeypatch.setenv("API_KEY", "x")
    assert findings(project, credentials=["OLD_KEY", "PATH"])["credentials"][0] == "ok"
    status, message = findings(project, credentials=["OLD_KEY", "API_KEY"])["credentials"]
    assert (status, message) == ("warning", "not recorded: API_KEY")


@pytest.mark.usefixtures("working")
@pytest.mark.parametrize(
    ("settings", "name", "status"),
    [
        ({"network": "allow"}, "network", "warning"),
        ({"network": "allow", "allow": ["*"]}, "network", "error"),
        ({"network": "off"}, "network", "ok"),
        ({"credentials": ["NOT_THERE"]}, "credentials", "warning"),
    ],
)
def test_what_does_not_fit_is_reported(project: Path, settings: dict[str, object], name: str, status: str) -> None:
    assert findings(project, **settings)[name][0] == status


@pytest.mark.parametrize(("mode", "status"), [("auto", "warning"), ("on", "error")])
def test_a_missing_program_is_reported(project: Path, monkeypatch: pytest.MonkeyPatch, mode: str, status: str) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert findings(project, mode=mode) == {"files": (status, findings(project, mode=mode)["files"][1])}
    assert "bubblewrap is not installed" in findings(project, mode=mode)["files"][1]


def test_a_program_that_does_not_work_is_reported_with_what_may_forbid_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    result = probe.probe()
    assert not result.works
    assert "does not work here" in result.reason
    assert "user namespaces" in result.hint
    program.write_text("#!/bin/sh\nexit 0\n")
    assert probe.probe().works


def test_the_environment_is_a_list_of_names() -> None:
    outside = {"PATH": "/bin", "LC_ALL": "C", "STRAY": "x", "KEY": "k", "ROOKERY_TOKEN": "t", "ROOKERY_AGENT": "bee"}
    env = build_environ(outside, ["KEY", "ROOKERY_TOKEN", "MISSING"], "/home/bee", "allow")
    assert {"PATH": "/bin", "LC_ALL": "C", "KEY": "k", "HOME": "/home/bee", "NO_PROXY": ""}.items() <= env.items()
    assert not {"STRAY", "ROOKERY_TOKEN", "MISSING"} & env.keys()
    assert env["https_proxy"] == env["HTTP_PROXY"] == "http://127.0.0.1:3128"


def test_a_project_in_the_home_does_not_show_its_secrets(tmp_path: Path) -> None:
    """Even where the home itself is the project, or is listed."""
    home = tmp_path.resolve()
    for name in (".ssh", ".config/gh", ".rookery"):
        (home / name).mkdir(parents=True)
    (home / ".netrc").write_text("secret")
    shown = list(mounts.shared_mounts(str(home), [str(home)], f"{home}/.local/bin:{home}/bin", []))
    kinds = {mount.path: mount.kind for mount in shown}
    assert kinds[str(home)] == RO
    assert kinds[str(home / ".ssh")] == kinds[str(home / ".config/gh")] == kinds[str(home / ".rookery")] == HIDE
    assert kinds[str(home / ".netrc")] == BLANK
    assert [mount.path for mount in shown].index(str(home / ".ssh")) > [mount.path for mount in shown].index(str(home))


def test_every_secret_of_the_list_is_hidden(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    for name in secret_paths.IN_HOME:
        (home / name).mkdir(parents=True)
    hidden = {
        mount.path for mount in mounts.shared_mounts(str(home), [str(home)], "", []) if mount.kind in (HIDE, BLANK)
    }
    assert {str(home / name) for name in secret_paths.IN_HOME} <= hidden
    assert {path for path in secret_paths.OF_THE_SYSTEM if os.path.lexists(path)} <= hidden


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (".nvm/versions/node/v22/bin", [".nvm/versions/node/v22"]),
        (".pyenv/shims", [".pyenv"]),
        (".cargo/bin", [".rustup", ".cargo"]),
        ("bin", ["bin"]),
        ("tools", ["tools"]),
        (".local/bin", [".local/bin", ".local/lib"]),
    ],
)
def test_programs_on_the_path_are_shown_with_their_tree(tmp_path: Path, entry: str, shown: list[str]) -> None:
    home = str(tmp_path.resolve())
    readable = [mount.path for mount in mounts.shared_mounts("/srv", [home], f"{home}/{entry}", []) if mount.kind == RO]
    assert {f"{home}/{path}" for path in shown} <= set(readable)
    assert home not in readable
    assert f"{home}/.local" not in readable
    assert f"{home}/.local/share" not in readable


def test_a_branch_beside_those_of_others_is_refused(repo: Path) -> None:
    (repo / "tree").mkdir()
    with pytest.raises(InvalidState):
        mounts.find_repository(str(repo / "tree"), "rook/bee/x")
