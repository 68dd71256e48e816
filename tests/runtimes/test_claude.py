"""How Claude Code is started, by role, profile and configuration; no program is needed for that."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rookery.config.environ import read_environ
from rookery.config.loader import load_config, section
from rookery.runtimes import claude
from rookery.runtimes.claude_folder import HOOK_FILE, prepare
from rookery.runtimes.hooks import MODULE
from rookery.runtimes.model import Command, Launch


def launch(tmp_path: Path, settings: dict[str, Any] | None = None, **changes: Any) -> Launch:
    begun = Launch("ada", "builder", str(tmp_path), str(tmp_path / "session"), "default", None, settings or {})
    return begun.replace(**changes)


def configured(tmp_path: Path, **flags: str) -> dict[str, Any]:
    """The settings that the runtime is given under a configuration."""
    loaded = load_config(None, read_environ({"HOME": str(tmp_path)}), {f"claude.{key}": flags[key] for key in flags})
    return section(loaded.config, "claude")


def value_of(command: Command, option: str) -> str:
    return command.argv[command.argv.index(option) + 1]


def test_the_first_turn_and_the_next(tmp_path: Path) -> None:
    first = claude.turn_command(launch(tmp_path), "Begin.\nNow.")
    assert json.loads(first.stdin or "")["message"]["content"] == "Begin.\nNow."
    assert (first.stdin or "").count("\n") == 1
    assert "--model" not in first.argv
    assert "--resume" not in first.argv
    second = claude.turn_command(launch(tmp_path, runtime_session="abc", model="opus"), "Go on.")
    assert (value_of(second, "--resume"), value_of(second, "--model")) == ("abc", "opus")


def test_both_ways_of_living_are_under_the_same_rules(tmp_path: Path) -> None:
    headless, terminal = claude.turn_command(launch(tmp_path), "x"), claude.terminal_command(launch(tmp_path))
    rest = {value_of(terminal, "--settings"), value_of(headless, "--settings")}
    assert [word for word in terminal.argv if word not in rest] == [
        word for word in headless.argv[: len(terminal.argv)] if word not in rest
    ]
    assert "-p" not in terminal.argv
    assert terminal.env["CLAUDE_CONFIG_DIR"].startswith(str(tmp_path / "session"))


def test_every_file_that_names_our_hooks_is_among_its_settings(tmp_path: Path) -> None:
    """A sandboxed agent must not be able to change one."""
    claude.prepare(launch(tmp_path))
    texts = {path.name: path.read_text() for path in (tmp_path / "session").rglob("*") if path.is_file()}
    assert [name for name, text in texts.items() if MODULE in text] == [HOOK_FILE]
    settings = {name for name, text in texts.items() if HOOK_FILE in text}
    assert len(settings) == len(claude.MODES)
    assert {*settings, HOOK_FILE} < set(claude.SETTINGS)


def test_a_role_that_writes_nothing_loses_the_tools_for_it(tmp_path: Path) -> None:
    writer = claude.turn_command(launch(tmp_path), "x")
    reader = claude.turn_command(launch(tmp_path, may_write=False), "x")
    assert "Write" not in value_of(writer, "--disallowedTools").split(",")
    assert {"Write", "Edit", "Task"} <= set(value_of(reader, "--disallowedTools").split(","))


def test_nothing_is_allowed_but_by_our_hook(tmp_path: Path) -> None:
    command = claude.turn_command(launch(tmp_path), "x")
    assert value_of(command, "--permission-mode") == "default"
    assert not {"--dangerously-skip-permissions", "--allowedTools"} & set(command.argv)


def test_program_arguments_and_variables_are_settings(tmp_path: Path) -> None:
    settings = configured(
        tmp_path, program="/opt/other", args="--fallback-model=haiku", env="DISABLE_AUTOUPDATER=0,X=y"
    )
    command = claude.turn_command(launch(tmp_path, settings), "x")
    assert command.argv[0] == "/opt/other"
    assert "--fallback-model=haiku" in command.argv
    assert (command.env["X"], command.env["DISABLE_AUTOUPDATER"]) == ("y", "0")


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own login."""
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    path = Path(os.environ["HOME"]) / ".claude" / ".credentials.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"claudeAiOauth": {"accessToken": "now", "refreshToken": "for ever"}}))
    return path


