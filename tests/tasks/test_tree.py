"""Trees of many tasks come in parts: whole trees where they fit, and the first line of a long plan at once."""

from __future__ import annotations

from conftest import Rook
from rookery.base.ids import handle
from rookery.db.database import Database
from rookery.tasks import service
from rookery.tasks.model import TaskTree
from rookery.tasks.service import Draft
from rookery.tasks.store import Author

_HUMAN = Author("human", "2026-01-01T00:00:00.000Z")


def _plan(db: Database, epics: int, tasks: int, subtasks: int) -> list[str]:
    """So many epics, each with tasks, each with subtasks; the ids of the epics."""
    roots = []
    for _ in range(epics):
        root = service.create(db, Draft("epic"), _HUMAN).task.id
        roots.append(root)
        for _ in range(tasks):
            task = service.create(db, Draft("task", parent=root), _HUMAN).task.id
            for _ in range(subtasks):
                service.create(db, Draft("subtask", parent=task), _HUMAN)
    return roots


def _ids(tree: TaskTree) -> list[str]:
    return [tree.task.task.id, *(task for child in tree.children for task in _ids(child))]


def test_a_page_holds_whole_trees_and_says_how_many_tasks_are_left_out(db: Database) -> None:
    roots = _plan(db, 5, 2, 1)  # five tasks each
    page = service.first_trees(db, 12)
    assert [tree.task.task.id for tree in page] == roots[:2]
    assert [len(_ids(tree)) for tree in page] == [5, 5]
    assert (page.next, page.left_out) == (roots[1], 15)
    rest = service.first_trees(db, 100, page.next)
    assert [tree.task.task.id for tree in rest] == roots[2:]
    assert rest.next is None


def test_a_tree_that_is_larger_than_a_page_shows_its_upper_part(db: Database) -> None:
    [root] = _plan(db, 1, 4, 2)  # 13 tasks
    [tree] = service.first_trees(db, 7)
    assert [len(child.children) for child in tree.children] == [2, 0, 0, 0]
    assert (tree.left_out, [child.left_out for child in tree.children]) == (6, [0, 2, 2, 2])
    small = service.tree(db, root, 3)
    assert (len(small.children), small.left_out) == (2, 10)
    assert len(_ids(service.tree(db, root))) == 13


def test_all_pages_together_are_everything_once(db: Database) -> None:
    roots = _plan(db, 7, 2, 1)
    shown = [task for page in service.tree_pages(db, 11) for tree in page for task in _ids(tree)]
    assert len(shown) == len(set(shown)) == 35
    assert [task for task in shown if task in roots] == roots


def test_what_is_archived_counts_as_nothing(db: Database) -> None:
    roots = _plan(db, 3, 1, 1)
    db.execute("UPDATE tasks SET archived_at = '2026-01-01' WHERE id = ?", (roots[0],))
    page = service.first_trees(db, 3)
    assert (page[0].task.task.id, page.left_out) == (roots[1], 3)


def test_the_first_page_does_not_read_the_rest(db: Database) -> None:
    def steps() -> int:
        count = [0]
        db.connection.set_progress_handler(lambda: bool(count.__setitem__(0, count[0] + 1)), 1)
        assert next(service.tree_pages(db, 10))
        db.connection.set_progress_handler(None)
        return count[0]

    _plan(db, 20, 1, 1)
    before = steps()
    _plan(db, 200, 1, 1)
    assert steps() - before < 200


def test_the_command_says_how_to_see_more(rook: Rook) -> None:
    first, second = (rook.json("epic", "create", title).data["id"] for title in ("one", "two"))
    rook.json("task", "create", "under one", "--parent", first)
    shown = rook("task", "tree", "--limit", "2").out.decode()
    assert "under one" in shown
    assert "two" not in shown
    assert f"and 1 more: --all shows everything; --cursor {handle(first)} goes on after these" in shown
    after = rook("task", "tree", "--limit", "2", "--cursor", handle(first)).out.decode()
    assert "two" in after
    assert "more" not in after
    assert "more" not in rook("task", "tree", "--all").out.decode()
    assert rook.json("task", "tree", "--limit", "2").data[0]["task"]["id"] == first
    assert rook.json("task", "tree", "--cursor", second).data == []


def test_a_limit_below_one_is_refused(rook: Rook) -> None:
    rook("epic", "create", "one")
    refused = rook("task", "tree", "--limit", "0")
    assert refused.status in (1, 2)
    assert b"--all shows everything" in refused.err
