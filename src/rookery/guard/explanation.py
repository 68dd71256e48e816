"""What a role may and may not do, in words, from the same data by which calls are judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base import secret_paths
from rookery.base.record import Record
from rookery.guard.paths import ANYWHERE, AT_THE_TOP
from rookery.guard.programs import table as programs
from rookery.guard.programs.git import DENIED, READS, WRITES
from rookery.ops.index import load_all
from rookery.roles import tools
from rookery.roles.model import RELAXED, STRICT, Role
from rookery.roles.permissions import ANY
from rookery.roles.rights import may_call, reach_of


@dataclass(frozen=True, slots=True)
class Point(Record):
    """One thing that is allowed, asked or denied, with its examples."""

    what: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation(Record):
    """A role in a profile, as the guard sees it."""

    role: str
    profile: str
    allowed: tuple[Point, ...]
    asked: tuple[Point, ...]
    denied: tuple[Point, ...]


def explain_role(role: Role, profile: str) -> Explanation:
    """What the guard says to an agent of that role."""
    allowed, asked, denied = _allowed(role), list[Point](), _denied(role)
    checks = Point("the project's own tests and checks", ("pytest", "npm test", "cargo test", "make check", "…"))
    by_profile = {STRICT: denied, RELAXED: asked}.get(profile, allowed)
    by_profile += (
        Point("tools that reach beyond the project, and other programs' MCP tools", _sorted(tools.OUTSIDE)),
        Point("programs that use the network, and containers", _sorted(programs.NETWORK | programs.CONTAINERS)),
    )
    unless_strict = asked if profile == STRICT else allowed
    if role.can_write:
        unless_strict.append(Point("other programs; the sandbox bounds what they do", ("python", "node", "make")))
        allowed.append(checks)
    else:
        (unless_strict if role.runs_checks else by_profile).append(checks)
    return Explanation(role.name, profile, tuple(allowed), tuple(asked), tuple(denied))


def _allowed(role: Role) -> list[Point]:
    reading = [
        Point("reading every file but secrets", _sorted(tools.READERS)),
        Point("programs that only read", _sorted(programs.PLAIN | programs.CAREFUL.keys())),
        Point("git that only reads", _sorted(READS)),
        Point("tools of its own session", _sorted(tools.HARMLESS)),
        Point("`rook`, as far as its permissions go"),
        Point("writing to temporary folders"),
    ]
    writing = [
        Point("writing in its worktree, within its file scope", _sorted(tools.WRITERS)),
        Point("git on its own branch, and taking in the base", _sorted(WRITES)),
    ]
    return [*reading, *(writing if role.can_write else ())]


def _denied(role: Role) -> list[Point]:
    operations = load_all()
    refused = [op.name for op in operations if not may_call(role, op, as_command=True)]
    owned = [op.name for op in operations if op.owns and reach_of(role, op.needs) not in ("", ANY)]
    beyond = "what is not its own" + (" or under it" if role.can_spawn else "")
    writing = [
        Point("changing any file of the repository, by tool or command", _sorted(tools.WRITERS)),
        Point("git that changes anything", _sorted(WRITES)),
        Point("programs that are not known only to read"),
    ]
    missing = [tool for tool in tools.USABLE if not tools.has_tool(role.tools, tool)]
    return [
        *([Point("tools that the role does not have", _sorted(missing))] if missing else ()),
        *(() if role.can_write else writing),
        Point("writing outside of the worktree and the scope"),
        Point("what steers agents and version control", _sorted(ANYWHERE | AT_THE_TOP)),
        Point("secrets", (*(f"~/{path}" for path in secret_paths.IN_HOME), *secret_paths.OF_THE_SYSTEM)),
        Point("tools of the agent program that go around Rookery", _sorted(tools.FORBIDDEN)),
        Point("git beyond the own branch", _sorted(DENIED)),
        Point("programs", _sorted(programs.FORBIDDEN)),
        Point("`rook` commands", tuple(refused)),
        *([Point(f"`rook` commands on {beyond}", tuple(owned))] if owned else ()),
        Point("its identity: setting or unsetting ROOKERY_*"),
        Point("waiting in a loop, and sleeping"),
        Point("commands that cannot be read for sure before they run"),
    ]


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
