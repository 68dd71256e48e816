"""What tokens cost. The table is dated, and the configuration adds to it; a model that is not in it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rookery.base.errors import ConfigInvalid
from rookery.base.record import Record
from rookery.config.model import Config


@dataclass(frozen=True, slots=True)
class Price(Record):
    """Dollars for a million tokens of each kind, which is the same as millionths of a dollar for one."""

    input: float
    output: float
    cache_read: float
    cache_write: float


KINDS = Price.field_names()
"""The kinds of tokens."""

# The longest beginning of a model's name that is listed counts.
PRICES: dict[str, Price] = {
    "claude-opus": Price(5.0, 25.0, 0.5, 6.25),
    "claude-sonnet": Price(3.0, 15.0, 0.3, 3.75),
    "claude-haiku": Price(1.0, 5.0, 0.1, 1.25),
    "opus": Price(5.0, 25.0, 0.5, 6.25),
    "sonnet": Price(3.0, 15.0, 0.3, 3.75),
    "haiku": Price(1.0, 5.0, 0.1, 1.25),
    "scripted": Price(3.0, 15.0, 0.3, 3.75),
}


def price(usage: dict[str, Any], model: str, config: Config) -> dict[str, Any]:
    """The usage with its model and its cost in millionths of a dollar; a cost that the program reports counts."""
    name = str(usage.get("model") or model)
    counts = {kind: int(usage.get(kind) or 0) for kind in KINDS}
    micros = usage.get("cost_micros")
    if micros is None:
        rates = find_price(name, config)
        micros = 0 if rates is None else sum(getattr(rates, kind) * count for kind, count in counts.items())
    return {"model": name, **counts, "cost_micros": round(micros)}


def find_price(model: str, config: Config) -> Price | None:
    """The price of a model, if it is known."""
    table = PRICES | dict(_parse(entry) for entry in config.costs.prices)
    fitting = [name for name in table if model.startswith(name)]
    return table[max(fitting, key=len)] if fitting else None


def _parse(entry: str) -> tuple[str, Price]:
    name, _, numbers = entry.partition("=")
    parts = numbers.split("/")
    are_numbers = all(part.replace(".", "", 1).isdigit() for part in parts)
    if not name.strip() or len(parts) not in (2, 4) or not are_numbers:
        raise ConfigInvalid(
            f"costs.prices: {entry!r} is not a price", hint="write model=INPUT/OUTPUT or model=INPUT/OUTPUT/READ/WRITE"
        )
    values = [float(part) for part in parts]
    if len(values) == 2:
        values += [values[0] / 10, values[0] * 1.25]
    return name.strip(), Price(*values)
