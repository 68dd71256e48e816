"""How a sandboxed agent talks to Rookery: as itself, with all that it may do and nothing that reaches out."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemons import end_daemon, has_daemon, workers_of
from rookery.runtimes.hooks import hook_command
from sandbox.cell import Cell, needs_bubblewrap
from support import everyone, wait_until


@pytest.fixture(params=["on", "off"])
def cell(repo: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    """With the project's daemon, and without one: then the sandbox's host serves its agent."""
    monkeypatch.setenv("ROOKERY_DAEMON", request.param)
    cell = Cell(repo)
    yield cell
    cell.close()
    assert has_daemon(cell.folder) == (request.param == "on")
    end_daemon(cell.folder)


@pytest.mark.slow
@needs_bubblewrap
def test_an_agent_is_itself_whatever_its_environment_says(cell: Cell) -> None:
    send = "rook mail send human --subject"
    cell.run(
        f"ROOKERY_AGENT=human ROOKERY_TOKEN=x {send} forged",
        f"env -u ROOKERY_AGENT -u ROOKERY_TURN -u ROOKERY_ROOT -u ROOKERY_SESSION {send} stripped",
        f"ROOKERY_ROOT=/ ROOKERY_TURN=trn_other {send} elsewhere",
    )
    assert [(message["from"], message["subject"]) for message in cell.mail(type="status")] == [
        ("bee", "forged"),
        ("bee", "stripped"),
        ("bee", "elsewhere"),
    ]


@pytest.mark.slow
@needs_bubblewrap
def test_files_folders_and_settings_cannot_be_named(cell: Cell) -> None:
    outside = cell.folder.parent / "export.json"
    task = cell.task("Another")
    outputs = cell.run(
        {"rook": ["data", "export", str(outside)]},
        {"rook": ["data", "export", "inside.json"]},
        {"rook": ["sling", task, "--spec", "/etc/passwd"]},
        {"rook": ["-C", "/", "status"]},
        {"rook": ["status", "-C", str(cell.folder)]},
        {"rook": ["-c", "provision.setup=touch escaped", "sling", task]},
        {"rook": ["sling", task, "-c", "sandbox.mode=off"]},
        "ROOKERY_SANDBOX_MODE=off rook config show --json",
        name="queen",
        role="lead",
    )
    assert all('"code":"out_of_sandbox"' in output for output in outputs[:7]), outputs
    assert '"hint":"' in outputs[0]
    assert '"environment"' not in outputs[7]
    assert not outside.exists()
    assert [agent["agent"] for agent in everyone(cell.rook.json("status", "--all").data)] == ["queen"]


@pytest.mark.slow
@needs_bubblewrap
def test_roles_hold_from_within(cell: Cell) -> None:
    outputs = cell.run({"rook": ["sling", cell.task("Another")]}, {"rook": ["doctor", "--fix"]})
    assert all('"code":"not_permitted"' in output for output in outputs), outputs


@pytest.mark.slow
@needs_bubblewrap
def test_long_texts_streams_and_interrupts_go_through(cell: Cell) -> None:
    task = cell.task("Another")
    outputs = cell.run(
        f"head -c 1000000 /dev/zero | tr '\\0' x | rook spec write {task} --body - | tail -c 100",
        "timeout --preserve-status -s INT 1 rook mail wait --timeout 100s; echo status $?",
        "timeout -s INT 2 rook events --follow | head -n 1",
        "rook nonsense; echo status $?",
        "rook --version < /dev/null > out 2> err; cat out err",
        "exec 0<&-; rook mail check; echo status $?",
        "mkdir -p deep/er && cd deep/er && rook vcs status --json",
        role="coordinator",
    )
    assert len((cell.folder / ".rookery" / "specs" / f"{task}.md").read_text()) == 1_000_001
    assert outputs[1] == "status 130\n"
    assert "task.created" in outputs[2]
    assert "status 2\n" in outputs[3]
    assert outputs[4].startswith("rook ")
    assert outputs[5] == "No mail.\nstatus 0\n"
    assert '"ok":true' in outputs[6]


@pytest.mark.slow
@needs_bubblewrap
def test_what_runs_for_a_caller_that_is_gone_is_ended(cell: Cell) -> None:
    steps = [
        "(rook mail wait --timeout 1000s & echo $! > pid); sleep 1; kill -9 $(cat pid)",
        "touch killed; sleep 1000",
    ]
    cell.sling(cell.task("Wait", [{"run": step} for step in steps]), "--name", "bee")
    wait_until(lambda: (cell.worktree("bee") / "killed").exists(), 30)
    wait_until(lambda: not workers_of(cell.folder))
    cell.rook("stop", "bee")


@pytest.mark.slow
@needs_bubblewrap
def test_hooks_are_answered_from_outside(cell: Cell) -> None:
    """The guard judges from outside; a program that takes its identity off gets no tool at all."""
    hook = shlex.join(hook_command("pre-tool"))
    calls = {
        "fine": {"file_path": str(cell.worktree("bee") / "a.txt"), "content": "x"},
        "bad": {"file_path": str(cell.folder / "README.md"), "content": "x"},
    }
    messages = {
        name: json.dumps({"tool_name": "Write", "tool_input": call, "cwd": str(cell.worktree("bee"))})
        for name, call in calls.items()
    }
    outputs = cell.run(
        f"echo {shlex.quote(messages['fine'])} | {hook}; echo status $?",
        f"echo {shlex.quote(messages['bad'])} | {hook}; echo status $?",
        f"echo {shlex.quote(messages['fine'])} | ROOKERY_SOCKET=/nowhere {hook}; echo status $?",
        f"echo {shlex.quote(messages['fine'])} | env -u ROOKERY_SOCKET {hook}; echo status $?",
        f"echo nonsense | {hook}; echo status $?",
    )
    assert ["status 0" in output for output in outputs] == [True, False, False, False, False], outputs
    assert all("status 2" in output for output in outputs[1:]), outputs


@pytest.mark.slow
@needs_bubblewrap
def test_the_repository_is_committed_to_from_outside_with_its_hooks_within(cell: Cell) -> None:
    """`rook vcs commit` runs the user's hooks; what they run is the agent's code, and stays in the sandbox."""
    canary = cell.folder.parent / "canary"
    hook = cell.folder / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nsh ./check.sh\n")
    hook.chmod(0o755)
    outputs = cell.run(
        {"edit": {"path": "check.sh", "text": f"touch hooked; touch {canary}; true\n"}},
        {"rook": ["vcs", "commit", "--message", "By rook"]},
    )
    assert '"ok":true' in outputs[0], outputs
    assert (cell.worktree("bee") / "hooked").exists()
    assert not canary.exists()


@pytest.mark.slow
@needs_bubblewrap
def test_the_environment_holds_what_is_named_and_nothing_else(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAY", "stray")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/ssh")
    monkeypatch.setenv("API_KEY", "given")
    monkeypatch.setenv("LC_TIME", "C")
    text = cell.local.read_text().replace("- PYTHONPATH", "- PYTHONPATH\n  - API_KEY")
    cell.local.write_text(text.replace("ports: 0", "ports: 2\n  env: {MADE: up}"))
    output = cell.run("env -0 | tr '\\0' '\\n' | cut -d= -f1 | sort | xargs; echo $API_KEY $MADE $HOME")[0]
    names = set(output.split("\n")[0].split())
    assert output.split("\n")[1] == f"given up {cell.session_folder('bee')}/home"
    known = {"PATH", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TZ", "LC_TIME", "HOME", "TMPDIR", "PWD"}
    known |= {"PYTHONPATH", "API_KEY", "MADE", "SHLVL", "_", "OLDPWD"}
    assert {name for name in names - known if not name.startswith(("ROOKERY_", "XDG_", "GIT_CONFIG_", "LC_"))} == set()
    assert not {"ROOKERY_TOKEN", "ROOKERY_CONFINED", "STRAY", "SSH_AUTH_SOCK"} & names
    assert {"API_KEY", "MADE", "LC_TIME", "ROOKERY_PORT"} <= names


@pytest.mark.slow
@needs_bubblewrap
def test_what_is_listed_can_be_read_and_no_more(cell: Cell) -> None:
    home = Path(os.environ["HOME"])
    for name in ("tools/data", "other/data", "tools/.ssh"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(f"{name}\n")
    cell.local.write_text(cell.local.read_text().replace("mode: 'on'", "mode: 'on'\n  read: [~/tools]"))
    output = cell.run(f"cat {home}/tools/data; cat {home}/other/data; echo x > {home}/tools/data")[0]
    assert output.startswith("tools/data\n")
    assert "other/data\n" not in output.replace("data: ", "")
    assert (home / "tools" / "data").read_text() == "tools/data\n"
