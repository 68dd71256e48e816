"""The rules that keep the graph workable: depth, kinship, and no waiting in a circle.

Two things can happen to a task: it can begin (B) and it can finish (F). A task finishes after it began and after its
children finished; it begins after its parent may begin and after its blockers finished. A circle in *that* graph is
a deadlock, whether it runs through parents, blockers or both, so that is what is looked for. States play no part: a
finished task can be reopened.
"""

from __future__ import annotations

from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.model import MAX_DEPTH, BlockerCycle, InvalidRelation, ParentCycle, Task, TooDeep

Node = tuple[str, str]

BEGIN, FINISH = "B", "F"


def check_parent(db: Database, task: Task | None, parent: Task) -> None:
    """A task (a new one if None) may hang under this parent: no circle, not too deep."""
    above = _line(db, parent)
    if task is not None and task.id in above:
        relation = "the task itself" if parent.id == task.id else f"under {task.id}"
        raise ParentCycle(f"{parent.id} is {relation}", hint="choose a parent outside of the task")
    depth = len(above) + (0 if task is None else height(db, task.id))
    if depth > MAX_DEPTH:
        raise TooDeep(f"under {parent.id} this would be {depth} levels below the epic, and {MAX_DEPTH} is the most")


def height(db: Database, task_id: str) -> int:
    """How many levels are under a task."""
    below = store.descendants(db, task_id)
    if not below:
        return 0
    return 2 if any(task.parent_id != task_id for task in below) else 1


def check_blocker(db: Database, task: Task, blocker: Task) -> None:
    """The task, which already waits for the blocker in this transaction, may do so."""
    if task.id == blocker.id:
        raise BlockerCycle(f"{task.id} cannot wait for itself", hint="choose another task to wait for")
    if blocker.id in _line(db, task):
        raise InvalidRelation(f"{blocker.id} is above {task.id} and finishes after it", hint=_KIN)
    if task.id in _line(db, blocker):
        raise InvalidRelation(f"{blocker.id} is under {task.id} and begins after it", hint=_KIN)
    if leads_to(db, (FINISH, blocker.id), (BEGIN, task.id)):
        raise BlockerCycle(
            f"{blocker.id} itself waits for {task.id}, directly or through what is above or under it",
            hint="`rook task get` shows what each of them waits for",
        )


def check_move(db: Database, task: Task, parent: Task) -> None:
    """The task, which already hangs under the parent in this transaction, causes no deadlock there."""
    inside = {task.id, *(below.id for below in store.descendants(db, task.id))}
    for one, others in (*store.blockers(db, inside).items(), *store.blocked(db, inside).items()):
        for other in _line(db, parent).intersection(others):
            raise InvalidRelation(f"{one} and {other} wait for each other's work", hint=_KIN)
    if leads_to(db, (FINISH, task.id), (FINISH, parent.id)) or leads_to(db, (BEGIN, parent.id), (BEGIN, task.id)):
        raise BlockerCycle(f"under {parent.id}, {task.id} would wait for itself", hint="remove a blocker first")


_KIN = "a task cannot block its ancestor or descendant"


def _line(db: Database, task: Task) -> set[str]:
    """The ids of a task and its ancestors."""
    return {task.id, *(above.id for above in store.ancestors(db, task))}


def leads_to(db: Database, start: Node, goal: Node) -> bool:
    """True if `start` cannot happen before `goal`.

    Searched from both ends by turns: a task that no other waits for yet is settled at once, however long the chain of
    blockers behind it.
    """
    ahead, behind = {start}, {goal}
    front, back = {start}, {goal}
    while front and back:
        if ahead & behind:
            return True
        if len(ahead) <= len(behind):
            front = _needs(db, front) - ahead
            ahead |= front
        else:
            back = _needed_by(db, back) - behind
            behind |= back
    return bool(ahead & behind)


def _needs(db: Database, nodes: set[Node]) -> set[Node]:
    begins, finishes = _split(nodes)
    after_ends = [*store.child_ids(db, finishes), *store.blocker_ids(db, begins)]
    return _nodes(BEGIN, [*finishes, *store.parent_ids(db, begins)]) | _nodes(FINISH, after_ends)


def _needed_by(db: Database, nodes: set[Node]) -> set[Node]:
    begins, finishes = _split(nodes)
    starts = [*store.child_ids(db, begins), *store.blocked_ids(db, finishes)]
    return _nodes(BEGIN, starts) | _nodes(FINISH, [*begins, *store.parent_ids(db, finishes)])


def _split(nodes: set[Node]) -> tuple[list[str], list[str]]:
    begins = [task_id for what, task_id in nodes if what == BEGIN]
    return begins, [task_id for what, task_id in nodes if what == FINISH]


def _nodes(what: str, ids: list[str]) -> set[Node]:
    return {(what, task_id) for task_id in ids}
