"""What we offer of the project's environment: look at it, and record another one. For people alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.environment import service, store
from rookery.environment.model import ADDED, CHANGED, CREDENTIAL, NOTHING, PLAIN, Change, compare, is_credential
from rookery.environment.service import Recorded
from rookery.environment.store import EnvironmentUnusable
from rookery.ops.context import Context
from rookery.ops.operation import PROCESS, Doc, op

SAME, MISSING = "same", "missing"


@dataclass(frozen=True, slots=True)
class Variable(Record):
    """One variable. The value of a credential is never told."""

    name: str
    kind: str
    """`plain` or `credential`."""
    value: str | None
    """Of a plain variable, as recorded."""
    length: int | None
    """Of a credential: how many characters its recorded value has."""
    shell: str
    """The same variable in your shell now: `same`, `changed`, `missing`; `added` if only your shell has it."""


@dataclass(frozen=True, slots=True)
class ProjectEnvironment(Record):
    """What is recorded, and how your shell differs from it."""

    path: str
    credentials_path: str
    """Where the values of credentials are; empty if there are none."""
    at: str | None
    """Since when; None if nothing that can be used is recorded."""
    by: str | None
    how: str | None
    problem: str
    """Why the record cannot be used, so that no turn or gate begins; empty if it can be."""
    hint: str
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Refreshed(Record):
    """What was recorded, or would be."""

    changes: tuple[Change, ...]
    path: str
    credentials_path: str
    dry_run: bool
    problem: str
    """Why the earlier record could not be read."""


@op("env show", needs="environment.read", long=True, view="environment.show")
def show(ctx: Context) -> ProjectEnvironment:
    """Show the environment that agents and gates get, and how your shell differs from it.

    Values of credentials are not shown, only that they are set. `missing` is what your shell does not have, `added`
    what only your shell has: agents do not get that before `rook env refresh`, or the next `rook sling`.
    """
    shell = service.read_shell()
    problem = hint = ""
    try:
        stored = store.read(ctx.root)
    except EnvironmentUnusable as error:
        stored, problem, hint = None, error.message, error.hint
    else:
        if stored is None:
            problem, hint = "nothing is recorded yet", EnvironmentUnusable.default_hint
    recorded = NOTHING if stored is None else stored.variables
    differs = {each.name: each.what for each in compare(recorded, shell)}
    words = {ADDED: ADDED, CHANGED: CHANGED}
    variables = []
    for name in sorted(recorded.whole.keys() | shell.whole.keys()):
        value = recorded.whole.get(name)
        kind = recorded.kind(name) if value is not None else shell.kind(name)
        if value is not None and is_credential(name, value):
            kind = CREDENTIAL  # an earlier version may have taken it for plain
        variables.append(
            Variable(
                name,
                kind,
                value if kind == PLAIN else None,
                len(value) if kind == CREDENTIAL and value is not None else None,
                words.get(differs[name], MISSING) if name in differs else SAME,
            )
        )
    return ProjectEnvironment(
        path=store.record_path(ctx.root),
        credentials_path="" if stored is None else stored.credentials_path,
        at=None if stored is None else stored.at,
        by=None if stored is None else stored.by,
        how=None if stored is None else stored.how,
        problem=problem,
        hint=hint,
        variables=tuple(variables),
    )


@op(
    "env refresh",
    needs="environment.write",
    long=True,
    touches=PROCESS,
    owns="nothing",
    view="environment.refreshed",
)
def refresh(
    ctx: Context,
    *,
    only: Annotated[tuple[str, ...], Doc("A variable; the others stay as they are recorded.")] = (),
    dry_run: Annotated[bool, Doc("Only say what would change.")] = False,
) -> Refreshed:
    """Record the environment of your shell for agents and gates, as it is: what it does not have is dropped.

    `rook sling` does that too, but never drops a credential. A turn that runs already keeps what it has.
    """
    names = tuple(each for text in only for each in text.split(",") if each)
    for name in names:
        _check_name(ctx, name)
    done: Recorded = service.refresh(ctx.root, ctx.now(), names, dry_run=dry_run)
    path = store.record_path(ctx.root)
    if not dry_run:
        ctx.react()  # turns may have waited for it
    return Refreshed(done.changes, path, done.credentials_path, dry_run, done.problem)


def _check_name(ctx: Context, name: str) -> None:
    """Raise InvalidInput for a name that is neither recorded nor in the shell: it is mistyped, or never kept."""
    try:
        stored = store.read(ctx.root)
    except EnvironmentUnusable:
        stored = None
    known = service.read_shell().whole.keys() | (set() if stored is None else stored.variables.whole.keys())
    if name not in known:
        raise InvalidInput(
            f"{name} is neither recorded nor a variable of your shell that is kept",
            hint="`rook env show` lists the names; what belongs to one terminal or shell is never kept",
        )
