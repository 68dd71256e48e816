"""From words to values: the options that every command has, and a parser for the chosen operation alone."""

from __future__ import annotations

import argparse
import sys

from rookery.base.errors import UsageError
from rookery.base.record import Record
from rookery.ops.operation import FLAG, INTEGER, Op, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


class Globals(Record):
    """What holds for every command, before or after its name."""

    json: bool = False
    quiet: bool = False
    no_color: bool = False
    version: bool = False
    help: bool = False
    directory: str = ""
    config: dict[str, str] = {}


GLOBALS = (
    Param("json", "Print one JSON envelope.", kind=FLAG, default=False),
    Param("quiet", "Print ids only, or nothing.", kind=FLAG, default=False, short="q"),
    Param("no_color", "Print without colours.", kind=FLAG, default=False),
    Param("directory", "Run as if started in this folder.", short="C"),
    Param(
        "config", "Set a configuration KEY=VALUE for this command; can be given several times.", many=True, short="c"
    ),
)


def read_globals(words: list[str]) -> tuple[Globals, list[str]]:
    """The options before the command's name, and the rest."""
    found: dict[str, Any] = {"config": {}}
    position = 0
    while position < len(words) and words[position].startswith("-"):
        word, equals, value = words[position].partition("=")
        position += 1
        if word in ("--json", "--quiet", "-q", "--no-color", "--version", "--help", "-h"):
            name = {"-q": "quiet", "-h": "help"}.get(word, word[2:].replace("-", "_"))
            found[name] = True
            continue
        if word not in ("-C", "--directory", "-c", "--config"):
            raise UsageError(f"no option {word} before a command", hint="`rook --help` shows the options")
        if not equals:
            if position >= len(words):
                raise UsageError(f"{word} needs a value", hint="`rook --help` shows the options")
            value = words[position]
            position += 1
        if word in ("-C", "--directory"):
            found["directory"] = value
        else:
            found["config"] |= _setting(value)
    return Globals(**found), words[position:]


def parse_operation(op: Op, words: list[str], before: Globals) -> tuple[dict[str, Any], Globals]:
    """Values for the operation's parameters, and the options of every command."""
    if before.help:
        words = ["--help"]
    try:
        found = build_parser(op).parse_args(words)
    except UsageError:
        # `--blocked-by A B` is as good as `--blocked-by A --blocked-by B`, where it is not ambiguous.
        if not any(param.many and not param.positional for param in op.params):
            raise
        try:
            found = build_parser(op, greedy=True).parse_args(words)
        except UsageError:
            found = build_parser(op).parse_args(words)
    values = vars(found)
    config = dict(before.config)
    for text in values.pop("config") or ():
        config |= _setting(text)
    settings = before.replace(
        json=before.json or values.pop("json"),
        quiet=before.quiet or values.pop("quiet"),
        no_color=before.no_color or values.pop("no_color"),
        directory=values.pop("directory") or before.directory,
        config=config,
    )
    return _read_long_texts(op, {k: v for k, v in values.items() if v is not None}), settings


def build_parser(op: Op, *, greedy: bool = False) -> argparse.ArgumentParser:
    """The parser of one operation."""
    parser = _Parser(
        prog=f"rook {op.name}",
        description=op.documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    # Everything goes into groups: argparse asks a parser, but not a group, how wide the terminal is for every
    # argument, and loads shutil with three compressors for that.
    places = {kind: parser.add_argument_group(kind) for kind in ("arguments", "options")}
    for param in op.params:
        _add(places["arguments" if param.positional else "options"], param, greedy)
    common = parser.add_argument_group("options of every command")
    common.add_argument("-h", "--help", action="help", help="Show this help.")
    for param in GLOBALS:
        _add(common, param, False)
    return parser


def _add(parser: argparse._ActionsContainer, param: Param, greedy: bool) -> None:
    text = param.help.replace("%", "%%")
    if param.kind == FLAG:
        names = ([f"-{param.short}"] if param.short else []) + [param.flag]
        parser.add_argument(*names, dest=param.name, action="store_true", help=text)
        return
    more: dict[str, Any] = {"help": text}
    if param.kind == INTEGER:
        more["type"] = _whole_number
    if param.choices:
        more["choices"] = param.choices
    if param.positional:
        if param.many:
            more["nargs"] = "+" if param.required else "*"
        elif not param.required:
            more["nargs"] = "?"
        parser.add_argument(param.name, metavar=param.name.upper(), **more)
        return
    if param.many:
        more |= {"action": "extend", "nargs": "+"} if greedy else {"action": "append"}
    if not param.choices:
        more["metavar"] = "N" if param.kind == INTEGER else param.name.split("_")[-1].upper()
    names = ([f"-{param.short}"] if param.short else []) + [param.flag]
    parser.add_argument(*names, dest=param.name, required=param.required, **more)


def _whole_number(text: str) -> int:
    number = int(text)
    if abs(number) >= 1 << 63:  # more than a database can hold, or anybody mean
        raise argparse.ArgumentTypeError(f"{text} is too large")
    return number


def _setting(text: str) -> dict[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{text!r} is not KEY=VALUE", hint="for example -c tasks.lease=1h")
    return {key: value}


def _read_long_texts(op: Op, values: dict[str, Any]) -> dict[str, Any]:
    """Where a long text is `-`, it comes from standard input: an argument cannot hold a megabyte."""
    asking = [param.name for param in op.params if param.long_text and values.get(param.name) == "-"]
    if len(asking) > 1:
        raise UsageError(f"only one of {' and '.join(asking)} can come from standard input")
    for name in asking:
        try:
            values[name] = sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input is not UTF-8 (byte {error.start})") from error
    return values


# Rookery speaks English. argparse would look for translations of its own words, and load `locale` for that.
vars(argparse)["_"] = str


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"`{self.prog} --help` shows how it is used")
