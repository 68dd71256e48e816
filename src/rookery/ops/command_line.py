"""From words to values: the options that every command has, and the parameters of the chosen operation.

The command line and the guard, which judges the `rook` commands of agents, read words by the same parser.
"""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice, takewhile
from typing import Any, NoReturn

from rookery.base.call import current, stdout
from rookery.base.errors import UsageError
from rookery.base.record import Record
from rookery.ops.index import aliases_of
from rookery.ops.operation import FLAG, INTEGER, TEXT, Op, Param, declared

_LEAST_WIDTH = 40
_UNRECOGNIZED = "unrecognized arguments: "
"""How argparse begins what it says of words that nothing takes."""


@dataclass(frozen=True, slots=True)
class Globals(Record):
    """The options that every command has, before or after its name."""

    json: bool = False
    quiet: bool = False
    no_color: bool = False
    version: bool = False
    help: bool = False
    directory: str = ""
    config: dict[str, str] = field(default_factory=dict)


GLOBALS = (
    Param("json", "Print one JSON envelope.", kind=FLAG, default=False),
    Param("quiet", "Print only what the next command accepts: ids, names, paths.", kind=FLAG, default=False, short="q"),
    Param("no_color", "Print without colours.", kind=FLAG, default=False),
    Param("directory", "Run as if started in this folder.", short="C"),
    Param(
        "config", "Set a configuration KEY=VALUE for this command; can be given several times.", many=True, short="c"
    ),
)


def options_of(params: Iterable[Param]) -> dict[str, Param]:
    """The options among parameters, by each of the words for them."""
    options = {param.flag: param for param in params if not param.positional}
    return options | {f"-{param.short}": param for param in options.values() if param.short}


_BEFORE = options_of((*GLOBALS, Param("version", "", kind=FLAG), Param("help", "", kind=FLAG, short="h")))
"""The options that may stand before a command's name."""


class HelpAsked(Exception):
    """The words ask for help, and for nothing else."""


def read_globals(words: list[str]) -> tuple[Globals, list[str]]:
    """The options before the command's name, and the rest."""
    values: dict[str, Any] = {}
    config: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word, equals, value = rest.pop(0).partition("=")
        option = _BEFORE.get(word)
        if option is None:
            raise UsageError(f"no option {word} before a command", hint="`rook --help` shows the options")
        if option.kind == FLAG:
            values[option.name] = True
            continue
        if not equals and not rest:
            raise UsageError(f"{word} needs a value", hint="`rook --help` shows the options")
        value = value if equals else rest.pop(0)
        if option.many:
            config |= _read_setting(value)
        else:
            values[option.name] = value
    return Globals(**values, config=config), rest


def read_words(op: Op, words: list[str], before: Globals) -> tuple[dict[str, Any], Globals]:
    """Values for the operation's parameters, and the options of every command. Raises UsageError, or HelpAsked."""
    values = _parse(op, ["--help"] if before.help else words)
    config = dict(before.config)
    for text in values.pop("config") or ():
        config |= _read_setting(text)
    settings = before.replace(
        json=before.json or values.pop("json"),
        quiet=before.quiet or values.pop("quiet"),
        no_color=before.no_color or values.pop("no_color"),
        directory=values.pop("directory") or before.directory,
        config=config,
    )
    names = {param.name for param in op.params}
    return {name: value for name, value in values.items() if value is not None and name in names}, settings


