from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

from rookery.base.record import Record


@dataclass(frozen=True, slots=True)
class Point(Record):
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Named(Point):
    name: str = "origin"


def test_defaults_and_inheritance() -> None:
    assert Point(1).y == 0
    assert Named(1).as_dict() == {"x": 1, "y": 0, "name": "origin"}
    assert Named(1, name="a").replace(y=5) == Named(1, 5, "a")
    assert repr(Named(1)) == "Named(x=1, y=0, name='origin')"


def test_pickled_and_copied_records_are_equal() -> None:
    point = Named(1, 2, "p")
    assert pickle.loads(pickle.dumps(point)) == copy.copy(point) == copy.deepcopy(point) == point
