"""The process outside the sandbox: starts the agent in it, serves it, passes signals on, and ends with its status.

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

from rookery.base.call import sleep
from rookery.base.json import loads
from rookery.config.environ import confined_environ
from rookery.processes import proctable
from rookery.processes.inotify import MOVED_HERE, Watch, watch_folders
from rookery.processes.python import module_command
from rookery.processes.spawning import exit_status, spawn
from rookery.processes.subreaper import adopt_orphans
from rookery.sandbox.model import ALLOW, OPEN, PROXY, RELAY_PORT, ROOK, SOCKETS, Plan, clear_sockets

_PASSED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
_BY_TERMINAL = 0x80  # SI_KERNEL: the whole group in the foreground got it, the agent too
_MARK = ".rook"
_LOOK_AGAIN = 0.5
"""How often to look where nothing tells of files that change."""
# By name: they stand above us, and are another program to us.
_HELLO, _LINK = "rookery.daemon.hello", "rookery.daemon.link"


def main() -> int:
    """Run one agent, or one turn of it, in its sandbox."""
    adopt_orphans()  # what `rook` runs for the agent out here, such as a gate, is not a person's either
    root, session_id, path = sys.argv[1:4]
    plan = read_plan(path)
    env = confined_environ()
    if not env.get("ROOKERY_TOKEN"):
        raise LookupError("without an agent's token, `rook` would act for a person")
    # Before there is a second thread, so that every thread leaves them to `_attend`.
    signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED, signal.SIGCHLD})
    _make_room(plan.sockets)
    try:
        _hold(plan.holds)
        guest = import_module(_HELLO).Guest(session_id, env, plan.worktree)
        link = import_module(_LINK).Link(root, _outside(plan, ROOK), guest)
        link.open()
        if plan.network == ALLOW:
            from rookery.sandbox.proxy import Proxy

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
    """The copy of the packed refs that the agent sees. Whenever git packs refs, it is made again."""

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
                sleep(_LOOK_AGAIN)
            elif select.select([watch], [], [], _LOOK_AGAIN if has_failed else None)[0]:
                watch.read()
            try:
                self.refresh()
                has_failed = False
            except OSError:  # a full disk
                has_failed = True

    def refresh(self) -> None:
        """Copy the file if it is another one than last time: in place, because what is mounted is this very file."""
        try:
            found = os.stat(self._source)
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
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
    """What `wrap` wrote down."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        data = loads(file.read())
    lists = {name: tuple(data[name]) for name in ("cage", "argv", "packed", "holds", "allow", "passed")}
    return Plan(**(data | lists))


def _run(plan: Plan, env: Mapping[str, str]) -> int:
    """Start the agent from the main thread: the kernel ends bubblewrap when the thread that started it ends."""
    heard, told = os.pipe()
    words = [*plan.cage, "--ro-bind", plan.sockets, SOCKETS, "--info-fd", str(told), "--chdir", plan.worktree]
    if not plan.has_terminal:
        words.append("--new-session")
    if plan.network != OPEN:
        words.append("--unshare-net")
    pid = spawn([*words, "--", *_program(plan)], env=plan.environ(env), keep=(told,))
    os.close(told)
    return _attend(pid, heard)


def _program(plan: Plan) -> Sequence[str]:
    if plan.network != ALLOW:
        return plan.argv
    return (*module_command("rookery.sandbox.relay"), str(RELAY_PORT), PROXY, *plan.argv)


def _attend(pid: int, info: int) -> int:
    """Wait for the end, and pass on what we are asked to do."""
    inside = None
    while True:
        heard = signal.sigwaitinfo({*_PASSED, signal.SIGCHLD})
        if heard.si_signo == signal.SIGCHLD:
            status = exit_status(pid)
            if status is not None:
                return status
        elif heard.si_code != _BY_TERMINAL:
            inside = _read_first(info) if inside is None else inside
            _pass_on(inside, heard.si_signo)


def _read_first(info: int) -> int:
    """The number, out here, of the first process within: bubblewrap's own, which takes no signals."""
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


def _make_room(folder: str) -> None:
    """An empty folder for the sockets; a host that was killed may have left its own."""
    clear_sockets(folder)
    os.makedirs(folder, mode=0o700)


def _hold(folders: Sequence[str]) -> None:
    """Keep git from removing a folder that is mounted: packing refs empties it. Git overlooks names with a dot."""
    for each in folders:
        os.close(os.open(os.path.join(each, _MARK), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644))


def _release(folders: Sequence[str]) -> None:
    for each in folders:
        with suppress(OSError):
            os.unlink(os.path.join(each, _MARK))


def _remove_links(objects: str) -> None:
    """Where a link was put in the place of a folder of objects, whatever git writes would land elsewhere."""
    for entry in os.scandir(objects) if os.path.isdir(objects) else ():
        if entry.is_symlink():
            os.unlink(entry.path)


if __name__ == "__main__":
    sys.exit(main())
