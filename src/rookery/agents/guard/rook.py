"""Judges calls of `rook` itself: by the table of rights and by whose something is, as `permits` does, only earlier.

The declared operation says what is asked for; its module is loaded when such a call is seen, and only then. What is
another's can be told for sure where the caller of the guard says how (`Bounds.check_own`); without that, what cannot be
known is left to `permits`.
"""

from __future__ import annotations

import os

from rookery.agents.guard.scene import MAIN, WHILE
from rookery.agents.guard.word import names
from rookery.agents.rights import ANY, OWN, reach_of, refuse
from rookery.base.errors import RookError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.agents.guard.case import Case
    from rookery.agents.guard.scene import Scene
    from rookery.agents.guard.word import Word
    from rookery.ops.operation import Op

_POLLED = names("mail status inspect events feed logs task agents run trace")
_READING = names("check list get show status")
_WAIT = "end your turn: mail wakes you; or wait with `rook mail wait`"
_SHORTEST_ID = 6


def judge(case: Case, words: list[Word], scene: Scene) -> None:
    """Deny what the agent may not call, and waiting in a loop."""
    words = _behind_globals(case, words)
    if not words or _asks_for_help(words):
        return
    if not words[0].known:
        case.deny_unknown("rook's command")
    operation, rest = _find(case, words)
    if operation is not None:
        refusal = refuse(case.role.name, operation, as_command=True)
        if refusal is not None:
            case.deny("rook", refusal.reason, refusal.hint)
        given = _read(operation, rest)
        _check_acts_itself(case, operation, given)
        if operation.changes_state:
            _check_owned(case, operation, given, scene)
    group = words[0].text
    name = words[1].text if len(words) > 1 else ""
    _check_waiting(case, group, name, words, scene)


def _behind_globals(case: Case, words: list[Word]) -> list[Word]:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if not words[at].known or text.startswith(("-C", "--directory", "-c", "--config")):
            case.deny("rook", f"`rook {text}` acts for another place", "call `rook` as it is")
        at += 1
    for word in words[at:]:
        if word.text in ("-C", "-c", "--directory", "--config") or word.text.startswith(("--directory=", "--config=")):
            case.deny("rook", f"`rook {word.text}` acts for another place", "call `rook` as it is")
    return words[at:]


def _asks_for_help(words: list[Word]) -> bool:
    texts = [word.text if word.known else "" for word in words]
    return texts[0] == "help" or "--help" in texts[: texts.index("--") if "--" in texts else None]


def _find(case: Case, words: list[Word]) -> tuple[Op | None, list[Word]]:
    """The operation that is called, and the words behind its name; None for a group alone, which shows its help."""
    from rookery.ops import index

    group = words[0].text
    if group not in index.GROUPS:
        case.deny("rook", f"there is no `rook {group}` for agents", "`rook --help` lists the commands")
    name = words[1].text if len(words) > 1 else ""
    if len(words) > 1 and not words[1].known and any(" " in each.name for each in index.load_group(group)):
        case.deny_unknown("rook's command")
    operation, length = index.find([word.text for word in words[:2] if word.known])
    if operation is None and name and not name.startswith("-"):
        case.deny("rook", f"there is no `rook {group} {name}`", f"`rook {group} --help` lists the commands")
    return operation, words[length:]


def _read(operation: Op, words: list[Word]) -> dict[str, list[Word]]:
    """The words that are given for each parameter, as far as they can be told apart."""
    named = {param.flag: param for param in operation.params if not param.positional}
    named |= {f"-{param.short}": param for param in operation.params if param.short}
    given: dict[str, list[Word]] = {}
    loose: list[Word] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word.known and word.text == "--":
            loose += waiting
            break
        if not word.text.startswith("-") or word.text == "-":
            loose.append(word)
            continue
        name, equals, value = word.text.partition("=")
        param = named.get(name)
        if param is None:
            continue
        if equals:
            given.setdefault(param.name, []).append(word.replace(text=value))
        elif param.kind == "flag":
            given.setdefault(param.name, []).append(word)
        elif waiting:
            given.setdefault(param.name, []).append(waiting.pop(0))
    for param in operation.params:
        if param.positional:
            taken, loose = (loose, []) if param.many else (loose[:1], loose[1:])
            if taken:
                given.setdefault(param.name, []).extend(taken)
    return given


