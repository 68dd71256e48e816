"""`rook daemon`: its status and log, to stop it, to start it again. These run in the client's process."""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from rookery.base.call import sleep
from rookery.base.errors import NotFound, ProgramFailed
from rookery.base.record import Record
from rookery.daemon import address
from rookery.daemon.start import CannotStart, poke, start_daemon
from rookery.ops.context import Context
from rookery.ops.operation import FOLLOWS, NOTHING, PROCESS, Doc, op
from rookery.processes.proctable import Identity, read_file, read_one
from rookery.processes.proctree import is_alive, send
from rookery.sessions import journal

_LEAVE_SECONDS = 15.0
_DRAIN_SECONDS = 7.0
_PAUSE = 0.02
_LOOK_SECONDS = 0.5
_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class DaemonStatus(Record):
    """How a project's daemon is."""

    is_running: bool
    answers: bool
    pid: int | None = None
    stopped_pid: int | None = None
    """The daemon that has just left."""
    since: str | None = None
    version: str | None = None
    socket: str | None = None
    resident_bytes: int | None = None
    threads: int | None = None
    nice: int | None = None
    open_files_limit: str | None = None
    cgroup: str | None = None
    running_turns: int = 0
    """How many turns go on without it. Their runners start another daemon, which settles them."""
    log: str = ""


@dataclass(frozen=True, slots=True)
class LogLine(Record):
    """One line of the daemon's log."""

    line: str


@op("daemon status", needs="daemon.read", long=True, view="daemon.status")
def status(ctx: Context) -> DaemonStatus:
    """Show whether the project's daemon runs, its version and its size."""
    daemon = _find(ctx.root)
    log = address.log_path(ctx.root)
    if daemon is None:
        return DaemonStatus(is_running=False, answers=False, log=log)
    return DaemonStatus(
        is_running=True,
        answers=_answers(daemon.socket),
        pid=daemon.pid,
        since=daemon.since,
        version=daemon.version,
        socket=daemon.socket,
        log=log,
        **_describe_process(daemon.pid),
    )


def _find(root: str) -> address.Address | None:
    """Where the daemon is. One whose lock file was overwritten writes it again; one whose file is gone leaves."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    while True:
        daemon = address.read_address(root)
        if daemon is not None and address.is_locked(root):
            return daemon
        if not address.find_processes(root) or time.monotonic() > deadline:
            return None
        poke(root)
        sleep(_PAUSE)


def _answers(path: str) -> bool:
    """True if the daemon reads what it is sent: the kernel takes connections also for one that is stopped."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, suppress(OSError):
        line.settimeout(_ANSWER_SECONDS)
        line.connect(path)
        line.shutdown(socket.SHUT_WR)  # the daemon hangs up on a caller that sends nothing
        return line.recv(1) == b""
    return False


@op("daemon stop", needs="daemon.write", long=True, touches=PROCESS, owns=NOTHING, view="daemon.status")
def stop(ctx: Context) -> DaemonStatus:
    """Stop the project's daemon: it finishes what it has begun. The next command starts another.

    Agents go on: no turn, gate or landing is a part of the daemon. While turns are running, another one is soon
    started to settle them; `rook stop` ends them first.
    """
    daemon = _find(ctx.root)
    log = address.log_path(ctx.root)
    if daemon is None:
        for process in address.find_processes(ctx.root):  # of an older version, or just about to leave
            send(process, signal.SIGTERM)
        return DaemonStatus(is_running=False, answers=False, log=log)
    if daemon.process is None or not send(daemon.process, signal.SIGTERM):
        raise NotFound(
            f"the daemon, process {daemon.pid}, is not one of this machine or container", hint="stop it where it runs"
        )
    _await_leaving(ctx.root, daemon, daemon.process)
    turns = len(journal.running_turns(ctx.root))
    return DaemonStatus(is_running=False, answers=False, stopped_pid=daemon.pid, running_turns=turns, log=log)


def _await_leaving(root: str, daemon: address.Address, process: Identity) -> None:
    """Wait until the daemon has ended, or only waits for input; raises ProgramFailed if it does not make room."""
    row = read_one(process.pid)
    is_stopped = row is not None and row.is_stopped
    begun = time.monotonic()
    while is_alive(process):
        took = time.monotonic() - begun
        has_made_room = address.read_address(root) != daemon or not address.is_locked(root)
        if has_made_room and took > _DRAIN_SECONDS:
            return  # it waits for a caller's input, and the next daemon can start
        if not has_made_room and (is_stopped or took > _LEAVE_SECONDS):
            raise ProgramFailed(
                f"the daemon, process {daemon.pid}, {'is stopped' if is_stopped else 'does not leave'}",
                hint=f"`kill -9 {daemon.pid}`: nothing is lost",
            )
        sleep(_PAUSE)


@op("daemon restart", needs="daemon.write", long=True, touches=PROCESS, owns=NOTHING, view="daemon.status")
def restart(ctx: Context) -> DaemonStatus:
    """Stop the project's daemon, if it runs, and start another."""
    if address.is_locked(ctx.root):
        stop(ctx)
    try:
        start_daemon(ctx.root)
    except CannotStart as error:
        raise ProgramFailed(f"the daemon cannot be started: {error}", hint="`rook daemon logs` may say why") from error
    result: DaemonStatus = status(ctx)
    return result


@op("daemon logs", needs="daemon.read", long=True, view="daemon.log_line")
def logs(
    ctx: Context,
    *,
    limit: Annotated[int, Doc("How many lines at most (100).")] = 100,
    follow: Annotated[bool, FOLLOWS, Doc("Go on with what comes, until interrupted.")] = False,
) -> Iterator[LogLine]:
    """Show the daemon's log: when it started and stopped, and what failed in it."""
    path = address.log_path(ctx.root)
    lines, at = _read_lines(path, 0)
    yield from lines[-limit:] if limit else lines
    while follow:
        sleep(_LOOK_SECONDS)
        lines, at = _read_lines(path, at)
        yield from lines


def _read_lines(path: str, at: int) -> tuple[list[LogLine], int]:
    """The complete lines after a position in the log, and the position after them."""
    try:
        with open(path, "rb") as file:
            file.seek(at if at <= os.path.getsize(path) else 0)  # the file may have been replaced
            data = file.read()
            end = file.tell() - len(data) + data.rfind(b"\n") + 1
    except FileNotFoundError:
        return [], 0
    whole = data[: data.rfind(b"\n") + 1].decode("utf-8", "replace")
    return [LogLine(line) for line in whole.splitlines()], end


def _describe_process(pid: int) -> dict[str, Any]:
    """What limits a process, as far as the system tells."""
    fields = dict(line.partition(":")[::2] for line in read_file(pid, "status").splitlines())
    try:
        nice, most = os.getpriority(os.PRIO_PROCESS, pid), resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    except OSError:
        return {}
    return {
        "resident_bytes": int(fields.get("VmRSS", "0").split()[0]) * 1024,
        "threads": int(fields.get("Threads", "0")),
        "nice": nice,
        "open_files_limit": "unlimited" if most == resource.RLIM_INFINITY else str(most),
        "cgroup": read_file(pid, "cgroup").strip().rpartition("::")[2] or None,
    }
