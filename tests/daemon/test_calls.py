"""A call through the daemon behaves like a program that runs by itself: streams, terminal, signals, umask, crashes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import socket
import stat
import struct
import subprocess
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest
from impostor import Impostor
from live import Live, client_argv, wait_for_dialogue
from live import live as live

from daemons import hello, receive, workers_of
from rookery.client import frames
from rookery.client.connection import SECONDS_TO_TAKE
from rookery.client.discovery import read_socket
from rookery.config.project import database_path
from rookery.daemon.routing import route
from rookery.db.database import Database
from rookery.processes.proctable import Identity
from rookery.processes.proctree import identify, is_alive
from support import add, wait_until

pytestmark = pytest.mark.slow

MEGABYTE = 1 << 20


def make_long_task(live: Live, megabytes: int = 4) -> str:
    """A task whose description is long."""
    text = b"0123456789abcde\n" * (megabytes * MEGABYTE // 16)
    task: str = live.run("task", "create", "long", "--description", "-", "--json", stdin=text).data["id"]
    return task


def test_large_input_and_output_arrive_whole(live: Live) -> None:
    task = make_long_task(live, 8)
    shown = live.run("task", "get", task, "--json").data["description"]
    assert shown == "0123456789abcde\n" * (8 * MEGABYTE // 16)


def test_a_reader_that_goes_away_ends_it_quietly(live: Live) -> None:
    task = make_long_task(live)
    caller = live.start("task", "get", task, "--json")
    assert caller.stdout is not None
    assert caller.stdout.read(10)
    caller.stdout.close()
    assert caller.wait(30) == 141
    assert caller.stderr is not None
    assert caller.stderr.read() == b""
    assert live.run("task", "list").status == 0


@pytest.mark.parametrize("mode", ["on", "off"])
@pytest.mark.parametrize("where", ["/dev/full", None])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_output_that_cannot_be_written_is_an_error(
    live: Live, where: str | None, mode: str, options: tuple[str, ...]
) -> None:
    """A lost error output is not: there is nowhere to report it."""
    redirect = f">{where}" if where else ">&-"
    env = live.environ({"ROOKERY_DAEMON": mode})

    def run(redirection: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        argv = ["sh", "-c", f'"$@" {redirection}', "sh", *client_argv(*words, *options)]
        return subprocess.run(argv, cwd=live.folder, env=env, capture_output=True)

    done = run(redirect, "task", "create", "one")
    assert done.returncode == 1
    assert b"error: cannot write" in done.stderr
    assert len(live.run("task", "list", "--json").data) == 1
    assert run(f"2{redirect}", "nosuch").returncode == 2
    assert run(f"<&- {redirect} 2{redirect}", "task", "create", "two").returncode == 1
    assert len(live.run("task", "list", "--json").data) == 2


@pytest.mark.parametrize("mode", ["on", "off"])
def test_files_that_only_the_caller_has_are_read_and_written(live: Live, tmp_path: Path, mode: str) -> None:
    live.run("task", "create", "one")
    env = live.environ({"ROOKERY_DAEMON": mode})
    script = '"$@" data export /dev/stdout -q >exported && "$@" data import --clear --json /dev/stdin <exported'
    argv = ["sh", "-c", script, "sh", *client_argv()]
    done = subprocess.run([*argv, "-C", live.root], cwd=tmp_path, env=env, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["data"]["tasks"] == 1


@pytest.mark.parametrize("mode", ["on", "off"])
def test_closed_input_is_an_error_and_not_an_empty_text(live: Live, mode: str) -> None:
    task = live.run("task", "create", "one", "--description", "kept", "--json").data["id"]
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *client_argv("task", "update", task, "--description", "-")],
        cwd=live.folder,
        env=live.environ({"ROOKERY_DAEMON": mode}),
        capture_output=True,
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        b"error: cannot read standard input: Bad file descriptor",
    )
    assert live.run("task", "get", task, "--json").data["description"] == "kept"


def test_input_that_comes_slowly_is_waited_for(live: Live) -> None:
    caller = live.start("task", "create", "one", "--description", "-", "--json")
    assert caller.stdin is not None
    for part in (b"a", b"b", b"c"):
        caller.stdin.write(part)
        caller.stdin.flush()
        assert live.run("task", "list", "--json").status == 0  # meanwhile others are served
    out, _ = caller.communicate(timeout=60)
    assert json.loads(out)["data"]["description"] == "abc"


def test_an_interrupt_while_input_is_waited_for_changes_nothing(live: Live) -> None:
    live.run("task", "list")
    caller = live.start("task", "create", "one", "--description", "-")
    wait_for_dialogue(caller)
    caller.send_signal(signal.SIGINT)
    assert caller.wait(30) == 130
    assert live.run("task", "list", "--json").data == []


def test_an_interrupt_ends_an_operation_that_waits(live: Live) -> None:
    live.run("task", "list")
    caller = live.start("mail", "wait", "--timeout", "10m")
    wait_for_dialogue(caller)
    wait_until(lambda: _workers(live))
    (worker,) = _workers(live)
    caller.send_signal(signal.SIGINT)
    assert caller.wait(30) == 130
    wait_until(lambda: not is_alive(worker))


def test_an_interrupt_before_the_daemon_has_the_call_is_quiet(live: Live) -> None:
    live.run("task", "list")
    live.kill(signal.SIGSTOP)
    caller = live.start("task", "create", "one")
    wait_until(lambda: _has_socket(caller.pid))
    caller.send_signal(signal.SIGINT)
    _, err = caller.communicate(timeout=30)
    assert (caller.returncode, err) == (130, b"")
    live.kill(signal.SIGCONT)
    assert live.run("task", "list", "--json").data == []


def test_a_command_in_a_sandbox_waits_for_a_slow_daemon(live: Live) -> None:
    """It has no other way; elsewhere it would run in its own process."""
    live.run("task", "list")
    address = os.fsdecode(read_socket(os.fsencode(live.root)) or b"")
    live.kill(signal.SIGSTOP)
    caller, began = live.start("task", "create", "one", env={"ROOKERY_SOCKET": address}), time.monotonic()
    wait_until(lambda: time.monotonic() > began + SECONDS_TO_TAKE + 1)
    live.kill(signal.SIGCONT)
    assert caller.wait(30) == 0
    assert [task["title"] for task in live.run("task", "list", "--json").data] == ["one"]


def _has_socket(pid: int) -> bool:
    files = Path(f"/proc/{pid}/fd")
    with suppress(FileNotFoundError):  # one that was closed meanwhile
        return any(os.readlink(path).startswith("socket:") for path in files.iterdir())
    return False


def test_a_caller_that_vanishes_takes_its_operation_along(live: Live) -> None:
    live.run("task", "list")
    caller = live.start("mail", "wait", "--timeout", "10m")
    wait_for_dialogue(caller)
    wait_until(lambda: _workers(live))
    (worker,) = _workers(live)
    caller.kill()
    caller.wait()
    wait_until(lambda: not is_alive(worker))
    assert is_alive(live.identity)


def test_a_stopped_caller_blocks_no_other_and_loses_nothing(live: Live) -> None:
    task = make_long_task(live)
    caller = live.start("task", "get", task, "--json")
    caller.send_signal(signal.SIGSTOP)
    for number in range(5):
        assert live.run("task", "create", f"meanwhile {number}").status == 0
    caller.send_signal(signal.SIGCONT)
    out, _ = caller.communicate(timeout=60)
    assert len(json.loads(out)["data"]["description"]) == 4 * MEGABYTE


def test_a_caller_that_does_not_read_keeps_no_query_open(live: Live) -> None:
    """`| less` would keep the log of the database from being cleared, and it would grow."""
    caller = live.start("task", "get", make_long_task(live), "--json")
    assert caller.stdout is not None
    assert caller.stdout.read(10)  # more is on its way than all buffers can hold
    db = Database.open(database_path(live.root))
    try:
        db.connection.set_busy_handler(None)
        add(db)
        assert db.value("PRAGMA wal_checkpoint(TRUNCATE)") == 0
    finally:
        db.close()


def test_sixty_four_callers_at_once(live: Live) -> None:
    live.run("task", "list")
    callers = [live.start("task", "create", f"task {number}", "--json") for number in range(64)]
    ids = [json.loads(caller.communicate(timeout=120)[0])["data"]["id"] for caller in callers]
    assert len(set(ids)) == 64
    assert len(live.run("task", "list", "--json", "--limit", "100").data) == 64


def test_sixty_four_that_wait_for_input_delay_no_other(live: Live) -> None:
    live.run("task", "list")
    callers = [live.start("task", "create", f"task {number}", "--description", "-") for number in range(70)]
    try:
        wait_until(lambda: _threads(live) > 60)
        assert live.run("task", "list", "--json").data == []
    finally:
        for caller in callers:
            caller.communicate(b"x", timeout=120)
    assert {caller.returncode for caller in callers} == {0}


def test_an_operation_that_crashes_harms_no_other_call(live: Live) -> None:
    waiting = live.start("task", "create", "one", "--description", "-", "--json")
    wait_for_dialogue(waiting)
    caller = live.start("mail", "wait", "--timeout", "10m")
    wait_for_dialogue(caller)
    os.kill(_workers(live)[0].pid, signal.SIGSEGV)
    assert caller.wait(30) == 1
    out, _ = waiting.communicate(b"text", timeout=60)
    assert json.loads(out)["data"]["description"] == "text"


def in_terminal(live: Live, columns: int, *words: str, env: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Run `rook` in a terminal of that width: how it ended, and what is on the screen."""
    environ = live.environ({"TERM": "xterm-256color", **(env or {})})
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    caller = subprocess.Popen(
        client_argv(*words),
        cwd=live.folder,
        env={name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES")},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    return caller.wait(30), shown


def test_width_and_colours_are_those_of_the_callers_terminal(live: Live) -> None:
    live.run("task", "create", "a title that is long enough to be cut somewhere in a narrow terminal of few columns")
    widths = {}
    for columns in (100, 140):
        status, shown = in_terminal(live, columns, "task", "list")
        assert status == 0
        assert b"\x1b[" in shown
        widths[columns] = max(len(line.decode()) for line in _plain(shown).splitlines())
    assert widths[100] <= 100 < widths[140] <= 140
    assert b"\x1b[3" not in in_terminal(live, 80, "task", "list", env={"NO_COLOR": "1"})[1]
    assert b"\x1b[" not in live.run("task", "list").out


def _plain(shown: bytes) -> bytes:
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown).replace(b"\r", b"")


def test_help_is_as_wide_as_the_terminal(live: Live) -> None:
    for columns in (60, 120):
        _, shown = in_terminal(live, columns, "learning", "list", "--help")
        usage = _plain(shown).decode().partition("\n\n")[0]
        longest = max(len(line) for line in usage.splitlines())
        assert longest <= columns
        assert (longest > 60) == (columns == 120)


def test_files_get_the_callers_umask(live: Live) -> None:
    words = client_argv("data", "export", "all.json")
    subprocess.run(
        ["sh", "-c", 'umask 027; exec "$@"', "sh", *words],
        cwd=live.folder,
        env=live.environ(),
        check=True,
        capture_output=True,
    )
    assert stat.S_IMODE((live.folder / "all.json").stat().st_mode) == 0o640


def test_relative_paths_are_the_callers(live: Live) -> None:
    below = live.folder / "below"
    below.mkdir()
    assert live.run("data", "export", "all.json", folder=below).status == 0
    assert (below / "all.json").exists()


def test_a_terminal_that_does_not_know_every_sign_shows_the_rest(live: Live) -> None:
    live.run("task", "create", "über")
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(20)
        line.connect(live.place.socket)
        begin = hello(frames.RUN, ["task", "list"], live.folder, live.environ(), terminals=b"011", encoding=b"latin-1")
        line.sendall(begin)
        shown = b"".join(payload for kind, payload in iter(lambda: receive(line), (b"", b"")) if kind == frames.OUT)
    assert "über".encode("latin-1") in shown
    assert b"\xe2" not in shown


def test_a_bug_is_reported_with_its_log(live: Live) -> None:
    (live.folder / ".rookery" / "rookery.db").write_bytes(b"no database" * 100)
    ran = live.run("task", "list", "--json")
    assert ran.error["code"] == "storage_damaged"
    assert is_alive(live.identity)


def test_a_folder_that_is_gone(live: Live, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = client_argv("task", "list", "--json")
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *words],
        cwd=gone,
        env=live.environ({"ROOKERY_ROOT": live.root}),
        capture_output=True,
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"] == "the current folder is gone"


def test_a_daemon_killed_during_a_call_is_reported_and_the_next_call_works(live: Live) -> None:
    live.run("task", "list")
    caller = live.start("task", "create", "one", "--description", "-")
    wait_for_dialogue(caller)
    live.kill()
    assert caller.wait(30) == 1
    assert caller.stderr is not None
    output = caller.stderr.read()
    assert b"the daemon stopped while it ran this" in output
    assert b"`rook events --limit 5` shows the last changes" in output
    assert live.run("task", "list", "--json").data == []


def test_a_daemon_killed_during_a_call_is_reported_as_json_where_that_is_asked_for(live: Live) -> None:
    live.run("task", "list")
    caller = live.start("task", "create", "one", "--description", "-", "--json")
    wait_for_dialogue(caller)
    live.kill()
    out, err = caller.communicate(timeout=30)
    assert (caller.returncode, err) == (1, b"")
    assert json.loads(out)["error"]["code"] == "daemon_stopped"


class DiesOver(Impostor):
    """A daemon that begins to answer its first call, and is gone."""

    def _serve(self) -> None:
        line, _ = self._listener.accept()
        self._listener.close()
        with line:
            line.recv(65536)
            line.sendall(self._answer or b"")


@pytest.mark.parametrize(
    ("answer", "is_made_again"),
    [
        (frames.pack(frames.TAKEN, frames.ONLY_READS), True),
        (frames.pack(frames.TAKEN), False),
        (frames.pack(frames.TAKEN, frames.ONLY_READS) + frames.pack(frames.OUT, b"half"), False),
    ],
)
def test_a_call_that_only_reads_is_made_again_if_nothing_of_its_answer_was_seen(
    live: Live, answer: bytes, is_made_again: bool
) -> None:
    assert live.run("task", "create", "one", env={"ROOKERY_DAEMON": "off"}).status == 0
    DiesOver(live, answer)
    ran = live.run("task", "list")
    assert (ran.status == 0) is is_made_again, ran
    assert (b"one" in ran.out) is is_made_again
    assert (b"the daemon stopped while it ran this" in ran.err) is not is_made_again


def test_what_only_reads_is_known_by_its_permission() -> None:
    for words in (["task", "list"], ["--json", "status"], ["mail", "--help"], ["events"]):
        assert route(words, "/", "/")[1], words
    for words in (["task", "create", "x"], ["mail", "check"], ["merge", "--all"]):
        assert not route(words, "/", "/")[1], words


def test_a_process_of_its_own_outlives_the_daemon(live: Live) -> None:
    live.run("task", "list")
    caller = live.start("mail", "wait", "--timeout", "10m", "--json")
    wait_for_dialogue(caller)
    wait_until(lambda: _workers(live))
    live.kill()
    assert live.run("mail", "send", "human", "--subject", "hello", "--body", "x").status == 0
    out, _ = caller.communicate(timeout=60)
    assert caller.returncode == 0
    assert b"hello" in out


def _workers(live: Live) -> list[Identity]:
    workers = [identify(pid) for pid in workers_of(live.folder)]
    return [worker for worker in workers if worker is not None]


def _threads(live: Live) -> int:
    return len(os.listdir(f"/proc/{live.place.pid}/task"))


def test_callers_that_do_not_read_delay_no_other(live: Live) -> None:
    task = make_long_task(live, 2)
    callers = [live.start("task", "get", task, "--json") for _ in range(66)]
    wait_until(lambda: _threads(live) > 60)
    assert live.run("task", "list", "-q").err == b""
    assert all(caller.poll() is None for caller in callers)


@pytest.mark.parametrize("kind", [frames.INPUT, frames.NO_INPUT])
def test_input_that_was_not_asked_for_is_not_kept(live: Live, kind: bytes) -> None:
    live.run("task", "list")
    before = _resident(live)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(live.place.socket)
        line.sendall(hello(frames.RUN, ["task", "create", "one", "--description", "-"], live.folder, live.environ()))
        part = frames.pack(kind, b"x" * (4 * MEGABYTE))
        with suppress(OSError):
            for _ in range(20):
                line.sendall(part)
    assert live.run("task", "list", "-q").status == 0
    assert _resident(live) - before < 40 * MEGABYTE


def _resident(live: Live) -> int:
    return int(Path(f"/proc/{live.place.pid}/statm").read_text().split()[1]) * 4096


def test_settings_that_cannot_be_read_end_no_daemon(live: Live) -> None:
    live.run("task", "list")
    (live.folder / ".rookery" / "config.yaml").write_text("daemon: [oops\n")
    os.kill(live.place.pid, signal.SIGUSR1)
    wait_until(lambda: "ConfigInvalid" in live.log())
    assert is_alive(live.identity)
    assert live.run("task", "list", "-q").err == b""


def test_a_full_disk_ends_no_daemon(live: Live) -> None:
    (live.folder / ".rookery" / "logs").mkdir(exist_ok=True)
    os.symlink("/dev/full", live.folder / ".rookery" / "logs" / "daemon.log")
    assert live.run("task", "list", "-q").err == b""
    live.kill(signal.SIGTERM)
    assert live.run("task", "list", "-q").err == b""