def _read_setting(text: str) -> dict[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{text!r} is not KEY=VALUE", hint="for example -c tasks.lease=1h")
    return {key: value}


def _parse(op: Op, words: list[str]) -> dict[str, Any]:
    """The value of each option and parameter; None for those that the words leave out."""
    try:
        return vars(build_parser(op).parse_args(words))
    except UsageError as error:
        # `--blocked-by A B` is as good as `--blocked-by A --blocked-by B`, if not ambiguous. And argparse takes
        # no optional argument after an option, as in `nudge bee --json hello`.
        for greedy, again in ((True, words), (False, _options_first(op, words))):
            with suppress(UsageError):
                return vars(build_parser(op, greedy=greedy).parse_args(again))
        raise UsageError(error.message, hint=_in_quotes(op, words, error.message) or error.hint) from None


def _in_quotes(op: Op, words: list[str], problem: str) -> str:
    """How to write an option's value of several words, where the second of them is one that nothing takes."""
    refused = problem.removeprefix(_UNRECOGNIZED).split() if problem.startswith(_UNRECOGNIZED) else []
    known = options_of(param for param in op.params if param.kind == TEXT and not param.choices)
    for option, first, *rest in (words[at:] for at in range(len(words) - 2)):
        value = list(takewhile(refused.__contains__, rest))
        if option in known and value:
            return f'put a value of several words in quotes: {option} "{" ".join([first, *value])}"'
    return ""


def _options_first(op: Op, words: list[str]) -> list[str]:
    """The same words, with all arguments after the options."""
    known = options_of((*op.params, *GLOBALS))
    with_value = {word for word, param in known.items() if param.kind != FLAG}
    options, arguments = [], []
    rest = iter(words)
    for word in rest:
        if word == "--":
            arguments += [word, *rest]
        elif word == "-" or not word.startswith("-"):
            arguments.append(word)
        else:
            options += [word, *(islice(rest, 1) if word in with_value else ())]
    return [*options, *arguments]


@cache
def build_parser(op: Op, *, greedy: bool = False) -> argparse.ArgumentParser:
    """The parser of one operation."""
    parser = _Parser(
        prog=f"rook {op.name}",
        description=op.documentation,
        formatter_class=_formatter,
        allow_abbrev=False,
        add_help=False,
    )
    groups = {kind: parser.add_argument_group(kind) for kind in ("arguments", "options")}
    for param in op.params:
        _add(groups["arguments" if param.positional else "options"], param, greedy)
    common = parser.add_argument_group("options of every command")
    common.add_argument("-h", "--help", action=_Help, nargs=0, help="Show this help.")
    for param in GLOBALS:
        _add(common, param, False)
    return parser


def print_help(op: Op) -> None:
    """Print the help of one operation, its other words, and which other commands begin with its words."""
    stdout().write(build_parser(op).format_help())
    print_aliases(op.name)
    others = sorted(name for name in declared() if name.startswith(op.name + " "))
    if others:
        stdout().write("\n".join(["", "also:", *describe(declared()[name] for name in others), ""]))


def print_aliases(name: str) -> None:
    """Print the other words for a command or a group, if there are any."""
    aliases = [f"rook {alias}" for alias in aliases_of(name)]
    if aliases:
        stdout().write(f"\nalias: {', '.join(aliases)}\n")


def describe(operations: Iterable[Op]) -> list[str]:
    """A line for each operation, with what it does; a long one goes on under itself."""
    known = list(operations)
    room, width = _help_width(), max(len(op.name) for op in known)
    rows = [(f"  rook {op.name:<{width}}  ", op.summary) for op in known]
    return [
        textwrap.fill(text, room, initial_indent=name, subsequent_indent=" " * len(name), break_on_hyphens=False)
        for name, text in rows
    ]


def _add(parser: argparse._ActionsContainer, param: Param, greedy: bool) -> None:
    names = ([f"-{param.short}"] if param.short else []) + [param.flag]
    text = param.help.replace("%", "%%")
    if param.kind == FLAG:
        parser.add_argument(*names, dest=param.name, action="store_true", help=text)
        return
    more: dict[str, Any] = {"help": text}
    if param.kind == INTEGER:
        more["type"] = _whole_number
    if param.choices:
        more["type"] = partial(_choose, param)
        if param.value == param.name.upper():  # too many for the usage
            more["help"] = f"{text} One of: {', '.join(param.words)}."
    if param.positional:
        if param.many:
            more["nargs"] = "+" if param.required else "*"
        elif not param.required:
            more["nargs"] = "?"
        parser.add_argument(param.name, metavar=param.value, **more)
        return
    if param.many:
        more |= {"action": "extend", "nargs": "+"} if greedy else {"action": "append"}
    parser.add_argument(*names, dest=param.name, metavar=param.value, required=param.required, **more)


def _choose(param: Param, text: str) -> str:
    choice = param.choose(text)
    if choice is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(param.words)}")
    return choice


def _whole_number(text: str) -> int:
    number = int(text)
    if abs(number) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text} is too large")  # for a column of the database
    return number


def _formatter(prog: str) -> argparse.HelpFormatter:
    return _Formatter(prog, width=_help_width())


def _help_width() -> int:
    """Help is as wide as the caller's terminal."""
    call = current()
    columns = shutil.get_terminal_size().columns if call is None else call.size()[0]
    return max(columns, _LEAST_WIDTH) - 2


class _Formatter(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """The documentation, each of its paragraphs as wide as the terminal."""
        filled = ("\n".join(self._split_lines(part, width)) for part in text.split("\n\n"))
        return textwrap.indent("\n\n".join(filled), indent)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class _Help(argparse.Action):
    def __call__(self, *_: object) -> NoReturn:
        raise HelpAsked


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"`{self.prog} --help` shows how it is used")
