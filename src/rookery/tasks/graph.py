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
    """A task (a new one if None) may hang beneath this parent: no circle, not too deep."""
    above = (parent, *store.ancestors(db, parent))
    if task is not None and any(each.id == task.id for each in above):
        raise ParentCycle(
            f"{parent.id} is {'the task itself' if parent.id == task.id else 'beneath ' + task.id}",
            hint="choose a parent outside of the task",
        )
    depth = len(above) + (0 if task is None else height(db, task.id))
    if depth > MAX_DEPTH:
        raise TooDeep(f"beneath {parent.id} this would be {depth} levels below the epic, and {MAX_DEPTH} is the most")


def height(db: Database, task_id: str) -> int:
    """How many levels are beneath a task."""
    below = store.descendants(db, task_id)
    if not below:
        return 0
    return 2 if any(each.parent_id != task_id for each in below) else 1


def check_blocker(db: Database, task: Task, blocker: Task) -> None:
    """The task, which already waits for the blocker in this transaction, may do so."""
    if task.id == blocker.id:
        raise BlockerCycle(f"{task.id} cannot wait for itself", hint="choose another task to wait for")
    if blocker.id in {each.id for each in store.ancestors(db, task)}:
        raise InvalidRelation(f"{blocker.id} is above {task.id} and finishes after it", hint=_KIN)
    if task.id in {each.id for each in store.ancestors(db, blocker)}:
        raise InvalidRelation(f"{blocker.id} is beneath {task.id} and begins after it", hint=_KIN)
    if leads_to(db, (FINISH, blocker.id), (BEGIN, task.id)):
        raise BlockerCycle(
            f"{blocker.id} itself waits for {task.id}, directly or through what is above or beneath it",
            hint="`rook task get` shows what each of them waits for",
        )


def check_move(db: Database, task: Task, parent: Task) -> None:
    """The task, which already hangs beneath the parent in this transaction, causes no deadlock there."""
    inside = {task.id, *(each.id for each in store.descendants(db, task.id))}
    above = {parent.id, *(each.id for each in store.ancestors(db, parent))}
    for one, others in (*store.blockers(db, inside).items(), *store.blocked(db, inside).items()):
        for other in above.intersection(others):
            raise InvalidRelation(f"{one} and {other} wait for each other's work", hint=_KIN)
    if leads_to(db, (FINISH, task.id), (FINISH, parent.id)) or leads_to(db, (BEGIN, parent.id), (BEGIN, task.id)):
        raise BlockerCycle(f"beneath {parent.id}, {task.id} would wait for itself", hint="remove a blocker first")


_KIN = "a task cannot block its ancestor or descendant"


def leads_to(db: Database, start: Node, goal: Node) -> bool:
    """True if `start` cannot happen before `goal`.

    Searched from both ends by turns: a task that nobody waits for yet is settled at once, however long the chain of
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
    return [each for what, each in nodes if what == BEGIN], [each for what, each in nodes if what == FINISH]


def _nodes(what: str, ids: list[str]) -> set[Node]:
    return {(what, each) for each in ids}
