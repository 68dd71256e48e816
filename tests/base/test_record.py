from __future__ import annotations

import copy
import pickle

import pytest

from rookery.base.record import Record


class Point(Record):
    x: int
    y: int = 0


class Named(Point):
    name: str = "origin"


def test_equal_by_content_and_class() -> None:
    assert Point(1, 2) == Point(x=1, y=2)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert Point(1, 2) != Point(2, 1)
    assert Point(1, 2) != Named(1, 2)
    assert Point(1, 2) != (1, 2)


def test_frozen_and_slotted() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="frozen"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del point.x
    with pytest.raises(AttributeError):
        point.z = 3  # type: ignore[attr-defined]
    assert not hasattr(point, "__dict__")
    assert point == Point(1)


def test_defaults_and_inheritance() -> None:
    assert Point(1).y == 0
    assert Named(1).as_dict() == {"x": 1, "y": 0, "name": "origin"}
    assert Named(1, name="a").replace(y=5) == Named(1, 5, "a")
    assert repr(Named(1)) == "Named(x=1, y=0, name='origin')"


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((), {"y": 1})]
)
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)
    with pytest.raises(TypeError):
        Point(1).replace(z=1)


def test_pickled_and_copied_records_are_equal() -> None:
    point = Named(1, 2, "p")
    assert pickle.loads(pickle.dumps(point)) == copy.copy(point) == copy.deepcopy(point) == point


def test_a_record_matches_by_its_fields() -> None:
    match Named(1, 2, "p"):
        case Named(x=1, name=name):
            assert name == "p"
        case _:
            raise AssertionError
