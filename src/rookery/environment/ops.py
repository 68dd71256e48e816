"""What we offer of the project's environment: show it, and record another one. Only for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput
from rookery.base.record import Record
from rookery.config.project import database_path
from rookery.db import commits
from rookery.environment import service, store
from rookery.environment.model import CREDENTIAL, NOTHING, PLAIN, REMOVED, Variables, compare, is_credential
from rookery.environment.service import Refreshed
from rookery.environment.store import EnvironmentUnusable
from rookery.ops.context import Context
from rookery.ops.operation import PROCESS, Doc, op

SAME, MISSING = "same", "missing"


@dataclass(frozen=True, slots=True)
class Variable(Record):
    """One variable. The value of a credential is never shown."""

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


@op("env show", needs="environment.read", long=True, view="environment.show")
def show(ctx: Context) -> ProjectEnvironment:
    """Show the environment that agents and gates get, and how your shell differs from it.

    Values of credentials are not shown, only that they are set. `missing` is what your shell does not have, `added`
    what only your shell has: agents do not get that before `rook env refresh`, or the next `rook sling`.
    """
    shell = service.read_shell()
    stored, problem = service.try_to_read(ctx.root)
    if stored is None and problem is None:
        problem = EnvironmentUnusable("nothing is recorded yet")
    recorded = NOTHING if stored is None else stored.variables
    changes = {change.name: change.what for change in compare(recorded, shell)}
    return ProjectEnvironment(
        path=store.record_path(ctx.root),
        credentials_path=stored.credentials_path if stored else "",
        at=stored.at if stored else None,
        by=stored.by if stored else None,
        how=stored.how if stored else None,
        problem=problem.message if problem else "",
        hint=problem.hint if problem else "",
        variables=tuple(
            _describe(name, recorded, shell, changes.get(name, SAME))
            for name in sorted(recorded.whole.keys() | shell.whole.keys())
        ),
    )


def _describe(name: str, recorded: Variables, shell: Variables, change: str) -> Variable:
    in_shell = MISSING if change == REMOVED else change
    value = recorded.whole.get(name)
    if value is None:
        return Variable(name, shell.kind(name), None, None, in_shell)
    # An earlier version may have recorded a credential as plain.
    if recorded.kind(name) == CREDENTIAL or is_credential(name, value):
        return Variable(name, CREDENTIAL, None, len(value), in_shell)
    return Variable(name, PLAIN, value, None, in_shell)


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
    names = tuple(name for text in only for name in text.split(",") if name)
    if names:
        _check_names(ctx.root, names)
    refreshed = service.refresh(ctx.root, ctx.now(), names, dry_run=dry_run)
    if not dry_run:
        # Turns may have waited for the record: the loop looks again, here or in another process.
        commits.announce(database_path(ctx.root))
        ctx.react()
    return refreshed


def _check_names(root: str, names: tuple[str, ...]) -> None:
    """Raise InvalidInput for a name that is neither recorded nor in the shell: it is mistyped, or never kept."""
    stored = service.read_if_usable(root)
    known = service.read_shell().whole | (stored.variables.whole if stored else {})
    for name in names:
        if name not in known:
            raise InvalidInput(
                f"{name} is neither recorded nor a variable of your shell that is kept",
                hint="`rook env show` lists the names; what belongs to one terminal or shell is never kept",
            )
