"""The task graph once more, in plain dictionaries and the plainest loops, written from its documentation.

Every step either changes the dictionaries or raises `No` with the code that is expected.
"""

from __future__ import annotations

import copy
from typing import Any

UNFINISHED = ("PENDING", "IN_PROGRESS", "PENDING_REVIEW", "NEEDS_REBASE", "APPROVED", "AWAITING_HUMAN_REVIEW", "FAILED")


class No(Exception):
    """The step is refused with this code."""


class Reference:
    """What the project should hold."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self.edges: set[tuple[str, str]] = set()
        """Task and blocker."""
        self.learnings: list[tuple[str, str, str | None]] = []
        """Task, words and source, in the order of adding."""

    def copy(self) -> Reference:
        """A copy on which a step can be tried."""
        return copy.deepcopy(self)

    # What follows from the places.

    def above(self, task: str) -> list[str]:
        line = []
        while self.tasks[task]["parent"] is not None:
            task = self.tasks[task]["parent"]
            line.append(task)
        return line

    def line(self, task: str) -> list[str]:
        return [task, *self.above(task)]

    def children(self, task: str | None) -> list[str]:
        children = [child for child, entry in self.tasks.items() if entry["parent"] == task]
        return sorted(children, key=self.order)

    def descendants(self, task: str) -> list[str]:
        return [other for other in self.tasks if task in self.above(other)]

    def order(self, task: str) -> tuple[Any, ...]:
        return (self.tasks[task]["priority"], self.tasks[task]["created"], task)

    def walk(self, task: str | None = None) -> list[str]:
        """Depth first: a task before its children, urgent first, then old first."""
        own = [] if task is None else [task]
        return own + [descendant for child in self.children(task) for descendant in self.walk(child)]

    def state(self, task: str) -> str:
        return str(self.tasks[task]["state"])

    def is_finished(self, task: str) -> bool:
        return self.state(task) not in UNFINISHED

    def is_blocked(self, task: str) -> bool:
        return any(self.state(blocker) != "COMPLETED" for blocked, blocker in self.edges if blocked == task)

    def is_open_parent(self, task: str) -> bool:
        return any(not self.is_finished(child) and not self.tasks[child]["archived"] for child in self.children(task))

    def is_available(self, task: str, now: float) -> bool:
        lease = self.tasks[task]["lease"]
        lapsed = self.state(task) == "IN_PROGRESS" and lease is not None and lease <= now
        return self.state(task) == "PENDING" or lapsed

    def is_held(self, task: str, now: float) -> bool:
        return self.state(task) == "IN_PROGRESS" and not self.is_available(task, now)

    def is_ready(self, task: str, now: float) -> bool:
        if self.tasks[task]["archived"] or not self.is_available(task, now) or self.is_open_parent(task):
            return False
        if any(self.is_blocked(ancestor) for ancestor in self.line(task)):
            return False
        return all(
            self.state(ancestor) in ("PENDING", "IN_PROGRESS") and not self.tasks[ancestor]["archived"]
            for ancestor in self.above(task)
        )

    def next_ready(self, now: float, root: str | None = None) -> str | None:
        return next((task for task in self.walk(root) if self.is_ready(task, now)), None)

    def has_circle(self) -> bool:
        """True if some beginning or finishing has to come before itself."""
        needs: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for task, entry in self.tasks.items():
            needs.setdefault(("F", task), set()).add(("B", task))
            needs.setdefault(("B", task), set())
            if entry["parent"] is not None:
                needs.setdefault(("F", entry["parent"]), set()).add(("F", task))
                needs[("B", task)].add(("B", entry["parent"]))
        for task, blocker in self.edges:
            needs[("B", task)].add(("F", blocker))
        while True:
            free = {node for node, others in needs.items() if not others}
            if not free:
                return bool(needs)
            needs = {node: others - free for node, others in needs.items() if node not in free}

    # Steps.

    def create(self, task: str, parent: str | None, priority: int, blockers: list[str], now: float) -> None:
        if parent is not None:
            if len(self.line(parent)) > 2:
                raise No("max_depth")
            self._check_open(parent)
        self.tasks[task] = {
            "parent": parent,
            "priority": priority,
            "created": now,
            "state": "PENDING",
            "assignee": None,
            "lease": None,
            "attempts": 0,
            "archived": False,
        }
        for blocker in blockers:
            self.block(task, blocker)

    def move(self, task: str, parent: str | None) -> None:
        if parent is None:
            self.tasks[task]["parent"] = None
            return
        if task in self.line(parent):
            raise No("parent_cycle")
        height = max(
            (len(self.above(descendant)) for descendant in self.descendants(task)), default=len(self.above(task))
        )
        if len(self.line(parent)) + height - len(self.above(task)) > 2:
            raise No("max_depth")
        if not self.is_finished(task):
            self._check_open(parent)
        self.tasks[task]["parent"] = parent
        if any(self._are_kin(one, other) for one, other in self.edges):
            raise No("invalid_relation")
        if self.has_circle():
            raise No("blocker_cycle")

    def block(self, task: str, blocker: str) -> None:
        if (task, blocker) in self.edges:
            return
        if task == blocker:
            raise No("blocker_cycle")
        if self._are_kin(task, blocker):
            raise No("invalid_relation")
        self.edges.add((task, blocker))
        if self.has_circle():
            raise No("blocker_cycle")

    def unblock(self, task: str, blocker: str | None) -> None:
        if blocker is None:
            self.edges = {edge for edge in self.edges if edge[0] != task}
        elif (task, blocker) in self.edges:
            self.edges.remove((task, blocker))
        else:
            raise No("blocker_not_found")

    def begin(self, task: str, agent: str, lease: float | None) -> None:
        entry = self.tasks[task]
        entry.update(state="IN_PROGRESS", assignee=agent, lease=lease, attempts=entry["attempts"] + 1)

    def renew(self, task: str, agent: str, lease: float) -> None:
        if self.state(task) != "IN_PROGRESS":
            raise No("invalid_state")
        self._check_holder(task, agent)
        self.tasks[task]["lease"] = lease

    def release(self, task: str, agent: str) -> None:
        if self.state(task) != "IN_PROGRESS":
            raise No("invalid_state")
        self._check_holder(task, agent)
        self._put(task, "PENDING")

    def complete(self, task: str, agent: str, attempt: int | None, learned: list[str], now: float) -> None:
        if self.state(task) not in ("PENDING", "IN_PROGRESS", "APPROVED", "AWAITING_HUMAN_REVIEW"):
            raise No("invalid_state")
        if attempt is not None and attempt != self.tasks[task]["attempts"]:
            raise No("already_claimed")
        self._check_holder(task, agent)
        if self.is_open_parent(task):
            raise No("pending_children")
        if any(self.is_blocked(ancestor) for ancestor in self.line(task)):
            raise No("not_ready")
        for words in learned:
            self.learn(task, words, None)
        self._finish(task)
        self._bubble(task, now)

    def reopen(self, task: str) -> None:
        if self.state(task) not in ("COMPLETED", "CANCELLED", "FAILED"):
            raise No("invalid_state")
        if any(self.tasks[ancestor]["archived"] for ancestor in self.line(task)):
            raise No("invalid_state")
        if any(self.state(ancestor) == "CANCELLED" for ancestor in self.above(task)):
            raise No("invalid_state")
        self._put(task, "PENDING")
        for ancestor in self.above(task):
            if self.state(ancestor) == "COMPLETED":
                self._put(ancestor, "PENDING")

    def cancel(self, task: str, now: float) -> None:
        if self.is_finished(task):
            raise No("invalid_state")
        for member in (task, *self.descendants(task)):
            if not self.is_finished(member):
                self._put(member, "CANCELLED")
        self._bubble(task, now)

    def fail(self, task: str, agent: str) -> None:
        if self.is_finished(task) or self.state(task) == "FAILED":
            raise No("invalid_state")
        self._check_holder(task, agent)
        self._put(task, "FAILED")

    def archive(self, task: str) -> None:
        if not self.is_finished(task) or self.tasks[task]["archived"]:
            raise No("invalid_state")
        for member in (task, *self.descendants(task)):
            self.tasks[member]["archived"] = True

    def unarchive(self, task: str) -> None:
        if not self.tasks[task]["archived"] or any(self.tasks[ancestor]["archived"] for ancestor in self.above(task)):
            raise No("invalid_state")
        for member in (task, *self.descendants(task)):
            self.tasks[member]["archived"] = False

    def delete(self, task: str, force: bool, now: float) -> None:
        gone = [task, *self.descendants(task)]
        if not force and any(self.is_held(member, now) for member in gone):
            raise No("invalid_state")
        for member in gone:
            del self.tasks[member]
        self.edges = {edge for edge in self.edges if not set(edge) & set(gone)}
        self.learnings = [learning for learning in self.learnings if learning[0] not in gone]

    def learn(self, task: str, words: str, source: str | None) -> None:
        if (task, words, source) not in self.learnings:
            self.learnings.append((task, words, source))

    def _check_open(self, parent: str) -> None:
        if self.is_finished(parent) or self.tasks[parent]["archived"]:
            raise No("invalid_state")

    def _check_holder(self, task: str, agent: str) -> None:
        if agent != "human" and self.tasks[task]["assignee"] not in (None, agent):
            raise No("already_claimed")

    def _are_kin(self, one: str, other: str) -> bool:
        return one in self.above(other) or other in self.above(one)

    def _put(self, task: str, state: str) -> None:
        self.tasks[task].update(state=state, assignee=None, lease=None)

    def _finish(self, task: str) -> None:
        self.tasks[task].update(state="COMPLETED", lease=None)
        parent = self.tasks[task]["parent"]
        for owner, words, source in list(self.learnings):
            if owner == task and parent is not None:
                self.learn(parent, words, source or task)

    def _bubble(self, task: str, now: float) -> None:
        for parent in self.above(task):
            states = [self.state(child) for child in self.children(parent)]
            idle = self.state(parent) in ("PENDING", "IN_PROGRESS") and not self.is_held(parent, now)
            waits = any(self.is_blocked(ancestor) for ancestor in self.line(parent))
            if not idle or waits or self.is_open_parent(parent) or "COMPLETED" not in states:
                return
            self._finish(parent)
