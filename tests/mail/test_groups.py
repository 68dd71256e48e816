"""Named groups."""

from __future__ import annotations

import pytest

from rookery.base.errors import InvalidInput, NotFound
from rookery.mail import groups
from rookery.mail.groups import Group
from rookery.mail.model import UnknownRecipient
from rookery.ops.caller import ForgedSender

from .hive import HUMAN, NOW, Agent, Hive


def test_a_group_is_made_changed_and_deleted(hive: Hive, bee: Agent, drone: Agent) -> None:
    assert groups.create(hive.db, HUMAN, "@hive", ["bee", "human", "bee"], NOW) == Group("hive", ("bee", "human"))
    assert groups.add(hive.db, hive.as_(bee), "hive", ["drone", "bee"], NOW).members == ("bee", "drone", "human")
    assert groups.remove(hive.db, HUMAN, "@hive", ["human"], NOW).members == ("bee", "drone")
    assert groups.list_groups(hive.db) == [Group("hive", ("bee", "drone"))]
    assert groups.delete(hive.db, HUMAN, "hive", NOW) == Group("hive", ("bee", "drone"))
    assert groups.list_groups(hive.db) == []
    assert hive.events("group.created") == [{"members": ["bee", "human"]}]
    assert hive.events("group.changed") == [{"members": ["bee", "drone", "human"]}, {"members": ["bee", "drone"]}]
    assert hive.events("group.deleted") == [{"members": ["bee", "drone"]}]


def test_adding_who_is_in_it_changes_nothing(hive: Hive, bee: Agent) -> None:
    groups.create(hive.db, HUMAN, "hive", ["bee"], NOW)
    before = hive.everything()
    groups.add(hive.db, HUMAN, "hive", ["bee"], NOW)
    assert hive.everything() == before


@pytest.mark.parametrize("name", ["", "@", "all", "@ALL", "Builders", "lead", "a b", "a/b", "-a", "x" * 49, "ü"])
def test_a_name_that_cannot_be_a_groups_is_refused(hive: Hive, bee: Agent, name: str) -> None:
    with pytest.raises(InvalidInput):
        groups.create(hive.db, HUMAN, name, ["bee"], NOW)


def test_refusals_leave_the_group_as_it_was(hive: Hive, bee: Agent, drone: Agent) -> None:
    groups.create(hive.db, HUMAN, "hive", ["bee"], NOW)
    before = hive.everything()
    with pytest.raises(InvalidInput, match="already"):
        groups.create(hive.db, HUMAN, "hive", ["drone"], NOW)
    with pytest.raises(UnknownRecipient):
        groups.add(hive.db, HUMAN, "hive", ["drone", "stranger"], NOW)
    with pytest.raises(UnknownRecipient):
        groups.add(hive.db, HUMAN, "hive", ["@all"], NOW)
    with pytest.raises(InvalidInput, match="empty"):
        groups.remove(hive.db, HUMAN, "hive", ["bee"], NOW)
    with pytest.raises(NotFound):
        groups.remove(hive.db, HUMAN, "hive", ["drone"], NOW)
    with pytest.raises(NotFound):
        groups.delete(hive.db, HUMAN, "hives", NOW)
    with pytest.raises(ForgedSender):
        groups.delete(hive.db, hive.as_(bee._replace(token="wrong")), "hive", NOW)
    assert hive.everything() == before
