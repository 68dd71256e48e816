from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.base import ids
from rookery.base.errors import AmbiguousId, InvalidId, NotFound
from rookery.base.ids import (
    LEARNING,
    MERGE,
    MESSAGE,
    RUN,
    TASK,
    handle,
    is_id,
    new_id,
    parse_id,
    resolve_id,
    with_handles,
)

_ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
_letters = st.sampled_from("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


@pytest.fixture(autouse=True)
def _own_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times in the future stay within a test."""
    monkeypatch.setattr(ids, "_last", (0, 0))


def test_ids_of_one_millisecond_are_in_order_and_differ() -> None:
    new_ids = [new_id(TASK, at=1_700_000_000.0) for _ in range(2_000)]
    assert new_ids == sorted(set(new_ids))


def test_ids_are_in_order_when_the_clock_goes_back() -> None:
    assert new_id(TASK, at=1_900_000_000.0) < new_id(TASK, at=1_800_000_000.0) < new_id(TASK, at=1_900_000_000.001)


def test_ids_are_in_order_when_the_random_part_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    millis = 1_950_000_000_000
    monkeypatch.setattr(ids, "_last", (millis, (1 << 80) - 2))
    new_ids = [new_id(TASK, at=millis / 1000) for _ in range(5)]
    assert new_ids == sorted(set(new_ids))
    assert all(is_id(TASK, id_) for id_ in new_ids)


@given(st.integers(0, (1 << 48) - 1))
def test_every_time_that_fits_gives_a_valid_id(millis: int) -> None:
    ids._last = (0, 0)
    id_ = new_id(TASK, at=millis / 1000)
    assert is_id(TASK, id_)
    assert parse_id(TASK, id_) == id_ == parse_id(TASK, id_.lower()) == parse_id(TASK, id_[5:])


@given(st.sampled_from("01234567"), st.text(_letters, min_size=25, max_size=25), st.integers(6, 26))
def test_a_prefix_names_the_id_with_and_without_its_kind(first: str, rest: str, length: int) -> None:
    whole = f"task_{first}{rest}"
    known = [whole, "task_7" + "Z" * 25] if not whole.startswith("task_7") else [whole]

    def lookup(low: str, high: str, ending: str) -> list[str]:
        return [id_ for id_ in known if low <= id_ < high and id_.endswith(ending)][:2]

    assert resolve_id(TASK, whole[5 : 5 + length], lookup) == whole
    assert resolve_id(TASK, whole[: 5 + length], lookup) == whole


def test_an_ending_names_the_id_with_the_prefix_or_without() -> None:
    known = ["task_01ARZ3NDEKTSV4RRFFQ69G5FAV", "task_01ARZ3NDEKTSV4RRFFQ6901AR", "task_01ARZ3NDEKTSV4RRFFQ69X5FAV"]

    def lookup(low: str, high: str, ending: str) -> list[str]:
        return [id_ for id_ in known if low <= id_ < high and id_.endswith(ending)][:2]

    for text in ("g5fav", "task_g5fav", "TASK_69G5fav"):
        assert resolve_id(TASK, text, lookup) == known[0]
    assert resolve_id(TASK, "ZZZZ", lambda low, _high, ending: known[:1] if (low, ending) == ("task_", "ZZZZ") else [])
    with pytest.raises(AmbiguousId, match="5FAV fits more than one task:\n- 9g5fav  Title of g5fav\n- 9x5fav"):
        resolve_id(TASK, "5FAV", lookup, lambda one: f"Title of {one[-5:].lower()}")
    with pytest.raises(AmbiguousId):
        resolve_id(TASK, "01AR", lookup)  # all begin so
    with pytest.raises(NotFound):
        resolve_id(TASK, "task_5FAW", lookup)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "_",
        "task_",
        "01A",
        "lrn_" + _ULID,
        "task" + _ULID,
        "TASK-" + _ULID,
        "task_" + _ULID + "0",
        "task_8" + _ULID[1:],
        "task_" + _ULID[:-1] + "U",
        "task_" + _ULID[:-1] + "I",
        "task_" + _ULID[:12] + " " + _ULID[13:],
        "task_" + _ULID[:-1] + "\n",
        "task_task_" + _ULID[:10],
        "task_%",
        "01ARZ3'; DROP TABLE tasks; --",
        "٠١٢٣٤٥٦",
    ],
)
def test_what_cannot_be_an_id_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidId) as caught:
        parse_id(TASK, text)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["task_0", "01AR", "TASK_01arz3", _ULID, "task_" + _ULID])
def test_four_characters_are_enough(text: str) -> None:
    assert parse_id(TASK, text).startswith("task_0")


@pytest.mark.parametrize("text", [_ULID, "task_" + _ULID[:-1], "task_" + _ULID.lower(), f"task_{_ULID} ", "", "task_"])
def test_only_a_whole_canonical_id_is_an_id(text: str) -> None:
    assert is_id(TASK, "task_" + _ULID)
    assert not is_id(TASK, text)
    assert not is_id(LEARNING, "task_" + _ULID)


def test_none_and_several_are_told_apart() -> None:
    with pytest.raises(NotFound, match=_ULID):
        resolve_id(TASK, _ULID, lambda *_bounds: [])
    with pytest.raises(AmbiguousId) as caught:
        resolve_id(TASK, "FAV123", lambda *_bounds: ["task_01XFAV123", "task_01YFAV123"])
    assert caught.value.message.splitlines()[1:] == ["- xfav123", "- yfav123"], "handles that are alike get longer"
    assert caught.value.hint


def test_our_sentences_have_handles_and_paths_stay_whole() -> None:
    one = "task_" + _ULID
    assert with_handles(f"{one} is blocked: `rook task get {one}`, ({one})") == (
        "9g5fav is blocked: `rook task get 9g5fav`, (9g5fav)"
    )
    for kept in (f"rook/bee/{one}", f".rookery/specs/{one}.md", f"{one}.json", f"'{one}'", f"ses_{_ULID}", one + "X"):
        assert with_handles(kept) == kept


def test_a_handle_names_its_id() -> None:
    ids_ = [new_id(TASK) for _ in range(50)]

    def lookup(low: str, high: str, ending: str) -> list[str]:
        return [one for one in ids_ if low <= one < high and one.endswith(ending)]

    assert [resolve_id(TASK, handle(one), lookup) for one in ids_] == ids_
    assert all(len(handle(one)) == 6 and handle(one).islower() | handle(one).isdigit() for one in ids_)


@pytest.mark.parametrize(
    ("kind", "text", "says", "hint"),
    [
        (TASK, "nosuch", "no task nosuch", "`rook task list` lists them"),
        (TASK, "no such", "no task 'no such'", "`rook task list` lists them"),
        (TASK, "eve", "no task eve", "`rook task list` lists them; a part of an id has at least 4 characters"),
        (TASK, "lrn_" + _ULID, f"'lrn_{_ULID}' is not the id of a task", "`rook task list` lists them"),
        (MESSAGE, "nosuch", "no message nosuch", "`rook mail list` lists them"),
        (RUN, "nosuch", "no run nosuch", "`rook run list` lists them"),
        (MERGE, "nosuch", "no merge nosuch", "`rook merge list` lists them"),
    ],
)
def test_a_word_that_is_no_id_is_refused_with_the_command_that_lists_what_there_is(
    kind: str, text: str, says: str, hint: str
) -> None:
    with pytest.raises(InvalidId) as caught:
        parse_id(kind, text)
    assert (caught.value.message, caught.value.hint) == (says, hint)


def test_the_form_of_an_id_is_explained_where_one_was_begun() -> None:
    with pytest.raises(InvalidId) as caught:
        parse_id(TASK, "task_" + _ULID + "0")
    assert "26 letters and digits" in caught.value.hint
    assert "rook task list" in caught.value.hint
