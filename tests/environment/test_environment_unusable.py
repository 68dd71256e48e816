"""Without a record that can be used nothing runs in the environment of the caller."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_rows import Agent
from den import DONE, Den
from rookery.environment import store
from support import Ran, wait_until

pytestmark = pytest.mark.slow

KEY = "HIVE_KEY"
A, B = "first-value-of-the-hive", "other-value-of-the-hive"
RECORDED, SENDER = {KEY: A, "PLACE": "here"}, {KEY: B, "PLACE": "there", "STRAY": "x"}


@pytest.fixture(params=["on", "off"])
def den(repo: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Den:
    monkeypatch.setenv("ROOKERY_DAEMON", request.param)
    return Den(repo)


def notes(path: Path) -> dict[str, str]:
    return {"run": f'echo "${KEY} $PLACE $STRAY" >> {path}; env > {path}.env'}


def sling(den: Den, out: Path, name: str = "bee", times: int = 1) -> None:
    steps: list[Any] = [notes(out), *[{"until": {"mail_from": "human"}}, notes(out)] * times, DONE]
    ran = den.rook("sling", den.task("Work", steps), "--name", name, "--headless", env=RECORDED)
    assert ran.status == 0, ran
    den.wait_for(name, "waiting")


def tell(den: Den, name: str = "bee") -> Ran:
    ran = den.rook("mail", "send", name, "--subject", "Go on", env=SENDER)
    assert ran.status == 0, ran
    return ran


def record(den: Den) -> Path:
    return den.folder / ".rookery/environment.json"


def credentials(den: Den) -> Path:
    stored = store.read(str(den.folder))
    assert stored is not None
    return Path(stored.credentials_path)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere.json"))
    path.symlink_to("elsewhere.json")


def _give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, 12345, 12345)


WAYS: dict[str, Callable[[Den], object]] = {
    "the record is gone": lambda den: record(den).unlink(),
    "the record is a link": lambda den: _link(record(den)),
    "the record is another user's": lambda den: _give_away(record(den)),
    "the record is no JSON": lambda den: record(den).write_text("{"),
    "the credentials are gone": lambda den: credentials(den).unlink(),
    "the credentials are a link": lambda den: _link(credentials(den)),
    "the credentials are another user's": lambda den: _give_away(credentials(den)),
    "the credentials are no JSON": lambda den: credentials(den).write_text("{"),
    "others may read the credentials": lambda den: credentials(den).chmod(0o644),
}


def escalations(den: Den) -> list[dict[str, Any]]:
    return den.mail(type="escalation")


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
def test_a_turn_waits_until_a_person_has_repaired_it(den: Den, tmp_path: Path, way: str) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    sling(den, out)
    sling(den, other, "ant")
    WAYS[way](den)
    tell(den)
    wait_until(lambda: bool(escalations(den)), 30)
    tell(den, "ant")
    assert den.rook("loop", "explain").status == 0
    # A person's own calls are refused as well, and change nothing.
    ran = den.rook.json("sling", den.task("More", [DONE]), env=SENDER)
    assert (ran.status, ran.error["code"]) == (1, "environment_unusable"), ran
    assert "rook env refresh" in ran.error["hint"] or "chmod 600" in ran.error["hint"]
    (message,) = escalations(den)
    assert "rook env refresh" in message["body"] or "chmod 600" in message["body"]
    assert A not in str(message)
    for name in ("bee", "ant"):
        assert den.agent(name)["state"] == "waiting"
    assert (out.read_text(), other.read_text()) == (f"{A} here \n",) * 2
    # It goes on by itself once that is done, and the next problem is reported again.
    ran = den.rook("env", "refresh", env=RECORDED)
    assert ran.status == 0, ran
    for name in ("bee", "ant"):
        den.wait_for(name, "completed")
    assert (out.read_text(), other.read_text()) == (f"{A} here \n" * 2,) * 2
    assert len(escalations(den)) == 1


def test_the_next_problem_is_reported_again(den: Den, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sling(den, out, times=2)
    for number in (1, 2):
        den.wait_for("bee", "waiting")
        record(den).write_text("{")
        tell(den)
        wait_until(lambda number=number: len(escalations(den)) == number, 30)  # type: ignore[misc]
        assert den.rook("env", "refresh", env=RECORDED).status == 0
        wait_until(lambda number=number: out.read_text().count("\n") == number + 1, 30)  # type: ignore[misc]
    den.wait_for("bee", "completed")


def test_a_turn_that_was_opened_and_never_run_waits_too(repo: Path, tmp_path: Path) -> None:
    den = Den(repo)
    out = tmp_path / "out"
    sling(den, out)
    with den.without_loop():
        tell(den)
    den.kill_loop("turn opened")
    with den.without_loop():
        record(den).write_text("{")
    assert den.rook("loop", "run").status in (0, 1)
    wait_until(lambda: bool(escalations(den)), 30)
    assert den.agent("bee")["state"] == "waiting"
    assert out.read_text() == f"{A} here \n"
    assert den.rook("env", "refresh", env=RECORDED).status == 0
    den.wait_for("bee", "completed")
    assert out.read_text() == f"{A} here \n" * 2


def test_a_turn_without_any_record_gets_nothing_of_the_sender(den: Den, tmp_path: Path) -> None:
    """As in a project whose agents were slung before environments were recorded."""
    out = tmp_path / "out"
    sling(den, out)
    record(den).unlink()
    (den.folder / ".rookery/run/environment.lock").unlink()
    tell(den)
    den.wait_for("bee", "completed")
    assert out.read_text() == f"{A} here \n  \n"
    seen = dict(line.split("=", 1) for line in Path(f"{out}.env").read_text().splitlines() if "=" in line)
    own = {name: value for name, value in seen.items() if not name.startswith(("ROOKERY_", "LC_", "GIT_"))}
    shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    least = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TMPDIR", "TZ"}
    assert own.keys() - shell <= least, own
    assert {"PATH", "HOME"} <= own.keys()
    assert own["HOME"] == str(Path.home())
    assert b"No environment is recorded" in den.rook("logs", "bee").out


def test_an_agent_s_sling_without_any_record_gets_nothing_of_the_agent(repo: Path, tmp_path: Path) -> None:
    den = Den(repo)
    out = tmp_path / "out"
    (den.folder / ".rookery/config.local.yaml").write_text(
        f"provision:\n  ports: 0\n  setup: 'echo \"[${KEY}] $PATH\" >> {out}'\nsandbox:\n  mode: off\n"
    )
    cora = Agent(repo, "cora", "coordinator")
    path = f"{tmp_path}:{os.environ['PATH']}"
    ran = den.rook("sling", den.task("Work", [DONE]), "--name", "bee", env={**cora.env, **SENDER, "PATH": path})
    assert ran.status == 0, ran
    den.wait_for("bee", "completed")
    assert out.read_text().startswith("[] ")
    assert str(tmp_path) not in out.read_text()
