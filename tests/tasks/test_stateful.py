"""Random steps on the real thing and on the reference; after each of them the two agree."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rookery.base.clock import stamp
from rookery.base.errors import RookError
from rookery.db.database import Database
from rookery.tasks import learning_ops, learnings, lifecycle, listing_store, service, store, transfer
from rookery.tasks.history import agrees
from rookery.tasks.store import Author
from support import everything, person_at
from tasks.reference import No, Reference

_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Nothing here is about the disk, and an export waits for it each time."""
_picks = st.integers(0, 40)
_agents = st.sampled_from(["ada", "bob", "human"])
_words = st.sampled_from(["tabs", "spaces"])
_leases = st.sampled_from([5.0, 60.0])
_have_tasks = precondition(lambda self: bool(self.reference.tasks))


class Project(RuleBasedStateMachine):
    """A project, its reference and a clock that only the rules move."""

    template = ""

    @initialize(
        parents=st.lists(_picks, min_size=5, max_size=9),
        edges=st.lists(st.tuples(_picks, _picks), min_size=2, max_size=6),
    )
    def begin_project(self, parents: list[int], edges: list[tuple[int, int]]) -> None:
        """Random steps alone rarely grow a graph worth testing, so there is one from the beginning."""
        self.open_project()
        for number in range(2):
            self.create(parent=None, priority=1 + number, blockers=[], tick=True)
        for parent in parents:
            self.create(parent=parent, priority=3, blockers=[], tick=False)
        for task, blocker in edges:
            self.block(task=task, blocker=blocker)

    def open_project(self) -> None:
        self.folder = tempfile.mkdtemp(dir=_MEMORY)
        path = os.path.join(self.folder, "rookery.db")
        shutil.copy(self.template, path)
        self.db = Database.open(path)
        self.db.execute("PRAGMA synchronous = OFF")
        self.reference = Reference()
        self.now = 1_800_000_000.0

    def teardown(self) -> None:
        self.db.close()
        shutil.rmtree(self.folder)

    @property
    def author(self) -> Author:
        return Author("human", stamp(self.now))

    def pick(self, number: int) -> str:
        tasks = sorted(self.reference.tasks)
        return tasks[number % len(tasks)]

    def both(self, real: Callable[[], Any], expected: Callable[[Reference], None]) -> None:
        """Take a step on both sides: done on both, or refused on both with nothing changed."""
        trial, code = self.reference.copy(), ""
        try:
            expected(trial)
        except No as no:
            code = str(no)
        before = everything(self.db)
        try:
            real()
        except RookError as error:
            assert error.code == code, error.message  # noqa: PT017
            assert everything(self.db) == before
        else:
            assert code == ""
            self.reference = trial

    # Planning.

    @rule(
        parent=st.none() | _picks,
        priority=st.integers(1, 5),
        blockers=st.just([]) | st.lists(_picks, max_size=2),
        tick=st.booleans(),
    )
    def create(self, parent: int | None, priority: int, blockers: list[int], tick: bool) -> None:
        self.now += tick
        known = bool(self.reference.tasks)
        above = self.pick(parent) if known and parent is not None else None
        waits = [self.pick(blocker) for blocker in blockers] if known else []
        draft = service.Draft("work", parent=above, priority=priority, blocked_by=tuple(waits))
        created: list[str] = []
        trial, code = self.reference.copy(), ""
        try:
            trial.create("new", above, priority, waits, self.now)
        except No as no:
            code = str(no)
        before = everything(self.db)
        try:
            created.append(service.create(self.db, draft, self.author).task.id)
        except RookError as error:
            assert error.code == code, error.message  # noqa: PT017
            assert everything(self.db) == before
            return
        assert code == ""
        self.reference.create(created[0], above, priority, waits, self.now)

    @rule(task=_picks, parent=st.none() | _picks)
    @_have_tasks
    def move(self, task: int, parent: int | None) -> None:
        one = self.pick(task)
        target = None if parent is None else self.pick(parent)
        self.both(
            lambda: service.update(self.db, one, self.author, {}, parent=target or "none"),
            lambda model: model.move(one, target),
        )

    @rule(task=_picks, priority=st.integers(1, 5))
    @_have_tasks
    def change_priority(self, task: int, priority: int) -> None:
        one = self.pick(task)
        self.both(
            lambda: service.update(self.db, one, self.author, {"priority": priority}),
            lambda model: model.tasks[one].update(priority=priority),
        )

    @rule(task=_picks, blocker=_picks)
    @_have_tasks
    def block(self, task: int, blocker: int) -> None:
        one, other = self.pick(task), self.pick(blocker)
        self.both(
            lambda: service.block(self.db, one, [other], self.author),
            lambda model: model.block(one, other),
        )

    @rule(task=_picks, blocker=st.none() | _picks)
    @_have_tasks
    def unblock(self, task: int, blocker: int | None) -> None:
        one = self.pick(task)
        other = None if blocker is None else self.pick(blocker)
        self.both(
            lambda: service.unblock(self.db, one, [other] if other else [], self.author),
            lambda model: model.unblock(one, other),
        )

    @rule(task=_picks, force=st.booleans())
    @_have_tasks
    def delete(self, task: int, force: bool) -> None:
        one = self.pick(task)
        self.both(
            lambda: service.delete(self.db, one, self.author, force=force),
            lambda model: model.delete(one, force, self.now),
        )

    # Work.

    @rule(agent=_agents, lease=_leases, root=st.none() | _picks)
    def claim(self, agent: str, lease: float, root: int | None) -> None:
        epic = self.pick(root) if root is not None and self.reference.tasks else None
        wanted = self.reference.next_ready(self.now, epic)
        view = lifecycle.claim(self.db, self.author.replace(name=agent), lease=lease, clock=self.now, epic=epic)
        assert (None if view is None else view.task.id) == wanted
        if wanted is not None:
            self.reference.begin(wanted, agent, self.now + lease)

    @rule(agent=_agents, number=_picks)
    def start(self, agent: str, number: int) -> None:
        ready = [task for task in self.reference.walk() if self.reference.is_ready(task, self.now)]
        if not ready:
            return
        one = ready[number % len(ready)]
        with self.db.write():
            task = store.get(self.db, one)
            lifecycle.begin(self.db, task, "start", self.author, assignee=agent, lease_until=None)
        self.reference.begin(one, agent, None)

    @rule(task=_picks, agent=_agents, lease=_leases)
    @_have_tasks
    def renew(self, task: int, agent: str, lease: float) -> None:
        one = self.pick(task)
        self.both(
            lambda: lifecycle.renew(self.db, one, self.author.replace(name=agent), lease=lease, clock=self.now),
            lambda model: model.renew(one, agent, self.now + lease),
        )

    @rule(task=_picks, agent=_agents)
    @_have_tasks
    def release(self, task: int, agent: str) -> None:
        one = self.pick(task)
        self.both(
            lambda: lifecycle.release(self.db, one, self.author.replace(name=agent)),
            lambda model: model.release(one, agent),
        )

    @rule(task=_picks, agent=_agents, attempt=st.none() | st.integers(0, 3), learned=st.lists(_words, max_size=2))
    @_have_tasks
    def complete(self, task: int, agent: str, attempt: int | None, learned: list[str]) -> None:
        one = self.pick(task)
        self.both(
            lambda: lifecycle.complete(self.db, one, self.author.replace(name=agent), attempt=attempt, learned=learned),
            lambda model: model.complete(one, agent, attempt, learned, self.now),
        )

    @rule(task=_picks, agent=_agents)
    @_have_tasks
    def fail(self, task: int, agent: str) -> None:
        one = self.pick(task)
        self.both(
            lambda: lifecycle.fail(self.db, one, self.author.replace(name=agent), reason="no"),
            lambda model: model.fail(one, agent),
        )

    @rule(task=_picks, step=st.sampled_from(["cancel", "reopen", "archive", "unarchive"]))
    @_have_tasks
    def end_or_return(self, task: int, step: str) -> None:
        one = self.pick(task)
        more = (self.now,) if step == "cancel" else ()
        self.both(
            lambda: getattr(lifecycle, step)(self.db, one, self.author),
            lambda model: getattr(model, step)(one, *more),
        )

    @rule(seconds=st.sampled_from([1.0, 5.0, 60.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    # Knowledge and data.

    @rule(task=_picks, words=_words, source=st.none() | _picks)
    @_have_tasks
    def learn(self, task: int, words: str, source: int | None) -> None:
        one = self.pick(task)
        origin = None if source is None else self.pick(source)
        self.both(
            lambda: learnings.add(self.db, one, words, self.author, source=origin),
            lambda model: model.learn(one, words, origin),
        )

    @rule(number=_picks)
    @precondition(lambda self: bool(self.reference.learnings))
    def forget(self, number: int) -> None:
        rows = self.db.all("SELECT id, task_id, content, source_task_id FROM learnings ORDER BY id")
        name, *rest = rows[number % len(rows)]
        learning_ops.delete(person_at(self.db, stamp(self.now)), name)
        self.reference.learnings.remove((rest[0], rest[1], rest[2]))

    @rule(ending=st.sampled_from(["json", "jsonl"]))
    def export_and_import(self, ending: str) -> None:
        path = os.path.join(self.folder, f"all.{ending}")
        transfer.export_file(self.db, path, "")
        transfer.import_file(
            self.db,
            path,
            self.author,
            clear=True,
            backups=self.folder,
            progress=lambda _label, _total: lambda _done: None,
        )

    # What always holds.

    @invariant()
    def the_stored_state_is_the_expected_one(self) -> None:
        kept = {
            row[0]: dict(zip(("parent", "priority", "state", "assignee", "lease", "attempts"), row[1:7], strict=True))
            | {"archived": row[7] is not None}
            for row in self.db.all(
                "SELECT id, parent_id, priority, state, assignee, lease_until, attempts, archived_at FROM tasks"
            )
        }
        expected = {
            task: {name: value for name, value in entry.items() if name != "created"}
            | {"lease": None if entry["lease"] is None else stamp(entry["lease"])}
            for task, entry in self.reference.tasks.items()
        }
        assert kept == expected
        assert set(self.db.all("SELECT task_id, blocker_id FROM task_blockers")) == self.reference.edges

    @invariant()
    def nothing_is_learned_twice(self) -> None:
        rows = self.db.all("SELECT task_id, content, source_task_id FROM learnings")
        assert sorted(rows, key=str) == sorted(self.reference.learnings, key=str)
        assert len(set(rows)) == len(rows)

    @invariant()
    def the_graph_can_be_worked_through(self) -> None:
        assert not self.reference.has_circle()
        for task in self.reference.tasks:
            above = self.reference.above(task)
            assert len(above) <= 2
            if any(self.reference.is_finished(ancestor) for ancestor in above):
                assert self.reference.is_finished(task)

    @invariant()
    def what_is_ready_is_offered(self) -> None:
        now = stamp(self.now)
        ready = [task for task in self.reference.tasks if self.reference.is_ready(task, self.now)]
        listed = service.list_tasks(self.db, listing_store.Query(ready=True, limit=0), now)
        assert [view.task.id for view in listed] == sorted(ready, key=self.reference.order)
        counts = service.progress(self.db, None, now)
        waiting = service.list_tasks(self.db, listing_store.Query(blocked=True, limit=0), now)
        assert (counts.ready, counts.blocked) == (len(ready), len(waiting))
        offered = service.next_ready(self.db, now)
        assert (None if offered is None else offered.task.id) == self.reference.next_ready(self.now)

    @invariant()
    def what_waits_is_listed_as_blocked(self) -> None:
        for view in service.list_tasks(self.db, listing_store.Query(limit=0), stamp(self.now)):
            waits = any(self.reference.is_blocked(ancestor) for ancestor in self.reference.line(view.task.id))
            assert view.is_blocked == waits

    @invariant()
    def the_events_tell_the_same_story(self) -> None:
        assert agrees(self.db)


Project.TestCase.settings = settings(max_examples=40, stateful_step_count=40)


@pytest.mark.slow
class TestProject(Project.TestCase):  # type: ignore[misc, valid-type]
    """Runs the machine."""

    @pytest.fixture(autouse=True)
    def _template(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        Project.template = str(tmp_path_factory.mktemp("template") / "rookery.db")
        Database.create(Project.template).close()
