"""Processes are known by more than their number, found wherever they go, and ended with all their descendants."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from process_tools import Mark, wait_until, written_pid
from rookery.processes import child, proctable, proctree
from rookery.processes.child import Child
from rookery.processes.process import run
from rookery.processes.proctree import Identity, descendants, end_tree, identify, is_alive, marked
from support import child_environ

# Starts a grandchild that has left its session, its group and its parent, and ignores every polite request.
DAEMON = """
import os, signal, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
time.sleep(300)
"""


def start(mark: Mark, *argv: str) -> Child:
    return child.start(argv, env=mark.env)


def python(mark: Mark, code: str, *args: object) -> Child:
    return start(mark, sys.executable, "-S", "-c", code, *map(str, args))


@pytest.fixture(params=["proc", "ps"])
def _table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with what the system has, once as on a system without `/proc`."""
    if request.param == "ps":
        monkeypatch.setattr(proctable, "PROC", "/nowhere")


@pytest.mark.usefixtures("_table")
class TestIdentity:
    """Which processes are alive."""

    def test_we_are_alive(self) -> None:
        me = identify(os.getpid())
        assert me is not None
        assert me.pid == os.getpid()
        assert is_alive(me)

    def test_a_number_that_was_given_out_again_is_another_process(self) -> None:
        me = identify(os.getpid())
        assert me is not None
        assert not is_alive(Identity(me.pid, "earlier"))

    def test_no_process_has_an_impossible_number(self) -> None:
        assert identify(0) is None
        assert identify(-1) is None
        assert identify(2**22 + 1) is None

    def test_a_zombie_is_dead(self) -> None:
        with subprocess.Popen(["true"]) as process:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            assert identify(process.pid) is None
            assert proctable.read_one(process.pid) is not None

    def test_descendants_are_found_at_every_depth(self, mark: Mark, tmp_path: Path) -> None:
        inner = tmp_path / "inner"
        outer = start(mark, "/bin/sh", "-c", f'sh -c "sleep 300 & echo \\$! > {inner}; wait" & wait')
        leaf = written_pid(inner)
        below = descendants(outer.identity)
        assert leaf in below
        assert len(below) == 2
        assert end_tree(outer.identity, mark.pair, 0) == []
        outer.close()

    def test_marked_processes_are_found_by_their_whole_value(self, mark: Mark) -> None:
        one = start(mark, "sleep", "300")
        wait_until(lambda: marked(*mark.pair) == [one.identity])  # the system shows its environment a moment later
        assert marked(mark.name, mark.value[:-1]) == []
        assert marked(mark.name[1:], mark.value) == []
        assert end_tree(one.identity, None, 0) == []
        one.close()


def test_a_brackets_in_the_programs_name_do_not_confuse(mark: Mark, tmp_path: Path) -> None:
    program = tmp_path / "a) Z (b"
    program.symlink_to("/bin/sleep")
    one = start(mark, str(program), "300")
    wait_until(lambda: "a) Z (b" in Path(f"/proc/{one.identity.pid}/stat").read_text())
    assert is_alive(one.identity)
    assert end_tree(one.identity, None, 0) == []
    one.close()


def test_an_interrupt_is_tried_first(mark: Mark, tmp_path: Path) -> None:
    interrupted = tmp_path / "told"
    code = """
import sys, time
try:
    print("up", flush=True)
    time.sleep(300)
except KeyboardInterrupt: open(sys.argv[1], "w")
"""
    one = python(mark, code, interrupted)
    assert next(one.lines()) == "up"
    assert end_tree(one.identity, mark.pair, 20) == []
    assert interrupted.exists()
    assert one.wait(5) == 0
    one.close()


@pytest.mark.slow
def test_sigterm_follows_when_the_interrupt_is_ignored(mark: Mark) -> None:
    one = python(
        mark,
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('up', flush=True); time.sleep(300)",
    )
    assert next(one.lines()) == "up"
    assert end_tree(one.identity, None, 4) == []
    assert one.wait(5) == -signal.SIGTERM
    one.close()


def test_a_daemon_that_left_everything_behind_is_ended_by_its_mark(mark: Mark, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    one = python(mark, DAEMON, path)
    daemon = written_pid(path)
    assert one.wait(5) == 0
    assert descendants(one.identity) == []
    assert end_tree(one.identity, None, 0) == []
    assert is_alive(daemon)
    assert end_tree(None, mark.pair, 0) == []
    assert not is_alive(daemon)
    one.close()


def test_an_orphan_without_a_mark_is_remembered_from_before(mark: Mark, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    one = start(mark, "/bin/sh", "-c", f"env -i setsid sh -c 'echo $$ > {path}; exec sleep 300' & wait")
    orphan = written_pid(path)
    assert end_tree(one.identity, mark.pair, 5) == []
    assert not is_alive(orphan)
    one.close()


def test_the_caller_and_those_above_it_are_spared_and_named(mark: Mark) -> None:
    code = """
import os, subprocess, sys
from rookery.processes.proctree import end_tree, identify
sibling = subprocess.Popen(["sleep", "300"])
left = end_tree(identify(os.getppid()), ("ROOKERY_SESSION", sys.argv[1]), 0)
sibling.wait()
print(sorted(each.pid for each in left) == sorted([os.getpid(), os.getppid()]), sibling.returncode, flush=True)
"""
    env = {**mark.env, "PYTHONPATH": str(Path(proctree.__file__).parents[2])}
    above = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', *sys.argv[1:]]).returncode)"
    one = child.start([sys.executable, "-c", above, code, mark.value], env=env)
    assert list(one.lines(30)) == ["True -9"], one.last_output
    assert one.wait(5) == 0
    one.close()


_LOADING = """
import os
from rookery.processes.proctable import environ_of
for _ in range(100):
    pid = os.fork()
    if pid == 0:
        os.execve("/bin/sleep", ["sleep", "300"], {"MARK": "1"})
    while (texts := environ_of(pid)) and "MARK=1" not in texts:
        assert texts != [""]
    os.kill(pid, 9)
    os.waitpid(pid, 0)
"""


@pytest.mark.slow
def test_a_process_whose_program_is_just_being_loaded_has_an_environment() -> None:
    """The kernel shows none for a moment, and a process without a mark would not be ended."""
    run([sys.executable, "-c", _LOADING], env=child_environ())


def test_a_signal_never_reaches_another_process_that_got_the_number(mark: Mark) -> None:
    one = start(mark, "sleep", "300")
    earlier = Identity(one.identity.pid, "earlier")
    assert end_tree(earlier, None, 1) == []
    assert not proctree.send(earlier, signal.SIGKILL)
    assert not proctree.send(Identity(1, proctable.read_all()[1].identity.start), 0)
    assert is_alive(one.identity)
    assert end_tree(one.identity, None, 0) == []
    one.close()
