"""Killed at any step, the next command finishes or undoes: no commit, file or message is lost, no process left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import git
from den import DONE, Den
from rookery.base.ids import handle
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.flows import sessions
from rookery.ops.context import Context
from rookery.processes.proctable import read_one
from rookery.processes.proctree import Identity, is_alive
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.turns import stop
from rookery.turns.headless import start_turn
from rookery.turns.settlement import end_session
from rookery.vcs.git.processes import at_work
from rookery.worktrees import removal
from support import INTERRUPTS, child_environ, rook_argv, run_interrupted, start_rook, wait_until

_WORK = [
    {"edit": {"path": "work.txt", "text": "work\n"}},
    {"commit": "Work"},
    {"edit": {"path": "loose.txt", "text": "not committed\n"}},
    {"child": "sleep 1000"},
    DONE,
]


@pytest.fixture
def den(repo: Path) -> Den:
    return Den(repo)


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize(
    "step", ["reserved", "branch made", "worktree made", "checked_out", "provisioned", "instructed"]
)
def test_a_sling_killed_before_the_agent_runs_is_undone(den: Den, step: str) -> None:
    task = den.task("Task", _WORK)
    den.killed(step, "sling", task, "--name", "bee")

    assert den.rook("loop", "run").status == 0  # any command notices

    wait_until(lambda: den.rook.json("task", "get", task).data["state"] == "PENDING", 30)
    assert den.agent("bee")["outcome"] == "failed"
    den.assert_tidy(worktrees=0, branches=0)
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")


# What a filter of git does while `git worktree add` writes the files: it is under two gits and the command.
_TRAPS = {
    "the command": "kill -9 $rook; sleep 0.3; cat",
    "the command, and git goes on later": "kill -9 $rook; sleep 1000; cat",
    "git": "kill -9 $add; cat",
    "both gits": "kill -9 $add $PPID; cat",
    "all": "kill -9 $rook $add $PPID; cat",
}


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("who", _TRAPS)
def test_a_sling_killed_while_git_makes_the_worktree_is_undone(den: Den, who: str) -> None:
    task = den.task("Task", _WORK)
    for name in ("a.txt", "m.trap", "z.txt"):
        (den.folder / name).write_text(f"{name}\n")
    (den.folder / ".gitattributes").write_text("*.trap filter=trap\n")
    git(den.folder, "add", "-A")
    git(den.folder, "commit", "-qm", "More")
    trap = f"add=$(cut -d' ' -f4 /proc/$PPID/stat); rook=$(cut -d' ' -f4 /proc/$add/stat); {_TRAPS[who]}"
    git(den.folder, "config", "filter.trap.smudge", trap)
    done = subprocess.run(rook_argv("sling", task, "--name", "bee"), cwd=den.folder, env=child_environ(), check=False)
    assert done.returncode == (1 if "git" in who.split(",")[0] else -signal.SIGKILL)

    assert den.rook("loop", "run").status == 0  # any command notices

    wait_until(lambda: den.rook.json("task", "get", task).data["state"] == "PENDING", 30)
    wait_until(lambda: not at_work(str(den.folder / ".git"), os.geteuid()), 20)  # nothing comes up again
    den.assert_tidy(worktrees=0, branches=0)
    assert git(den.folder, "fsck") == ""
    assert list((den.folder / ".rookery" / "worktrees").iterdir()) == []
    git(den.folder, "config", "filter.trap.smudge", "cat")
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")


@pytest.mark.slow
@pytest.mark.parametrize("how", INTERRUPTS)
@pytest.mark.parametrize(
    "step", ["reserved", "branch made", "worktree made", "checked_out", "provisioned", "instructed"]
)
def test_a_sling_that_is_interrupted_is_undone(den: Den, step: str, how: str) -> None:
    task = den.task("Task", _WORK)
    run_interrupted(den.folder, how, step, "sling", task, "--name", "bee")
    assert den.rook("loop", "run").status == 0
    wait_until(lambda: den.rook.json("task", "get", task).data["state"] == "PENDING", 30)
    den.assert_tidy(worktrees=0, branches=0)
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "completed")


@pytest.mark.slow
@pytest.mark.parametrize("how", INTERRUPTS)
@pytest.mark.parametrize("step", ["stop announced", "stop killed", "stop snapshotted"])
def test_a_stop_that_is_interrupted_is_finished(den: Den, step: str, how: str) -> None:
    den.sling(den.task("Task", [{"child": "sleep 1000"}, {"hang": True}]), "--name", "bee")
    wait_until(lambda: "sleep 1000" in den.rook("logs", "bee").out.decode(), 60)
    run_interrupted(den.folder, how, step, "stop", "bee")
    assert den.rook("loop", "run").status == 0
    assert den.wait_for("bee", "stopped")["outcome"] == "stopped"
    den.assert_no_process()


@pytest.mark.slow
def test_two_processes_undo_a_killed_sling_one_after_the_other(den: Den) -> None:
    task = den.task("Task", _WORK)
    den.killed_alone("instructed", "sling", task, "--name", "bee")
    first = _start_undo(den, {"ROOKERY_TEST_STOP": "worktree undone"})
    wait_until(lambda: _is_stopped(first))
    second = _start_undo(den)
    wait_until(lambda: _is_waiting(second))
    assert git(den.folder, "branch", "--list", "rook/*")

    os.kill(first.pid, signal.SIGCONT)

    assert (first.wait(60), second.wait(60)) == (0, 0)
    assert den.agent("bee")["reason"] == "the command that slung it was killed"
    den.assert_tidy(worktrees=0, branches=0)


@pytest.mark.slow
def test_an_undo_that_comes_late_leaves_the_next_agent_of_that_name_alone(den: Den) -> None:
    task = den.task("Task", [{"hang": True}])
    den.killed_alone("instructed", "sling", task, "--name", "bee")
    with removal.alone(str(den.folder)):
        late = _start_undo(den)
        wait_until(lambda: _is_waiting(late))
        db = den.rook.open()
        git(den.folder, "worktree", "remove", "--force", ".rookery/worktrees/bee")
        git(den.folder, "branch", "-D", f"rook/bee/{handle(task)}")
        end_session(Context.at(str(den.folder), db), store.sessions(db, alive=True)[0].id, "failed", "undone")
        db.close()
        den.sling(task, "--name", "bee")
    assert late.wait(60) == 0
    assert (den.folder / ".rookery/worktrees/bee").is_dir()
    den.wait_for("bee", "working")
    den.rook("stop", "bee", "--clean")


@pytest.mark.slow
def test_a_sling_that_fails_because_its_agent_was_stopped_leaves_nothing(den: Den) -> None:
    task = den.task("Task", _WORK)
    begun, go = den.folder.parent / "begun", den.folder.parent / "go"
    wait = f"touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done; false"
    setup = f"provision:\n  setup: {wait}\nsandbox:\n  mode: off\n"
    (den.folder / ".rookery/config.local.yaml").write_text(setup)
    slinging = start_rook(den.folder, "sling", task, "--name", "bee", env={"ROOKERY_DAEMON": "off"})
    wait_until(begun.exists)
    assert den.rook("stop", "bee").status == 0
    go.touch()
    assert slinging.wait(60) == 1
    slinging.communicate()
    assert den.agent("bee")["outcome"] == "stopped"
    den.assert_tidy(worktrees=0, branches=0)


_UNDO = """
from rookery.flows import sessions
from rookery.ops.context import Context
from rookery.sessions import store
ctx = Context()
sessions.ACTIONS["undo sling"](ctx, store.sessions(ctx.db, alive=True)[0].id)
"""


def _start_undo(den: Den, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _UNDO], cwd=den.folder, env=child_environ(env))


def _is_stopped(child: subprocess.Popen[bytes]) -> bool:
    assert child.poll() is None, "it did not stop"
    row = read_one(child.pid)
    return row is not None and row.is_stopped


def _is_waiting(child: subprocess.Popen[bytes]) -> bool:
    """True once it waits for the lock of a file; fails if it has ended."""
    assert child.poll() is None, "it did not wait"
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(words[1] == "->" and str(child.pid) in words for words in locks)


@pytest.mark.slow
def test_a_sling_killed_after_its_turn_is_queued_goes_on(den: Den) -> None:
    task = den.task("Task", _WORK)
    den.killed("ready", "sling", task, "--name", "bee")
    assert den.rook("loop", "run").status == 0
    den.wait_for("bee", "completed")
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "work"


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("step", ["turn opened", "runner started", "turn snapshotted", "turn settled"])
def test_a_loop_killed_in_a_turn_is_replaced(den: Den, step: str) -> None:
    task = den.task("Task", _WORK)
    den.killed_alone("ready", "sling", task, "--name", "bee")
    den.kill_loop(step)

    assert den.rook("loop", "run").status == 0

    den.wait_for("bee", "completed")
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "work"
    assert (den.folder / ".rookery/worktrees/bee/loose.txt").read_text() == "not committed\n"
    assert len(git(den.folder, "log", "--format=%s", f"rook/bee/{handle(task)}").splitlines()) == 2
    assert [message["type"] for message in den.mail(to="human")] == ["worker_done"]
    den.assert_no_process()


@pytest.mark.slow
def test_a_lock_that_a_killed_turn_left_does_not_stop_the_next(den: Den) -> None:
    go = den.folder / "go"
    task = den.task("Task", [{"run": f"while ! test -e {go}; do sleep 0.02; done"}, *_WORK])
    den.sling(task, "--name", "bee")
    runner = den.runner("bee")
    locks = [
        den.folder / ".git/worktrees/bee/index.lock",
        den.folder / ".git/worktrees/bee/HEAD.lock",
        den.folder / f".git/refs/heads/rook/bee/{handle(task)}.lock",
    ]
    for lock in locks:
        lock.touch()
        os.utime(lock, (1, 1))
    go.touch()
    os.kill(runner.pid, signal.SIGKILL)

    den.wait_for("bee", "completed", "crashed")
    assert git(den.folder, "show", f"rook/bee/{handle(task)}:work.txt") == "work"
    assert not any(lock.exists() for lock in locks)


@pytest.mark.slow
def test_the_lock_of_a_git_that_is_ended_with_its_agent_goes_too(den: Den) -> None:
    hangs = "git -c alias.hang='!sleep 300' hang"
    task = den.task("Task", [{"run": f'touch "$(git rev-parse --git-dir)/index.lock"; {hangs}'}])
    den.sling(task, "--name", "bee")
    lock = den.folder / ".git/worktrees/bee/index.lock"
    wait_until(lock.exists)
    assert den.rook.json("stop", "bee").status == 0
    assert not lock.exists()


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("step", ["turn opened", "runner started", "turn snapshotted"])
def test_mail_that_a_killed_turn_had_seen_is_delivered_again(den: Den, step: str) -> None:
    task = den.task(
        "Task", [{"until": {"mail_type": "status"}}, {"edit": {"path": "m.txt", "text": "{mail.body}"}}, DONE]
    )
    den.sling(task, "--name", "bee")
    den.wait_for("bee", "waiting")
    _send_without_waking(den, "bee", "the news")
    den.kill_loop(step)

    assert den.rook("loop", "run").status == 0

    den.wait_for("bee", "completed")
    assert (den.folder / ".rookery/worktrees/bee/m.txt").read_text() == "the news"
    assert all(message["read_at"] for message in den.mail(to="bee"))


def _send_without_waking(den: Den, to: str, body: str) -> None:
    """As if the sender were killed right after its commit, before it wakes the recipient."""
    script = (
        "import sys, rookery.flows.loop_process as p; p.react = lambda *_: None; "
        "from rookery.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["mail", "send", to, "--subject", "News", "--body", body]
    subprocess.run([sys.executable, "-c", script, *words], cwd=den.folder, env=child_environ(), check=True)


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("step", ["stop announced", "stop killed", "stop snapshotted"])
def test_a_stop_that_is_killed_is_finished(den: Den, step: str) -> None:
    steps = [{"edit": {"path": "loose.txt", "text": "kept\n"}}, {"child": "sleep 1000"}, {"hang": True}]
    task = den.task("Task", steps)
    den.sling(task, "--name", "bee")
    wait_until(lambda: "loose.txt" in den.rook("logs", "bee").out.decode(), 60)
    den.killed(step, "stop", "bee")

    assert den.rook("loop", "run").status == 0

    assert den.wait_for("bee", "stopped")["outcome"] == "stopped"
    assert den.rook.json("task", "get", task).data["state"] == "PENDING"
    assert (den.folder / ".rookery/worktrees/bee/loose.txt").read_text() == "kept\n"
    den.assert_no_process()


@pytest.mark.slow
def test_no_runner_begins_while_the_agent_is_being_stopped(den: Den) -> None:
    den.killed_alone("ready", "sling", den.task("Hang", [{"hang": True}]), "--name", "bee")
    den.killed_alone("stop announced", "stop", "bee")
    db = den.rook.open()
    session = db.value("SELECT id FROM sessions")

    ctx = Context.at(str(den.folder), db, load_config(str(den.folder), read_environ({}), {}).config)
    start_turn(ctx, session)

    assert db.value("SELECT count(*) FROM turns") == 0
    assert not list((den.folder / ".rookery/run/journals").iterdir())
    db.close()
    den.assert_no_process()


@pytest.mark.slow
def test_an_agent_that_is_slung_while_its_lead_is_being_stopped_is_stopped_too(
    den: Den, monkeypatch: pytest.MonkeyPatch
) -> None:
    den.sling(den.task("Lead", [{"wait": "mail"}]), "--role", "lead", "--name", "queen")
    den.wait_for("queen", "waiting")
    task, late = den.task("Task", [{"hang": True}]), den.task("Late", [{"hang": True}])
    refused = []
    announce = stop._announce

    def sling_meanwhile(ctx: Context, session: Session, by: str) -> Session:
        if session.agent == "queen":
            den.sling(task, "--parent", "queen", "--name", "bee")
        announced = announce(ctx, session, by)
        if session.agent == "queen":
            refused.append(den.rook.json("sling", late, "--parent", "queen").error["code"])
        return announced

    monkeypatch.setattr(stop, "_announce", sling_meanwhile)
    db = den.rook.open()
    ctx = Context.at(str(den.folder), db, load_config(str(den.folder), read_environ({}), {}).config)
    ended = stop.stop(ctx, "queen", "why", by="human")
    db.close()

    assert [session.agent for session in ended] == ["bee", "queen"]
    assert refused == ["not_allowed_to_spawn"]
    assert den.agent("bee")["outcome"] == "stopped"
    den.assert_no_process()


@pytest.mark.slow
def test_a_runner_that_begins_just_before_a_stop_is_ended_too(den: Den, monkeypatch: pytest.MonkeyPatch) -> None:
    den.killed("ready", "sling", den.task("Hang", [{"hang": True}]), "--name", "bee")
    db = den.rook.open()
    ctx = Context.at(str(den.folder), db, load_config(str(den.folder), read_environ({}), {}).config)
    announce = stop._announce
    runners: list[Identity] = []

    def begin_first(ctx: Context, session: Session, by: str) -> Session:
        start_turn(ctx, session.id)
        runners.append(den.runner("bee"))
        return announce(ctx, session, by)

    monkeypatch.setattr(stop, "_announce", begin_first)
    stop.stop(ctx, "bee", "enough", by="human")

    assert not is_alive(runners[0])
    db.close()
    den.assert_no_process()


@pytest.mark.slow
def test_a_killed_runner_leaves_no_orphan(den: Den) -> None:
    task = den.task("Task", [{"edit": {"path": "a.txt", "text": "a\n"}}, {"sleep": 1}, DONE])
    den.sling(task, "--name", "bee")
    wait_until(lambda: "a.txt" in den.rook("logs", "bee").out.decode(), 60)
    os.kill(den.runner("bee").pid, signal.SIGKILL)
    den.wait_for("bee", "completed")
    den.assert_no_process()


@pytest.mark.slow
def test_a_sling_that_ends_while_the_loop_looks_is_left_alone(den: Den) -> None:
    """The row was read while the sling was at it, its process seen after it had finished and gone."""
    den.sling(den.task("Long", [{"hang": True}]), "--name", "bee")
    db = den.rook.open()
    ctx = Context.at(str(den.folder), db, load_config(str(den.folder), read_environ({}), {}).config)
    sessions.ACTIONS["undo sling"](ctx, store.sessions(db, alive=True)[0].id)
    assert den.wait_for("bee", "working")["outcome"] is None
    db.close()
    den.rook("stop", "bee", "--clean")
