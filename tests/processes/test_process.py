from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from process_tools import Mark
from rookery.base.errors import ProgramFailed
from rookery.processes.process import in_background, run
from rookery.processes.proctable import pids_with
from rookery.processes.proctree import end_tree
from support import child_environ, wait_until


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_output_and_status_are_kept() -> None:
    done = run(_python("import sys; print(sys.stdin.read()); sys.exit(3)"), stdin="hé", check=False)
    assert (done.status, done.stdout, done.stderr, done.ok) == (3, "hé\n", "", False)


def test_a_failure_says_its_last_words() -> None:
    with pytest.raises(ProgramFailed, match="exited with 1: ") as caught:
        run(_python("import sys; print('out'); sys.exit('no room\\nnot there')"))
    assert caught.value.message.endswith("no room\nnot there")
    assert caught.value.code == "program_failed"


def test_a_missing_program_is_named_with_a_hint() -> None:
    with pytest.raises(ProgramFailed, match="no-such-program is not installed") as caught:
        run(["no-such-program"])
    assert caught.value.code == "program_missing"
    assert "PATH" in caught.value.hint


def test_a_missing_folder_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="gone is gone") as caught:
        run(_python(""), cwd=str(tmp_path / "gone"))
    assert caught.value.code == "program_failed"


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ProgramFailed, match="cannot start"):
        run([str(tmp_path / "text")])


@pytest.mark.slow
def test_a_timeout_ends_the_whole_group(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    child = f"import os,time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    parent = f"import subprocess,sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(ProgramFailed, match="did not end within 1 s") as caught:
        run(_python(parent), timeout=1)
    assert caught.value.code == "program_timeout"
    grandchild = int(note.read_text())
    wait_until(lambda: not _is_alive(grandchild))


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_bytes_that_are_not_utf8_survive() -> None:
    done = run(_python(r"import os; os.write(1, b'a\xffb')"))
    assert os.fsencode(done.stdout) == b"a\xffb"


def test_line_ends_are_kept_as_they_are() -> None:
    assert run(_python(r"import os; os.write(1, b'a\r\nb\rc')")).stdout == "a\r\nb\rc"


def test_much_input_and_output_at_once_holds_nothing_up() -> None:
    text = "x" * 5_000_000
    code = "import sys; sys.stderr.write('y' * 3_000_000); sys.stdout.write(sys.stdin.read())"
    done = run(_python(code), stdin=text, timeout=60)
    assert (done.stdout, len(done.stderr)) == (text, 3_000_000)


def test_output_that_a_grandchild_writes_later_is_waited_for() -> None:
    assert run(["/bin/sh", "-c", "(sleep 0.2; echo late) & echo early"]).stdout == "early\nlate\n"


def test_the_environment_is_the_one_given() -> None:
    assert run(_python("import os; print(os.environ['ONLY'])"), env={"ONLY": "this"}).stdout == "this\n"


_IN_THE_BACKGROUND = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from rookery.processes.child import start
from rookery.processes.process import run
print(run(["/bin/sh", "-c", "kill -INT $$; echo alive"], check=False).status)
child = start(["/bin/sh", "-c", "kill -INT $$; echo alive"])
print(child.wait(20))
os.kill(os.getpid(), signal.SIGINT)
print("alive")
"""


def test_in_the_background_children_can_be_interrupted_and_we_cannot() -> None:
    done = run(_python(_IN_THE_BACKGROUND), env=child_environ())
    assert done.stdout.split() == ["-2", "-2", "alive"]


_INTERRUPTED_AT_ANY_TIME = """
import os, random, signal, threading, time
from rookery.processes.process import in_background, run

def interrupt_after(seconds):
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGINT)
    while not over.wait(1):  # Python looks for a signal before it waits: one that came between was not seen
        os.kill(os.getpid(), signal.SIGINT)

def beside(argv):
    with in_background(argv) as finish:
        finish()

chance = random.Random(1)
for number in range(200):
    over = threading.Event()
    thread = threading.Thread(target=interrupt_after, args=(chance.random() * 0.006,))
    try:
        thread.start()
        (run, beside)[number % 2](["sleep", "300"])
    except KeyboardInterrupt:
        over.set()
    thread.join()
"""


@pytest.mark.slow
def test_no_child_survives_an_interrupt_whenever_it_comes(mark: Mark) -> None:
    """Also while it is being started: a git that went on would move a branch that we have put back."""
    run(_python(_INTERRUPTED_AT_ANY_TIME), env=child_environ() | dict(mark.env))
    assert pids_with(*mark.pair) == set()


def test_two_programs_run_at_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"

    def wait_for_other(mine: Path, other: Path) -> list[str]:
        return ["sh", "-c", f"echo > '{mine}'; while [ ! -e '{other}' ]; do sleep 0.01; done; echo met"]

    with in_background(wait_for_other(first, second), timeout=30) as finish:
        assert run(wait_for_other(second, first), timeout=30).stdout == "met\n"
        assert finish().stdout == "met\n"


def test_a_program_beside_is_ended_with_the_block(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    words = f"import os,time; open({str(note)!r}, 'w').write(str(os.getpid()) + ' '); time.sleep(60)"
    with in_background(_python(words)):
        wait_until(lambda: note.exists() and note.read_text().endswith(" "))
    assert not _is_alive(int(note.read_text()))


def test_much_output_of_a_program_beside_is_not_lost() -> None:
    with in_background(_python("print('x' * 1_000_000)")) as finish:
        assert run(_python("print(1)")).stdout == "1\n"
        assert len(finish().stdout) == 1_000_001


def test_a_block_beside_a_program_keeps_its_error_whatever_holds_the_pipe(mark: Mark) -> None:
    """A child that has left the group, and holds the pipe, is not waited for."""
    words = ["setsid", "sh", "-c", "echo; exec sleep 60"]
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError), in_background(["sh", "-c", '"$@" & echo; wait', "sh", *words], env=mark.env):
        1 / 0  # noqa: B018
    assert time.monotonic() - began < 50
    end_tree(None, mark.pair, 0)  # it may have left the group in time
