"""The process outside the sandbox: starts the agent in it, serves it, passes signals on, and exits with its status.

`python … rookery.sandbox.host ROOT SESSION PLAN`, in the worktree, with the environment of the agent as it would
be without a sandbox: the token stays here. When this process dies, bubblewrap and everything in it die too.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from rookery.base.call import sleep
from rookery.base.json import loads
from rookery.config.environ import confined_environ
from rookery.processes import proctable
from rookery.processes.inotify import MOVED_HERE, Watch, watch_folders
from rookery.processes.python import module_command
from rookery.processes.spawning import exit_status, spawn
from rookery.processes.subreaper import adopt_orphans
from rookery.sandbox.model import ALLOW, OPEN, PROXY, RELAY_PORT, ROOK, SOCKETS, Plan, build_environ, clear_sockets
from rookery.sandbox.proxy import Proxy

_PASSED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
_FROM_TERMINAL = 0x80  # SI_KERNEL: the whole group in the foreground got it, the agent too
_MARK = ".rook"
_RETRY = 0.5
"""Seconds between two looks at a file, where no notification works."""
# By name: they stand above us, and we only start them.
_HELLO, _LINK = "rookery.daemon.hello", "rookery.daemon.link"


def main() -> int:
    """Run one agent, or one turn of it, in its sandbox."""
    adopt_orphans()  # what `rook` runs for the agent outside, such as a gate, must not become a person's
    root, session_id, path = sys.argv[1:4]
    plan = read_plan(path)
    env = confined_environ()
    if not env.get("ROOKERY_TOKEN"):
        raise LookupError("without an agent's token, `rook` would act for a person")
    # Before there is a second thread, so that every thread leaves them to `_attend`.
    signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED, signal.SIGCHLD})
    clear_sockets(plan.sockets)  # a host that was killed may have left its own
    os.makedirs(plan.sockets, mode=0o700)
    try:
        _hold(plan.holds)
        guest = import_module(_HELLO).Guest(session_id, env, plan.worktree)
        link = import_module(_LINK).Link(root, _outside(plan, ROOK), guest)
        link.open()
        if plan.network == ALLOW:
            Proxy(_outside(plan, PROXY), plan.allow, f"{path.removesuffix('.json')}.log").start()
        Packed(*plan.packed).follow()
        status = _run(plan, env)
        link.close()
        return status
    finally:
        _release(plan.holds)
        _remove_links(os.path.join(os.path.dirname(plan.packed[0]), "objects"))
        clear_sockets(plan.sockets)


class Packed:
    """The copy of the packed refs that the agent sees. It is written again whenever git packs refs."""

    def __init__(self, source: str, copy: str) -> None:
        self._source = source
        self._copy = copy
        self._seen: tuple[int, int, int] | None = None

    def follow(self) -> None:
        """Keep the copy as the file is, from now on."""
        # Git writes another file and gives it the name.
        watch = watch_folders({os.path.dirname(self._source): MOVED_HERE})
        self.refresh()
        threading.Thread(target=self._follow, args=(watch,), daemon=True).start()

    def _follow(self, watch: Watch | None) -> None:
        has_failed = False
        while True:
            if watch is None:
                sleep(_RETRY)
            elif select.select([watch], [], [], _RETRY if has_failed else None)[0]:
                watch.read()
            try:
                self.refresh()
                has_failed = False
            except OSError:  # a full disk
                has_failed = True

    def refresh(self) -> None:
        """Copy the file if it has changed: in place, because this very file is mounted."""
        try:
            state = os.stat(self._source)
            seen = (state.st_ino, state.st_mtime_ns, state.st_size)
            if seen == self._seen:
                return
            with open(self._source, "rb") as source:
                content = source.read()
        except FileNotFoundError:
            return
        with open(self._copy, "r+b") as file:
            file.write(content)
            file.truncate()
        self._seen = seen


def read_plan(path: str) -> Plan:
    """The plan that `wrap` wrote."""
    with open(path, encoding="utf-8") as file:
        data: dict[str, Any] = loads(file.read())
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return Plan(**values)


def _run(plan: Plan, env: Mapping[str, str]) -> int:
    """Start the agent from the main thread: the kernel ends bubblewrap when the thread that started it ends."""
    reader, writer = os.pipe()
    words = [*plan.cage, "--ro-bind", plan.sockets, SOCKETS, "--info-fd", str(writer), "--chdir", plan.worktree]
    if not plan.has_terminal:
        words.append("--new-session")
    if plan.network != OPEN:
        words.append("--unshare-net")
    words.append("--")
    if plan.network == ALLOW:
        words += [*module_command("rookery.sandbox.relay"), str(RELAY_PORT), PROXY]
    pid = spawn([*words, *plan.argv], env=build_environ(env, plan.names, plan.home, plan.network), keep=(writer,))
    os.close(writer)
    return _attend(pid, reader)


def _attend(pid: int, info: int) -> int:
    """Wait for the end, and pass signals on."""
    inside = None
    while True:
        received = signal.sigwaitinfo({*_PASSED, signal.SIGCHLD})
        if received.si_signo == signal.SIGCHLD:
            status = exit_status(pid)
            if status is not None:
                return status
        elif received.si_code != _FROM_TERMINAL:
            inside = _read_first(info) if inside is None else inside
            _pass_on(inside, received.si_signo)


def _read_first(info: int) -> int:
    """The pid, outside, of the first process within: bubblewrap's own, which takes no signals."""
    text = b""
    while chunk := os.read(info, 4096):
        text += chunk
    return int(loads(text or b"{}").get("child-pid", 0))


def _pass_on(inside: int, number: int) -> None:
    for row in proctable.read_all().values():
        if inside and row.parent == inside:
            with suppress(ProcessLookupError):
                os.kill(row.pid, number)


def _outside(plan: Plan, inside: str) -> str:
    return os.path.join(plan.sockets, os.path.basename(inside))


def _hold(folders: Sequence[str]) -> None:
    """Keep git from removing a folder that is mounted: packing refs empties it. Git ignores names with a dot."""
    for folder in folders:
        os.close(os.open(os.path.join(folder, _MARK), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644))


def _release(folders: Sequence[str]) -> None:
    for folder in folders:
        with suppress(OSError):
            os.unlink(os.path.join(folder, _MARK))


def _remove_links(objects: str) -> None:
    """Remove links in the place of a folder of objects: what git writes there would land elsewhere."""
    for entry in os.scandir(objects) if os.path.isdir(objects) else ():
        if entry.is_symlink():
            os.unlink(entry.path)


if __name__ == "__main__":
    sys.exit(main())