def _check_acts_itself(case: Case, operation: Op, given: dict[str, list[Word]]) -> None:
    for param in operation.params:
        for word in given.get(param.name, []) if param.acts_as else []:
            if not word.known:
                case.deny_unknown("who acts")
            if case.bounds.agent and word.text != case.bounds.agent:
                case.deny("rook", f"you cannot `rook {operation.name}` as {word.text}", f"leave {param.flag} out")


def _check_owned(case: Case, operation: Op, given: dict[str, list[Word]], scene: Scene) -> None:
    from rookery.ops.operation import CHECKOUTS, HERE, PLACES, TASKS

    reach = reach_of(case.role.name, operation.needs)
    for name, kind in (operation.owns or {}).items():
        if kind == CHECKOUTS:
            if name == HERE or name in given:
                _check_folders(case, operation, reach, scene)
        elif name in given:
            for word in given[name]:
                _check_word(case, operation, kind, word, reach)
        elif kind == PLACES:
            _check_one(case, operation, kind, None, reach)
        elif kind == TASKS and reach == OWN:
            hint = f"yours is {case.bounds.task_id}"
            case.deny("foreign-task", f"`rook {operation.name}` needs the task first", hint)


def _check_word(case: Case, operation: Op, kind: str, word: Word, reach: str) -> None:
    if word.known:
        _check_one(case, operation, kind, word.text, reach)
    elif reach == OWN:
        case.deny_unknown(f"the {kind}")


def _check_folders(case: Case, operation: Op, reach: str, scene: Scene) -> None:
    from rookery.ops.operation import CHECKOUTS

    for folder in scene.cwds:
        if folder is None:
            case.deny_unknown("the folder")
        _check_one(case, operation, CHECKOUTS, folder, reach)


def _check_one(case: Case, operation: Op, kind: str, value: str | None, reach: str) -> None:
    """Deny what is another's, with the words of `ownership` where it can be asked."""
    if case.bounds.check_own is None:
        _guess_one(case, operation, kind, value, reach)
        return
    try:
        case.bounds.check_own(kind, value, reach)
    except RookError as error:
        rule = error.code.replace("_", "-") if error.code.startswith("foreign") else "rook"
        case.deny(rule, error.message, error.hint)


def _guess_one(case: Case, operation: Op, kind: str, value: str | None, reach: str) -> None:
    """Deny what is surely another's, by what is known of the agent alone."""
    from rookery.ops.operation import AGENTS, CHECKOUTS, MOVES, PLACES, TASKS

    bounds = case.bounds
    if kind in (PLACES, MOVES) and value in (None, "none"):
        is_own = reach == ANY
    elif kind == CHECKOUTS:
        own, here = os.path.realpath(bounds.worktree), os.path.realpath(value or "")
        is_own = here == own or here.startswith(own + os.sep)
    elif reach != OWN:
        is_own = True
    elif kind in (TASKS, PLACES, MOVES):
        is_own = _is_own_task(case, value or "")
    else:
        is_own = kind != AGENTS or value == bounds.agent
    if not is_own:
        hint = f"yours is {bounds.task_id}" if bounds.task_id else "you have no task of your own"
        rule = "foreign-task" if kind in (TASKS, PLACES, MOVES) else f"foreign-{kind}"
        case.deny(rule, f"`rook {operation.name}` on what is not yours", f"{hint}; report by mail")


def _is_own_task(case: Case, text: str) -> bool:
    own, text = (case.bounds.task_id or "").lower(), text.lower()
    bare = own.partition("_")[2]
    is_start = len(text) >= _SHORTEST_ID and (own.startswith(text) or bare.startswith(text))
    return bool(own) and (text == own or is_start)


def _check_waiting(case: Case, group: str, name: str, words: list[Word], scene: Scene) -> None:
    looks = group in _POLLED and (name in _READING or group not in ("mail", "task", "run"))
    if looks and (scene.loop == WHILE or (scene.loop != MAIN and group == "mail")):
        case.deny("polling", "asking again and again keeps your turn open, and mail from waking you", _WAIT)
    follows = any(word.text in ("--follow", "-f") for word in words) or (group == "feed" and "--limit" not in name)
    if follows and not scene.may_block:
        case.deny("polling", f"`rook {group}` would follow without end", _WAIT)
