"""Judges calls of `rook` itself: by the table of rights and by who owns what, as `permits` does, only earlier.

It reads the words as the command line reads them, and asks the state who owns what (`Bounds.check_own`), so that both
say the same. It loads the module of an operation only when it sees such a call. A word that is only known when it runs
is denied where it matters, or left to `permits`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rookery.base.errors import RookError, UsageError
from rookery.guard.command import MAIN, WHILE, Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.ownership import changes_checkout
from rookery.guard.permits import check_acts_itself
from rookery.ops import index, other_tools
from rookery.ops.command_line import Globals, HelpAsked, read_globals, read_words
from rookery.ops.operation import FLAG, TEXT, Op
from rookery.roles.permissions import OWN
from rookery.roles.rights import check_may_call, reach_of

_POLLED = names("mail status inspect events feed logs task agents run trace")
_READING = names("check list get show status")
_WAIT = "end your turn: mail wakes you; or wait with `rook mail wait`"
_ELSEWHERE = ("`rook` with -C or -c acts on another project or with other settings", "call `rook` as it is")
_PLACES = frozenset("Cc")
_UNKNOWN = "\0"
"""Stands in a word for what is only known when it runs; no word of a command can hold it."""


def check(judge: Judge, _name: str, words: list[Word], shell: Shell) -> None:
    """Deny what the agent may not call, and waiting in a loop."""
    settings, words = _read_globals(judge, words)
    if not words or settings.version or words[0].text == "help":
        return
    if not words[0].known:
        judge.deny_unknown("rook's command")
    words = _expand(words)
    operation, rest = _find(judge, words)
    if operation is not None:
        values = None if settings.help else _read(judge, operation, rest, settings)
        if values is None:
            return  # it shows its help
        _check_role(judge, operation)
        _check_acts_itself(judge, operation, values)
        if operation.changes_state:
            _check_owned(judge, operation, values, shell)
    _check_waiting(judge, [word.text for word in words], shell)


def _read_globals(judge: Judge, words: list[Word]) -> tuple[Globals, list[Word]]:
    try:
        settings, rest = read_globals([_text(word) for word in words])
    except UsageError as error:
        judge.deny("rook", error.message, error.hint)
    at = len(words) - len(rest)
    if not all(word.known for word in words[:at]):
        judge.deny_unknown("an option of rook")
    _check_place(judge, settings)
    return settings, words[at:]


def _check_place(judge: Judge, settings: Globals) -> None:
    if settings.directory or settings.config:
        judge.deny("rook", *_ELSEWHERE)


def _may_be_elsewhere(text: str) -> bool:
    """True if the known beginning of a word may be -C or -c, also behind other letters."""
    if text.startswith("--"):
        return text.partition("=")[0] in ("--directory", "--config")
    return text.startswith("-") and not _PLACES.isdisjoint(text)


def _expand(words: list[Word]) -> list[Word]:
    """The words with the command's own name, where they begin with another one."""
    first = [word.text for word in words[:2] if word.known]
    expanded = index.expand(first)
    return words if expanded == first else [*map(Word, expanded), *words[len(first) :]]


def _find(judge: Judge, words: list[Word]) -> tuple[Op | None, list[Word]]:
    """The operation that is called, and the words behind its name; None for a group alone, which shows its help."""
    group, second = words[0].text, words[1] if len(words) > 1 else Word("")
    if group not in index.GROUPS:
        similar = other_tools.ours([group])
        hint = f"perhaps `{similar}`" if similar else "`rook --help` lists the commands"
        judge.deny("rook", f"there is no `rook {group}`", hint)
    if not second.known and any(" " in operation.name for operation in index.load_group(group)):
        judge.deny_unknown("rook's command")
    operation, length = index.find([word.text for word in words[:2] if word.known])
    if operation is None and second.text and not second.text.startswith("-"):
        judge.deny("rook", f"there is no `rook {group} {second.text}`", f"`rook {group} --help` lists the commands")
    return operation, words[length:]


