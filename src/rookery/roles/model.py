"""Roles as data: what an agent of each kind is for, what it may do, and how it says that it is done.

Everything that is enforced (spawning, writing) and everything that a prompt says of it comes from here; which
operations a role may call is in `rights`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.config import layout
from rookery.roles.rights import permissions_of

STRICT, RELAXED, YOLO = "strict", "relaxed", "yolo"
PROFILES = (STRICT, RELAXED, YOLO)

NOTHING, SCOPE = "nothing", "scope"
"""What a role may write: nothing, or its worktree within its file scope."""


@dataclass(frozen=True, slots=True)
class Role(Record):
    """One kind of agent."""

    name: str
    purpose: str
    profile: str
    writes: str
    spawns: tuple[str, ...]
    """The roles of agents that it may sling."""
    ends_with: tuple[str, ...] = ("worker_done",)
    """The messages by which it says that its work is finished."""
    model: str = "default"
    aliases: tuple[str, ...] = ()
    runs_checks: bool = False
    """It may run the project's own tests although it writes nothing."""

    @property
    def needs(self) -> frozenset[str]:
        """The permissions that it has; an operation names the one that it needs."""
        return permissions_of(self.name)

    @property
    def can_spawn(self) -> bool:
        """True if it may sling agents."""
        return bool(self.spawns)


ROLES: dict[str, Role] = {
    role.name: role
    for role in (
        Role(
            "coordinator",
            "turns the goal into epics and tasks, slings leads, and lands what they hand over",
            STRICT,
            NOTHING,
            ("lead", "builder", "scout", "reviewer", "merger", "monitor"),
            aliases=("orchestrator",),
        ),
        Role(
            "lead",
            "breaks a task down, slings workers, answers them, and hands their work over",
            RELAXED,
            NOTHING,
            ("builder", "scout", "reviewer", "merger"),
            aliases=("supervisor",),
            runs_checks=True,
        ),
        Role(
            "builder",
            "does one task in its worktree and commits it",
            YOLO,
            SCOPE,
            (),
            aliases=("worker",),
        ),
        Role("scout", "finds out how things are and reports it", RELAXED, NOTHING, ()),
        Role(
            "reviewer",
            "checks a branch against its task and reports",
            RELAXED,
            NOTHING,
            (),
            runs_checks=True,
        ),
        Role(
            "merger",
            "lands branches and resolves what conflicts",
            RELAXED,
            SCOPE,
            (),
            ends_with=("worker_done", "merged", "merge_failed"),
        ),
        Role("monitor", "watches the others and tells when something is wrong", RELAXED, NOTHING, ()),
    )
}


def find_role(name: str) -> Role:
    """The role of that name or alias."""
    for role in ROLES.values():
        if name == role.name or name in role.aliases:
            return role
    raise InvalidInput(f"no role {name}", hint="one of " + ", ".join(ROLES))


def read_prompt(role: Role, root: str) -> str:
    """How the role works: the project's own text in `.rookery/roles/`, else Rookery's."""
    for folder in (layout.path(root, layout.ROLES), _PROMPTS):
        path = os.path.join(folder, f"{role.name}.md")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise LookupError(role.name)


_PROMPTS = os.path.join(os.path.dirname(__file__), "prompts")
