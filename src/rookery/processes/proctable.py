"""The system's processes: read from `/proc` where there is one, else from `ps`.

Not by psutil: with 500 processes it takes 48 ms for what `read_all` reads in 17 ms, 14 ms more to load in every runner,
and its times of start follow the system's clock, so that after a correction of the clock a process would no longer
be recognised.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass

from rookery.base import call as calls
from rookery.base.record import Record
from rookery.processes.process import run

PROC = "/proc"

MARK = "ROOKERY_SESSION"
"""The variable that every process of an agent is started with: the session that it belongs to, and ends with."""
RUNNER = "ROOKERY_RUNNER"
"""The variable of what we start to outlive its starter: for a runner, the session whose agent it starts.

It does not end with the agent that happened to start it, and what it starts itself is no person's."""
LOOP = "loop"
"""What that variable says of a process that runs a project's loop."""
SERVES = "ROOKERY_SERVES"
"""A daemon carries it, with its project: it does not end with the agent whose call started it, and works for all."""
SLING = "ROOKERY_SLING"
"""What makes the worktree of an agent carries it, with the session: it outlives a sling that is killed, and is ended
before that is undone."""
SCRATCH = "ROOKERY_SCRATCH"
"""What runs in a scratch folder carries it, with the folder's path, and ends with the folder."""

_LOADING_SECONDS = 1.0
_DEAD = "ZXx"
_STOPPED = "Tt"
_PS_COLUMNS = "pid=,ppid=,uid=,stat=,lstart="


@dataclass(frozen=True, slots=True)
class Identity(Record):
    """A process for good: its number, and when it started, because the system reuses numbers."""

    pid: int
    start: str


@dataclass(frozen=True, slots=True)
class Row(Record):
    """One process, as it was when the system was asked."""

    identity: Identity
    parent: int
    user: int
    is_dead: bool
    """It has ended, and its parent has not collected it yet."""
    is_stopped: bool = False
    """It is frozen by a signal."""

    @property
    def pid(self) -> int:
        """Its number."""
        return self.identity.pid


def has_proc() -> bool:
    """True on Linux."""
    return os.path.isfile(os.path.join(PROC, "self", "stat"))


def read_one(pid: int) -> Row | None:
    """The process of that number, if there is one; a dead one that its parent has not collected is one too."""
    if has_proc():
        return _read_proc(pid)
    return next(iter(_ask_ps("-p", str(pid))), None)


def identity_of(pid: int) -> Identity:
    """The process with that number; if it is gone, an identity that matches no process."""
    row = read_one(pid)
    return Identity(pid, "") if row is None else row.identity


def read_all() -> dict[int, Row]:
    """Every process."""
    if not has_proc():
        return {row.pid: row for row in _ask_ps("-A")}
    rows = (_read_proc(int(name)) for name in os.listdir(PROC) if name.isdecimal())
    return {row.pid: row for row in rows if row is not None}


def lineage(pid: int) -> list[int]:
    """The process, its parent, and so on up to the first one that cannot be seen; empty if it is gone itself."""
    pids: list[int] = []
    row = read_one(pid)
    while row is not None and row.pid not in pids:
        pids.append(row.pid)
        parent = read_one(row.parent) if row.parent else None
        if parent is None and row.parent:
            # The parent has ended, and the process has another now; or it is hidden from us, and stays the parent.
            again = read_one(row.pid)
            if again is not None and again.parent != row.parent:
                pids.pop()
                parent = again
        row = parent
    return pids


def pids_with(name: str, value: str) -> set[int]:
    """The numbers of this user's processes that were started with NAME=VALUE in their environment."""
    if has_proc():
        me = os.geteuid()
        return {pid for pid, row in read_all().items() if row.user == me and f"{name}={value}" in _environ(pid)}
    # `e` shows the environment behind the command, of one's own processes only.
    output = run(["ps", "eww", "-A", "-o", "pid=,command="], check=False).stdout
    rows = (line.split(None, 1) for line in output.splitlines())
    return {int(row[0]) for row in rows if len(row) == 2 and f" {name}={value} " in f" {row[1]} "}


