from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rookery.db.database import Database
from rookery.tasks import learning_ops, lifecycle, service
from support import AUTHOR, add, person_at, refusal

_queries = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_queries.filter(str.strip))
@example('"')
@example("-")
@example("NEAR(")
@example("title:odd OR")
@example("a* ^b")
def test_a_query_is_words_whatever_they_look_like(db: Database, query: str) -> None:
    assert isinstance(service.search(db, query, 5), list)
    assert isinstance(learning_ops.search(person_at(db), query, limit=5), list)


def test_every_word_counts_and_the_last_may_be_unfinished(db: Database) -> None:
    first = add(db, "Parse the käse", description="slowly")
    second = add(db, "Parse everything")
    hits = {query: {view.task.id for view in service.search(db, query, 9)} for query in _EXPECTED}
    assert hits == {query: {(first, second)[n] for n in hits} for query, hits in _EXPECTED.items()}


_EXPECTED = {"parse": {0, 1}, "pars": {0, 1}, "pars the": set(), "PARSE kase": {0}, "slow": {0}, "every parse": set()}


def test_the_index_follows_every_change(db: Database) -> None:
    task = add(db, "old words")
    service.update(db, task, AUTHOR, {"title": "new words"})
    lifecycle.complete(db, task, AUTHOR, result="outcome", learned=["insight"])
    assert service.search(db, "old", 9) == []
    assert [view.task.id for view in service.search(db, "outcome", 9)] == [task]
    assert [learning.content for learning in learning_ops.search(person_at(db), "insig")] == ["insight"]
    service.delete(db, task, AUTHOR)
    assert service.search(db, "words", 9) == []
    assert learning_ops.search(person_at(db), "insight") == []


@pytest.mark.parametrize("query", ["", " ", "a\0b", "\ud800"])
def test_what_cannot_be_searched_is_refused(db: Database, query: str) -> None:
    assert refusal(lambda: service.search(db, query, 5)) == "invalid_input"
    assert refusal(lambda: learning_ops.search(person_at(db), query, limit=5)) == "invalid_input"