def test_the_login_is_shared_without_what_renews_it(login: Path, tmp_path: Path) -> None:
    before = login.read_bytes()
    prepare(launch(tmp_path, configured(tmp_path)))
    command = claude.turn_command(launch(tmp_path, configured(tmp_path)), "x")
    assert command.env["CLAUDE_CODE_OAUTH_TOKEN"] == "now"
    assert "for ever" not in str(command)
    assert list(login.parent.iterdir()) == [login]
    assert login.read_bytes() == before
    kept = [path.read_text() for path in (tmp_path / "session" / "claude").iterdir()]
    assert not any("for ever" in text or "now" in text for text in kept)


def test_share_login_is_a_setting_and_a_key_goes_before_it(
    login: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unshared = claude.turn_command(launch(tmp_path, configured(tmp_path, share_login="false")), "x")
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in unshared.env
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789-0123456789-0123456789")
    keyed = claude.turn_command(launch(tmp_path, configured(tmp_path)), "x")
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in keyed.env
    prepare(launch(tmp_path, configured(tmp_path)))
    remembered = (tmp_path / "session" / "claude" / ".claude.json").read_text()
    assert "6789-0123456789" in remembered
    assert "sk-ant" not in remembered


@pytest.mark.parametrize("text", ["", "{", "[]", '{"claudeAiOauth": 7}', '{"claudeAiOauth": {"accessToken": null}}'])
def test_a_login_that_is_none(login: Path, tmp_path: Path, text: str) -> None:
    login.write_text(text)
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in claude.turn_command(launch(tmp_path, configured(tmp_path)), "x").env


SCREENS = {
    f"welcome\n{claude.PROMPT}\n  ⏵⏵ bypass permissions on (shift+tab to cycle)": True,
    f"welcome\n{claude.PROMPT} half a line": True,
    f"{claude.PROMPT} asked\n✻ Thinking…\n{claude.PROMPT}\n  ⏵⏵ bypass permissions on · esc to interrupt": False,
    f"Do you trust the files in this folder?\n{claude.PROMPT} 1. Yes, proceed\n  2. No, exit": False,
    "Permission deny rule": False,
    f" > quoted {claude.PROMPT}": False,
    "": False,
}


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_that_waits_for_input(screen: str) -> None:
    assert claude.is_ready(screen) == SCREENS[screen]


def test_the_login_is_that_of_the_environment_that_the_program_will_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not that of the process that starts it, which may belong to another person."""
    own, other = tmp_path / "own", tmp_path / "other"
    for folder, token in ((own, "mine"), (other, "not mine")):
        (folder / ".claude").mkdir(parents=True)
        login = {"claudeAiOauth": {"accessToken": token}}
        (folder / ".claude" / ".credentials.json").write_text(json.dumps(login))
    monkeypatch.setenv("HOME", str(other))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-caller")
    environ = {"HOME": str(own)}
    assert claude.turn_command(launch(tmp_path, environ=environ), "x").env["CLAUDE_CODE_OAUTH_TOKEN"] == "mine"
    key = {"HOME": str(own), "ANTHROPIC_API_KEY": "sk-ant-recorded-0123456789"}
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in claude.turn_command(launch(tmp_path, environ=key), "x").env
    prepare(launch(tmp_path, environ=key))
    remembered = json.loads((tmp_path / "session/claude/.claude.json").read_text())
    assert remembered["customApiKeyResponses"]["approved"] == ["sk-ant-recorded-0123456789"[-20:]]
