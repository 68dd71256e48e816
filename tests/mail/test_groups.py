"""Named groups."""

from __future__ import annotations

import pytest

from rookery.base.errors import InvalidInput, NotFound
from rookery.mail import group_ops as groups
from rookery.mail.group_ops import Group
from rookery.mail.model import UnknownRecipient
from rookery.ops.caller import ForgedSender

from .hive import Agent, Hive


def test_a_group_is_made_changed_and_deleted(hive: Hive, bee: Agent, drone: Agent) -> None:
    assert groups.create(hive.ctx(), "@hive", ("bee", "human", "bee")) == Group("hive", ("bee", "human"))
    assert groups.add(hive.ctx(bee), "hive", ("drone", "bee")).members == ("bee", "drone", "human")
    assert groups.remove(hive.ctx(), "@hive", ("human",)).members == ("bee", "drone")
    assert groups.list_groups(hive.ctx()) == [Group("hive", ("bee", "drone"))]
    assert groups.delete(hive.ctx(), "hive") == Group("hive", ("bee", "drone"))
    assert groups.list_groups(hive.ctx()) == []
    assert hive.events("group.created") == [{"members": ["bee", "human"]}]
    assert hive.events("group.changed") == [{"members": ["bee", "drone", "human"]}, {"members": ["bee", "drone"]}]
    assert hive.events("group.deleted") == [{"members": ["bee", "drone"]}]


def test_adding_who_is_in_it_changes_nothing(hive: Hive, bee: Agent) -> None:
    groups.create(hive.ctx(), "hive", ("bee",))
    before = hive.everything()
    groups.add(hive.ctx(), "hive", ("bee",))
    assert hive.everything() == before


@pytest.mark.parametrize("name", ["", "@", "all", "@ALL", "Builders", "lead", "a b", "a/b", "-a", "x" * 49, "ü"])
def test_a_name_that_cannot_be_a_groups_is_refused(hive: Hive, bee: Agent, name: str) -> None:
    with pytest.raises(InvalidInput):
        groups.create(hive.ctx(), name, ("bee",))


def test_refusals_leave_the_group_as_it_was(hive: Hive, bee: Agent, drone: Agent) -> None:
    groups.create(hive.ctx(), "hive", ("bee",))
    before = hive.everything()
    with pytest.raises(InvalidInput, match="already"):
        groups.create(hive.ctx(), "hive", ("drone",))
    with pytest.raises(UnknownRecipient):
        groups.add(hive.ctx(), "hive", ("drone", "stranger"))
    with pytest.raises(UnknownRecipient):
        groups.add(hive.ctx(), "hive", ("@all",))
    with pytest.raises(InvalidInput, match="empty"):
        groups.remove(hive.ctx(), "hive", ("bee",))
    with pytest.raises(NotFound):
        groups.remove(hive.ctx(), "hive", ("drone",))
    with pytest.raises(NotFound):
        groups.delete(hive.ctx(), "hives")
    with pytest.raises(ForgedSender):
        groups.delete(hive.ctx(bee._replace(token="wrong")), "hive")
    assert hive.everything() == before
