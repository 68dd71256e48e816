"""What tokens cost, and how costs add up."""

from __future__ import annotations

import pytest

from rookery.base.errors import ConfigInvalid
from rookery.config.model import Config, CostsConfig
from rookery.costs.prices import find_price, price
from rookery.costs.store import sum_up
from rookery.db.database import Database

_USAGE = {"input": 1_000_000, "output": 100_000, "cache_read": 10_000_000, "cache_write": 0}


def test_the_longest_name_that_fits_counts() -> None:
    config = Config(costs=CostsConfig(prices=("claude-sonnet-9=1/2", "other=4/8/0/0")))
    assert price(_USAGE, "claude-sonnet-9-2027", config)["cost_micros"] == 1_000_000 + 200_000 + 1_000_000
    assert price(_USAGE, "other-model", config)["cost_micros"] == 4_000_000 + 800_000
    assert price(_USAGE, "claude-sonnet-4", config)["cost_micros"] == 3_000_000 + 1_500_000 + 3_000_000


def test_what_the_program_says_itself_counts() -> None:
    assert price({**_USAGE, "cost_micros": 7}, "sonnet", Config())["cost_micros"] == 7


def test_a_model_without_a_price_costs_nothing() -> None:
    assert find_price("unheard-of", Config()) is None
    assert price(_USAGE, "unheard-of", Config())["cost_micros"] == 0


@pytest.mark.parametrize("entry", ["", "model", "model=", "=1/2", "model=1", "model=1/2/3", "model=a/b", "model=-1/2"])
def test_an_entry_that_is_not_a_price_is_refused(entry: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"costs\.prices"):
        find_price("model", Config(costs=CostsConfig(prices=(entry,))))


def test_nothing_used_sums_up_to_nothing(db: Database) -> None:
    costs = sum_up(db, "agent", agent=None, run=None, since=None)
    assert (costs.rows, costs.total.dollars) == ((), 0)
