"""Judges calls of `rook` itself: by the table of rights and by whose something is, as `permits` does, only earlier.

The words are read as the command line reads them, and the state is asked whose something is (`Bounds.check_own`), so
that both say the same. The module of the operation is loaded when such a call is seen, and only then. What a word will
be only when it runs is denied where it matters, or left to `permits`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rookery.base.errors import RookError, UsageError
from rookery.guard.command import MAIN, WHILE, Shell, Word, names
from rookery.guard.judge import Judge
from rookery.guard.ownership import changes_checkout
from rookery.guard.permits import check_acts_itself
from rookery.ops import index
from rookery.ops.command_line import Globals, HelpAsked, read_globals, read_words
from rookery.ops.operation import FLAG, TEXT, Op
from rookery.roles.permissions import OWN
from rookery.roles.rights import reach_of, refuse

_POLLED = names("mail status inspect events feed logs task agents run trace")
_READING = names("check list get show status")
_WAIT = "end your turn: mail wakes you; or wait with `rook mail wait`"
_ELSEWHERE = ("`rook` with -C or -c acts for another place or with other settings", "call `rook` as it is")
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
    operation, rest = _find(judge, words)
    if operation is not None:
        values = None if settings.help else _read(judge, operation, rest, settings)
        if values is None:
            return  # it shows its help
        _check_role(judge, operation)
        _check_acts_itself(judge, operation, values)
        if operation.changes_state:
            _check_owned(judge, operation, values, shell)
    group = words[0].text
    name = words[1].text if len(words) > 1 else ""
    _check_waiting(judge, group, name, words, shell)


def _read_globals(judge: Judge, words: list[Word]) -> tuple[Globals, list[Word]]:
    try:
        settings, rest = read_globals([_text(word) for word in words])
    except UsageError as error:
        judge.deny("rook", error.message, error.hint)
    before = words[: len(words) - len(rest)]
    if not all(word.known for word in before):
        judge.deny_unknown("an option of rook")
    _check_place(judge, settings)
    return settings, words[len(before) :]


def _check_place(judge: Judge, settings: Globals) -> None:
    if settings.directory or settings.config:
        judge.deny("rook", *_ELSEWHERE)


def _may_be_elsewhere(text: str) -> bool:
    """True if what is known of a word may be the beginning of -C or -c, also behind other letters."""
    if text.startswith("--"):
        return text.partition("=")[0] in ("--directory", "--config")
    return text.startswith("-") and not _PLACES.isdisjoint(text)


def _find(judge: Judge, words: list[Word]) -> tuple[Op | None, list[Word]]:
    """The operation that is called, and the words behind its name; None for a group alone, which shows its help."""
    group = words[0].text
    if group not in index.GROUPS:
        judge.deny("rook", f"there is no `rook {group}` for agents", "`rook --help` lists the commands")
    name = words[1].text if len(words) > 1 else ""
    if len(words) > 1 and not words[1].known and any(" " in each.name for each in index.load_group(group)):
        judge.deny_unknown("rook's command")
    operation, length = index.find([word.text for word in words[:2] if word.known])
    if operation is None and name and not name.startswith("-"):
        judge.deny("rook", f"there is no `rook {group} {name}`", f"`rook {group} --help` lists the commands")
    return operation, words[length:]


def _read(judge: Judge, operation: Op, words: list[Word], before: Globals) -> dict[str, Any] | None:
    """The values that the words give, as the command line reads them; None if they ask for help."""
    is_known = all(word.known and not word.glob for word in words)
    try:
        values, settings = read_words(
            operation if is_known else _take_any(operation), [_text(word) for word in words], before
        )
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
        judge.deny_unknown(f"what `rook {operation.name}` is told")
    return {}


def _check_role(judge: Judge, operation: Op) -> None:
    refusal = refuse(judge.role, operation, as_command=True)
    if refusal is not None:
        judge.deny("rook", refusal.reason, refusal.hint)


def _text(word: Word) -> str:
    """The word with a mark for what is not known: the name of an option counts, if it is known."""
    if word.known and not word.glob:
        return word.text
    option, equals, _ = word.text.partition("=")
    return f"{option}={_UNKNOWN}" if equals and option.startswith("--") else _UNKNOWN


def _take_any(operation: Op) -> Op:
    """The operation with parameters that take the mark, too."""
    params = [param.replace(choices=(), kind=param.kind if param.kind == FLAG else TEXT) for param in operation.params]
    return operation.replace(params=tuple(params))


def _is_unknown(value: Any) -> bool:
    values = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(each, str) and _UNKNOWN in each for each in values)


def _check_acts_itself(judge: Judge, operation: Op, values: dict[str, Any]) -> None:
    if any(param.acts_as and _is_unknown(values.get(param.name)) for param in operation.params):
        judge.deny_unknown("who acts")
    if judge.bounds.agent:
        _ask(judge, check_acts_itself, judge.bounds.agent, operation, values)


def _check_owned(judge: Judge, operation: Op, values: dict[str, Any], shell: Shell) -> None:
    """Deny what is another's, with the words of `ownership`."""
    owns = operation.owns or {}
    reach = reach_of(judge.role, operation.needs)
    known = {name: kind for name, kind in owns.items() if not _is_unknown(values.get(name))}
    for name in owns.keys() - known.keys() if reach == OWN else ():
        judge.deny_unknown(f"the {owns[name]}")
    if not known:
        return
    check_own, asked = judge.bounds.check_own, operation.replace(owns=known)
    if check_own is None:
        judge.deny("rook", f"nobody can say whose it is that `rook {operation.name}` changes", "leave it as it is")
    for folder in shell.cwds or [None]:
        if folder is None and changes_checkout(operation, values):
            judge.deny_unknown("the folder")
        _ask(judge, check_own, asked, values, folder or "", reach)


def _ask(judge: Judge, check: Callable[..., None], *about: Any) -> None:
    """Deny what a check raises for, with its own words."""
    try:
        check(*about)
    except RookError as error:
        rule = error.code.replace("_", "-") if error.code.startswith("foreign") else "rook"
        judge.deny(rule, error.message, error.hint)


def _check_waiting(judge: Judge, group: str, name: str, words: list[Word], shell: Shell) -> None:
    looks = group in _POLLED and (name in _READING or group not in ("mail", "task", "run"))
    if looks and (shell.loop == WHILE or (shell.loop != MAIN and group == "mail")):
        judge.deny("polling", "asking again and again keeps your turn open, and mail from waking you", _WAIT)
    follows = any(word.text in ("--follow", "-f") for word in words) or (group == "feed" and "--limit" not in name)
    if follows and not shell.may_block:
        judge.deny("polling", f"`rook {group}` would follow without end", _WAIT)
