"""Who owns what: an agent changes what is its own, one that leads others also what is under its task or answers to it.

`permits` asks this where an operation is called, the guard before that, with the same answer. How far a role reaches is
in `rights`, what an operation changes is declared with it (`Op.owns`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rookery.base.errors import Refused
from rookery.db.database import Database
from rookery.events.store import last_actor
from rookery.ops.model import Caller
from rookery.ops.operation import (
    AGENTS,
    BRANCHES,
    CHECKOUTS,
    HERE,
    LEARNINGS,
    MAIL_GROUPS,
    MOVES,
    PLACES,
    TASKS,
    WORK,
    Op,
)
from rookery.roles.permissions import ANY, BENEATH
from rookery.sessions import store as sessions
from rookery.tasks import store as tasks

_NOWHERE = "none"


class NotYours(Refused):
    """The call would change what is another's; the code names what it is, such as `foreign_task`."""

    code = "foreign"


def check_owned(db: Database, caller: Caller, operation: Op, values: Mapping[str, Any], cwd: str, reach: str) -> None:
    """Raise NotYours unless everything that the call changes is within the agent's reach."""
    for param, kind in (operation.owns or {}).items():
        if kind == CHECKOUTS:
            if _is_meant(param, values):
                _check_checkout(caller, cwd)
            continue
        value = values.get(param)
        for item in value if isinstance(value, list | tuple) else [value]:
            check_one(db, caller, kind, None if item is None else str(item), reach)


def changes_checkout(operation: Op, values: Mapping[str, Any]) -> bool:
    """True if the call changes the checkout of the folder that it comes from."""
    return any(kind == CHECKOUTS and _is_meant(param, values) for param, kind in (operation.owns or {}).items())


def _is_meant(param: str, values: Mapping[str, Any]) -> bool:
    return param == HERE or bool(values.get(param))


def check_one(db: Database, caller: Caller, kind: str, value: str | None, reach: str) -> None:
    """Raise NotYours unless this one thing is within the agent's reach; what is left out changes nothing."""
    if reach == ANY:
        return
    if kind in (PLACES, MOVES) and (value == _NOWHERE or (value is None and kind == PLACES)):
        hint = f"put it under your own: --parent {caller.task_id or 'TASKS'}; or {_ask(caller.parent)}"
        raise _not_yours(TASKS, f"{caller.name} makes no epics: a task without a parent is one", hint)
    if value is None:
        return
    if kind in (TASKS, PLACES, MOVES):
        _check_task(db, caller, tasks.resolve(db, value), reach)
    elif kind == WORK:
        _check_task(db, caller, sessions.task_named(db, value), reach)
    elif kind == LEARNINGS:
        learning = tasks.get_learning(db, tasks.resolve_learning(db, value))
        _check_task(db, caller, learning.task_id, reach, f"the learning {learning.id} of ")
    elif kind == AGENTS:
        _check_agent(db, caller, value, reach)
    elif kind == MAIL_GROUPS:
        _check_group(db, caller, value)
    elif kind == BRANCHES:
        raise _not_yours(kind, f"{value} is not {caller.name}'s to land", _ask(caller.parent))
    else:
        raise LookupError(kind)


def _check_task(db: Database, caller: Caller, task_id: str, reach: str, what: str = "") -> None:
    if task_id == caller.task_id:
        return
    task = tasks.get(db, task_id)
    if task.assignee == caller.name:
        return
    if reach == BENEATH and caller.task_id in {ancestor.id for ancestor in tasks.ancestors(db, task)}:
        return
    owner = task.assignee
    whose = f"belongs to {owner}" if owner else "has no owner yet"
    raise _not_yours(TASKS, f"{what}{task_id} {whose}: {caller.name} may not change it", _ask(owner or caller.parent))


def _check_agent(db: Database, caller: Caller, name: str, reach: str) -> None:
    leaders = list(sessions.leaders(db, name))
    if not leaders or name == caller.name or (reach == BENEATH and caller.name in leaders):
        return  # if there is none of that name, the operation says so best
    raise _not_yours(AGENTS, f"{name} answers to {leaders[0]}, not to {caller.name}", _ask(leaders[0]))


def _check_group(db: Database, caller: Caller, name: str) -> None:
    bare = name.removeprefix("@")
    maker = last_actor(db, "group.created", bare)
    if maker is not None and maker != caller.name:
        raise _not_yours(MAIL_GROUPS, f"{maker} made @{bare}", _ask(maker))


def _check_checkout(caller: Caller, folder: str) -> None:
    """Whatever its role: an agent commits and switches branches in its own worktree, and nowhere else."""
    own, here = os.path.realpath(caller.worktree), os.path.realpath(folder)
    if here != own and not here.startswith(own + os.sep):
        raise _not_yours(CHECKOUTS, f"{folder} is not {caller.name}'s worktree", f"yours is {caller.worktree}")


def _not_yours(kind: str, message: str, hint: str) -> NotYours:
    return NotYours(message, hint=hint, code=f"foreign_{kind}")


def _ask(owner: str) -> str:
    return f"ask for it: `rook mail send {owner} --type question --subject … --body …`"
