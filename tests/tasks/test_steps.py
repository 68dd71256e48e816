"""Every change of a task's state is a step of the table of transitions, taken from the state that the caller saw."""

from __future__ import annotations

import ast
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import rookery
from rookery.base.errors import InvalidState
from rookery.base.text import in_words
from rookery.db.database import Database
from rookery.tasks import store
from rookery.tasks.history import agrees
from rookery.tasks.model import EVENTS, STATES, TRANSITIONS
from support import AUTHOR, add, everything, refusal
from templates import copy_database

_SETS_STATE = re.compile(r"\b(UPDATE(\s+OR\s+\w+)?|INSERT(\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO)\s+tasks\b(?!_)", re.I)


class Steps(RuleBasedStateMachine):
    """A task that is taken through any steps, beside the table."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = str(Path(self.folder.name) / "rookery.db")
        copy_database(path)
        self.db = Database.open(path)
        self.task = add(self.db)
        self.state = "PENDING"
        self.events = ["task.created"]

    def teardown(self) -> None:
        self.db.close()
        self.folder.cleanup()

    @rule(step=st.sampled_from(sorted(TRANSITIONS)))
    def take(self, step: str) -> None:
        sources, target = TRANSITIONS[step]
        task = store.get(self.db, self.task)
        if self.state not in sources:
            before = everything(self.db)
            with pytest.raises(InvalidState) as caught, self.db.write():
                store.take_step(self.db, task, step, AUTHOR)
            assert in_words(self.state) in caught.value.message
            assert caught.value.hint
            assert everything(self.db) == before
            return
        with self.db.write():
            assert store.take_step(self.db, task, step, AUTHOR).state == target
        self.state = target
        self.events.append(EVENTS[step])

    @rule(step=st.sampled_from(sorted(TRANSITIONS)), seen=st.sampled_from(STATES))
    def take_as_seen_before(self, step: str, seen: str) -> None:
        """The table allows the step from the state that the caller saw, and the task has left that state."""
        if seen == self.state or seen not in TRANSITIONS[step][0]:
            return
        before = everything(self.db)
        task = store.get(self.db, self.task).replace(state=seen)
        with pytest.raises(InvalidState, match=f"no longer {in_words(seen)}"), self.db.write():
            store.take_step(self.db, task, step, AUTHOR)
        assert everything(self.db) == before

    @invariant()
    def it_is_where_the_table_says(self) -> None:
        assert self.db.value("SELECT state FROM tasks WHERE id = ?", (self.task,)) == self.state
        types = self.db.all("SELECT type FROM events WHERE subject = ? ORDER BY seq", (self.task,))
        assert [kind for (kind,) in types] == self.events
        assert agrees(self.db)


Steps.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


@pytest.mark.slow
class TestSteps(Steps.TestCase):  # type: ignore[misc, valid-type]
    """Runs the machine."""


def test_the_table_names_only_states_and_every_state_can_be_reached() -> None:
    for sources, target in TRANSITIONS.values():
        assert {*sources, target} <= set(STATES)
    reached, new = {"PENDING"}, {"PENDING"}
    while new:
        new = {target for sources, target in TRANSITIONS.values() if sources & reached} - reached
        reached |= new
    assert reached == set(STATES)
    assert EVENTS.keys() == TRANSITIONS.keys()


def test_a_change_is_no_step(db: Database) -> None:
    task = store.get(db, add(db))
    before = everything(db)
    with pytest.raises(ValueError, match="by a step"), db.write():
        store.change(db, task, "task.updated", AUTHOR, state="COMPLETED")
    assert everything(db) == before


def test_a_later_attempt_fences_a_step_of_an_earlier_one(db: Database) -> None:
    seen = store.get(db, add(db))
    with db.write():
        store.take_step(db, seen, "start", AUTHOR, attempts=1)
        again = store.take_step(db, store.get(db, seen.id), "release", AUTHOR)
        store.take_step(db, again, "claim", AUTHOR, attempts=2)
        mine = again.replace(state="IN_PROGRESS")
        assert refusal(lambda: store.take_step(db, mine, "submit", AUTHOR)) == "invalid_state"


@pytest.mark.slow
def test_no_other_statement_sets_the_state_of_a_task() -> None:
    writers = set()
    source = Path(rookery.__file__).parent
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.Module):
                body = [node for node in ast.walk(function) if isinstance(node, ast.Constant)]
                texts = [constant.value for constant in body if isinstance(constant.value, str)]
                name = getattr(function, "name", "")
                writers |= {(str(path.relative_to(source)), name) for text in texts if _SETS_STATE.search(text)}
    assert writers == {("tasks/store.py", ""), ("tasks/store.py", "_update")}
