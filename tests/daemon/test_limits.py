"""What a daemon starts for a caller has the caller's limits, not those of the shell that started the daemon."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from live import Live, client_argv
from live import live as live

from rookery.processes import limits
from rookery.processes.spawning import start_detached
from served import Served, make_call
from support import wait_until

pytestmark = pytest.mark.slow

GATE = "gates:\n  - {name: look, run: 'echo $(ulimit -n) $(ulimit -t) $(nice) >&2; false'}\n"


def in_shell(live: Live, settings: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run `rook` in a shell with those settings."""
    argv = ["sh", "-c", f'{settings} "$@"', "sh", *client_argv(*words)]
    return subprocess.run(argv, cwd=live.folder, env=live.environ(), capture_output=True, timeout=60, check=False)


def seen_by_gate(live: Live, settings: str) -> str:
    """Open files, CPU seconds and nice value that a gate has."""
    done = in_shell(live, settings, "gate", "run", "--branch", "main")
    return next(line for line in done.stdout.decode().splitlines() if line.strip()[-1:].isdigit()).strip()


def _cpu_seconds() -> str:
    return subprocess.run(["sh", "-c", "ulimit -t"], capture_output=True, check=True, text=True).stdout.strip()


@pytest.fixture(autouse=True)
def _gate(live: Live) -> None:
    (live.folder / ".rookery" / "config.yaml").write_text(GATE)


def test_a_gate_has_the_limits_of_its_caller(live: Live) -> None:
    live.run("task", "list")
    before = live.place.pid
    assert seen_by_gate(live, "ulimit -S -n 301; ulimit -t 4000; nice -n 3") == "301 4000 3"
    assert seen_by_gate(live, "ulimit -S -n 302; nice -n 1") == f"302 {_cpu_seconds()} 1"
    assert live.place.pid == before


def test_a_daemon_with_lower_limits_makes_room_for_one_with_the_callers(live: Live) -> None:
    in_shell(live, "ulimit -t 1000; nice -n 19", "task", "list")
    before = live.place.pid
    assert live.run("task", "list", env={"ROOKERY_TOKEN": "x"}).err != b""  # an agent's call does not replace it
    assert live.place.pid == before
    assert seen_by_gate(live, "ulimit -S -n 303; nice -n 2") == f"303 {_cpu_seconds()} 2"
    assert live.place.pid != before
    assert b"lower limits" in live.run("daemon", "logs").out


def test_what_a_thread_starts_has_the_limits_of_its_caller(tmp_path: Path) -> None:
    pipe, output = tmp_path / "pipe", tmp_path / "output"
    os.mkfifo(pipe)
    script = f'ulimit -S -n 304; nice -n 5 sh -c "exec cat {pipe}"'
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.DEVNULL) as caller:
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, caller.pid) == 0)
        wait_until(lambda: _children(caller.pid))
        (limited,) = _children(caller.pid)
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, limited) == 5)
        call = make_call(tmp_path)
        call.pid = limited
        argv = ["sh", "-c", f"read line <{tmp_path / 'go'}; ulimit -n; nice"]
        os.mkfifo(tmp_path / "go")
        served = Served(call, lambda: start_detached(argv, cwd=str(tmp_path), env=dict(os.environ), output=str(output)))
        assert served.end() is None
        (tmp_path / "go").write_text("\n")
        wait_until(lambda: len(output.read_text().splitlines()) == 2)
        assert output.read_text().split() == ["304", "5"]
        pipe.write_text("")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_file_that_was_opened_before_the_limit_was_lowered_keeps_no_daemon_from_starting(live: Live) -> None:
    read, write = os.pipe()
    high = 200
    os.dup2(write, high)
    os.close(write)
    try:
        argv = ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", *client_argv("task", "list")]
        done = subprocess.run(argv, cwd=live.folder, env=live.environ(), capture_output=True, pass_fds=[high])
        assert (done.returncode, done.stderr) == (0, b"")
    finally:
        os.close(high)
    os.set_blocking(read, False)
    assert os.read(read, 1) == b""  # the daemon does not hold it
    os.close(read)


@pytest.mark.parametrize("environ", [{}, {"ROOKERY_SESSION": "x"}])
def test_an_agents_limits_are_its_own(tmp_path: Path, environ: dict[str, str]) -> None:
    """What it starts may be the runner of another agent."""
    with subprocess.Popen(["sh", "-c", "ulimit -S -n 305; exec cat"], stdin=subprocess.PIPE) as caller:
        wait_until(lambda: resource.prlimit(caller.pid, resource.RLIMIT_NOFILE)[0] == 305)
        call = make_call(tmp_path, environ, session_id=None if environ else "ses_x")
        call.pid = caller.pid
        argv = ["sh", "-c", "ulimit -n"]
        output = tmp_path / "output"
        served = Served(call, lambda: start_detached(argv, cwd=str(tmp_path), env=dict(os.environ), output=str(output)))
        assert served.end() is None
        wait_until(lambda: output.read_text().endswith("\n"))
        assert output.read_text() != "305\n"
        caller.communicate()


def test_limits_that_are_lower_in_one_way_and_higher_in_another_replace_no_daemon() -> None:
    def compare(settings: str) -> tuple[bool, bool]:
        code = (
            "import sys; from rookery.processes import limits; print(limits.can_pass_on(int(sys.argv[1])), end=' '); "
        )
        code += "print(limits.are_higher(int(sys.argv[1])))"
        with subprocess.Popen(["sh", "-c", "ulimit -n 400; exec cat"], stdin=subprocess.PIPE) as caller:
            wait_until(lambda: resource.prlimit(caller.pid, resource.RLIMIT_NOFILE)[1] == 400)
            argv = ["sh", "-c", f'{settings} "$@"', "sh", sys.executable, "-c", code, str(caller.pid)]
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            caller.communicate()
        can, are = done.stdout.split()
        return can == "True", are == "True"

    assert compare("") == (True, False)
    assert compare("ulimit -n 300;") == (False, True)
    assert compare("ulimit -n 300; ulimit -t 500;") == (False, True)
    assert compare("ulimit -t 500;") == (False, False)
    assert compare("nice -n 3") == (False, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have another group")
def test_limits_that_may_not_be_read_leave_the_command_to_its_caller() -> None:
    code = "import os, sys; from rookery.processes import limits; os.setgid(5); os.setuid(65534); "
    code += "print(limits.can_pass_on(int(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", code, str(os.getpid())], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_who_has_gone_asks_for_nothing() -> None:
    with subprocess.Popen([shutil.which("true") or "true"]) as child:
        pass
    assert limits.can_pass_on(child.pid)
    before = limits.describe(os.getpid())
    limits.pass_on(child.pid, os.getpid())
    assert limits.describe(os.getpid()) == before
