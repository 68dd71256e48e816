"""Processes with everything that they started: who is alive, what belongs to whom, and how to end all of it.

Agents start children in sessions of their own, and children outlive whoever started them. So a tree is found twice:
by descent, and by a mark in the environment that every child inherits.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

from rookery.base import call as calls
from rookery.processes import proctable
from rookery.processes.proctable import Identity as Identity

Mark = tuple[str, str]
"""A variable and its value, such as ("ROOKERY_SESSION", "ses_…")."""

_PATIENCE = 10.0
"""How long we try to kill, in seconds: only a process that hangs in the kernel takes longer."""
_PAUSE = 0.02
_STILLNESS = 0.5
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
    return _beneath([identity], proctable.read_all())


def marked(name: str, value: str) -> list[Identity]:
    """This user's processes whose environment holds NAME=VALUE, wherever they have gone."""
    found = (identify(pid) for pid in sorted(proctable.holding(name, value)))
    return [each for each in found if each is not None]


def end_tree(root: Identity | None, mark: Mark | None, grace: float, *, patience: float = _PATIENCE) -> list[Identity]:
    """End a process with all beneath it and all that carries the mark; gives what is left alive, normally nothing.

    The root is asked first, by interrupt and then by SIGTERM, and has `grace` seconds to clear up. What remains then
    is frozen, so that nothing forks away, and killed. This process and those above it are never touched; if they
    belong to the tree they are among what is left.
    """
    tree = _Tree(root, mark)
    if root is not None and grace > 0:
        _ask(root, tree, grace)
    deadline = time.monotonic() + patience
    while True:
        members = tree.members()
        targets = [each for each in members if each.pid not in tree.spared]
        if not targets or time.monotonic() > deadline:
            return members
        _freeze(tree, targets, deadline)
        for each in tree.targets():
            send(each, signal.SIGKILL)
        calls.sleep(_PAUSE)


def send(identity: Identity, number: int) -> bool:
    """Send a signal to this very process; False if it is gone."""
    if identity.pid <= 1:
        return False
    try:
        handle = os.pidfd_open(identity.pid)
    except (AttributeError, OSError):  # not on Linux, an old kernel, or gone
        handle = None
    try:
        if not is_alive(identity):
            return False
        if handle is None:
            os.kill(identity.pid, number)
        else:
            # The handle stays with the process that we looked at, even if it ends now and its number is given away.
            signal.pidfd_send_signal(handle, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


class _Tree:
    """What belongs to a tree, remembered: an orphan can no longer be found by descent."""

    def __init__(self, root: Identity | None, mark: Mark | None) -> None:
        self.mark = mark
        self.known: set[Identity] = set() if root is None else {root}
        self.spared = _self_and_above()

    def members(self) -> list[Identity]:
        """Everything of the tree that is alive now."""
        table = proctable.read_all()
        if self.mark is not None:
            self.known.update(_alive(proctable.holding(*self.mark), table))
        self.known = {each for each in self.known if _is_in(each, table)}
        self.known.update(_beneath(self.known, table))
        return sorted(self.known, key=lambda each: each.pid)

    def targets(self) -> list[Identity]:
        """The members that may be signalled."""
        return [each for each in self.members() if each.pid not in self.spared]


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


def _freeze(tree: _Tree, targets: list[Identity], deadline: float) -> None:
    """Stop everything, and look again until nothing new has appeared."""
    frozen: set[Identity] = set()
    while time.monotonic() <= deadline:
        fresh = [each for each in targets if each not in frozen]
        if not fresh:
            _await_stillness(targets)
            return
        for each in fresh:
            send(each, signal.SIGSTOP)
        frozen.update(fresh)
        targets = tree.targets()


def _await_stillness(targets: list[Identity]) -> None:
    """A stop is only asked for: what runs on another processor goes on until it notices."""
    deadline = time.monotonic() + _STILLNESS
    for each in targets:
        while time.monotonic() < deadline:
            row = proctable.read_one(each.pid)
            if row is None or row.identity != each or row.is_dead or row.is_stopped:
                break
            time.sleep(0.001)  # not to be interrupted: what is frozen must be killed


def _beneath(roots: Iterable[Identity], table: dict[int, proctable.Row]) -> list[Identity]:
    children: dict[int, list[proctable.Row]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row)
    roots = list(roots)
    seen = {each.pid for each in roots}
    queue = [each.pid for each in roots if _is_in(each, table)]
    found = []
    for pid in queue:
        for row in children.get(pid, ()):
            # What is meant to outlive its starter is no part of the tree, also where it became somebody's child.
            if row.pid not in seen and not proctable.is_apart(row.pid):
                seen.add(row.pid)
                queue.append(row.pid)
                if not row.is_dead:
                    found.append(row.identity)
    return found


def _alive(pids: Iterable[int], table: dict[int, proctable.Row]) -> list[Identity]:
    rows = (table.get(pid) or proctable.read_one(pid) for pid in pids)
    return [row.identity for row in rows if row is not None and not row.is_dead]


def _is_in(identity: Identity, table: dict[int, proctable.Row]) -> bool:
    row = table.get(identity.pid)
    return row is not None and row.identity == identity and not row.is_dead


def _self_and_above() -> set[int]:
    """The numbers that are never signalled: ours, those above us, and the system's own."""
    table = proctable.read_all()
    spared = {0, 1}
    pid = os.getpid()
    while pid not in spared:
        spared.add(pid)
        row = table.get(pid)
        pid = row.parent if row is not None else 0
    return spared
