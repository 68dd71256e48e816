"""The daemon's process: `python … rookery.daemon.main ROOT`. The only place that uses what belongs to the process."""

from __future__ import annotations

import gc
import os
import pkgutil
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

import rookery
from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.config.environ import now, read_daemon_environ, read_environ
from rookery.config.loader import read_config
from rookery.daemon import forkserver, keeper, worker
from rookery.daemon.address import log_path, shared_folder, sweep
from rookery.daemon.fingerprint import Fingerprint
from rookery.daemon.looping import Looping
from rookery.daemon.server import Daemon
from rookery.ops.state import open_state
from rookery.ops.state_owner import check_state
from rookery.processes.spawning import split, start_detached
from rookery.sessions import store as sessions

_NOT_LOADED = (
    *("rookery.mcp", "rookery.web", "rookery.tui"),
    *("rookery.doctor", "rookery.merge.resolve", "rookery.runtimes.scripted_agent", "rookery.ops.json_schema"),
)
"""Large, and asked for by few; or what only a process of its own runs."""
_LIBRARIES = ("yaml", "rich.console", "rich.progress", "rich.table", "rich.tree", "difflib", "tempfile")
"""What a short operation loads only when it needs it."""
_NAME = "rook-daemon"
"""What the kernel calls it."""
_SWITCH_SECONDS = 0.0005
"""Python's own 5 ms would let one computing thread double the time of everybody else's calls."""
_OPEN_FILES = 4096
_MOST_BYTES = 150 * 1024 * 1024


def main() -> None:
    """Serve the project until it is not needed."""
    root = sys.argv[1]
    os.umask(0o077)
    _raise_limits()
    check_state(root)
    loaded = Fingerprint()
    _load_everything()
    with suppress(RookError):  # a mistake in the settings concerns the calls
        read_config(root, read_environ(read_daemon_environ()), {})  # loads pydantic for every copy, if there are any
    gc.collect()
    gc.freeze()
    while not _serve(root, loaded) and _is_to_follow(root, loaded):
        # Another process, so that nothing that the fork server has started is a child that nobody collects.
        if split():
            os._exit(0)
        os.setsid()  # nothing that is sent to the dead one's group is meant for us


def _serve(root: str, loaded: Fingerprint) -> bool:
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
    looping = Looping(root, daemon.connections, _log)
    if not daemon.open():
        server.say_farewell()
        return True
    _log(f"serving {root}")
    sys.setswitchinterval(_SWITCH_SECONDS)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: daemon.stop(signal.Signals(number).name, for_good=True))
    signal.signal(signal.SIGUSR1, lambda _number, _frame: daemon.look())
    daemon.on_look = lambda: _leave_if_idle(daemon, lambda: looping.is_needed)
    daemon.on_leave = looping.stop
    looping.start()
    daemon.serve()
    sweep(shared_folder(), now())
    if daemon.needs_successor:
        with suppress(RookError):
            start_detached(keeper.successor_command(root), cwd=root, env=environ, output=log_path(root))
    _log("gone")
    os._exit(0)


def _is_to_follow(root: str, loaded: Fingerprint) -> bool:
    """True if a daemon that has died is to be followed by another one, and this process may be that."""
    try:
        if not keeper.is_wanted(root):
            return False
        _log("the daemon has died, and something is alive or due")
        if loaded.look():
            keeper.start_again(root)
    except (RookError, OSError) as error:  # a project that is gone, a full disk
        _log(f"no daemon follows: {error}")
        return False
    return True


def _load_everything() -> None:
    """Load all of ours before the daemon is ready.

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
    left = daemon.last_call + idle - now()
    if left > 0:
        return left
    if not daemon.is_busy and not is_needed() and not _has_agents(daemon.root):
        daemon.stop("there was no call for a while, and no agent is alive", for_good=True)
    return idle


def _has_agents(root: str) -> bool:
    db = open_state(root)
    try:
        return sessions.count(db, alive=True) > 0
    finally:
        db.close()


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _raise_limits() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(_OPEN_FILES, hard)), hard))


def _log(text: str) -> None:
    with suppress(OSError):  # a full disk; and it may be said from a signal's handler, in the middle of another line
        os.write(2, f"{stamp(now())} [{os.getpid()}] {text}\n".encode(errors="backslashreplace"))
