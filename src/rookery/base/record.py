"""What our frozen dataclasses share: their fields as a dict, a tuple or JSON, and a copy with some of them changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any, ClassVar, Self, get_type_hints


class Record:
    """A value: equal by content, never changed in place. Subclasses are `@dataclass(frozen=True, slots=True)`.

    Its JSON has its fields, but for those in `HIDDEN`, and the properties in `SHOWN`, under their own names or those in
    `JSON_NAMES`. A class whose JSON has another shape has a `to_json` of its own that returns a TypedDict.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]
    HIDDEN: ClassVar[tuple[str, ...]] = ()
    SHOWN: ClassVar[tuple[str, ...]] = ()
    JSON_NAMES: ClassVar[dict[str, str]] = {}
    PRINTS: ClassVar[str] = "id"
    """The field whose value `--quiet` prints, or whose records do: what the next command accepts. Empty for none."""

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of the fields, in the order of declaration."""
        return _field_names(cls)

    def as_tuple(self) -> tuple[Any, ...]:
        """The values alone."""
        return tuple(getattr(self, name) for name in _field_names(type(self)))

    def as_dict(self) -> dict[str, Any]:
        """Field names and values, one level deep, in the order of declaration."""
        return {name: getattr(self, name) for name in _field_names(type(self))}

    def replace(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        return replace(self, **changes)

    def to_json(self) -> Any:
        """The record as every interface gives it, one level deep."""
        names = self.JSON_NAMES
        return {names.get(name, name): getattr(self, name) for name in self._json_names()}

    def printed_words(self) -> Iterator[str]:
        """What `--quiet` prints: ids or names that the next command accepts, one a line."""
        yield from words_of(getattr(self, self.PRINTS, None) if self.PRINTS else None)

    @classmethod
    def _json_names(cls) -> list[str]:
        return [*(name for name in _field_names(cls) if name not in cls.HIDDEN), *cls.SHOWN]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """What its JSON looks like: `rook schema` prints it, and results are compared with it."""
        from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12, and runners need neither

        if cls.to_json is not Record.to_json:
            return handler.generate_schema(get_type_hints(cls.to_json)["return"])
        if not (cls.HIDDEN or cls.SHOWN or cls.JSON_NAMES):
            return handler(source)
        hints = get_type_hints(cls)
        types = {
            cls.JSON_NAMES.get(name, name): hints[name] if name in hints else _returned(getattr(cls, name))
            for name in cls._json_names()
        }
        return handler.generate_schema(TypedDict(cls.__name__, types))  # type: ignore[operator]


def words_of(value: Any) -> Iterator[str]:
    """The words of a value by the same rule: of a text itself, of a list those of its items, of nothing none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Record):
        yield from value.printed_words()
    elif isinstance(value, list | tuple):
        for item in value:
            yield from words_of(item)


_field_names: Callable[[Any], tuple[str, ...]] = cache(lambda record: tuple(field.name for field in fields(record)))


def _returned(property: Any) -> Any:
    return get_type_hints(property.fget)["return"]