def resident_memory(pid: int) -> int:
    """How many bytes of memory a process has, with what it shares; 0 if it is gone, or where there is no `/proc`."""
    with suppress(OSError), open(os.path.join(PROC, str(pid), "statm"), "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def own_memory(pid: int) -> int:
    """The same, with its part only of what it shares. The kernel takes longer to answer this."""
    with suppress(OSError), open(os.path.join(PROC, str(pid), "smaps_rollup"), "rb") as file:
        sizes = (line.split()[1] for line in file if line.startswith(b"Pss:"))
        return sum(map(int, sizes)) * 1024
    return 0


def _read_proc(pid: int) -> Row | None:
    folder = os.path.join(PROC, str(pid))
    try:
        with open(os.path.join(folder, "stat"), "rb") as file:
            stat = file.read()
        user = os.stat(folder).st_uid
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name stands in brackets and may hold anything, brackets too.
    fields = stat[stat.rindex(b")") + 2 :].split()
    identity = Identity(pid, f"{_boot()}-{int(fields[19])}")
    state = fields[0].decode()
    return Row(identity, int(fields[1]), user, state in _DEAD, state in _STOPPED)


_boots: dict[str, str] = {}
_UNKNOWN = "0"


def _boot() -> str:
    """Which start of the machine this is: the same ticks mean another time after the next start."""
    if PROC not in _boots:
        try:
            with open(os.path.join(PROC, "sys/kernel/random/boot_id"), encoding="ascii") as file:
                _boots[PROC] = file.read(8)
        except OSError:
            _boots[PROC] = _UNKNOWN
    return _boots[PROC]


def boot_of(identity: Identity) -> str:
    """Which start of which machine the process belongs to; empty where the system does not tell."""
    boot, dash, ticks = identity.start.partition("-")
    return boot if dash and ticks.isdecimal() and boot != _UNKNOWN else ""


def this_boot() -> str:
    """The same for what runs here now."""
    return _boot() if has_proc() and _boot() != _UNKNOWN else ""


def namespace() -> str:
    """The pid namespace that we see: the same numbers mean other processes in another. Empty where there are none."""
    try:
        return os.readlink(os.path.join(PROC, "self", "ns", "pid")).strip("pid:[]")
    except OSError:
        return ""


def read_file(pid: int, name: str) -> str:
    """What the system tells of a process in a file of that name; empty if the process is gone."""
    with suppress(OSError), open(os.path.join(PROC, str(pid), name), encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def environ_of(pid: int) -> list[str]:
    """What a process was started with, as NAME=VALUE; raises OSError where that cannot be seen."""
    texts, deadline = _read_texts(pid, "environ"), time.monotonic() + _LOADING_SECONDS
    while texts == [""] and time.monotonic() < deadline:
        is_loading = _is_loading(pid)
        texts = _read_texts(pid, "environ")  # it may be there since we looked
        if not is_loading:
            break
        calls.sleep(0.001)
    return texts


def _is_loading(pid: int) -> bool:
    """True while the kernel loads the program of a process: neither its environment nor its words are there yet.

    It is so for milliseconds where there is much to do, and a process that is not seen then would not be ended.
    """
    try:
        return _read_texts(pid, "cmdline") == [""] and bool(os.readlink(os.path.join(PROC, str(pid), "exe")))
    except OSError:  # it has ended, or is the kernel's own
        return False


def arguments_of(pid: int) -> list[str]:
    """The words that a process was started with; raises OSError where that cannot be seen."""
    return _read_texts(pid, "cmdline")[:-1]


def _read_texts(pid: int, name: str) -> list[str]:
    with open(os.path.join(PROC, str(pid), name), "rb") as file:
        return [text.decode("utf-8", "surrogateescape") for text in file.read().split(b"\0")]


def session_of(pid: int) -> str:
    """The session that a process was started for; empty if it was for none, or if that cannot be seen."""
    starts = (f"{MARK}=", f"{RUNNER}=")
    return next((text.partition("=")[2] for text in _environ(pid) if text.startswith(starts)), "")


def outlives_starter(pid: int) -> bool:
    """True if the process was started to outlive its starter."""
    starts = (f"{RUNNER}=", f"{SERVES}=")
    return any(text.startswith(starts) for text in _environ(pid))


def _environ(pid: int) -> list[str]:
    try:
        return environ_of(pid)
    except OSError:
        return []  # it has ended, or has changed its user: not ours to end either way


def _ask_ps(*which: str) -> list[Row]:
    output = run(["ps", *which, "-o", _PS_COLUMNS], check=False).stdout
    rows = []
    for line in output.splitlines():
        words = line.split(None, 4)
        if len(words) == 5:
            identity = Identity(int(words[0]), " ".join(words[4].split()))
            rows.append(Row(identity, int(words[1]), int(words[2]), words[3][0] in _DEAD, words[3][0] in _STOPPED))
    return rows
