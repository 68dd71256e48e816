"""The hook processes of agents: guarded, written down, and closed when anything goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from den import Den
from rookery.config.project import database_path
from rookery.events.telemetry import Telemetry
from rookery.runtimes.hooks import hook_command
from support import wait_until


class Nest:
    """A living agent whose program is the test itself."""

    def __init__(self, den: Den, role: str = "builder") -> None:
        self.den = den
        self.task = den.task("Work", [{"hang": True}])
        self.session = den.sling(self.task, "--name", "bee", "--role", role)
        self.worktree = Path(self.session["worktree"])
        folder = den.folder / ".rookery/sessions" / self.session["id"]
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "ROOKERY_DAEMON": "off",
            "ROOKERY_ROOT": str(den.folder),
            "ROOKERY_AGENT": "bee",
            "ROOKERY_SESSION": self.session["id"],
            "ROOKERY_TOKEN": (folder / "token").read_text(),
        }

    def fire(self, event: str, payload: Any, **environ: str | None) -> subprocess.CompletedProcess[str]:
        """Start the hook as the agent's program does."""
        env = {key: value for key, value in (self.environ | environ).items() if value is not None}
        data = payload if isinstance(payload, str) else json.dumps({"cwd": str(self.worktree)} | payload)
        return subprocess.run(
            hook_command(event), input=data, capture_output=True, text=True, env=env, timeout=60, check=False
        )

    def ask(self, tool: str, **tool_input: str) -> subprocess.CompletedProcess[str]:
        """Ask for a tool."""
        return self.fire("pre-tool", {"tool_name": tool, "tool_input": tool_input, "tool_use_id": "toolu_1"})

    def records(self, *kinds: str) -> list[Any]:
        """What was written down."""
        telemetry = Telemetry(str(self.den.folder / ".rookery/telemetry.db"))
        try:
            return [record for record in telemetry.read(agent="bee") if not kinds or record.kind in kinds]
        finally:
            telemetry.close()


@pytest.fixture
def nest(repo: Path) -> Iterator[Nest]:
    den = Den(repo)
    nest = Nest(den)
    wait_until(lambda: den.agent("bee")["state"] == "working", 30)
    yield nest
    den.rook("stop", "bee")


@pytest.mark.slow
def test_an_allowed_call_is_allowed_by_name_and_written_down(nest: Nest) -> None:
    done = nest.ask("Bash", command="git status")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "allow"
    record = nest.records("call")[-1]
    assert (record.name, record.data["input"], record.data["id"]) == ("Bash", {"command": "git status"}, "toolu_1")
    assert record.turn_id is not None


@pytest.mark.slow
def test_an_escape_is_denied_with_the_reason_and_what_to_do(nest: Nest) -> None:
    for call in (
        {"tool": "Bash", "command": "git push"},
        {"tool": "Bash", "command": "echo hi > /etc/rookery-test"},
        {"tool": "Write", "file_path": str(nest.worktree / "../../../outside.txt"), "content": "x"},
    ):
        done = nest.ask(**call)
        assert done.returncode == 2
        assert "instead:" in done.stderr
        record = nest.records("denied")[-1]
        assert record.is_error
        assert record.data["reason"] in done.stderr
    assert "denied" in nest.den.rook("errors").out.decode()


@pytest.mark.slow
def test_what_came_of_a_call_is_written_with_its_time(nest: Nest) -> None:
    payload = {
        "tool_name": "Write",
        "tool_input": {"file_path": str(nest.worktree / "src/a.py"), "content": "x"},
        "tool_use_id": "toolu_2",
        "tool_response": {"ok": True},
        "duration_ms": 12,
    }
    assert nest.fire("post-tool", payload).returncode == 0
    tool, file = nest.records("tool")[-1], nest.records("file")[-1]
    assert (tool.name, tool.millis, tool.is_error) == ("Write", 12, False)
    assert file.name == "src/a.py"
    failure = {"tool_name": "Bash", "tool_input": {"command": "false"}, "error": "exit status 1"}
    assert nest.fire("post-tool-failure", failure).returncode == 0
    assert nest.records("tool")[-1].is_error
    lines = (nest.den.folder / ".rookery/sessions" / nest.session["id"] / "events.ndjson").read_text().splitlines()
    assert json.loads(lines[-1])["data"]["output"] == "exit status 1"


