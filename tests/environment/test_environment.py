"""Every turn has the project's environment: not that of who sent the last mail."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_rows import Agent
from conftest import Rook
from den import DONE, Den
from rookery.environment import store
from rookery.environment.model import Variables
from rookery.environment.service import own_environ, project_environ
from rookery.processes.proctable import read_all
from rookery.terminal.tmux import Tmux, socket_path
from sandbox.cell import Cell, needs_bubblewrap
from support import Ran, child_environ, run_real_rook, wait_until

KEY = "HIVE_KEY"
A, B = "first-value-of-the-hive", "other-value-of-the-hive"


@pytest.fixture
def den(repo: Path) -> Iterator[Den]:
    den = Den(repo)
    yield den
    if shutil.which("tmux"):
        Tmux(socket_path(str(repo))).kill_server()


def writes(path: Path, *more: dict[str, Any], times: int = 1) -> list[Any]:
    """A script that writes its key and a plain variable to a file at each turn, and ends after so many messages."""
    note = {"run": f'echo "${KEY} $PLACE" >> {path}'}
    steps: list[Any] = [note, *more]
    for _ in range(times):
        steps += [{"until": {"mail_from": "human"}}, note]
    return [*steps, DONE]


def sling(den: Den, steps: list[Any], *more: str, env: dict[str, str]) -> Ran:
    ran = den.rook.json("sling", den.task("Work", steps), "--name", "bee", *more, env=env)
    assert ran.status == 0, ran
    return ran


def tell(den: Den, env: dict[str, str] | None = None) -> Ran:
    """Mail that wakes the agent, from a shell with that environment."""
    den.wait_for("bee", "waiting")
    ran = den.rook("mail", "send", "bee", "--subject", "Go on", env=env)
    assert ran.status == 0, ran
    return ran


@pytest.mark.slow
@pytest.mark.parametrize("daemon", ["on", "off"])
@pytest.mark.parametrize("how", ["--headless", "--tmux"])
def test_a_turn_has_the_environment_of_the_person_who_slung(
    den: Den, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, daemon: str
) -> None:
    monkeypatch.setenv("ROOKERY_DAEMON", daemon)
    out = tmp_path / "out"
    sling(den, writes(out, times=2), how, env={KEY: A, "PLACE": "here"})
    tell(den)
    wait_until(lambda: out.read_text().count("\n") == 2, 60)
    tell(den, {KEY: B, "PLACE": "there"})
    den.wait_for("bee", "completed")
    assert out.read_text() == f"{A} here\n" * 3


@pytest.mark.slow
def test_an_agent_s_own_environment_goes_to_no_other(den: Den, tmp_path: Path) -> None:
    """What an agent sets before it wakes or slings another is its own."""
    out = tmp_path / "out"
    epic = den.task("Lead")
    task = den.task("Work", [{"run": f'echo "${KEY} $PLACE" >> {out}'}, DONE], "--parent", epic)
    lead = f"{KEY}={B} PLACE=there rook sling {task} --name bee"
    script = [{"run": lead}, {"until": {"mail_type": "worker_done"}}, DONE]
    text = f"```rook-script\n{json.dumps(script)}\n```"
    assert den.rook("epic", "update", epic, "--description", text).status == 0
    ran = den.rook("sling", epic, "--role", "lead", "--name", "queen", env={KEY: A, "PLACE": "here"})
    assert ran.status == 0, ran
    wait_until(lambda: den.agent("bee").get("outcome") == "completed", 60)
    assert den.rook("stop", "queen").status == 0
    assert out.read_text() == f"{A} here\n"
    stored = store.read(str(den.folder))
    assert stored is not None
    assert (stored.variables.credentials[KEY], stored.how) == (A, "sling")


@pytest.mark.slow
def test_a_refresh_counts_from_the_next_turn_on(den: Den, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sling(den, writes(out, times=2), env={KEY: A, "PLACE": "here"})
    den.wait_for("bee", "waiting")
    assert den.rook("env", "refresh", env={KEY: B, "PLACE": "there"}).status == 0
    tell(den)
    wait_until(lambda: out.read_text().count("\n") == 2, 60)
    den.wait_for("bee", "waiting")
    assert den.rook("env", "refresh").status == 0
    tell(den, {KEY: A})
    den.wait_for("bee", "completed")
    assert out.read_text() == f"{A} here\n{B} there\n \n"


@pytest.mark.slow
@pytest.mark.parametrize("home", ["/proc/nothing", "a file", "unset"])
def test_where_credentials_cannot_be_kept_nothing_is_slung(den: Den, tmp_path: Path, home: str) -> None:
    """As in a container whose home is missing or cannot be written."""
    (tmp_path / "file").write_text("")
    places = {"/proc/nothing": "/proc/nothing", "a file": str(tmp_path / "file"), "unset": ""}
    env = {"HOME": places[home], "PLACE": "here", "GIT_CONFIG_GLOBAL": str(Path.home() / ".gitconfig")}
    if home == "unset":
        env["XDG_STATE_HOME"] = "/proc/nothing"
    out = tmp_path / "out"
    task = den.task("Work", [{"run": f'echo "${KEY} $PLACE" >> {out}'}, DONE])
    ran = den.rook.json("sling", task, "--name", "bee", env=env | {KEY: A})
    assert (ran.status, "XDG_STATE_HOME" in ran.error["hint"]) == (1, True), ran
    assert not out.exists()
    assert not (den.folder / ".rookery/environment.json").exists()
    den.assert_tidy(worktrees=0, branches=0)
    # Without credentials there is nothing to be kept there.
    assert den.rook("sling", task, "--name", "ant", env=env).status == 0
    den.wait_for("ant", "completed")
    assert out.read_text() == " here\n"


@pytest.mark.slow
@pytest.mark.parametrize("daemon", ["on", "off"])
@pytest.mark.parametrize(
    ("key", "value"), [("core.abbrev", "10"), ("http.extraHeader", "Authorization: Bearer hush0hush")]
)
def test_settings_for_git_reach_a_turn_as_a_whole(
    den: Den, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: str, daemon: str
) -> None:
    monkeypatch.setenv("ROOKERY_DAEMON", daemon)
    out = tmp_path / "out"
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": value}
    misleading = {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_AUTHOR_DATE": "2001-01-01T00:00:00"}
    steps = [{"run": f"git config {key} > {out}; env | grep -E '^GIT_(DIR|INDEX|AUTHOR)' >> {out}; true"}, DONE]
    sling(den, steps, "--headless", env=env | misleading)
    den.wait_for("bee", "completed")
    assert out.read_text() == f"{value}\n"
    assert "hush" not in (den.folder / ".rookery/environment.json").read_text()
    for ran in (den.rook("env", "show"), den.rook.json("env", "show")):
        assert b"hush" not in ran.out
    assert not {"GIT_DIR", "GIT_INDEX_FILE", "GIT_AUTHOR_DATE"} & shown(den.rook)[1].keys()


def test_settings_for_git_that_an_earlier_version_took_apart(project: Path) -> None:
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.abbrev", "GIT_CONFIG_VALUE_0": "10"}
    with store.writing(str(project)):
        parts = Variables({"A": "1", **env}, {"GIT_CONFIG_KEY_0": env["GIT_CONFIG_KEY_0"]})
        del parts.plain["GIT_CONFIG_KEY_0"]
        store.write(str(project), str(Path.home()), parts, at="2026-01-31T12:00:00.000Z", by="ada", how="sling")
    assert project_environ(str(project)).items() >= env.items()
    assert not own_environ(str(project)).keys() & env.keys()


def refresh(rook: Rook, *words: str, **env: str) -> dict[str, tuple[str, str]]:
    """What a refresh says that it has changed, of the variables of this test."""
    ran = rook.json("env", "refresh", *words, env=env)
    return {change["name"]: (change["what"], change["kind"]) for change in ran.data["changes"]}


def test_refresh_says_what_it_changes(project: Path) -> None:
    rook = Rook(project)
    first = refresh(rook, PLACE="here", HIVE_KEY=A)
    assert (first["PLACE"], first[KEY]) == (("added", "plain"), ("added", "credential"))
    assert "TERM" not in first
    assert "ROOKERY_DAEMON" in first
    assert refresh(rook, PLACE="here", HIVE_KEY=A) == {}
    changed = {"PLACE": ("changed", "plain"), KEY: ("changed", "credential"), "MORE": ("added", "plain")}
    assert refresh(rook, "--dry-run", PLACE="there", HIVE_KEY=B, MORE="x") == changed
    assert refresh(rook, PLACE="there", HIVE_KEY=B, MORE="x") == changed
    assert refresh(rook, "--only", "MORE", PLACE="x", HIVE_KEY=A) == {"MORE": ("removed", "plain")}
    assert refresh(rook, "--only", KEY, "--only", "MORE", MORE="y") == {
        **{KEY: ("removed", "credential"), "MORE": ("added", "plain")},
    }
    output = rook("env", "refresh", env={KEY: A}).out.decode()
    assert "removed" in output
    assert A not in output
    ran = rook.json("env", "refresh", "--only", "NO_SUCH")
    assert (ran.error["code"], "rook env show" in ran.error["hint"]) == ("invalid_input", True)


def shown(rook: Rook, **env: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    data = rook.json("env", "show", env=env).data
    return data, {variable["name"]: variable for variable in data["variables"]}


def test_show_says_what_differs_from_the_shell(project: Path) -> None:
    rook = Rook(project)
    data, variables = shown(rook, HIVE_KEY=A)
    assert (data["at"], data["problem"]) == (None, "nothing is recorded yet")
    assert variables[KEY] == {"name": KEY, "kind": "credential", "value": None, "length": None, "shell": "added"}
    refresh(rook, PLACE="here", HIVE_KEY=A, GONE_TOKEN="long gone", SAME="x")
    data, variables = shown(rook, PLACE="there", HIVE_KEY=B, SAME="x", NEW="y")
    assert data["problem"] == ""
    assert data["how"] == "env refresh"
    assert data["by"]
    assert Path(data["credentials_path"]).is_file()
    assert variables["PLACE"] == {"name": "PLACE", "kind": "plain", "value": "here", "length": None, "shell": "changed"}
    assert variables[KEY] == {"name": KEY, "kind": "credential", "value": None, "length": len(A), "shell": "changed"}
    assert (variables["GONE_TOKEN"]["shell"], variables["SAME"]["shell"], variables["NEW"]["shell"]) == (
        "missing",
        "same",
        "added",
    )
    assert variables["NEW"]["value"] is None
    text = rook("env", "show", env={"HIVE_KEY": B, "HUGE": "x" * 5000, "N" * 30: "x"}).out.decode()
    assert A not in text
    assert f"set, {len(A)} characters" in text
    paths = {data["path"], data["credentials_path"]}  # a path is never cut
    assert [line for line in text.splitlines() if len(line) > 80 and line.strip() not in paths] == []


SECRET = {
    "LDAP_BIND_PW": "hush-ldap",
    "CONN": "Server=db;Password=hush-conn",
    "STRIPE": "_".join(["sk", "live", "hush0" * 5]),
    "AWS_ACCESS": "AKIA" + "HUSH" * 4,
    "JDBC": "jdbc:mysql://db:3306/x?user=ada&password=hush-jdbc",
    "HOOK": "https://hooks.slack.com/services/T0AB/B0AB/hush0hush0hush0hush0",
    "HEADER": "Authorization: Bearer hush-bearer",
    "DATABASE": "postgres://ada:hush-url@db/x",
    "BLOB": "hush8cd98f00b204e9800998ecf8427e",
}


def test_what_may_be_secret_is_nowhere_but_in_the_private_file(project: Path) -> None:
    rook = Rook(project)
    printed = [run_real_rook(project, "env", "refresh", env=SECRET)]
    printed += [rook("env", "show", env=SECRET), rook.json("env", "show", env=SECRET)]
    assert [ran.status for ran in printed] == [0, 0, 0]
    record = (project / ".rookery/environment.json").read_bytes()
    assert [text for text in (record, *(ran.out + ran.err for ran in printed)) if b"hush" in text.lower()] == []
    _, variables = shown(rook)
    for name, value in SECRET.items():
        hidden = {"name": name, "kind": "credential", "value": None, "length": len(value), "shell": "missing"}
        assert variables[name] == hidden
    stored = store.read(str(project))
    assert stored is not None
    path = Path(stored.credentials_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["values"] == SECRET
    assert project_environ(str(project)).items() >= SECRET.items()


def test_what_an_earlier_version_took_for_plain_is_not_shown_and_moves(den: Den) -> None:
    assert den.rook("env", "refresh", env=SECRET).status == 0
    path = den.folder / ".rookery/environment.json"
    data = json.loads(path.read_text())
    data["plain"] |= SECRET
    data["names"], data["credentials"] = [], ""
    path.write_text(json.dumps(data))
    for ran in (den.rook("env", "show"), den.rook.json("env", "show")):
        assert b"hush" not in ran.out.lower()
    sling(den, [DONE], env=SECRET)
    assert "hush" not in path.read_text().lower()
    den.wait_for("bee", "completed")


def test_bytes_that_are_no_text_survive(project: Path) -> None:
    env = {os.fsdecode(b"ODD\xff"): os.fsdecode(b"a\nb\xfe"), "ODD_KEY": os.fsdecode(b"c\nd\xfd")}
    rook = Rook(project)
    for words in (["env", "refresh"], ["env", "show"], ["env", "show", "--json"]):
        ran = run_real_rook(project, *words, env=env)
        assert (ran.status, ran.err) == (0, b""), ran
    stored = store.read(str(project))
    assert stored is not None
    assert env.items() <= stored.variables.whole.items()
    assert rook("env", "show").status == 0


@pytest.mark.slow
def test_a_later_sling_says_what_is_new_and_drops_no_credential(den: Den) -> None:
    first = sling(den, [DONE], env={KEY: A, "PLACE": "here"})
    assert f"credentials for agents: new {KEY}".encode() in first.err
    den.wait_for("bee", "completed")
    quiet = den.rook("sling", den.task("More", [DONE]), env={"PLACE": "there"})
    assert (quiet.status, quiet.err) == (0, b"")
    stored = store.read(str(den.folder))
    assert stored is not None
    assert (stored.variables.credentials[KEY], stored.variables.plain["PLACE"]) == (A, "there")
    loud = den.rook("sling", den.task("More", [DONE]), env={KEY: B, "NEW_TOKEN": "brand-new"})
    assert loud.err.decode().count("\n") == 1
    assert f"new NEW_TOKEN; another value for {KEY}" in loud.err.decode()
    assert not any(value in loud.err.decode() for value in (A, B, "brand-new"))


def test_a_refused_sling_records_nothing(den: Den) -> None:
    assert den.rook("sling", "tsk_nowhere", env={KEY: A}).status == 1
    assert not (den.folder / ".rookery/environment.json").exists()


def test_an_agent_neither_sees_nor_changes_it(project: Path) -> None:
    rook = Rook(project)
    refresh(rook, HIVE_KEY=A)
    bee, cora = Agent(project, "bee"), Agent(project, "cora", "coordinator")
    for agent in (bee, cora):
        for words in (["env", "show"], ["env", "refresh"], ["env", "refresh", "--dry-run"]):
            ran = rook.json(*words, env={**agent.env, KEY: B})
            assert ran.error["code"] == "not_permitted", words
            assert "people" in ran.error["message"]
    stored = store.read(str(project))
    assert stored is not None
    assert stored.variables.credentials[KEY] == A


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Den, pytest.param(Cell, marks=needs_bubblewrap)])
def test_no_credential_is_seen_anywhere(repo: Path, tmp_path: Path, kind: type[Den]) -> None:
    """Neither in the project's state, nor in what is printed, nor among the words of a process."""
    den = kind(repo)
    if isinstance(den, Cell):
        den.configure(sandbox={"mode": "on", "credentials": ["PYTHONPATH", KEY]})
    steps = [{"run": f'echo "it is ${KEY}"; test "${KEY}" = {A[:5]}"{A[5:]}" && echo right'}, {"sleep": 600}]
    ran = sling(den, steps, env={KEY: A})
    wait_until(lambda: b"right" in den.rook("logs", "bee").out, 60)
    lines = []
    for pid in read_all():
        try:
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            continue
    assert any(b"rookery.turns.runner" in line and str(repo).encode() in line for line in lines)
    assert not any(A.encode() in line for line in lines)
    assert "it is [redacted]" in den.rook("logs", "bee", "--json").out.decode()
    printed = [ran, den.rook("stop", "bee")]
    for words in (["events"], ["replay"], ["inspect", "bee"], ["errors"], ["doctor"], ["env", "show"]):
        printed += [den.rook(*words), den.rook.json(*words)]
    assert not [ran for ran in printed if A.encode() in ran.out + ran.err]
    holding = [path for path in (repo / ".rookery").rglob("*") if path.is_file() and A.encode() in path.read_bytes()]
    assert holding == []
    state = Path.home() / ".local/state/rookery"
    assert [path.stat().st_mode & 0o777 for path in state.rglob("*") if path.is_file()] == [0o600]


