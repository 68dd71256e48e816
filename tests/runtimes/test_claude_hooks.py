"""What the real Claude Code makes of our settings: every hook is called, a refusal holds, no repository undoes it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from dev.model_server import ModelServer

from claude import model as model
from claude import model_script, settings_for
from process_tools import Mark, wait_until
from rookery.runtimes import claude, hooks
from rookery.runtimes.claude_folder import prepare
from rookery.runtimes.model import DENIED, Launch
from rookery.terminal.tmux import Tmux

from .contract import Played, play_turn, submit

# Writes down what it was called with, and refuses what the test wants refused.
_STUB = """
import json, sys
log, refused, event = sys.argv[1:4]
given = json.load(sys.stdin)
with open(log, "a") as file:
    file.write(json.dumps([event, given]) + "\\n")
if event == "pre-tool" and refused and refused in str(given["tool_input"]):
    sys.stderr.write("not here")
    sys.exit(2)
if event == "pre-tool":
    print('{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}')
"""

_SCRIPT = """
- run: echo 'quotes " and $HOME'
- run: exit 3
- run: touch refused.txt
- say: the end
"""


class Caller:
    """An agent whose hooks are the test's own."""

    def __init__(self, repo: Path, server: ModelServer) -> None:
        self.repo, self.log = repo, repo.parent / "it's a log.ndjson"
        folder = str(repo.parent / "session")
        settings = settings_for(server, hook_command=self.command)
        self.launch = Launch("ada", "builder", str(repo), folder, "default", None, settings)

    def command(self, event: str) -> tuple[str, ...]:
        return (sys.executable, "-I", "-S", "-c", _STUB, str(self.log), "refused.txt", event)

    def play(self, mark: Mark, script: str) -> Played:
        prepare(self.launch)
        return play_turn(claude, self.launch, f"Go.\n{model_script(script)}", mark)

    @property
    def calls(self) -> list[tuple[str, dict[str, object]]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(event, payload) for event, payload in map(json.loads, lines)]


@pytest.fixture
def caller(repo: Path, model: ModelServer) -> Caller:
    return Caller(repo, model)


@pytest.mark.slow
def test_every_event_calls_its_hook_without_a_shell(caller: Caller, mark: Mark) -> None:
    played = caller.play(mark, _SCRIPT)
    assert played.status == 0, played
    events = [event for event, _ in caller.calls]
    assert events == [hooks.PRE_TOOL, hooks.PRE_TOOL, hooks.PRE_TOOL, hooks.STOP]
    names = {event: payload["hook_event_name"] for event, payload in caller.calls}
    assert names[hooks.PRE_TOOL] == "PreToolUse"
    assert not (caller.repo / "refused.txt").exists()
    assert [event.data["input"]["command"] for event in played.of(DENIED)] == ["touch refused.txt"]


@pytest.mark.slow
def test_in_a_terminal_there_is_a_hook_for_what_comes_of_a_tool_too(caller: Caller, mark: Mark, tmux: Tmux) -> None:
    prepare(caller.launch)
    command = claude.terminal_command(caller.launch)
    tmux.new_session("ada", str(caller.repo), command.argv, {**mark.env, **command.env})
    wait_until(lambda: claude.is_ready(tmux.capture("ada")))
    tmux.send_text("ada", f"Go.\n{model_script(_SCRIPT)}")
    submit(tmux, lambda: hooks.STOP in [event for event, _ in caller.calls])
    assert [event for event, _ in caller.calls] == [
        *(hooks.SESSION_START, hooks.PROMPT),
        *(hooks.PRE_TOOL, hooks.POST_TOOL),
        *(hooks.PRE_TOOL, hooks.POST_TOOL_FAILURE),
        *(hooks.PRE_TOOL, hooks.STOP),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        hooks.hook_command(hooks.PRE_TOOL, "rookery.nothing_of_that_name"),
        ("/nowhere/python", "-c", "pass"),
        ("/bin/sh", "-c", "kill -9 $$"),
        ("/bin/sh", "-c", "exit 1"),
        ("/bin/true",),
        ("/bin/echo", "not JSON"),
    ],
    ids=["cannot import", "no such program", "killed", "failed", "silent", "garbled"],
)
def test_a_hook_that_does_not_allow_lets_no_tool_through(caller: Caller, mark: Mark, command: tuple[str, ...]) -> None:
    broken = {"hook_command": lambda event: command}
    launch = caller.launch.replace(settings={**caller.launch.settings, **broken})
    prepare(launch)
    script = "- run: touch through.txt\n- say: the end"
    played = play_turn(claude, launch, f"Go.\n{model_script(script)}", mark)
    assert not (caller.repo / "through.txt").exists()
    assert [event.data["name"] for event in played.of(DENIED)] == ["Bash"]


@pytest.mark.slow
def test_a_repository_cannot_turn_the_hooks_off(caller: Caller, mark: Mark) -> None:
    settings = caller.repo / ".claude"
    settings.mkdir()
    for name in ("settings.json", "settings.local.json"):
        (settings / name).write_text(json.dumps({"disableAllHooks": True, "hooks": {}}))
    caller.play(mark, "- run: touch refused.txt\n- say: the end")
    assert hooks.PRE_TOOL in [event for event, _ in caller.calls]
    assert not (caller.repo / "refused.txt").exists()


def test_the_folder_is_for_its_owner_alone_and_keeps_what_the_program_remembers(caller: Caller) -> None:
    prepare(caller.launch)
    folder = Path(caller.launch.folder) / "claude"
    remembered = folder / ".claude.json"
    remembered.write_text(json.dumps(json.loads(remembered.read_text()) | {"numStartups": 7}))
    prepare(caller.launch)
    assert json.loads(remembered.read_text())["numStartups"] == 7
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
