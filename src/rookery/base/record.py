"""What our frozen dataclasses share: their fields as a dict or a tuple, and a copy with some of them changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self


class Record:
    """A value: equal by content, never changed in place. Subclasses are `@dataclass(frozen=True, slots=True)`."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of the fields, in the order of declaration."""
        return tuple(cls.__dataclass_fields__)

    def as_tuple(self) -> tuple[Any, ...]:
        """The values alone."""
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def as_dict(self) -> dict[str, Any]:
        """Field names and values, one level deep, in the order of declaration."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def replace(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        return replace(self, **changes)
