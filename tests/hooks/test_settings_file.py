"""Our hooks in a person's own settings: beside theirs, and gone without a trace."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import Rook
from rookery.hooks.settings import EVENTS
from rookery.runtimes.claude_folder import PERSONAL_SETTINGS as PATH
from support import child_environ

THEIRS = """{
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo theirs"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
    }
}"""


def _settings(project: Path) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads((project / PATH).read_text())
    return settings


def test_installing_into_nothing_and_back_leaves_nothing(project: Path) -> None:
    rook = Rook(project)
    assert rook.json("hooks", "status").data["events"] == []
    status = rook.json("hooks", "install").data
    assert set(status["events"]) == set(EVENTS)
    assert status["is_current"]
    assert set(_settings(project)["hooks"]) == set(EVENTS)
    assert rook.json("hooks", "install").data["changed"] is False
    assert rook.json("hooks", "uninstall").data["changed"] is True
    assert not (project / ".claude").exists()
    assert rook.json("hooks", "uninstall").data["changed"] is False


def test_what_is_there_stays_and_comes_back_to_the_byte(project: Path) -> None:
    rook, path = Rook(project), project / PATH
    path.parent.mkdir()
    path.write_text(THEIRS)
    rook.json("hooks", "install")
    rook.json("hooks", "install")
    settings = _settings(project)
    assert settings["permissions"] == {"allow": ["Bash(ls:*)"]}
    assert [len(settings["hooks"][name]) for name in ("UserPromptSubmit", "Stop", "SessionStart")] == [2, 1, 1]
    assert rook("hooks", "uninstall").out.decode() == f"Removed the hooks of Rookery from {path}.\n"
    assert path.read_text() == THEIRS
    assert rook("hooks", "uninstall").out.startswith(b"No hooks of Rookery in ")


def test_what_they_changed_meanwhile_stays(project: Path) -> None:
    rook, path = Rook(project), project / PATH
    path.parent.mkdir()
    path.write_text(THEIRS)
    rook.json("hooks", "install")
    changed = _settings(project) | {"model": "opus"}
    path.write_text(json.dumps(changed))
    rook.json("hooks", "uninstall")
    assert _settings(project) == json.loads(THEIRS) | {"model": "opus"}


def test_hooks_of_another_rookery_are_renewed(project: Path) -> None:
    rook, path = Rook(project), project / PATH
    rook.json("hooks", "install")
    path.write_text(path.read_text().replace('"-I"', '"-E"'))
    assert rook.json("hooks", "status").data["is_current"] is False
    assert rook.json("hooks", "install").data["is_current"] is True
    assert [len(entries) for entries in _settings(project)["hooks"].values()] == [1, 1, 1]


@pytest.mark.parametrize(
    "text", ["{", "[]", '"x"', '{"hooks": 3}', '{"hooks": {"Stop": 1}}', '{"hooks": {"Stop": ["x"]}}']
)
def test_a_file_that_is_not_understood_is_not_touched(project: Path, text: str) -> None:
    rook, path = Rook(project), project / PATH
    path.parent.mkdir()
    path.write_text(text)
    for verb in ("install", "uninstall", "status"):
        refused = rook.json("hooks", verb)
        assert refused.status == 1
        assert "not touched" in refused.error["hint"]
    assert path.read_text() == text


def _fire(project: Path, name: str, payload: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """Start the installed hook as the program does."""
    hook = _settings(project)["hooks"][name][0]["hooks"][0]
    data = payload if isinstance(payload, str) else json.dumps(payload)
    return subprocess.run(
        [hook["command"], *hook["args"]],
        input=data,
        capture_output=True,
        text=True,
        env=child_environ() | environ,
        cwd="/",
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_a_session_gets_a_summary_of_the_project_and_its_mail_once(project: Path) -> None:
    rook = Rook(project)
    rook.json("hooks", "install")
    rook.json("task", "create", "Paint the shed")
    ran = _fire(project, "SessionStart", {"cwd": str(project), "source": "startup"})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "rook sling" in ran.stdout
    assert "Paint the shed" in ran.stdout

    rook.json("mail", "send", "human", "--subject", "Look here", "--body", "Something came up.")
    ran = _fire(project, "UserPromptSubmit", {"cwd": str(project), "prompt": "hello"})
    assert "Something came up." in ran.stdout
    assert "Look here" in ran.stdout
    again = _fire(project, "UserPromptSubmit", {"cwd": str(project), "prompt": "hello"})
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert "rook sling" not in _fire(project, "PreCompact", {"cwd": str(project)}).stdout


@pytest.mark.parametrize("payload", ["", "{", "[]", "null", '{"cwd": 3}', '{"cwd": "/nowhere"}', "\ufffd" * 100])
@pytest.mark.parametrize("name", list(EVENTS))
def test_a_persons_session_is_never_disturbed(project: Path, name: str, payload: str) -> None:
    Rook(project).json("hooks", "install")
    done = _fire(project, name, payload)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_damaged_database_does_not_disturb_a_persons_session(project: Path) -> None:
    Rook(project).json("hooks", "install")
    (project / ".rookery/rookery.db").write_bytes(b"nonsense" * 1000)
    done = _fire(project, "UserPromptSubmit", {"cwd": str(project), "prompt": "x"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_prime_for_a_person_and_for_an_unknown_agent(project: Path) -> None:
    rook = Rook(project)
    assert "No agent is at work" in rook("prime").out.decode()
    assert "rook sling" not in rook("prime", "--compact").out.decode()
    assert rook.json("prime", "--agent", "stranger").error["code"] == "no_such_agent"


def test_init_installs_them_on_request_and_else_says_how(repo: Path) -> None:
    rook, settings = Rook(repo), repo / ".claude/settings.local.json"
    assert any("rook hooks install" in step for step in rook.json("init", "--yes").data["next"])
    assert not any("hooks" in step for step in rook.json("init", "--yes", "--no-hooks").data["next"])
    assert not settings.exists()
    assert rook.json("init", "--hooks", "--no-hooks").error["code"] == "invalid_input"
    assert not settings.exists()
    answer = rook.json("init", "--yes", "--hooks").data
    assert ".claude/settings.local.json" in answer["created"]
    assert rook.json("hooks", "status").data["is_current"] is True
    assert not any("hooks" in step for step in rook.json("init", "--yes").data["next"])


def test_a_project_is_made_although_its_settings_cannot_be_read(repo: Path) -> None:
    settings = repo / ".claude/settings.local.json"
    settings.parent.mkdir()
    settings.write_text("{")
    answer = Rook(repo).json("init", "--yes", "--hooks")
    assert answer.status == 0
    assert any("the hooks were not installed" in note for note in answer.data["notes"])
    assert settings.read_text() == "{"
