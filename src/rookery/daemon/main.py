"""The daemon's process: `python … rookery.daemon.main ROOT`. Only here the daemon uses what belongs to the process.

If the daemon dies while something is alive or due, another one has to follow: at night there is no next call. The fork
server runs as long as the daemon and sees its end. Unless the daemon has said that it leaves for good, the server's
process, which has everything loaded, becomes the next daemon. Runners start one as long as they run.
"""

from __future__ import annotations

import gc
import os
import pkgutil
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from importlib import import_module

import rookery
from rookery.base.clock import has_passed, stamp
from rookery.base.draft import write_whole
from rookery.base.errors import RookError
from rookery.config import layout
from rookery.config.environ import now, read_daemon_environ, read_environ
from rookery.config.loader import read_config
from rookery.config.presence import Presence
from rookery.daemon import forkserver, loop_thread, worker
from rookery.daemon.address import log_path, shared_folder, sweep
from rookery.daemon.fingerprint import Fingerprint
from rookery.daemon.server import Daemon
from rookery.flows.workload import is_anything_alive
from rookery.ops.state import open_state
from rookery.ops.state_owner import check_state
from rookery.processes.proctable import RUNNER
from rookery.processes.python import module_command
from rookery.processes.spawning import become, split, start_detached
from rookery.sessions import store as sessions

_NOT_LOADED = (
    *("rookery.mcp", "rookery.web", "rookery.tui"),
    *("rookery.doctor", "rookery.merge.resolve", "rookery.runtimes.scripted_agent", "rookery.ops.json_schema"),
)
"""Large, and needed by few calls; or what only a process of its own runs."""
_LIBRARIES = ("yaml", "rich.console", "rich.progress", "rich.table", "rich.tree", "difflib", "tempfile")
"""What a short operation loads only when it needs it."""
_NAME = "rook-daemon"
"""What the kernel calls it."""
_SWITCH_SECONDS = 0.0005
"""With Python's own 5 ms one computing thread would double the time of all other calls."""
_OPEN_FILES = 4096
_MOST_BYTES = 150 * 1024 * 1024
_MOST_DEATHS, _DEATHS_SECONDS = 30, 60.0


def main() -> None:
    """Serve the project until it is not needed."""
    root = sys.argv[1]
    os.umask(0o077)
    _raise_limits()
    presence = Presence(root)  # before anything else: what follows is of this project, or finds it gone
    check_state(root)
    loaded = Fingerprint()
    _load_everything()
    with suppress(RookError):  # a mistake in the settings concerns the calls
        read_config(root, read_environ(read_daemon_environ()), {})  # loads pydantic for every copy, if there are any
    gc.collect()
    gc.freeze()
    while not _serve(root, loaded, presence) and _should_follow(root, loaded):
        # Another process, because it would never collect the children that the fork server has started.
        if split():
            os._exit(0)
        os.setsid()  # signals to the dead daemon's group must not reach us


def _serve(root: str, loaded: Fingerprint, presence: Presence) -> bool:
    """Be the project's daemon, in a process without threads that has everything loaded.

    False in its fork server, which sees that the daemon has died; True if there is nothing more to do.
    """
    forkserver.set_name(_NAME)
    environ = read_daemon_environ()
    daemon = Daemon(root, environ, now, _log, loaded)
    server = forkserver.start(lambda: worker.prepare_copy(root), daemon.close)
    if isinstance(server, bytes):
        return server == forkserver.FAREWELL
    daemon.use_forkserver(server)
    loaded.watch()
    if not daemon.open():
        server.say_farewell()
        return True
    _log(f"serving {root}")
    sys.setswitchinterval(_SWITCH_SECONDS)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: daemon.stop(signal.Signals(number).name, for_good=True))
    signal.signal(signal.SIGUSR1, lambda _number, _frame: daemon.look())

    def leave() -> None:
        daemon.stop("the project is gone", for_good=True)

    loop = loop_thread.start(root, daemon.connections, _log, presence, leave)
    daemon.on_look = lambda: _leave_if_idle(daemon, lambda: loop.is_needed)
    daemon.on_leave = loop.stop
    daemon.serve()
    sweep(shared_folder(), now())
    if daemon.needs_successor:
        with suppress(RookError):
            start_detached(_successor_command(root), cwd=root, env=environ, output=log_path(root))
    _log("gone")
    os._exit(0)


def _should_follow(root: str, loaded: Fingerprint) -> bool:
    """True if another daemon has to follow one that has died, and this process may be that."""
    try:
        with closing(open_state(root)) as db:
            if not is_anything_alive(root, db) or _has_died_too_often(root):
                return False
        _log("the daemon has died, and something is alive or due")
        if loaded.look():  # this code is outdated
            become(_successor_command(root), read_daemon_environ() | {RUNNER: "keeper"})
    except (RookError, OSError) as error:  # a project that is gone, a full disk
        _log(f"no daemon follows: {error}")
        return False
    return True


def _successor_command(root: str) -> list[str]:
    """The command that starts the project's daemon if it is needed."""
    return [*module_command("rookery.flows.loop_start", alone=True), root, "--if-needed"]


def _has_died_too_often(root: str) -> bool:
    """True if daemons have died too often within a minute; else this death is noted."""
    path = layout.path(root, layout.DAEMON_DEATHS)
    deaths: list[float] = []
    with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        deaths = [float(word) for word in file.read().split()]
    recent = [death for death in deaths if 0 <= now() - death < _DEATHS_SECONDS]
    if len(recent) >= _MOST_DEATHS:
        return True
    with suppress(OSError):
        write_whole(path, " ".join(map(str, [*recent, now()])))
    return False


def _load_everything() -> None:
    """Load all our modules before the daemon is ready.

    So the first call is as fast as the rest, and an upgrade, which replaces files under it, mixes no versions.
    """
    for name in _LIBRARIES:
        import_module(name)
    for module in pkgutil.walk_packages(rookery.__path__, "rookery."):
        if not module.name.startswith(_NOT_LOADED) and not module.name.endswith((".__main__", ".checks")):
            import_module(module.name)


def _leave_if_idle(daemon: Daemon, is_needed: Callable[[], bool] = lambda: False) -> float:
    """Stop a daemon that is not needed; else the seconds until it may be so."""
    if not daemon.is_busy and _resident() > _MOST_BYTES:
        daemon.stop("it has grown large, and the next one starts small")
    idle = read_config(daemon.root, read_environ(daemon.environ), {}).daemon.idle
    if not has_passed(idle, daemon.last_call, now()):
        return max(0.0, daemon.last_call + idle - now())
    if not daemon.is_busy and not is_needed():
        with closing(open_state(daemon.root)) as db:
            if not sessions.count(db, alive=True):
                daemon.stop("there was no call for a while, and no agent is alive", for_good=True)
    return idle


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _raise_limits() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(_OPEN_FILES, hard)), hard))


def _log(text: str) -> None:
    with suppress(OSError):  # a full disk; and a signal's handler may call this in the middle of another line
        os.write(2, f"{stamp(now())} [{os.getpid()}] {text}\n".encode(errors="backslashreplace"))
