"""What the guard judges, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.ops.operation import Op
from rookery.roles.tools import ALL

ALLOW, DENY, ASK = "allow", "deny", "ask"


@dataclass(frozen=True, slots=True)
class Call(Record):
    """A tool that an agent wants to use, as its program describes it."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bounds(Record):
    """What an agent has of its own."""

    root: str
    """The project's main checkout."""
    worktree: str
    branch: str
    """The only branch that it may commit on."""
    base: str
    """The branch that it started from; empty if that is not known."""
    scope: tuple[str, ...] = ()
    """Globs, relative to the worktree, of what it may change; empty for all of it."""
    task_id: str | None = None
    agent: str = ""
    temp: tuple[str, ...] = ("/tmp", "/var/tmp")  # noqa: S108
    """Folders outside of the project that every agent may write to."""
    cwd: str = ""
    """The folder of the shell; the worktree if empty."""
    tools: tuple[str, ...] = (ALL,)
    """The tools of its role that it was slung with."""
    check_own: Callable[[Op, Mapping[str, Any], str, str], None] | None = None
    """Asks the state: raises, as `ownership.check_owned` does, if a call changes what is another's. Its arguments are
    the operation, its values, the folder and the reach. Without it, `rook` changes nothing that may have an owner."""


@dataclass(frozen=True, slots=True)
class Verdict(Record):
    """The answer. `rule` is a short name that stays the same; `hint` tells the agent what to do instead."""

    verdict: str
    reason: str
    hint: str = ""
    rule: str = ""
