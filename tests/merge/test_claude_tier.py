"""The tiers on the real Claude Code, against a scripted model: it edits its folder, and gets no further."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dev.model_server import ModelServer

from claude import model as model
from claude import settings_for
from conftest import git
from rookery.merge.model import Entry

from . import standin
from .test_tiers import clash, land  # noqa: F401 - `land` is a fixture
from .yard import Yard

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    standin.install(monkeypatch)


@pytest.fixture
def claude(yard: Yard, model: ModelServer) -> Callable[..., None]:
    """Let a tier be Claude Code, with a model that follows these steps."""

    def set_up(tier: str, steps: list[dict[str, Any]], timeout: str = "60s") -> None:
        settings = settings_for(model)
        config = {
            "merge": {"tiers": [tier], "runtime": "claude", "agent_timeout": timeout},
            "claude": {"program": settings["program"], "env": settings["env"], "share_login": False},
            "provision": {"ports": 0},
        }
        (yard.folder / ".rookery" / "config.local.yaml").write_text(yaml.safe_dump(config))
        roles = yard.folder / ".rookery" / "roles"
        roles.mkdir()
        (roles / "resolver.md").write_text(f"You resolve.\n\n```model-script\n{yaml.safe_dump(steps)}```\n")

    return set_up


def write(path: str, content: str) -> dict[str, Any]:
    return {"tool": "Write", "input": {"file_path": path, "content": content}}


def read_log(yard: Yard, entry: Entry, tier: str) -> str:
    return (yard.folder / ".rookery" / "merges" / f"{entry.id}-{tier}.log").read_text()


def test_claude_resolves_a_conflict_and_cannot_leave_its_folder(
    yard: Yard,
    land: Callable[..., Entry],  # noqa: F811
    claude: Callable[..., None],
    tmp_path: Path,
) -> None:
    clash(yard)
    outside = tmp_path / "outside.txt"
    escape = [
        write(str(outside), "escaped"),
        {"tool": "Bash", "input": {"command": f"touch {outside}", "description": "escape"}},
        {"tool": "Read", "input": {"file_path": "a.txt"}},
        {"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "<<<<<<<", "new_string": "<<<<<<<"}},
    ]
    claude("agent", [*escape, write("a.txt", "1\nours\ntheirs\n3\n"), {"say": "Both lines are kept."}])
    entry = land("work")
    log = read_log(yard, entry, "agent")
    assert (entry.state, entry.tier) == ("landed", "agent"), (entry.reason, log)
    assert yard.show("a.txt") == "1\nours\ntheirs\n3"
    assert not outside.exists()
    assert "outside of the folder" in log
    (used,) = yard.rook.json("costs").data["rows"]
    assert (used["name"], used["turns"]) == ("merger", 1)
    assert used["input"] > 0
    assert used["output"] > 0
    yard.assert_tidy()


def test_claude_deletes_a_file_though_it_has_no_tool_for_that(
    yard: Yard,
    land: Callable[..., Entry],  # noqa: F811
    claude: Callable[..., None],
) -> None:
    yard.commit(old_txt="1\n2\n")
    yard.branch("work", old_txt="1\ntheirs\n")
    yard.commit(old_txt=None)
    remove = {"tool": "Bash", "input": {"command": "rm old.txt", "description": "delete it"}}
    reason = json.dumps({"summary": "it is gone", "deleted": [{"path": "old.txt", "why": "nothing uses it"}]})
    claude("agent", [remove, write("rook-resolution.json", reason), {"say": "It may go."}])
    entry = land("work")
    log = read_log(yard, entry, "agent")
    assert (entry.state, entry.tier) == ("landed", "agent"), (entry.reason, log)
    assert "is not for resolving conflicts" in log
    assert git(yard.folder, "ls-tree", "--name-only", "main").splitlines() == ["README.md"]
    assert "nothing uses it" in yard.rook("merge", "explain", entry.id).out.decode()


def test_claude_does_a_change_again_on_the_base_as_it_is(
    yard: Yard,
    land: Callable[..., Entry],  # noqa: F811
    claude: Callable[..., None],
) -> None:
    clash(yard)
    look = {"tool": "Read", "input": {"file_path": "a.txt"}}
    change = {"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "ours\n", "new_string": "ours\ntheirs\n"}}
    claude("reimagine", [look, change, {"say": "Done again."}])
    entry = land("work")
    log = read_log(yard, entry, "reimagine")
    assert (entry.state, entry.tier) == ("landed", "reimagine"), (entry.reason, log)
    assert yard.show("a.txt") == "1\nours\ntheirs\n3"
    assert yard.contains("work")
    assert "<<<<<<<" not in log
    assert yard.rook.json("costs", "--by", "turn").data["rows"][0]["name"] == f"merger reimagine of {entry.id}"
    yard.assert_tidy()


def test_what_claude_used_before_it_was_cut_off_is_counted(
    yard: Yard,
    land: Callable[..., Entry],  # noqa: F811
    claude: Callable[..., None],
) -> None:
    clash(yard)
    look = {"tool": "Read", "input": {"file_path": "a.txt"}}
    claude("agent", [{"spend": {"input": 70, "output": 7}}, look, {"slow": 60}, {"say": "Too late."}], timeout="15s")
    entry = land("work")
    assert entry.state == "failed"
    (used,) = yard.rook.json("costs").data["rows"]
    assert (used["name"], used["input"], used["output"]) == ("merger", 70, 7)
    yard.assert_tidy()
