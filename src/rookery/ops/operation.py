"""The declaration of an operation. The command line, the reference and the completions derive from it.

    @op("task get", arg("task", "The task."), needs="task.read", view="tasks.one")
    def get(ctx: Context, task: str) -> Task:
        '''Show one task with its context and learnings.'''
        return service.get(ctx.db, task)

The docstring is the documentation: its first line is the summary. `needs` names the permission, and a permission
that ends in `.read` promises that nothing is changed. `owns` says what else it changes that may be somebody's: it maps
the parameter that names it to its kind. Every operation that changes something declares it, `owns={}` if nothing is
anybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rookery.base.record import Record
from rookery.ops.context import Context

Handler = Callable[..., Any]

TEXT = "text"
INTEGER = "integer"
FLAG = "flag"
PATH = "path"

TASKS = "task"
"""A task or epic, by its id."""
PLACES = "place"
"""Where a task is put: under another, or (left out, or `none`) at the root, where epics are."""
MOVES = "move"
"""The same, where leaving it out changes nothing."""
LEARNINGS = "learning"
AGENTS = "agent"
"""An agent, with its session, branch and worktree."""
BRANCHES = "branch"
"""A branch to land, or what has landed of it."""
MAIL_GROUPS = "group"
"""A named group of mail."""
CHECKOUTS = "checkout"
"""The checkout that the caller stands in: if the flag is given, or always by the parameter `HERE`."""
HERE = ""


@dataclass(frozen=True, slots=True)
class Param(Record):
    """One parameter: positional or `--option`, with its type and what it means."""

    name: str
    help: str
    kind: str = TEXT
    positional: bool = False
    required: bool = False
    many: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    short: str = ""
    long_text: bool = False
    """The value may be long: on the command line `-` reads it from standard input."""
    acts_as: bool = False
    """It names who acts instead of the caller. People may name any; an agent only itself."""

    @property
    def flag(self) -> str:
        """How it is written on the command line."""
        return self.name if self.positional else "--" + self.name.replace("_", "-")


def arg(name: str, help: str, *, required: bool = True, many: bool = False, **more: Any) -> Param:
    """A positional parameter."""
    return Param(name, help, positional=True, required=required, many=many, default=() if many else None, **more)


def option(name: str, help: str, **more: Any) -> Param:
    """An `--option VALUE`."""
    return Param(name, help, **more)


def options(name: str, help: str, **more: Any) -> Param:
    """An `--option VALUE` that can be given several times."""
    return Param(name, help, many=True, default=(), **more)


def flag(name: str, help: str) -> Param:
    """An `--option` that is on or off."""
    return Param(name, help, kind=FLAG, default=False)


@dataclass(frozen=True, slots=True)
class Op(Record):
    """A declared operation."""

    name: str
    params: tuple[Param, ...]
    run: Handler
    needs: str
    view: str
    streams: bool = False
    """It gives its results one by one, and may go on until it is interrupted."""
    owns: Mapping[str, str] | None = None
    """What it changes that may be somebody's: the parameter that names it, and its kind."""

    @property
    def group(self) -> str:
        """The first word of its name."""
        return self.name.partition(" ")[0]

    @property
    def changes_state(self) -> bool:
        """False if it only reads."""
        return not self.needs.endswith(".read")

    @property
    def summary(self) -> str:
        """One sentence for a list of commands."""
        return (self.run.__doc__ or "").strip().partition("\n")[0]

    @property
    def documentation(self) -> str:
        """The whole docstring, without its indentation."""
        first, _, rest = (self.run.__doc__ or "").strip().partition("\n")
        return first + "\n" + "\n".join(line.removeprefix("    ") for line in rest.splitlines())


_declared: dict[str, Op] = {}


def op(
    name: str,
    *params: Param,
    needs: str,
    view: str = "",
    streams: bool = False,
    owns: Mapping[str, str] | None = None,
) -> Callable[[Handler], Handler]:
    """Declare the function as an operation; it stays an ordinary function."""

    def declare(run: Handler) -> Handler:
        if name in _declared:
            raise ValueError(f"operation {name!r} is declared twice")
        _declared[name] = Op(name, params, run, needs, view, streams, owns)
        return run

    return declare


def declared() -> dict[str, Op]:
    """Every operation of the modules imported so far."""
    return _declared


def call(ctx: Context, operation: Op, values: dict[str, Any]) -> Any:
    """Run an operation with values for its parameters; what is missing takes its default."""
    return operation.run(ctx, **{p.name: values.get(p.name, p.default) for p in operation.params})
