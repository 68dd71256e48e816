"""What an agent must have done before it may say that it is finished.

A lead answers for its workers: it cannot end while one of them works, waits for an answer, or has finished a branch
that no `merge_ready` message names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rookery.base.errors import Refused
from rookery.config.project import root_of
from rookery.db.database import Database
from rookery.mail import store as messages
from rookery.ops.model import Caller
from rookery.roles.catalog import read_role
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.tasks import store as tasks
from rookery.tasks.model import FINISHED


class NotFinished(Refused):
    """Something is open that the agent answers for."""

    code = "not_finished"


def check_call(db: Database, caller: Caller, values: dict[str, Any]) -> None:
    """Raise NotFinished, with everything that is open, if the call ends the agent's work or its own task."""
    task = values.get("task")
    if caller.session_id is None or (task is not None and tasks.resolve(db, str(task)) != caller.task_id):
        return
    session = store.session(db, caller.session_id)
    open_work = list(_open_work(db, session))
    if open_work:
        lines = [f"- {problem}" for problem, _ in open_work]
        raise NotFinished(
            "\n".join([f"{session.agent} is not finished:", *lines]),
            hint="; ".join(dict.fromkeys(hint for _, hint in open_work)),
        )


def _open_work(db: Database, session: Session) -> Iterator[tuple[str, str]]:
    """What is open, and what to do about it."""
    announced = messages.branches_announced(db, session.id)
    for worker in store.children(db, session):
        is_done = messages.terminal_message(db, worker) is not None
        if worker.is_alive and not is_done:
            hint = f"end your turn and wait for its mail, or `rook stop {worker.agent}`"
            yield f"{worker.agent} is still {worker.state}", hint
        elif is_done and worker.branch not in announced and _must_land(db, worker):
            payload = f'{{"branch": "{worker.branch}", "task_id": "{worker.task_id}"}}'
            hint = f"`rook mail send {session.parent} --type merge_ready --subject … --payload '{payload}'`"
            yield f"no merge_ready message names {worker.branch}", hint
    alive = {worker.id for worker in store.sessions(db, alive=True, parent=session.agent)}
    for question in messages.unanswered(db, session.agent, session.created_at):
        if question.session_id in alive:
            hint = f"`rook mail reply {question.id} --body …`"
            yield f"{question.sender} asked “{question.subject}” and has no answer", hint


def _must_land(db: Database, worker: Session) -> bool:
    """True if the worker's role makes commits that others land, and its task is not finished."""
    try:
        role = read_role(root_of(db.path), worker.role)
    except Refused:  # its file cannot be used just now; its earlier work may still have to land
        role = None
    if (role is not None and (role.can_land or not role.can_write)) or worker.task_id is None:
        return False
    task = tasks.existing(db, worker.task_id)
    return task is not None and task.state not in FINISHED
