"""The daemon's own process: what it has of its starter, what limits it, and how it is set up when it is ready."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from live import Live, client_argv
from live import live as live

from agent_rows import Agent
from daemons import workers_of
from rookery.daemon import address
from rookery.processes.proctable import lineage
from rookery.processes.proctree import end_tree, identify, is_alive, marked
from rookery.sessions.credentials import MARK
from support import SOURCE, wait_until

pytestmark = pytest.mark.slow

# Sets the process up as the daemon does, and reports instead of serving.
_REPORT = """
import gc, json, os, resource, sys, threading
sys.path.insert(0, sys.argv.pop(1))
from rookery.daemon import main
from rookery.daemon.server import Daemon
def report(daemon):
    os.umask(umask := os.umask(0))
    print(json.dumps({
        "switch": sys.getswitchinterval(), "umask": umask, "frozen": gc.get_freeze_count() > 10000,
        "files": resource.getrlimit(resource.RLIMIT_NOFILE), "threads": threading.active_count(),
        "listens": list(daemon._listeners) != [],
    }), flush=True)
Daemon.serve = report
main.main()
"""


def report(live: Live, limit: tuple[int, int]) -> dict[str, Any]:
    """What a daemon's process is like at the moment when it begins to serve."""
    (live.folder / ".rookery" / "run").mkdir(exist_ok=True)
    done = subprocess.run(
        [
            *("sh", "-c", f'ulimit -S -n {limit[0]} && ulimit -H -n {limit[1]} && exec "$@"', "sh"),
            *(sys.executable, "-I", "-c", _REPORT, SOURCE, live.root),
        ],
        cwd=live.folder,
        env=live.environ(),
        capture_output=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_when_it_is_ready_only_the_loop_has_a_thread_and_a_computing_one_will_not_hold_the_others(live: Live) -> None:
    process = report(live, (256, 1024))
    assert process["switch"] == pytest.approx(0.0005)
    assert (process["threads"], process["listens"], process["frozen"], process["umask"]) == (2, True, True, 0o077)


@pytest.mark.parametrize(("limits", "raised"), [((256, 1024), 1024), ((256, 8192), 4096), ((6000, 8192), 6000)])
def test_it_may_open_more_files_than_its_starter(live: Live, limits: tuple[int, int], raised: int) -> None:
    if limits[1] > resource.getrlimit(resource.RLIMIT_NOFILE)[1]:
        pytest.skip("this machine allows fewer")
    assert report(live, limits)["files"] == [raised, limits[1]]


def test_status_shows_what_limits_it(live: Live) -> None:
    subprocess.run(
        ["sh", "-c", 'ulimit -n 300; exec nice -n 7 "$@"', "sh", *client_argv("task", "list")],
        cwd=live.folder,
        env=live.environ(),
        check=True,
        capture_output=True,
    )
    status = live.run("daemon", "status", "--json").data
    own = Path(f"/proc/{live.place.pid}/cgroup").read_text().strip().rpartition("::")[2]
    assert (status["nice"], status["open_files_limit"], status["cgroup"]) == (7, "300", own or None)
    shown = live.run("daemon", "status").out.decode()
    assert all(str(value) in shown for value in (7, "300", own))


def test_no_open_file_of_its_starter_is_its_own(live: Live, tmp_path: Path) -> None:
    opened = [os.open(tmp_path / name, os.O_RDWR | os.O_CREAT) for name in "abc"]
    try:
        subprocess.run(
            client_argv("task", "list"),
            cwd=live.folder,
            env=live.environ(),
            pass_fds=opened,
            capture_output=True,
            check=True,
        )
    finally:
        for file in opened:
            os.close(file)
    files = Path(f"/proc/{live.place.pid}/fd")
    beyond = [os.readlink(path) for path in files.iterdir() if int(path.name) > 2]
    assert address.lock_path(live.root) in beyond  # what it has can be seen
    assert [path for path in beyond if path.startswith(str(tmp_path)) and ".rookery" not in path] == []


def test_none_is_started_from_within_a_sandbox(live: Live) -> None:
    within = {"ROOKERY_SOCKET": "/nowhere"}
    caller = live.start("task", "list", env=within)
    assert live.hook("pre-tool", b"{}", within).status == 2
    _, err = caller.communicate(timeout=30)
    assert caller.returncode == 1
    assert b"nothing listens outside the sandbox" in err
    assert address.read_address(live.root) is None


_AGENT = """
import subprocess, sys
sys.path.insert(0, sys.argv.pop(1))
from rookery.processes.subreaper import adopt_orphans
adopt_orphans()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print("done", flush=True)
sys.stdin.read()
"""


def test_it_does_not_end_with_the_agent_whose_call_started_it(live: Live) -> None:
    """A runner takes in what its agent orphans, so the daemon is below it, and carries no mark."""
    bee = Agent(live.folder, "bee")
    with subprocess.Popen(
        [sys.executable, "-c", _AGENT, SOURCE, *client_argv("task", "list")],
        cwd=live.folder,
        env=live.environ(bee.env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"done\n"
        program = identify(agent.pid)
        assert program is not None
        daemon = live.identity
        assert program.pid in lineage(daemon.pid)
        assert program in marked(MARK, bee.session_id)
        end_tree(program, (MARK, bee.session_id), 0)
        wait_until(lambda: not is_alive(program))
        assert is_alive(daemon)
    # An agent's next call finds it, and a person's replaces it.
    assert live.run("task", "list", "--json", env=bee.env).status == 0
    assert live.identity == daemon


def test_nothing_of_the_callers_python_has_a_part_in_it(live: Live, tmp_path: Path) -> None:
    """Neither in the daemon nor in the process that it starts for a call: they check what the caller may do."""
    planted, kept, trace = tmp_path / "planted", tmp_path / "kept", tmp_path / "trace"
    planted.mkdir()
    for name in ("sitecustomize", "usercustomize", "yaml", "apsw"):
        (planted / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write({name!r})\n")
    env = {"PYTHONPATH": str(planted), "PYTHONPYCACHEPREFIX": str(kept), "PYTHONHOME": str(planted)}
    live.run("task", "list", env=env)
    caller = live.start("mail", "wait", "--timeout", "10m", env=env)
    wait_until(lambda: workers_of(live.folder))
    for pid in (live.place.pid, *workers_of(live.folder)):
        names = [variable.partition(b"=")[0] for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")]
        assert [variable_name for variable_name in names if variable_name.startswith(b"PYTHON")] == []
    caller.kill()
    assert live.run("data", "export", "all.json", env=env).status == 0
    assert not trace.exists()
    assert not kept.exists()
    assert b"-I" in Path(f"/proc/{live.place.pid}/cmdline").read_bytes().split(b"\0")
