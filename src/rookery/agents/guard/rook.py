"""Judges calls of `rook` itself: what is never meant for agents, others' tasks, and waiting in a loop.

Whether a role has the permission for an operation is judged when the operation is called.
"""

from __future__ import annotations

from rookery.agents.guard.scene import MAIN, WHILE
from rookery.agents.guard.word import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.agents.guard.case import Case
    from rookery.agents.guard.scene import Scene
    from rookery.agents.guard.word import Word

NEVER = names("init hook hooks guard completion up down serve daemon worker mcp dashboard attach upgrade uninstall")
"""Groups that belong to people, or to agents' programs."""
ONLY = {
    "config": frozenset({"show", "get", "list", "explain", "path", "keys"}),
    "data": frozenset({"export"}),
    "agent": frozenset({"snapshots", "show"}),
    "gate": frozenset({"list"}),
    "worktree": frozenset({"list"}),
    "vcs": frozenset({"status", "log", "diff", "current", "show", "commit", "detect"}),
}
"""Groups of which an agent calls some operations only."""
CLOSING = names("complete cancel fail delete archive reopen release")
"""What ends a task, or takes it from somebody."""
_POLLED = names("mail status inspect events feed logs task agents run trace")
_READING = names("check list get show status")
_WAIT = "end your turn: mail wakes you; or wait with `rook mail wait`"


def judge(case: Case, words: list[Word], scene: Scene) -> None:
    """Deny what no agent calls."""
    words = _behind_globals(case, words)
    if not words:
        return
    if not words[0].known or (len(words) > 1 and words[0].text in ("task", "epic", *ONLY) and not words[1].known):
        case.deny_unknown("rook's command")
    group = words[0].text
    name = words[1].text if len(words) > 1 else ""
    if group in NEVER:
        case.deny("rook", f"`rook {group}` is not for agents", "do your task, and report by mail")
    if group in ONLY and name not in ONLY[group] and not name.startswith("-") and name:
        case.deny("rook", f"`rook {group} {name}` is for people", "ask for it by mail: `rook mail send`")
    if group == "stop" and not case.role.can_spawn:
        case.deny("rook", f"a {case.role.name} stops nobody", "report it by mail: `rook mail send --type error`")
    if group == "doctor" and any(word.text in ("--fix", "--repair") or not word.known for word in words):
        case.deny("rook", "repairs are for people", "report it by mail")
    if group in ("task", "epic") and name in CLOSING and not case.role.can_spawn:
        _check_own_task(case, group, name, words[2:])
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


def _check_own_task(case: Case, group: str, name: str, words: list[Word]) -> None:
    own = (case.bounds.task_id or "").lower()
    bare = own.partition("_")[2]
    named = [word for word in words if not word.text.startswith("-")][:1]
    for word in named:
        text = word.text.lower()
        if not word.known:
            case.deny_unknown("the task")
        is_own = bool(own) and (text == own or (len(text) >= 6 and (own.startswith(text) or bare.startswith(text))))
        if not is_own or group == "epic":
            hint = f"yours is {case.bounds.task_id}" if own else "you have no task of your own"
            case.deny("foreign-task", f"`rook {group} {name}` on a task that is not yours", f"{hint}; report by mail")
    if not named:
        case.deny("foreign-task", f"`rook {group} {name}` needs the task first", f"yours is {case.bounds.task_id}")


def _check_waiting(case: Case, group: str, name: str, words: list[Word], scene: Scene) -> None:
    looks = group in _POLLED and (name in _READING or group not in ("mail", "task", "run"))
    if looks and (scene.loop == WHILE or (scene.loop != MAIN and group == "mail")):
        case.deny("polling", "asking again and again keeps your turn open, and mail from waking you", _WAIT)
    follows = any(word.text in ("--follow", "-f") for word in words) or (group == "feed" and "--limit" not in name)
    if follows and not scene.may_block:
        case.deny("polling", f"`rook {group}` would follow without end", _WAIT)
