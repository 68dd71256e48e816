"""Operations on the checkout that the caller stands in. They need a repository, and no Rookery project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput, NoRepository
from rookery.base.record import Record
from rookery.ops.context import Context
from rookery.ops.operation import BRANCHES, CHECKOUTS, LONG_TEXT, PROCESS, Doc, Ref, Short, op
from rookery.vcs.model import FileDiff, LogEntry, Status

NONE = "none"


@dataclass(frozen=True, slots=True)
class Detected(Record):
    """Which version control is here; `kind` is git, jj or none."""

    kind: str
    root: str | None = None
    main_root: str | None = None
    branch: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Difference(Record):
    """What a checkout has that its base has not; `patch` only when it was asked for."""

    PRINTS = "files"
    base: str | None
    files: tuple[FileDiff, ...]
    patch: str | None = None


@dataclass(frozen=True, slots=True)
class Committed(Record):
    """A new commit, and the branch that it is on."""

    PRINTS = "commit"
    commit: str
    branch: str | None
    message: str


@op("vcs detect", needs="vcs.read", view="vcs.detect")
def detect(ctx: Context) -> Detected:
    """Say which version control is here, and which branch and commit.

    Outside a repository the kind is `none`; that is an answer, not an error.
    """
    try:
        vcs = ctx.vcs()
    except NoRepository:
        return Detected(NONE)
    return Detected(vcs.kind, vcs.root, vcs.main_root(), vcs.current_branch(), vcs.current_commit())


@op("vcs status", needs="vcs.read", view="vcs.status")
def status(ctx: Context) -> Status:
    """List what is changed in this checkout, untracked files included."""
    return ctx.vcs().status()


@op("vcs log", needs="vcs.read", view="vcs.log")
def log(ctx: Context, *, limit: Annotated[int, Short("n"), Doc("How many commits to list.")] = 20) -> list[LogEntry]:
    """List the newest commits of this checkout."""
    if limit < 1:
        raise InvalidInput(f"{limit} is not a number of commits", hint="give --limit 1 or more")
    return list(ctx.vcs().log(limit))


@op("vcs diff", needs="vcs.read", view="vcs.diff")
def diff(
    ctx: Context,
    base: Annotated[
        str | None, Ref(BRANCHES), Doc("A branch or commit to compare with; the last commit unless given.")
    ] = None,
    *,
    patch: Annotated[bool, Doc("Give the changed lines too.")] = False,
) -> Difference:
    """List the files that this checkout changed, uncommitted and untracked ones included.

    With a base that has gone on since, only what was done here counts.
    """
    vcs = ctx.vcs()
    return Difference(base, tuple(vcs.diff(base)), vcs.patch(base) if patch else None)


@op("vcs commit", needs="vcs.write", long=True, touches=PROCESS, owns=CHECKOUTS, view="vcs.commit")
def commit(ctx: Context, *, message: Annotated[str, LONG_TEXT, Short("m"), Doc("What the commit does.")]) -> Committed:
    """Commit everything that is changed in this checkout, untracked files included."""
    vcs = ctx.vcs()
    new = vcs.commit(message)
    return Committed(new, vcs.current_branch(), message)
