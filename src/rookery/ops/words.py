"""From words to values: the options that every command has, and the parameters of the chosen operation alone.

Words that are written the plain way are read here; whatever is not (and every mistake, and `--help`) is argparse's,
which knows more and costs 7 ms.
"""

from __future__ import annotations

from typing import Any

from rookery.base.errors import UsageError
from rookery.ops.operation import FLAG, INTEGER, Op, Param
from rookery.ops.options import GLOBALS, Globals
from rookery.ops.parser import parse

_DIGITS = 15


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


def read_words(op: Op, words: list[str], before: Globals) -> tuple[dict[str, Any], Globals]:
    """Values for the operation's parameters, and the options of every command. Raises UsageError, or HelpAsked."""
    values = None if before.help else read_plainly(op, words)
    if values is None:
        values = parse(op, ["--help"] if before.help else words)
    config = dict(before.config)
    for text in values.pop("config", None) or ():
        config |= _setting(text)
    settings = before.replace(
        json=before.json or values.pop("json", False),
        quiet=before.quiet or values.pop("quiet", False),
        no_color=before.no_color or values.pop("no_color", False),
        directory=values.pop("directory", None) or before.directory,
        config=config,
    )
    return {k: v for k, v in values.items() if v is not None}, settings


def read_plainly(op: Op, words: list[str]) -> dict[str, Any] | None:
    """The values of words that are all `VALUE`, `--option VALUE`, `--option=VALUE` or `--flag`; None if not."""
    named = {param.flag: param for param in (*op.params, *GLOBALS) if not param.positional}
    named |= {f"-{param.short}": param for param in named.values() if param.short}
    places = [param for param in op.params if param.positional]
    values: dict[str, Any] = {}
    loose: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            loose.append(word)
            continue
        name, equals, given = word.partition("=")
        param = named.get(name)
        if param is None or (equals and (param.kind == FLAG or not name.startswith("--"))):
            return None
        if param.kind == FLAG:
            values[param.name] = True
            continue
        value = given if equals else next(rest, None)
        if value is None or (not equals and value.startswith("-") and value != "-"):
            return None
        if not _put(values, param, value):
            return None
    if len(loose) > len(places) or any(param.many for param in places):
        return None
    if not all(_put(values, param, value) for param, value in zip(places, loose, strict=False)):
        return None
    if any(param.required and param.name not in values for param in op.params):
        return None
    return values


def _put(values: dict[str, Any], param: Param, text: str) -> bool:
    """Keep one value; False if it is not plainly of its kind."""
    value: str | int = text
    if param.choices and text not in param.choices:
        return False
    if param.kind == INTEGER:
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
            return False
        value = int(text)
    if param.many:
        values.setdefault(param.name, []).append(value)
    else:
        values[param.name] = value
    return True


def _setting(text: str) -> dict[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{text!r} is not KEY=VALUE", hint="for example -c tasks.lease=1h")
    return {key: value}
