"""What an agent must have done before it may say that it is finished.

A lead answers for its workers: it cannot end while one of them works, waits for an answer, or has handed over a branch
that nobody was told of.
"""

from __future__ import annotations

from typing import Any

from rookery.base.errors import Refused
from rookery.config.project import root_of
from rookery.db.database import Database
from rookery.mail import service as mail
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
    """Raise if the agent says by this call that its work, or its own task, is finished, and it is not."""
    task = values.get("task")
    if caller.session_id is not None and (task is None or tasks.resolve(db, str(task)) == caller.task_id):
        check_finished(db, store.session(db, caller.session_id))


def check_finished(db: Database, session: Session) -> None:
    """Raise NotFinished with everything that is still open."""
    open_matters = _open_matters(db, session)
    if open_matters:
        raise NotFinished(
            f"{session.agent} is not finished:\n" + "\n".join(f"- {matter}" for matter, _ in open_matters),
            hint="; ".join(dict.fromkeys(what for _, what in open_matters)),
        )


def _open_matters(db: Database, session: Session) -> list[tuple[str, str]]:
    """What is open, and what to do about it."""
    found = []
    children = store.sessions(db, parent=session.agent)
    workers = [each for each in children if each.created_at >= session.created_at]
    announced = messages.branches_announced(db, session.id)
    for worker in workers:
        has_said_so = mail.terminal_message(db, worker) is not None
        if worker.is_alive and not has_said_so:
            found.append(
                (
                    f"{worker.agent} is still {worker.state}",
                    f"end your turn and wait for its mail, or `rook stop {worker.agent}`",
                )
            )
        elif has_said_so and worker.branch not in announced and _is_to_land(db, worker):
            found.append(
                (
                    f"nobody was told that {worker.branch} may land",
                    f"`rook mail send {session.parent} --type merge_ready --subject … --payload "
                    f'\'{{"branch": "{worker.branch}", "task_id": "{worker.task_id}"}}\'`',
                )
            )
    living = {each.id for each in children if each.is_alive}
    for asked in messages.unanswered(db, session.agent, session.created_at):
        if asked.session_id in living:
            what = f"{asked.sender} asked “{asked.subject}” and has no answer"
            found.append((what, f"`rook mail reply {asked.id} --body …`"))
    return found


def _is_to_land(db: Database, worker: Session) -> bool:
    """True if the worker's role makes commits that others land, and its task is not over and done with already."""
    try:
        role = read_role(root_of(db.path), worker.role)
    except Refused:  # its file cannot be used just now; what it made before may well have to land
        role = None
    if (role is not None and (role.can_land or not role.can_write)) or worker.task_id is None:
        return False
    task = tasks.existing(db, worker.task_id)
    return task is not None and task.state not in FINISHED
