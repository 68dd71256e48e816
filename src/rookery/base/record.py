"""Frozen, slotted value objects that cost nothing to import.

`dataclasses` pulls in `inspect` and compiles code for every class: about 15 ms for the handful of types that
`rook task get` needs, more than the interpreter's own start. A `Record` reads the same and is checked the same
(`dataclass_transform`), and is built by twenty lines.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


class _RecordType(type):
    """Turns a class's annotations into slots and remembers the defaults."""

    __fields__: tuple[str, ...]
    __setters__: tuple[Callable[[Any, Any], None], ...]
    __defaults__: dict[str, Any]

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _RecordType:
        own = [field for field in body.get("__annotations__", {}) if not field.startswith("__")]
        inherited = [base for base in bases if isinstance(base, _RecordType)]
        defaults = {field: body.pop(field) for field in own if field in body}
        body["__slots__"] = tuple(own)
        cls = super().__new__(mcs, name, bases, body)
        cls.__fields__ = tuple(field for base in inherited for field in base.__fields__) + tuple(own)
        cls.__setters__ = tuple(getattr(cls, field).__set__ for field in cls.__fields__)
        cls.__defaults__ = {k: v for base in inherited for k, v in base.__defaults__.items()} | defaults
        return cls


@dataclass_transform(frozen_default=True)
class Record(metaclass=_RecordType):
    """A value: fields by position or name, equal by content, never changed in place."""

    if not TYPE_CHECKING:

        def __init__(self, *values, **named):
            cls = type(self)
            if not named and len(values) == len(cls.__fields__):
                # A row of a table: hundreds of these make up a page of a list.
                for put, value in zip(cls.__setters__, values, strict=True):
                    put(self, value)
                return
            if len(values) > len(cls.__fields__):
                raise TypeError(f"{cls.__name__} takes {len(cls.__fields__)} fields, got {len(values)}")
            given = dict(zip(cls.__fields__, values, strict=False))
            for name in named:
                if name in given or name not in cls.__fields__:
                    raise TypeError(f"{cls.__name__} got an unexpected {name!r}")
            given = cls.__defaults__ | given | named
            for field, put in zip(cls.__fields__, cls.__setters__, strict=True):
                if field not in given:
                    raise TypeError(f"{cls.__name__} needs {field!r}")
                put(self, given[field])

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} is frozen")

        def __delattr__(self, name):
            raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__fields__)
        return f"{type(self).__name__}({inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), self._values())

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in type(self).__fields__)

    def replace(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        if unknown := changes.keys() - set(type(self).__fields__):
            raise TypeError(f"{type(self).__name__} got an unexpected {min(unknown)!r}")
        return type(self)(*(self.as_dict() | changes).values())

    def as_dict(self) -> dict[str, Any]:
        """Field names and values, one level deep, in the order of declaration."""
        return {name: getattr(self, name) for name in type(self).__fields__}
