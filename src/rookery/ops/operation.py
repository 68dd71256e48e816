"""The declaration of an operation: an ordinary typed function. Every interface derives from its signature.

    @op("task get", needs="task.read", view="tasks.one")
    def get(ctx: Context, task: Annotated[str, Ref(TASKS), Doc("The task's id.")]) -> TaskView:
        '''Show one task with its context and learnings.'''
        return service.get(ctx.db, task)

The docstring is the documentation: its first line is the summary. Parameters before `*` are positional on the command
line, those after it are `--options`; a trailing underscore in a name (`from_`) is not part of it. What the type cannot
say stands beside it in `Annotated`: the classes and marks below. The return type is the result's; an `Iterator` gives
its results one by one.

`needs` names the permission, and a permission that ends in `.read` promises that nothing is changed. An operation that
changes something says what may belong to another: by `Owns` at a parameter, or by `owns=NOTHING`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from keyword import iskeyword
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from rookery.base.page import Page
from rookery.base.record import Record
from rookery.ops.context import Context

Handler = Callable[..., Any]
Declared = TypeVar("Declared", bound=Handler)

TEXT = "text"
INTEGER = "integer"
FLAG = "flag"
PATH = "path"

READ = "read"
WRITE = "write"
"""It changes rows of the state, and nothing else."""
PROCESS = "process"
"""It may start processes and change files or refs as well."""

TASKS = "task"
"""A task or epic, by its id."""
PLACES = "place"
"""Where a task is put: under another, or (left out, or `none`) at the root, where epics are."""
MOVES = "move"
"""The same, where leaving it out changes nothing."""
LEARNINGS = "learning"
AGENTS = "agent"
"""An agent, with its session, branch and worktree."""
WORK = "work"
"""A task by its id, or by the name of the agent that worked on it last."""
BRANCHES = "branch"
"""A branch to land, or what has landed of it."""
MAIL_GROUPS = "group"
"""A named group of mail."""
CHECKOUTS = "checkout"
"""The checkout that the caller stands in: if the flag is given, or always by the parameter `HERE`."""
MERGES, RUNS, SETTINGS, CHECKS, GATES = "merge", "run", "setting", "check", "gate"
MESSAGES, ADDRESSES, ROLES, INBOX = "message", "address", "role", "inbox"
"""Other things that a parameter can name: completions list them."""
HERE = ""
NOTHING = "nothing"

_MOST_CHOICES = 40
_VALUES = {
    "since": "WHEN",
    "older_than": "AGE",
    **dict.fromkeys(("for", "lease", "timeout"), "TIME"),
    "from": "NAME",
    "onto": "BRANCH",
    **dict.fromkeys(
        ("body", "context", "description", "design", "instructions", "learning", "message", "result"), "TEXT"
    ),
    **dict.fromkeys(("reason", "outside"), "WHY"),
    "payload": "JSON",
    "only": "VARIABLE",
    "files": "PATTERN",
    "tools": "TOOL",
    "source": "TASK",
    "cursor": "ID",
    **dict.fromkeys(("directory", "practice", "worktree"), "FOLDER"),
    "config": "KEY=VALUE",
}
"""What stands for the value of an option in usage lines, where neither its name nor what it refers to says that."""
_VALUES_OF_KINDS = {
    **{kind: kind.upper() for kind in (TASKS, BRANCHES, RUNS, ROLES, MESSAGES)},
    AGENTS: "NAME",
    ADDRESSES: "NAME",
    CHECKS: "CATEGORY",
}


class Mark(Enum):
    """What a parameter is beside its type."""

    LONG_TEXT = "long text"
    """The value may be long: on the command line `-` reads it from standard input."""
    FILE = "file"
    """It is a path."""
    ACTS_AS = "acts as"
    """It names who acts instead of the caller. People may name any; an agent only itself."""
    FOLLOWS = "follows"
    """With it the operation goes on until it is interrupted."""


LONG_TEXT, FILE, ACTS_AS, FOLLOWS = Mark.LONG_TEXT, Mark.FILE, Mark.ACTS_AS, Mark.FOLLOWS


@dataclass(frozen=True, slots=True)
class Doc:
    """What a parameter means, in one sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Choices:
    """The only values that are accepted; on the command line in any case, and with `-`, `_` or a space."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Short:
    """A letter for the command line."""

    letter: str


@dataclass(frozen=True, slots=True)
class Ref:
    """It names something of this kind, so that completions can list what there is."""

    kind: str


@dataclass(frozen=True, slots=True)
class Owns:
    """The operation changes what it names, and that may belong to another agent."""

    kind: str


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
    names: str = ""
    """The kind of thing that it names, if it does."""
    marks: frozenset[Mark] = frozenset()

    @property
    def flag(self) -> str:
        """How it is written on the command line."""
        return self.name if self.positional else "--" + self.name.replace("_", "-")

    @property
    def words(self) -> tuple[str, ...]:
        """The choices as people type them: `in-progress` for `IN_PROGRESS`."""
        return tuple(choice.lower().replace("_", "-") if choice.isupper() else choice for choice in self.choices)

    @property
    def value(self) -> str:
        """What stands for its value in usage lines: the choices if there are few, else a word."""
        choices = ",".join(self.words)
        if choices and len(choices) <= _MOST_CHOICES:
            return f"{{{choices}}}"
        if self.positional or choices:
            return self.name.upper()
        if self.kind == INTEGER:
            return "N"
        word = _VALUES.get(self.name) or _VALUES_OF_KINDS.get(self.names)
        return word or ("FILE" if self.kind == PATH else self.name.upper())

    def choose(self, text: str) -> str | None:
        """The choice that a text means; None if it is no choice."""
        plain = _plain(text)
        return next((choice for choice in self.choices if _plain(choice) == plain), None)

    @property
    def long_text(self) -> bool:
        """True if it may come from standard input."""
        return LONG_TEXT in self.marks

    @property
    def acts_as(self) -> bool:
        """True if it names who acts."""
        return ACTS_AS in self.marks


@dataclass(frozen=True, slots=True, eq=False)
class Op(Record):
    """A declared operation."""

    name: str
    params: tuple[Param, ...]
    run: Handler
    result: Any
    """The type of its result; of each of its results if it streams."""
    needs: str
    view: str
    streams: bool = False
    """It gives its results one by one."""
    owns: Mapping[str, str] | None = None
    """What it changes that may belong to another: the parameter that names it, and its kind."""
    touches: str = WRITE
    long: bool = False
    """It may compute, wait or land, and gets a process of its own."""
    follows: bool = False
    """It goes on until it is interrupted, whatever it is given."""
    redraws: bool = False
    """While it follows, each result takes the place of the one before on a terminal."""
    waits: bool = False
    """It waits for its result: none when the time is up, and then its exit status is 1."""

    @property
    def group(self) -> str:
        """The first word of its name."""
        return self.name.partition(" ")[0]

    @property
    def changes_state(self) -> bool:
        """False if it only reads."""
        return self.touches != READ

    @property
    def pages(self) -> bool:
        """True if it gives a page, and takes the `next` of one as a cursor."""
        return get_origin(self.result) is Page

    @property
    def summary(self) -> str:
        """One sentence for a list of commands."""
        return self.documentation.partition("\n")[0]

    @property
    def documentation(self) -> str:
        """The whole docstring, without its indentation."""
        return inspect.cleandoc(self.run.__doc__ or "")


_declared: dict[str, Op] = {}


def op(
    name: str,
    *,
    needs: str,
    view: str = "",
    owns: str = "",
    touches: str = WRITE,
    long: bool = False,
    follows: bool = False,
    redraws: bool = False,
    waits: bool = False,
) -> Callable[[Declared], Declared]:
    """Declare the function as an operation; it stays an ordinary function."""

    def declare(run: Declared) -> Declared:
        if name in _declared:
            raise ValueError(f"operation {name!r} is declared twice")
        hints = get_type_hints(run, include_extras=True)
        params, owned = [], {}
        for parameter in list(inspect.signature(run).parameters.values())[1:]:
            param = _param(parameter, hints[parameter.name])
            params.append(param)
            if kind := _marker(hints[parameter.name], Owns):
                owned[param.name] = kind.kind
        if owns == CHECKOUTS:
            owned[HERE] = CHECKOUTS
        result = hints["return"]
        streams = get_origin(result) is Iterator
        _declared[name] = Op(
            name,
            tuple(params),
            run,
            get_args(result)[0] if streams else result,
            needs,
            view,
            streams,
            owned if owned or owns == NOTHING else None,
            READ if needs.endswith(".read") else touches,
            long,
            follows,
            redraws,
            waits,
        )
        return run

    return declare


def _param(declared: inspect.Parameter, hint: Any) -> Param:
    marks = frozenset(extra for extra in _extras(hint) if isinstance(extra, Mark))
    plain = _plain_type(hint)
    many = get_origin(plain) is tuple
    kind = {bool: FLAG, int: INTEGER}.get(get_args(plain)[0] if many else plain, TEXT)
    doc, choices, short = (_marker(hint, kind) for kind in (Doc, Choices, Short))
    names = _marker(hint, Owns) or _marker(hint, Ref)
    has_default = declared.default is not inspect.Parameter.empty
    return Param(
        declared.name.removesuffix("_"),
        doc.text if doc else "",
        PATH if FILE in marks else kind,
        declared.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD,
        not has_default,
        many,
        declared.default if has_default else () if many else None,
        choices.values if choices else (),
        short.letter if short else "",
        {PLACES: TASKS, MOVES: TASKS}.get(names.kind, names.kind) if names else "",
        marks,
    )


def _plain(choice: str) -> str:
    return choice.lower().replace("-", "_").replace(" ", "_")


def _extras(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _marker(hint: Any, kind: type[Any]) -> Any:
    """The last marker of a class: what stands outside of an alias counts."""
    return next((extra for extra in reversed(_extras(hint)) if isinstance(extra, kind)), None)


def _plain_type(hint: Any) -> Any:
    """The type without what stands beside it, and without `None`."""
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    parts = [part for part in get_args(bare) if part is not NoneType] if NoneType in get_args(bare) else []
    return parts[0] if len(parts) == 1 else bare


def declared() -> dict[str, Op]:
    """Every operation of the modules imported so far."""
    return _declared


def call(ctx: Context, operation: Op, values: Mapping[str, Any]) -> Any:
    """Run an operation with values for its parameters; what is missing takes its default."""
    arguments = {}
    for param in operation.params:
        value = values.get(param.name, param.default)
        arguments[param.name + "_" * iskeyword(param.name)] = tuple(value) if param.many else value
    return operation.run(ctx, **arguments)