@pytest.mark.slow
def test_secrets_are_taken_out(nest: Nest) -> None:
    secret = "sk-" + "abc123" * 5
    own = nest.environ["ROOKERY_TOKEN"]
    nest.fire(
        "post-tool",
        {"tool_name": "Bash", "tool_input": {"command": f"echo {secret} {own}"}, "tool_response": "PASSWORD=hunter22"},
    )
    kept = json.dumps(nest.records("tool")[-1].data)
    assert secret not in kept
    assert own not in kept
    assert "hunter22" not in kept


@pytest.mark.slow
@pytest.mark.parametrize(
    "payload", ["", "{", "[]", "null", '{"tool_name": 3}', '{"tool_name": "X"}', '{"tool_name": "X", "tool_input": 1}']
)
def test_a_call_that_cannot_be_read_is_denied(nest: Nest, payload: str) -> None:
    assert nest.fire("pre-tool", payload).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"ROOKERY_TOKEN": "wrong"},
        {"ROOKERY_TOKEN": None},
        {"ROOKERY_SESSION": "ses_nobody"},
        {"ROOKERY_SESSION": None},
        {"ROOKERY_ROOT": None},
        {"ROOKERY_ROOT": "/nowhere"},
        {"ROOKERY_AGENT": None, "ROOKERY_TOKEN": None},
    ],
)
def test_who_cannot_prove_who_it_is_is_denied(nest: Nest, changed: dict[str, str | None]) -> None:
    done = nest.fire("pre-tool", {"tool_name": "Read", "tool_input": {"file_path": "a"}}, **changed)
    assert done.returncode == 2
    assert "allow" not in done.stdout


@pytest.mark.slow
def test_a_database_that_is_gone_or_damaged_denies(nest: Nest) -> None:
    path = Path(database_path(str(nest.den.folder)))
    content = path.read_bytes()
    path.rename(path.with_suffix(".away"))
    assert nest.ask("Read", file_path="a").returncode == 2
    path.write_bytes(b"nonsense" * 512)
    assert nest.ask("Read", file_path="a").returncode == 2
    path.with_suffix(".away").replace(path)
    assert path.read_bytes() == content


@pytest.mark.slow
def test_a_locked_log_denies_before_the_program_loses_patience(nest: Nest) -> None:
    connection = apsw.Connection(str(nest.den.folder / ".rookery/telemetry.db"))
    connection.execute("BEGIN EXCLUSIVE")
    try:
        done = nest.ask("Read", file_path="a")
    finally:
        connection.execute("ROLLBACK")
        connection.close()
    assert done.returncode == 2
    assert "in time" in done.stderr


@pytest.mark.slow
def test_the_hooks_of_a_stopped_agent_are_refused(nest: Nest) -> None:
    nest.den.rook("stop", "bee")
    done = nest.ask("Read", file_path="a")
    assert done.returncode == 2
    assert "ended" in done.stderr
    assert nest.fire("post-tool", {"tool_name": "Read", "tool_input": {}}).returncode == 0


@pytest.mark.slow
def test_mail_that_came_meanwhile_keeps_a_turn_going_once(nest: Nest) -> None:
    assert nest.fire("stop", {"stop_hook_active": False}).stdout == ""
    nest.den.rook.json("mail", "send", "bee", "--subject", "One more thing", "--body", "Mind the gap.")
    answer = json.loads(nest.fire("stop", {"stop_hook_active": False}).stdout)
    assert answer["decision"] == "block"
    assert "Mind the gap." in answer["reason"]
    assert nest.fire("stop", {"stop_hook_active": True}).stdout == ""


@pytest.mark.slow
def test_a_compacted_agent_is_told_who_it_is(nest: Nest) -> None:
    assert nest.fire("session-start", {"source": "startup"}).stdout == ""
    for event, payload in (("session-start", {"source": "compact"}), ("pre-compact", {"trigger": "auto"})):
        output = nest.fire(event, payload).stdout
        assert "You are `bee`, a builder" in output
        assert nest.task in output
