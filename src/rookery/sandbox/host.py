"""The process outside the sandbox: starts the agent in it, serves it, passes signals on, and exits with its status.

`python … rookery.sandbox.host ROOT SESSION PLAN`, in the worktree, with the environment of the agent as it would
be without a sandbox: the token stays here. When this process dies, bubblewrap and everything in it die too.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from rookery.base.json import loads
from rookery.config.environ import confined_environ
from rookery.processes import proctable
from rookery.processes.python import module_command
from rookery.processes.spawning import exit_status, spawn
from rookery.processes.subreaper import adopt_orphans
from rookery.sandbox.housekeeping import Housekeeping
from rookery.sandbox.model import ALLOW, OPEN, PROXY, RELAY_PORT, ROOK, SOCKETS, Plan, build_environ, clear_sockets
from rookery.sandbox.proxy import Proxy

_PASSED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
_KEYS = (signal.SIGINT, signal.SIGQUIT)
_FROM_TERMINAL = 0x80  # SI_KERNEL: the whole group in the foreground got it, the agent too
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
    housekeeping = Housekeeping(plan.packed, plan.branch, plan.logs)
    try:
        housekeeping.begin()
        guest = import_module(_HELLO).Guest(session_id, env, plan.worktree)
        link = import_module(_LINK).Link(root, _outside(plan, ROOK), guest)
        link.open()
        if plan.network == ALLOW:
            Proxy(_outside(plan, PROXY), plan.allow, f"{path.removesuffix('.json')}.log").start()
        status = _run(plan, env)
        link.close()
        return status
    finally:
        housekeeping.end()
        _remove_links(os.path.join(os.path.dirname(plan.packed[0]), "objects"))
        clear_sockets(plan.sockets)


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
    if plan.network == ALLOW or plan.has_terminal:
        proxy = PROXY if plan.network == ALLOW else ""
        words += [*module_command("rookery.sandbox.relay"), str(RELAY_PORT), proxy]
    ignored = _KEYS if plan.has_terminal else ()
    for key in ignored:  # they reach bubblewrap as well, which would end with the agent in it; we wait for them blocked
        signal.signal(key, signal.SIG_IGN)
    environ = build_environ(env, plan.names, plan.home, plan.network)
    pid = spawn([*words, *plan.argv], env=environ, keep=(writer,), ignored=ignored)
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


def _remove_links(objects: str) -> None:
    """Remove links in the place of a folder of objects: what git writes there would land elsewhere."""
    for entry in os.scandir(objects) if os.path.isdir(objects) else ():
        if entry.is_symlink():
            os.unlink(entry.path)


if __name__ == "__main__":
    sys.exit(main())