def _read(judge: Judge, operation: Op, words: list[Word], before: Globals) -> dict[str, Any] | None:
    """The values that the words give, as the command line reads them; None if they ask for help."""
    is_known = all(word.known and not word.glob for word in words)
    target = operation if is_known else _accept_unknown(operation)
    try:
        values, settings = read_words(target, [_text(word) for word in words], before)
    except HelpAsked:
        if is_known:
            return None
    except UsageError as error:
        _check_role(judge, operation)
        if is_known:
            judge.deny("rook", error.message, error.hint)
    else:
        _check_place(judge, settings)
        return values
    if any(_may_be_elsewhere(word.text) for word in words):
        judge.deny("rook", *_ELSEWHERE)
    # What is not known may be an option, several words, or the `--` behind which nothing is one.
    if operation.owns or any(param.acts_as for param in operation.params):
        _check_role(judge, operation)
        judge.deny_unknown(f"an argument of `rook {operation.name}`")
    return {}


def _check_role(judge: Judge, operation: Op) -> None:
    _ask(judge, partial(check_may_call, judge.role, operation, as_command=True))


def _text(word: Word) -> str:
    """The word with a mark for what is not known: the name of an option counts, if it is known."""
    if word.known and not word.glob:
        return word.text
    option, equals, _ = word.text.partition("=")
    return f"{option}={_UNKNOWN}" if equals and option.startswith("--") else _UNKNOWN


def _accept_unknown(operation: Op) -> Op:
    """The operation with parameters that take the mark, too."""
    params = [param.replace(choices=(), kind=param.kind if param.kind == FLAG else TEXT) for param in operation.params]
    return operation.replace(params=tuple(params))


def _is_unknown(value: Any) -> bool:
    items = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(item, str) and _UNKNOWN in item for item in items)


def _check_acts_itself(judge: Judge, operation: Op, values: dict[str, Any]) -> None:
    if any(param.acts_as and _is_unknown(values.get(param.name)) for param in operation.params):
        judge.deny_unknown("who acts")
    if judge.bounds.agent:
        _ask(judge, partial(check_acts_itself, judge.bounds.agent, operation, values))


def _check_owned(judge: Judge, operation: Op, values: dict[str, Any], shell: Shell) -> None:
    """Deny what is another's, with the words of `ownership`."""
    owns = operation.owns or {}
    reach = reach_of(judge.role, operation.needs)
    known = {name: kind for name, kind in owns.items() if not _is_unknown(values.get(name))}
    for name in owns.keys() - known.keys() if reach == OWN else ():
        judge.deny_unknown(f"the {owns[name]}")
    if not known:
        return
    check_own = judge.bounds.check_own
    if check_own is None:
        judge.deny("rook", f"it is not known who owns what `rook {operation.name}` changes", "leave it as it is")
    for folder in shell.cwds or [None]:
        if folder is None and changes_checkout(operation, values):
            judge.deny_unknown("the folder")
        _ask(judge, partial(check_own, operation.replace(owns=known), values, folder or "", reach))


def _ask(judge: Judge, check: Callable[[], None]) -> None:
    """Deny what a check raises for, with its own words."""
    try:
        check()
    except RookError as error:
        rule = error.code.replace("_", "-") if error.code.startswith("foreign") else "rook"
        judge.deny(rule, error.message, error.hint)


def _check_waiting(judge: Judge, texts: list[str], shell: Shell) -> None:
    group, name = texts[0], texts[1] if len(texts) > 1 else ""
    polls = group in _POLLED and (name in _READING or group not in ("mail", "task", "run"))
    if polls and (shell.loop == WHILE or (shell.loop != MAIN and group == "mail")):
        judge.deny("polling", "polling keeps your turn open, and mail cannot wake you", _WAIT)
    follows = "--follow" in texts or "-f" in texts or (group == "feed" and "--limit" not in name)
    if follows and not shell.may_block:
        judge.deny("polling", f"`rook {group}` would follow without end", _WAIT)
