"""A thread serves its call alone, and what it starts has the call's environment, folder, umask and interrupts."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from process_tools import Mark, wait_until, written_pid
from rookery.base import call
from rookery.base.call import Call, check_interrupted
from rookery.base.errors import ProgramFailed
from rookery.db.database import Database
from rookery.processes import process, spawning
from rookery.processes.child import start
from rookery.processes.proctree import Identity, end_tree, is_alive
from served import Served, make_call


def test_a_thread_serves_its_own_call_and_no_other(tmp_path: Path) -> None:
    one, two = make_call(tmp_path), make_call("/")
    both = threading.Barrier(2)

    def look() -> tuple[Call | None, str]:
        both.wait(20)
        return call.current(), call.current_folder()

    first, second = Served(one, look), Served(two, look)
    assert first.value() == (one, str(tmp_path))
    assert second.value() == (two, "/")
    assert call.current() is None


def test_an_interrupt_is_raised_once_though_two_threads_serve_the_call() -> None:
    shared = make_call()
    shared.interrupt()
    ended = [served.end() for served in [Served(shared, shared.check) for _ in range(2)]]
    assert sorted(type(error) is KeyboardInterrupt for error in ended) == [False, True]
    shared.check()


def test_a_path_is_seen_from_the_callers_folder(tmp_path: Path) -> None:
    asked = Served(make_call(tmp_path), lambda: [call.absolute(path) for path in ("", "a", "../b", "/c")])
    assert asked.value() == [str(tmp_path), str(tmp_path / "a"), str(tmp_path.parent / "b"), "/c"]
    assert call.absolute("a") == os.path.abspath("a")


def test_a_question_is_asked_of_the_caller() -> None:
    streams = (io.StringIO("yes\nno\n"), io.StringIO(), io.StringIO())
    asked = Served(make_call(streams=streams), lambda: (call.ask("Really? "), call.ask("And now? ")))
    assert asked.value() == ("yes", "no")
    assert streams[1].getvalue() == "Really? And now? "
    assert isinstance(Served(make_call(), lambda: call.ask("Is anyone there? ")).end(), EOFError)


_SHOW = ["/bin/sh", "-c", 'umask; pwd -P; echo "$WHO"']


@pytest.mark.parametrize("how", ["run", "run_bytes", "start"])
def test_a_child_has_what_its_caller_has(how: str, tmp_path: Path) -> None:
    def show() -> str:
        if how == "run":
            return process.run(_SHOW).stdout
        if how == "run_bytes":
            return process.run_bytes(_SHOW).decode()
        child = start(_SHOW)
        lines = [*child.lines(20)]
        child.wait(20)
        child.close()
        return "\n".join(lines)

    (tmp_path / "two").mkdir()
    one = Served(make_call(tmp_path, {"WHO": "one"}, 0o027), show)
    two = Served(make_call(tmp_path / "two", {"WHO": "two"}, 0o002), show)
    assert one.value().split() == ["0027", str(tmp_path), "one"]
    assert two.value().split() == ["0002", str(tmp_path / "two"), "two"]


def test_a_childs_folder_and_environment_can_still_be_given(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    one = Served(make_call(tmp_path, {"WHO": "one"}), lambda: process.run(_SHOW, cwd="sub", env={"WHO": "other"}))
    assert one.value().stdout.split() == ["0022", str(tmp_path / "sub"), "other"]


def test_a_program_is_looked_for_in_the_callers_path(tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert Served(make_call("/", {"PATH": str(tmp_path)}), lambda: process.run(["only-here"])).value().ok
    error = Served(make_call("/", {"PATH": "/nowhere"}), lambda: process.run(["only-here"])).end()
    assert isinstance(error, ProgramFailed)


def test_what_outlives_us_has_the_callers_umask_and_the_folder_seen_from_there(mark: Mark, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    argv = ["/bin/sh", "-c", 'umask; pwd -P; echo "$1"', "sh", "a b; c"]
    Served(
        make_call(tmp_path, umask=0o027), lambda: spawning.start_detached(argv, cwd="sub", env=mark.env, output="log")
    ).value()
    wait_until(lambda: (tmp_path / "log").read_text().count("\n") == 3)
    assert (tmp_path / "log").read_text().splitlines() == ["0027", str(tmp_path / "sub"), "a b; c"]


def test_only_the_callers_own_process_becomes_another_program() -> None:
    asked: list[list[str]] = []

    def become(argv: object) -> None:
        asked.append(list(argv))  # type: ignore[call-overload]
        raise SystemExit

    assert isinstance(Served(make_call(become=become), lambda: spawning.become(["tmux", "a"])).end(), SystemExit)
    assert asked == [["tmux", "a"]]
    assert isinstance(Served(make_call(), lambda: spawning.become(["true"])).end(), ProgramFailed)


def test_a_process_with_threads_is_not_copied() -> None:
    assert isinstance(Served(make_call(), lambda: spawning.fork(lambda: None)).end(), RuntimeError)


def _lines(argv: list[str]) -> None:
    child = start(argv)
    try:
        list(child.lines())
    finally:
        child.close()


def _chunks(argv: list[str]) -> None:
    child = start(argv)
    try:
        list(child.chunks(lambda: 0.05))
    finally:
        child.close()


def _wait(argv: list[str]) -> None:
    child = start(argv)
    try:
        child.wait(300)
    finally:
        child.close()


_WAITS: dict[str, Callable[[list[str]], object]] = {
    "run": lambda argv: process.run(argv, timeout=300),
    "run with input": lambda argv: process.run(argv, timeout=300, stdin="x" * 1_000_000),
    "run_bytes": lambda argv: process.run_bytes(argv, timeout=300),
    "lines": _lines,
    "chunks": _chunks,
    "wait": _wait,
}


@pytest.mark.parametrize("how", _WAITS)
def test_an_interrupt_of_the_call_ends_the_child_and_what_it_started(how: str, mark: Mark, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    argv = ["/bin/sh", "-c", f"sleep 300 & echo $! > {path}; wait"]
    one = Served(make_call(tmp_path, mark.env), lambda: _WAITS[how](argv))
    other = Served(make_call(tmp_path, mark.env), lambda: _WAITS[how](["sleep", "300"]))
    grandchild = written_pid(path)
    one.call.interrupt()
    assert isinstance(one.end(), KeyboardInterrupt)
    wait_until(lambda: not is_alive(grandchild))
    assert not other.has_ended
    other.call.interrupt()
    assert isinstance(other.end(), KeyboardInterrupt)
    wait_until(lambda: mark.carriers() == [])


def test_a_child_that_takes_too_long_is_ended_for_a_call_too(mark: Mark) -> None:
    error = Served(make_call("/", mark.env), lambda: process.run(["sleep", "300"], timeout=0.3)).end()
    assert isinstance(error, ProgramFailed)
    assert error.code == "program_timeout"
    assert mark.carriers() == []


@pytest.mark.slow
def test_input_and_output_of_a_slow_child_come_whole() -> None:
    """The call waits for it in slices, and no slice loses or repeats anything."""
    code = "import sys, time; time.sleep(0.5); text = sys.stdin.read(); time.sleep(0.5); print(text)"
    text = "".join(f"{number}\n" for number in range(100_000))
    assert (
        Served(make_call(), lambda: process.run([sys.executable, "-c", code], stdin=text)).value().stdout == text + "\n"
    )


def test_waiting_for_a_lock_ends_with_an_interrupt(tmp_path: Path) -> None:
    def take() -> None:
        with open(tmp_path / "lock", "w") as file:
            call.lock(file)

    with open(tmp_path / "lock", "w") as held:
        call.lock(held)
        waiting = Served(make_call(), take)
        waiting.call.interrupt()
        assert isinstance(waiting.end(), KeyboardInterrupt)
        later = Served(make_call(), take)
    assert later.end() is None


def test_an_interrupt_ends_the_waiting_for_a_process_that_was_asked_to_end(mark: Mark, tmp_path: Path) -> None:
    script = f"trap '' INT TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.02; done"
    child = start(["/bin/sh", "-c", script], env=mark.env)
    deaf = written_pid(tmp_path / "pid")
    ending = Served(make_call(), lambda: end_tree(deaf, None, 300))
    ending.call.interrupt()
    assert isinstance(ending.end(), KeyboardInterrupt)
    assert end_tree(deaf, mark.pair, 0) == []
    child.wait(20)
    child.close()


def test_a_call_leaves_the_signals_of_its_process_alone() -> None:
    seen = []

    def run() -> None:
        process.run(["true"])
        seen.append(signal.getsignal(signal.SIGINT))

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with call.serving(make_call()):  # in the main thread, where it could be changed
            run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIG_IGN]


@pytest.mark.slow
def test_many_threads_start_detached_children_and_leave_no_zombies(mark: Mark, tmp_path: Path) -> None:
    """Each also runs children of its own, whose exit status no other thread may collect."""

    def work() -> list[Identity]:
        started = []
        for _ in range(15):
            started.append(spawning.start_detached(["true"], cwd="/", env=mark.env, output=str(tmp_path / "log")))
            assert process.run(["/bin/sh", "-c", "exit 7"], check=False).status == 7
        return started

    threads = [Served(make_call("/", mark.env), work) for _ in range(8)]
    started = [child for thread in threads for child in thread.value()]
    assert len(started) == 120

    def are_collected() -> bool:
        spawning.start_detached(["true"], cwd="/", env=mark.env, output=str(tmp_path / "log"))
        return len(spawning._started) == 1

    wait_until(are_collected)
    assert end_tree(None, mark.pair, 0) == []


def test_a_lock_that_is_handed_over_reaches_no_other_child(mark: Mark, tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    one = spawning.start_detached(["sleep", "300"], cwd="/", env=mark.env, output=str(tmp_path / "log"), keep=[lock])
    assert os.get_inheritable(lock) is False
    assert str(tmp_path / "lock") in {
        os.readlink(f"/proc/{one.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{one.pid}/fd")
    }
    os.close(lock)
    assert end_tree(one, mark.pair, 0) == []


@pytest.mark.slow
def test_the_time_for_which_a_call_is_stopped_does_not_count_against_its_child() -> None:
    call = make_call()
    call.stop()
    served = Served(call, lambda: process.run(["sh", "-c", "echo done"], timeout=0.5).stdout)
    time.sleep(1)  # longer than the child may take
    assert not served.has_ended
    call.go_on()
    assert (served.end(), served.result) == (None, "done\n")


def test_a_stopped_call_that_writes_goes_on_until_others_can_write(tmp_path: Path) -> None:
    db_path = str(tmp_path / "x.db")
    Database.create(db_path).close()
    begun, go = threading.Event(), threading.Event()

    def write() -> None:
        db = Database.open(db_path)
        with db.write():
            begun.set()
            go.wait(20)
            check_interrupted()
        check_interrupted()
        db.close()

    call = make_call()
    served = Served(call, write)
    assert begun.wait(20)
    call.stop()
    go.set()
    other = Database.open(db_path)
    with other.write():  # it waits for the stopped one to be done
        pass
    other.close()
    assert not served.has_ended
    call.interrupt()
    assert isinstance(served.end(), KeyboardInterrupt)


def test_a_file_that_can_be_read_ends_the_wait() -> None:
    out, into = os.pipe()
    try:
        waiting = Served(make_call(), lambda: call.wait([out], 30))
        os.write(into, b"x")
        assert waiting.value() == {out}
        assert Served(make_call(), lambda: call.wait([into], 0.01)).value() == set()
        assert call.wait([out], 30) == {out}  # without a call, too
    finally:
        os.close(out)
        os.close(into)


def test_an_interrupt_ends_a_wait_without_end_whenever_it_comes() -> None:
    for _ in range(50):
        waited = make_call()
        waiting = Served(waited, lambda: [call.wait() for _ in range(3)])
        waited.interrupt()
        assert isinstance(waiting.end(), KeyboardInterrupt)


def test_what_waits_looks_again_when_it_is_woken() -> None:
    woken = make_call()
    results: list[int] = []

    def wait() -> list[int]:
        while not results:
            call.wait()
        return results

    waiting = Served(woken, wait)
    results.append(1)
    woken.wake()
    assert waiting.value() == [1]


def test_a_call_that_has_ended_keeps_nothing_open_and_can_be_woken() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        ended = make_call()
        Served(ended, lambda: call.sleep(0.001)).value()
        ended.interrupt()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_wake_before_the_wait_is_not_lost() -> None:
    """The call is woken after a thread has looked for work and before the thread waits."""
    early = make_call()
    early.wake()
    assert Served(early, lambda: call.wait()).value() == set()


def test_a_call_can_wait_for_longer_than_the_system_counts() -> None:
    month = make_call()
    waiting = Served(month, lambda: call.sleep(30 * 86_400))
    month.interrupt()
    assert isinstance(waiting.end(), KeyboardInterrupt)
    assert process.run(["true"], timeout=30 * 86_400).ok
