"""Processes with everything that they started: which are alive, what belongs to which, and how to end all of it.

Agents start children in sessions of their own, and children outlive their starters. So we look for a tree in two ways:
by descent, and by a mark in the environment that every child inherits.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

from rookery.base import call as calls
from rookery.processes import proctable
from rookery.processes.process import open_pidfd
from rookery.processes.proctable import Identity as Identity

Mark = tuple[str, str]
"""A variable and its value, such as ("ROOKERY_SESSION", "ses_…")."""

_PATIENCE = 10.0
"""How long we try to kill, in seconds: only a process that hangs in the kernel takes longer."""
_PAUSE = 0.02
_STOP_SECONDS = 0.5
_LOOK_AGAIN = 0.25


def identify(pid: int) -> Identity | None:
    """The process of that number, if one is alive."""
    row = proctable.read_one(pid) if pid > 0 else None
    return None if row is None or row.is_dead else row.identity


def is_alive(identity: Identity) -> bool:
    """True if this very process is running; one that only waits to be collected is dead."""
    return identify(identity.pid) == identity


def descendants(identity: Identity) -> list[Identity]:
    """Everything alive that the process started, and what that started, parents first."""
    return _descendants([identity], proctable.read_all())


def marked(name: str, value: str) -> list[Identity]:
    """This user's processes whose environment holds NAME=VALUE, whatever their parents, groups and sessions."""
    processes = (identify(pid) for pid in sorted(proctable.pids_with(name, value)))
    return [process for process in processes if process is not None]


def used_memory(root: Identity, mark: Mark, enough: int) -> int:
    """How many bytes of memory a process, its descendants and all that carries the mark have; 0 without `/proc`.

    What several of them share counts once, unless even with it counted for each they have less than `enough`.
    """
    pids = [process.pid for process in _Tree(root, mark).members()]
    used = sum(proctable.resident_memory(pid) for pid in pids)
    return used if used < enough else sum(proctable.own_memory(pid) for pid in pids)


def end_tree(root: Identity | None, mark: Mark | None, grace: float, *, patience: float = _PATIENCE) -> list[Identity]:
    """End a process with its descendants and all that carries the mark; returns what is still alive, normally nothing.

    First the root gets an interrupt, then SIGTERM, and has `grace` seconds to clean up. Then we freeze what remains, so
    that nothing forks away, and kill it. We never signal this process and those above it; if they belong to the tree,
    the result contains them.
    """
    tree = _Tree(root, mark)
    if root is not None and grace > 0:
        _ask(root, tree, grace)
    deadline = time.monotonic() + patience
    while True:
        members = tree.members()
        if not tree.targets(members) or time.monotonic() > deadline:
            return members
        _freeze(tree, deadline)
        for process in tree.targets():
            send(process, signal.SIGKILL)
        calls.sleep(_PAUSE)


def send(identity: Identity, number: int) -> bool:
    """Send a signal to this very process; False if it is gone."""
    if identity.pid <= 1:
        return False
    handle = open_pidfd(identity.pid)
    try:
        if not is_alive(identity):
            return False
        if handle is None:
            os.kill(identity.pid, number)
        else:
            # The handle stays with the process that we looked at, even if it ends now and its number is reused.
            signal.pidfd_send_signal(handle, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


class _Tree:
    """What belongs to a tree, remembered: descent no longer leads to an orphan."""

    def __init__(self, root: Identity | None, mark: Mark | None) -> None:
        self.mark = mark
        self.known: set[Identity] = set() if root is None else {root}
        self.spared = {0, 1, *proctable.lineage(os.getpid())}
        """The numbers that are never signalled: ours, those above us, and the system's own."""

    def members(self) -> list[Identity]:
        """Everything of the tree that is alive now."""
        if self.mark is not None:
            self.known.update(marked(*self.mark))
        table = proctable.read_all()
        self.known = {process for process in self.known if _is_in(process, table)}
        self.known.update(_descendants(self.known, table))
        return sorted(self.known, key=lambda process: process.pid)

    def targets(self, members: list[Identity] | None = None) -> list[Identity]:
        """The members that may be signalled."""
        members = self.members() if members is None else members
        return [process for process in members if process.pid not in self.spared]


def _ask(root: Identity, tree: _Tree, grace: float) -> None:
    """Interrupt the root, later terminate it; return when it has ended or the time is over."""
    if root.pid in tree.spared:
        return
    begun = looked = time.monotonic()
    tree.members()
    # Some programs end their own children on an interrupt, and leave them behind on SIGTERM.
    send(root, signal.SIGINT)
    is_terminated = False
    while is_alive(root):
        now = time.monotonic()
        if now - begun >= grace:
            return
        if not is_terminated and now - begun >= grace / 2:
            is_terminated = send(root, signal.SIGTERM)
        if now - looked >= _LOOK_AGAIN:
            tree.members()
            looked = now
        calls.sleep(_PAUSE)


def _freeze(tree: _Tree, deadline: float) -> None:
    """Stop everything, and look again until nothing new has appeared."""
    frozen: set[Identity] = set()
    while time.monotonic() <= deadline:
        targets = tree.targets()
        if frozen.issuperset(targets):
            _await_stop(targets)
            return
        for process in targets:
            if process not in frozen:
                send(process, signal.SIGSTOP)
        frozen.update(targets)


def _await_stop(targets: list[Identity]) -> None:
    """Wait until all are stopped: what runs on another processor goes on until it notices the signal."""
    deadline = time.monotonic() + _STOP_SECONDS
    for process in targets:
        while time.monotonic() < deadline:
            row = proctable.read_one(process.pid)
            if row is None or row.identity != process or row.is_dead or row.is_stopped:
                break
            time.sleep(0.001)  # no interrupt may end this: what is frozen must be killed


def _descendants(roots: Iterable[Identity], table: dict[int, proctable.Row]) -> list[Identity]:
    children: dict[int, list[proctable.Row]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row)
    roots = list(roots)
    seen = {root.pid for root in roots}
    queue = [root.pid for root in roots if _is_in(root, table)]
    descendants = []
    for pid in queue:
        for row in children.get(pid, ()):
            # What was started to outlive its starter is no part of the tree, also where a subreaper adopted it.
            if row.pid not in seen and not proctable.outlives_starter(row.pid):
                seen.add(row.pid)
                queue.append(row.pid)
                if not row.is_dead:
                    descendants.append(row.identity)
    return descendants


def _is_in(identity: Identity, table: dict[int, proctable.Row]) -> bool:
    row = table.get(identity.pid)
    return row is not None and row.identity == identity and not row.is_dead
