"""Agents run in a sandbox as they do without one: work, mail, children, terminals, and an end that leaves nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import git
from den import DONE
from rookery.base.ids import handle
from rookery.processes.proctree import marked
from sandbox.cell import Cell, needs_bubblewrap
from support import everyone, wait_until

pytestmark = needs_bubblewrap


@pytest.fixture
def cell(repo: Path) -> Iterator[Cell]:
    cell = Cell(repo)
    yield cell
    cell.close()


@pytest.mark.slow
def test_a_builder_edits_commits_and_says_so(cell: Cell) -> None:
    outputs = cell.run({"edit": {"path": "a.txt", "text": "hello\n"}}, {"commit": "Add a"}, "cat /proc/1/comm")
    assert outputs[-1].strip() == "bwrap"
    agent = cell.agent("bee")
    assert agent["sandbox"] == "bubblewrap"
    assert git(cell.folder, "show", f"{agent['branch']}:a.txt") == "hello"
    assert git(cell.folder, "log", "-1", "--format=%an %s", agent["branch"]) == "Test Add a"
    assert cell.mail(type="worker_done")[0]["from"] == "bee"
    assert "bubblewrap" in cell.rook("inspect", "bee").out.decode()
    cell.assert_no_process()


@pytest.mark.slow
def test_git_works_within(cell: Cell) -> None:
    git(cell.folder, "checkout", "-qb", "other")
    (cell.folder / "README.md").write_text("theirs\n")
    git(cell.folder, "commit", "-qam", "Theirs")
    git(cell.folder, "checkout", "-q", "main")
    script = """
    set -ex
    echo one > one; git add one; git commit -qm One; git commit -q --amend -m First
    echo mine > README.md; git commit -qam Mine
    git diff --stat main; git log --oneline main..HEAD; git show --stat HEAD; git blame README.md
    if git rebase other; then exit 1; fi
    git checkout --theirs README.md; git add README.md; GIT_EDITOR=true git rebase --continue
    git status; test -z "$(git status --porcelain)"
    git merge -q main
    test "$(git log --format=%s main..HEAD | head -1)" = Mine
    echo all went well
    """
    output = cell.run(script)[0]
    assert "all went well" in output, output
    assert not re.search("error(?!: could not apply)|warning|fatal", output), output
    assert git(cell.folder, "log", "--format=%s", f"other..{cell.agent('bee')['branch']}").split() == ["Mine", "First"]


@pytest.mark.slow
def test_refs_that_are_packed_outside_are_seen_within(cell: Cell) -> None:
    """`git gc` in the main checkout, while the agent is at work, takes away neither its branch nor those of others."""
    steps = [
        "git rev-parse main && touch ready && for i in $(seq 600); do test -e go && break; sleep 0.05; done",
        "sleep 1; git rev-parse main && echo more > more && git add more && git commit -qm More && echo fine",
    ]
    task = cell.task("Pack", [*({"run": step} for step in steps), DONE])
    cell.sling(task, "--name", "bee")
    wait_until(lambda: (cell.worktree("bee") / "ready").exists(), 30)
    git(cell.folder, "pack-refs", "--all")
    (cell.worktree("bee") / "go").touch()
    cell.wait_for("bee", "completed")
    assert cell.outputs("bee")[1].endswith("fine\n"), cell.outputs("bee")
    assert git(cell.folder, "log", "-1", "--format=%s", cell.agent("bee")["branch"]) == "More"
    folder = os.path.dirname(cell.folder / ".git" / "refs" / "heads" / str(cell.agent("bee")["branch"]))
    assert [name for name in os.listdir(folder) if name.startswith(".")] == []


@pytest.mark.slow
def test_a_lead_slings_outside_and_is_woken(cell: Cell) -> None:
    epic = cell.task("Lead")
    child = cell.task(
        "Build", [{"edit": {"path": "b.txt", "text": "b\n"}}, {"commit": "Add b"}, DONE], "--parent", epic
    )
    payload = {"branch": f"rook/bee/{handle(child)}", "task_id": child}
    hand_over = {"mail": {"to": "human", "type": "merge_ready", "subject": "bee is done", "payload": payload}}
    script = [{"sling": {"task": child, "name": "bee"}}, {"until": {"mail_type": "worker_done"}}, hand_over, DONE]
    cell.rook.json("task", "update", epic, "--description", f"```rook-script\n{json.dumps(script)}\n```")
    cell.sling(epic, "--role", "lead", "--name", "queen")
    cell.wait_for("bee", "completed")
    ended = cell.wait_for("queen", "completed")
    assert ended["turns"] >= 2
    assert cell.agent("bee")["parent"] == "queen"
    assert cell.agent("bee")["sandbox"] == "bubblewrap"
    cell.assert_no_process()


@pytest.mark.slow
def test_an_agent_in_a_terminal_waits_is_woken_and_ends(cell: Cell) -> None:
    steps = [
        {"run": "cat /proc/1/comm; test -t 0 || echo no terminal"},
        {"mail": {"to": "{parent}", "type": "question", "subject": "Well?"}},
        {"until": {"mail_from": "human"}},
        {"edit": {"path": "answer.txt", "text": "{mail.body}\n"}},
        {"commit": "Answer"},
        DONE,
    ]
    cell.sling(cell.task("Ask", steps), "--name", "bee", "--tmux")
    cell.wait_for("bee", "waiting")
    assert "bwrap" in cell.rook("inspect", "bee").out.decode()
    cell.rook.json("mail", "reply", cell.mail(type="question")[0]["id"], "--body", "Fine")
    cell.wait_for("bee", "completed")
    assert (cell.worktree("bee") / "answer.txt").read_text() == "Fine\n"
    cell.assert_no_process()


@pytest.mark.slow
@pytest.mark.parametrize("network", ["open", "allow"])
def test_an_interrupt_in_a_terminal_ends_the_turn_and_not_the_agent(cell: Cell, network: str) -> None:
    steps = [{"run": "[ -e busy ] || { touch busy; sleep 1011; }"}, {"edit": {"path": "on.txt", "text": "on\n"}}, DONE]
    cell.sling(cell.task("Stay", steps), "--name", "bee", "--tmux", "-c", f"sandbox.network={network}")
    wait_until((cell.worktree("bee") / "busy").exists, 60)
    assert cell.rook("interrupt", "bee").status == 0
    cell.wait_for("bee", "waiting")
    assert cell.rook("nudge", "bee", "Go on.").status == 0
    cell.wait_for("bee", "completed")
    assert (cell.worktree("bee") / "on.txt").read_text() == "on\n"
    cell.assert_no_process()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["--headless", "--tmux"])
def test_killing_the_host_leaves_nothing(cell: Cell, where: str) -> None:
    """Not even processes that have left its group and session and removed its mark from their environment."""
    steps = ["(setsid env -i sleep 1007 &) ; setsid sleep 1007 & echo begun", {"hang": True}]
    task = cell.task("Hang", [{"run": step} if isinstance(step, str) else step for step in steps])
    cell.sling(task, "--name", "bee", where)
    session = cell.agent("bee")["session_id"]
    wait_until(lambda: len(_sleepers()) >= 2, 60)
    host = next(
        process.pid for process in marked("ROOKERY_SESSION", session) if b"sandbox.host" in _command(process.pid)
    )
    os.kill(host, signal.SIGKILL)
    wait_until(lambda: not _sleepers(), 20)
    assert cell.wait_for("bee", "crashed")["outcome"] == "crashed"
    cell.assert_no_process()


@pytest.mark.slow
def test_stop_ends_everything_within(cell: Cell) -> None:
    cell.sling(cell.task("Hang", [{"child": "sleep 1009"}, {"stubborn": True}, {"hang": True}]), "--name", "bee")
    wait_until(lambda: _sleepers(b"1009"), 60)
    assert cell.rook("stop", "bee", "--clean").status == 0
    assert _sleepers(b"1009") == []
    cell.assert_tidy(worktrees=0, branches=0)
    assert not (cell.folder / ".rookery" / "run" / "cages" / "bee.json").exists()


@pytest.mark.slow
def test_a_program_that_dies_is_reported_with_its_status(cell: Cell) -> None:
    cell.sling(cell.task("Die", [{"crash": 7}]), "--name", "bee")
    assert "exited with status 7" in str(cell.wait_for("bee", "crashed")["reason"])


@pytest.mark.slow
@pytest.mark.parametrize("where", ["links/claude", "current/bin/claude"])
def test_a_program_in_a_hidden_place_is_shown_with_every_link_to_it(cell: Cell, tmp_path: Path, where: str) -> None:
    for folder in ("links", "more", "v1/bin"):
        (tmp_path / folder).mkdir(parents=True)
    program = tmp_path / "v1/bin/claude"
    program.write_text("#!/bin/sh\necho 'it was started' >&2; exit 7\n")
    program.chmod(0o755)
    (tmp_path / "current").symlink_to("v1")
    (tmp_path / "more/claude").symlink_to(program)
    (tmp_path / "links/claude").symlink_to("../more/claude")
    cell.configure(agents={"runtime": "claude"}, claude={"program": str(tmp_path / where)})
    cell.sling(cell.task("Run"), "--name", "bee")
    assert cell.wait_for("bee", "crashed")["reason"] == "exited with status 7: it was started"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system in memory here")
def test_a_project_may_lie_in_memory() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        git(Path(folder), "init", "-q")
        git(Path(folder), "commit", "-qm", "Begin", "--allow-empty")
        Path(folder, "loose.txt").write_text("seen\n")
        cell = Cell(Path(folder))
        assert cell.run(f"cat {folder}/loose.txt")[0].strip() == "seen"
        cell.close()


@pytest.mark.slow
def test_the_sockets_are_taken_away(cell: Cell) -> None:
    cell.run("ls -la /run/rookery")
    session = str(cell.agent("bee")["session_id"])
    assert not Path(f"/tmp/rookery-{os.getuid()}/sandbox-{session[-16:].lower()}").exists()


@pytest.mark.slow
def test_a_deep_project_has_room_for_sockets(tmp_path: Path) -> None:
    repo = tmp_path / ("deep-" + "x" * 100) / "repo"
    repo.mkdir(parents=True)
    git(repo, "init", "-q")
    git(repo, "commit", "-qm", "Begin", "--allow-empty")
    cell = Cell(repo)
    assert cell.run({"rook": ["status"]})[0].startswith('{"v":1,"ok":true')


@pytest.mark.slow
def test_a_new_worktree_is_provisioned_within_the_sandbox(cell: Cell) -> None:
    """The setup command runs what the base holds: it may be an agent's work."""
    outside = cell.folder.parent / "outside"
    outside.mkdir()
    (cell.folder / "setup.sh").write_text(f"echo made > made; id > {outside}/escaped; true\n")
    git(cell.folder, "add", "setup.sh")
    git(cell.folder, "commit", "-qm", "Set up")
    cell.local.write_text(cell.local.read_text().replace("ports: 0", "ports: 0\n  setup: sh setup.sh"))
    assert cell.run("cat made")[0] == "made\n"
    assert list(outside.iterdir()) == []