@pytest.mark.slow
@needs_bubblewrap
def test_the_sandbox_hides_the_file_wherever_it_lies(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path("/opt") if os.access("/opt", os.W_OK) else None
    if folder is None:
        pytest.skip("there is no folder beside the home that can be written")
    place = folder / f"rookery-test-{os.getpid()}"
    place.mkdir()
    try:
        monkeypatch.setenv("XDG_STATE_HOME", str(place))
        monkeypatch.setenv(KEY, A)
        cell = Cell(repo)
        outputs = cell.run(f'ls -R {place}; cat {place}/rookery/*/*; echo seen; echo "[${KEY}]"')
        cell.close()
        assert list(place.rglob("credentials-*.json"))
        assert "credentials-" not in outputs[0]
        assert "[]" in outputs[0].splitlines()  # only what is named gets in
    finally:
        shutil.rmtree(place)


@pytest.mark.slow
@needs_bubblewrap
def test_a_terminal_in_the_sandbox_knows_what_it_is(repo: Path, tmp_path: Path) -> None:
    cell = Cell(repo)
    task = cell.task("Look", [{"run": "echo $TERM > term.txt"}, DONE])
    assert cell.rook("sling", task, "--name", "bee", "--tmux", env={"TERM": "vt52"}).status == 0
    cell.wait_for("bee", "completed")
    assert (repo / ".rookery/worktrees/bee/term.txt").read_text() == "tmux-256color\n"
    cell.close()


def test_a_socket_is_given_only_while_it_is_there(project: Path, tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        refresh(Rook(project), SSH_AUTH_SOCK=str(path))
        assert project_environ(str(project))["SSH_AUTH_SOCK"] == str(path)
    path.unlink()
    assert "SSH_AUTH_SOCK" not in project_environ(str(project))
    path.write_text("no socket")
    assert "SSH_AUTH_SOCK" not in project_environ(str(project))


def test_our_own_processes_get_no_credentials(project: Path) -> None:
    refresh(Rook(project), HIVE_KEY=A, PLACE="here")
    assert project_environ(str(project))[KEY] == A
    environ = own_environ(str(project))
    assert (environ["PLACE"], environ.get(KEY)) == ("here", None)


def check(rook: Rook, **env: str) -> dict[str, tuple[str, str]]:
    """What the doctor says of the environment."""
    ran = rook.json("doctor", "--category", "environment", env=env)
    return {entry["name"]: (entry["status"], entry["message"]) for entry in ran.envelope["data"]["checks"]}


def test_the_doctor_looks_at_the_record(project: Path) -> None:
    rook = Rook(project)
    assert check(rook)["record"][0] == "ok"
    Agent(project, "bee")
    status, message = check(rook)["record"]
    assert (status, "1 living agent " in message) == ("warning", True)
    refresh(rook, HIVE_KEY=A)
    checks = check(rook)
    assert checks["record"][0] == "ok"
    assert all(status == "ok" for status, _ in checks.values())
    stored = store.read(str(project))
    assert stored is not None
    os.chmod(stored.credentials_path, 0o644)
    status, message = check(rook)["record"]
    assert (status, "mode 0644" in message) == ("error", True)
    os.chmod(stored.credentials_path, 0o600)
    (project / ".rookery/config.local.yaml").write_text("agents:\n  runtime: claude\n")
    refresh(rook, PATH="/nowhere")
    status, message = check(rook, PATH=child_environ()["PATH"])["claude"]
    assert (status, message) == ("error", "claude is not installed by the recorded PATH")
