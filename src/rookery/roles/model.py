"""A role: what an agent of one kind is for, what it may do, and how it says that it is done. Pure.

Everything that is enforced and everything that a prompt says of it comes from here. Each role is a file: see `file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rookery.base.errors import Refused
from rookery.base.record import Record
from rookery.roles.tools import ALL

STRICT, RELAXED, YOLO = "strict", "relaxed", "yolo"
PROFILES = (STRICT, RELAXED, YOLO)
"""The stricter before the looser."""

NOTHING, SCOPE = "nothing", "scope"
"""What a role may write: nothing, or its worktree within its file scope."""


class RoleInvalid(Refused):
    """A role's file cannot be used."""

    code = "role_invalid"
    default_hint = "fix the file, or remove it; `rook doctor` checks it again"


@dataclass(frozen=True, slots=True)
class Role(Record):
    """One kind of agent."""

    name: str
    purpose: str
    profile: str
    writes: str
    slings: tuple[str, ...] = ()
    """The roles of agents that it may sling."""
    ends_with: tuple[str, ...] = ("worker_done",)
    """The messages by which it says that its work is finished."""
    model: str = ""
    runtime: str = ""
    """The model and the program that it uses; the configuration's if empty."""
    aliases: tuple[str, ...] = ()
    runs_checks: bool = False
    """It may run the project's own tests although it writes nothing."""
    tools: tuple[str, ...] = (ALL,)
    """The tools of its program that it may use."""
    rights: Mapping[str, str] = field(default_factory=dict)
    """Its permissions, and how far each reaches; an operation names the one that it needs."""
    prompt: str = ""
    """How it works, in Markdown."""

    @property
    def can_spawn(self) -> bool:
        """True if it may sling agents."""
        return bool(self.slings)

    @property
    def can_write(self) -> bool:
        """True if it may change files at all."""
        return self.writes != NOTHING

    @property
    def can_land(self) -> bool:
        """True if it lands branches itself: it may merge any branch into its own, and hands in none."""
        return "merge.write" in self.rights

    @property
    def groups(self) -> tuple[str, ...]:
        """The words for all agents of this role, as mail is addressed to them."""
        return tuple(f"{name}s" for name in (self.name, *self.aliases))
