"""Words that are not written the plain way: help, mistakes, lists, numbers with a sign. By argparse."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from rookery.base.call import current, stdout
from rookery.base.errors import UsageError
from rookery.ops.operation import FLAG, INTEGER, Op, Param, declared
from rookery.ops.options import GLOBALS, HelpAsked


def parse(op: Op, words: list[str]) -> dict[str, Any]:
    """The values that the words give; None for what is not given. Raises UsageError, or HelpAsked."""
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
    return vars(found)


def build_parser(op: Op, *, greedy: bool = False) -> argparse.ArgumentParser:
    """The parser of one operation."""
    parser = _Parser(
        prog=f"rook {op.name}",
        epilog=_beneath(op),
        description=op.documentation,
        formatter_class=_formatter,
        allow_abbrev=False,
        add_help=False,
    )
    # Everything goes into groups: argparse asks a parser, but not a group, how wide the terminal is for every
    # argument, and loads shutil with three compressors for that.
    places = {kind: parser.add_argument_group(kind) for kind in ("arguments", "options")}
    for param in op.params:
        _add(places["arguments" if param.positional else "options"], param, greedy)
    common = parser.add_argument_group("options of every command")
    common.add_argument("-h", "--help", action=_Help, nargs=0, help="Show this help.")
    for param in GLOBALS:
        _add(common, param, False)
    return parser


def _beneath(op: Op) -> str | None:
    """The other commands of a group that is a command by itself."""
    others = [each for each in declared().values() if each.name.startswith(op.name + " ")]
    if not others:
        return None
    width = max(len(each.name) for each in others)
    lines = [f"  rook {each.name:<{width}}  {each.summary}" for each in sorted(others, key=lambda each: each.name)]
    return "\n".join(["also:", *lines])


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


# Rookery speaks English. argparse would look for translations of its own words, and load `locale` for that.
vars(argparse)["_"] = str


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Help as wide as the caller's terminal."""
    call = current()
    return argparse.RawDescriptionHelpFormatter(prog, width=None if call is None else call.size()[0] - 2)


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise HelpAsked(parser.print_help)


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: object = None) -> None:
        stdout().write(message)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"`{self.prog} --help` shows how it is used")
