"""How a daemon comes and goes: on demand, alone, in a clean environment; killed, it is started again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from live import Live, client_argv, wait_for_dialogue
from live import live as live

from daemons import workers_of
from rookery.base.errors import ProgramFailed
from rookery.daemon import address
from rookery.processes import proctable
from rookery.processes.proctable import outlives_starter
from rookery.processes.proctree import is_alive, marked
from rookery.sessions.credentials import MARK
from support import SOURCE, Ran, child_environ, wait_until

pytestmark = pytest.mark.slow


def titles(ran: Ran) -> list[str]:
    return [task["title"] for task in ran.data]


def test_the_first_command_starts_it_and_the_next_one_finds_it(live: Live) -> None:
    assert live.run("task", "create", "one", "--json").data["title"] == "one"
    first = live.identity
    assert titles(live.run("task", "list", "--json")) == ["one"]
    assert live.identity == first
    assert is_alive(first)


def test_many_who_find_none_start_one(live: Live) -> None:
    callers = [live.start("task", "create", f"task {number}", "--json") for number in range(12)]
    for caller in callers:
        out, err = caller.communicate(timeout=60)
        assert (caller.returncode, err) == (0, b""), out
    assert live.log().count("serving") == 1
    assert len(titles(live.run("task", "list", "--json"))) == 12


def test_killed_between_two_commands_it_changes_no_result(live: Live) -> None:
    for number in range(3):
        live.run("task", "create", f"task {number}", "--json")
        live.kill()
    assert sorted(titles(live.run("task", "list", "--json"))) == ["task 0", "task 1", "task 2"]


def test_it_has_a_clean_environment_and_nothing_of_its_starter(live: Live) -> None:
    marks = {MARK: "ses_1", "ROOKERY_TASKS_LEASE": "1h", "PYTHONSTARTUP": "/x", "LD_PRELOAD": ""}
    live.run("task", "list", env=marks)
    pid = live.place.pid
    environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    names = {variable.partition(b"=")[0].decode() for variable in environ if variable}
    assert {name for name in names if name.startswith(("ROOKERY_", "LD_", "GIT_"))} == {"ROOKERY_SERVES"}
    assert "PYTHONSTARTUP" not in names
    assert os.readlink(f"/proc/{pid}/cwd") == live.root
    assert os.getsid(pid) == pid
    assert live.identity not in marked(MARK, "ses_1")


def test_it_holds_no_stream_of_its_starter(live: Live) -> None:
    """`$(rook status)` waits until every process has closed the pipe."""
    kept, inherited = os.pipe()
    os.set_inheritable(inherited, True)
    done = subprocess.run(
        client_argv("task", "list"),
        cwd=live.folder,
        env=live.environ(),
        pass_fds=[inherited],
        capture_output=True,
        check=True,
    )
    os.close(inherited)
    assert done.returncode == 0
    assert os.read(kept, 1) == b""
    os.close(kept)
    files = Path(f"/proc/{live.place.pid}/fd")
    assert {os.readlink(files / number) for number in "012"} == {"/dev/null", address.log_path(live.root)}


def test_an_interrupt_ignored_by_its_starter_is_not_ignored_by_it(live: Live) -> None:
    subprocess.run(
        ["sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh", *client_argv("task", "list")],
        cwd=live.folder,
        env=live.environ(),
        capture_output=True,
        check=True,
    )
    status = Path(f"/proc/{live.place.pid}/status").read_text()
    ignored = int(next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    assert not ignored & (1 << (signal.SIGQUIT - 1))


def test_off_runs_in_the_calling_process(live: Live) -> None:
    assert live.run("task", "create", "one", env={"ROOKERY_DAEMON": "off"}).status == 0
    assert address.read_address(live.root) is None


def test_what_looks_after_the_daemon_starts_none(live: Live) -> None:
    assert live.run("daemon", "status", "--json").data["is_running"] is False
    stopped = live.run("daemon", "stop", "--json")  # it is stopped already
    assert (stopped.status, stopped.data["stopped_pid"]) == (0, None)
    assert address.read_address(live.root) is None


def test_status_stop_restart_and_logs(live: Live) -> None:
    live.run("task", "list")
    status = live.run("daemon", "status", "--json").data
    assert status["answers"] is True
    assert status["pid"] == live.place.pid
    assert status["resident_bytes"] > 1_000_000
    assert status["cgroup"] is None or status["cgroup"].startswith("/")
    before = live.identity
    assert live.run("daemon", "restart", "--json").data["pid"] != before.pid
    assert not is_alive(before)
    assert live.run("daemon", "stop").out == b"The daemon has stopped. The next command starts another.\n"
    assert not is_alive(live.identity)
    lines = [json.loads(line)["data"]["line"] for line in live.run("daemon", "logs", "--json").out.splitlines()]
    assert [line.partition("] ")[2] for line in lines].count("gone") == 2


def test_status_reports_a_stopped_daemon_at_once(live: Live) -> None:
    live.run("task", "list")
    live.kill(signal.SIGSTOP)
    status = live.run("daemon", "status", "--json").data
    assert (status["is_running"], status["answers"]) == (True, False)
    refused = live.run("daemon", "stop", "--json")
    assert refused.error["message"] == f"the daemon, process {live.place.pid}, is stopped"
    live.kill(signal.SIGCONT)


def test_junk_in_its_lock_file_does_not_hide_it(live: Live) -> None:
    live.run("task", "list")
    daemon = live.identity
    for words in (["task", "list"], ["daemon", "status"]):
        Path(address.lock_path(live.root)).write_text("junk")
        ran = live.run(*words)
        assert (ran.status, ran.err) == (0, b"")
        assert live.identity == daemon
    Path(address.lock_path(live.root)).write_text("junk")
    assert live.run("daemon", "stop", "--json").data["stopped_pid"] == daemon.pid
    assert not is_alive(daemon)


_OLDER = """
import fcntl, os, signal, sys, time
lock = os.open(sys.argv[-1] + "/.rookery/run/daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, b"/nowhere\\n{}\\n")
signal.signal(signal.SIGUSR1, lambda *_: None)
print("here", flush=True)
while True:
    time.sleep(60)  # rookery.daemon.main
"""


def test_one_of_an_older_version_that_no_client_finds_is_asked_to_leave(live: Live) -> None:
    (live.folder / ".rookery" / "run").mkdir()
    argv = [sys.executable, "-c", _OLDER, live.root]
    env = child_environ({proctable.SERVES: live.root})
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE) as older:
        assert older.stdout is not None
        assert older.stdout.readline() == b"here\n"
        ran = live.run("task", "create", "one", "--json")
        assert (ran.data["title"], ran.err) == ("one", b"")
        assert older.wait(20) == -signal.SIGTERM


def test_one_whose_lock_file_was_removed_is_not_left_behind(live: Live) -> None:
    live.run("task", "list")
    daemon = live.identity
    Path(address.lock_path(live.root)).unlink()
    assert live.run("daemon", "stop").status == 0
    assert not is_alive(daemon)


def test_it_can_be_stopped_while_it_waits_for_a_callers_input(live: Live) -> None:
    caller = live.start("task", "create", "one", "--description", "-", "--json")
    wait_for_dialogue(caller)
    daemon = live.identity
    assert live.run("daemon", "stop").out == b"The daemon has stopped. The next command starts another.\n"
    assert is_alive(daemon)
    out, _ = caller.communicate(b"text", timeout=30)
    assert json.loads(out)["data"]["description"] == "text"
    wait_until(lambda: not is_alive(daemon))


def test_its_workers_do_not_end_with_an_agent_above_them(live: Live) -> None:
    caller = live.start("mail", "wait", "--timeout", "1h")
    wait_for_dialogue(caller)
    wait_until(lambda: workers_of(live.folder))
    assert [outlives_starter(worker) for worker in workers_of(live.folder)] == [True]


def test_a_copied_project_has_a_daemon_of_its_own(live: Live, tmp_path: Path) -> None:
    live.run("task", "create", "one")
    copy = Live(tmp_path / "copy")
    shutil.copytree(live.folder, copy.folder, ignore=lambda _, names: [name for name in names if name.endswith("sock")])
    assert (copy.folder / ".rookery/run/daemon.lock").exists()
    try:
        assert copy.run("daemon", "status", "--json").data["is_running"] is False
        copy.run("task", "create", "two")
        assert copy.place.pid != live.place.pid
        assert len(copy.run("task", "list", "--json").data) == 2
        assert len(live.run("task", "list", "--json").data) == 1
    finally:
        copy.close()


def test_on_sigterm_it_finishes_what_it_has_begun(live: Live) -> None:
    caller = live.start("task", "create", "one", "--description", "-", "--json")
    wait_for_dialogue(caller)
    daemon = live.identity
    os.kill(daemon.pid, signal.SIGTERM)
    wait_until(lambda: not address.is_locked(live.root))
    assert live.run("task", "list", "--json").data == []
    assert live.identity != daemon
    out, _ = caller.communicate(b"long text", timeout=60)
    assert json.loads(out)["data"]["description"] == "long text"
    wait_until(lambda: not is_alive(daemon))


def test_it_leaves_when_it_is_idle(live: Live) -> None:
    (live.folder / ".rookery" / "config.local.yaml").write_text("daemon:\n  idle: 1s\n")
    live.run("task", "list")
    daemon = live.identity
    wait_until(lambda: not is_alive(daemon))
    assert "no call for a while" in live.log()


def test_newer_code_on_the_disk_replaces_it(live: Live, tmp_path: Path) -> None:
    source = tmp_path / "installed"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    live.run("task", "create", "one", source=str(source))
    before = live.identity
    os.utime(source / "rookery" / "__init__.py")
    wait_until(lambda: live.run("task", "list", "--json", source=str(source)).data and live.identity != before)
    wait_until(lambda: not is_alive(before))
    assert titles(live.run("task", "list", "--json", source=str(source))) == ["one"]


def test_a_socket_that_was_removed_is_bound_again(live: Live) -> None:
    live.run("task", "create", "one")
    daemon = live.identity
    os.unlink(live.place.socket)
    ran = live.run("task", "list", "--json")
    assert titles(ran) == ["one"]
    assert ran.err == b""
    assert live.identity == daemon
    assert is_alive(daemon)


def test_a_project_that_is_removed_takes_its_daemon_along(live: Live) -> None:
    live.run("task", "list")
    daemon, state = live.identity, live.folder / ".rookery"

    def is_removed() -> bool:
        shutil.rmtree(state, ignore_errors=True)  # the daemon may write a file while it is removed
        return not state.exists()

    wait_until(is_removed)
    os.kill(daemon.pid, signal.SIGUSR1)
    wait_until(lambda: not is_alive(daemon))
    assert not state.exists()


def test_a_long_path_gets_a_short_socket(tmp_path: Path, project: Path) -> None:
    folder = tmp_path / ("long" * 20) / ("path" * 10)
    folder.parent.mkdir(parents=True)
    project.rename(folder)
    live = Live(folder)
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime:
        try:
            assert live.run("task", "create", "one", "--json", env={"XDG_RUNTIME_DIR": runtime}).data
            assert live.place.socket.startswith(f"{runtime}/rookery/")
            assert live.run("daemon", "status", "--json").data["answers"] is True
        finally:
            live.close()


def test_a_folder_for_sockets_that_another_prepared_is_refused(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as near:
        os.symlink(tmp_path, f"{near}/rookery")
        with pytest.raises(ProgramFailed, match="not a folder of yours"):
            address.socket_path(str(tmp_path / ("long" * 40)), near)


def test_a_linked_worktree_has_the_daemon_of_its_project(live: Live) -> None:
    subprocess.run(["git", "worktree", "add", "-q", "../linked"], cwd=live.folder, check=True, capture_output=True)
    live.run("task", "create", "one")
    ran = live.run("task", "list", "--json", folder=live.folder.parent / "linked")
    assert titles(ran) == ["one"]
    assert live.log().count("serving") == 1


def test_a_folder_that_is_named_decides_whose_daemon_it_is(live: Live, tmp_path: Path) -> None:
    live.run("task", "create", "one")
    assert titles(live.run("-C", live.root, "task", "list", "--json", folder=tmp_path)) == ["one"]
    assert titles(live.run("task", "list", "--json", "-C", live.root, folder=tmp_path)) == ["one"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    refused = live.run("-C", str(elsewhere), "task", "list", "--json")
    assert refused.error["code"] == "not_initialised"


def test_a_daemon_that_cannot_start_is_reported_and_the_command_runs(live: Live) -> None:
    (live.folder / ".rookery" / "run").write_text("a file where the folder should be")
    ran = live.run("task", "create", "one", "--json")
    assert ran.data["title"] == "one"
    assert b"running in this process instead" in ran.err


def test_a_stopped_daemon_blocks_no_caller(live: Live) -> None:
    live.run("task", "create", "one")
    live.kill(signal.SIGSTOP)
    ran = live.run("task", "create", "two", "--json")
    assert ran.data["title"] == "two"
    assert b"does not answer" in ran.err
    live.kill(signal.SIGCONT)
    # It finds that the caller has given up, and does not do it a second time.
    assert sorted(titles(live.run("task", "list", "--json"))) == ["one", "two"]


def test_the_environment_of_a_call_is_its_callers(live: Live) -> None:
    live.run("task", "list")
    shown = live.run("config", "explain", "tasks.lease", "--json", env={"ROOKERY_TASKS_LEASE": "3h"}).data
    assert shown["value"] == 10800
    assert live.run("config", "explain", "tasks.lease", "--json").data["value"] == 1800


def test_others_may_write_beside_it(live: Live) -> None:
    live.run("task", "list")
    modes = ["on", "off"] * 5
    callers = [live.start("task", "create", "x", env={"ROOKERY_DAEMON": mode}) for mode in modes]
    for caller in callers:
        _, err = caller.communicate(timeout=60)
        assert (caller.returncode, err) == (0, b"")
    assert len(titles(live.run("task", "list", "--json"))) == len(modes)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a project to another user")
def test_root_starts_none_for_the_project_of_another_user(live: Live) -> None:
    for path in (live.folder / ".rookery", live.folder / ".rookery" / "rookery.db"):
        os.chown(path, 65534, 65534)
    ran = live.run("task", "list", "--json", env={"SUDO_UID": "65534"})
    assert b"use `sudo -u nobody rook" in ran.err
    assert address.read_address(live.root) is None


@pytest.mark.parametrize("has_long_path", [False, True])
def test_a_moved_project_gets_a_daemon_of_its_own_at_once(live: Live, has_long_path: bool) -> None:
    """The one that was started at the old place holds the lock, which was moved with it.

    With a long path the socket lies elsewhere, and still leads to that one.
    """
    with tempfile.TemporaryDirectory(prefix="rk-", dir="/tmp") as short:
        top = live.folder.parent if has_long_path else Path(short)
        first, moved = Live(top / "first"), Live(top / "moved")
        shutil.copytree(live.folder, first.folder)
        first.run("task", "create", "one")
        old = first.identity
        first.folder.rename(moved.folder)
        try:
            ran = moved.run("task", "list", "--json")
            assert len(ran.data) == 1
            assert ran.err == b""  # it was not run in the client's own process
            assert moved.identity != old
            wait_until(lambda: not is_alive(old))
        finally:
            moved.close()


def test_to_ask_for_it_from_elsewhere_starts_none(live: Live, tmp_path: Path) -> None:
    shown = live.run("-C", live.root, "daemon", "status", folder=tmp_path)
    assert b"No daemon is running" in shown.out
    assert address.read_address(live.root) is None