@pytest.mark.slow
def test_sandboxed_or_not_at_all(cell: Cell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where bubblewrap is missing, `on` refuses and `auto` says so."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "env", "tmux"):
        path = subprocess.run(["which", name], capture_output=True, text=True, check=False).stdout.strip()
        if path:
            (tools / name).symlink_to(path)
    monkeypatch.setenv("PATH", str(tools))
    task = cell.task("Task", [DONE])
    refused = cell.rook.json("sling", task, "--name", "bee").error
    assert refused["code"] == "no_sandbox"
    assert "apt install bubblewrap" in refused["hint"]
    assert everyone(cell.rook.json("status", "--all").data) == []
    report = cell.rook.json("doctor", "--category", "sandbox")
    assert (report.status, report.envelope["data"]["checks"][0]["status"]) == (1, "error")

    slung = cell.rook.json("sling", task, "--name", "bee", "-c", "sandbox.mode=auto").data["agents"][0]
    assert slung["settings"]["sandbox"] == "off: bubblewrap is not installed"
    cell.wait_for("bee", "completed")
    assert cell.agent("bee")["sandbox"].startswith("off")


@pytest.mark.slow
def test_off_is_off(cell: Cell) -> None:
    cell.sling(cell.task("Task", [{"run": "cat /proc/1/comm"}, DONE]), "--name", "bee", "-c", "sandbox.mode=off")
    cell.wait_for("bee", "completed")
    assert cell.agent("bee")["sandbox"] == "off: sandbox.mode"
    assert cell.outputs("bee")[0] != "bwrap\n"


def _sleepers(seconds: bytes = b"1007") -> list[int]:
    wanted = b"sleep\0" + seconds + b"\0"
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _command(int(name)) == wanted]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
