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
from rookery.roles.rights import reach_of, refuse


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


def explain(role: Role, profile: str) -> Explanation:
    """What the guard says to an agent of that role."""
    writes = role.can_write
    checks = Point("the project's own tests and checks", ("pytest", "npm test", "cargo test", "make check", "…"))
    reaching = (
        Point("tools that reach beyond the project, and other programs' MCP tools", _sorted(tools.OUTSIDE)),
        Point("programs that use the network, and containers", _sorted(programs.NETWORK | programs.CONTAINERS)),
    )
    allowed, asked, denied = list(_allowed(writes)), list[Point](), list(_denied(role, writes))
    by_profile = {STRICT: denied, RELAXED: asked}.get(profile, allowed)
    by_profile += reaching
    if writes:
        unknown = Point("other programs, and what they do inside is the sandbox's business", ("python", "node", "make"))
        (asked if profile == STRICT else allowed).append(unknown)
        allowed.append(checks)
    elif role.runs_checks:
        (asked if profile == STRICT else allowed).append(checks)
    else:
        by_profile.append(checks)
    return Explanation(role.name, profile, tuple(allowed), tuple(asked), tuple(denied))


def _allowed(writes: bool) -> tuple[Point, ...]:
    reading = (
        Point("reading every file but secrets", _sorted(tools.READERS)),
        Point("programs that only read", _sorted(programs.PLAIN | programs.CAREFUL.keys())),
        Point("git that only reads", _sorted(READS)),
        Point("tools of its own session", _sorted(tools.HARMLESS)),
        Point("`rook`, as far as its permissions go"),
        Point("writing to temporary folders"),
    )
    if not writes:
        return reading
    return (
        *reading,
        Point("writing in its worktree, within its file scope", _sorted(tools.WRITERS)),
        Point("git on its own branch, and taking in the base", _sorted(WRITES)),
    )


def _denied(role: Role, writes: bool) -> tuple[Point, ...]:
    operations = load_all()
    refused = [each.name for each in operations if refuse(role, each, as_command=True)]
    owned = [each.name for each in operations if each.owns and reach_of(role, each.needs) not in ("", ANY)]
    beyond = "what is not its own" + (" or under it" if role.can_spawn else "")
    reading = (
        Point("changing any file of the repository, by tool or command", _sorted(tools.WRITERS)),
        Point("git that changes anything", _sorted(WRITES)),
        Point("programs that are not known only to read"),
    )
    missing = [each for each in sorted(tools.USABLE) if not tools.has_tool(role.tools, each)]
    return (
        *((Point("tools that the role does not have", tuple(missing)),) if missing else ()),
        *(() if writes else reading),
        Point("writing outside of the worktree and the scope"),
        Point("what steers agents and version control", _sorted(ANYWHERE | AT_THE_TOP)),
        Point("secrets", (*(f"~/{each}" for each in secret_paths.IN_HOME), *secret_paths.OF_THE_SYSTEM)),
        Point("tools of the agent program that go around Rookery", _sorted(tools.FORBIDDEN)),
        Point("git beyond the own branch", _sorted(DENIED)),
        Point("programs", _sorted(programs.FORBIDDEN)),
        Point("`rook` commands", tuple(refused)),
        *((Point(f"`rook` commands on {beyond}", tuple(owned)),) if owned else ()),
        Point("its identity: setting or unsetting ROOKERY_*"),
        Point("waiting in a loop, and sleeping"),
        Point("commands that cannot be read for sure before they run"),
    )


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
