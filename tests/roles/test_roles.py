"""Roles and their prompts: a prompt names only what exists."""

from __future__ import annotations

import re
import shlex

import pytest

from rookery.base.errors import InvalidInput
from rookery.ops import index
from rookery.ops.operation import Op, declared
from rookery.roles.catalog import builtin_roles, find_role
from rookery.roles.messages import TYPES
from rookery.turns.instructions import describe_reporting


def _texts() -> list[tuple[str, str]]:
    return [
        (
            role.name,
            role.prompt + describe_reporting(role, agent="bee", parent="queen", task_id="task_1"),
        )
        for role in builtin_roles().values()
    ]


def _operations() -> dict[str, Op]:
    index.load_all()
    return declared()


@pytest.mark.parametrize(("role", "text"), _texts())
def test_a_prompt_names_only_commands_and_options_that_exist(role: str, text: str) -> None:
    operations = _operations()
    mentions = re.findall(r"`(rook [^`]+)`", text) + re.findall(r"^    (rook .+)$", text, re.MULTILINE)
    assert mentions
    for mention in mentions:
        words = shlex.split(mention)[1:]
        name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in operations), None)
        assert name is not None, f"{role}: {mention}"
        flags = {param.flag for param in operations[name].params}
        used = {word for word in words if word.startswith("--")}
        assert used <= flags, f"{role}: {mention} uses {used - flags}"


@pytest.mark.parametrize(("role", "text"), _texts())
def test_a_prompt_names_only_message_types_that_exist(role: str, text: str) -> None:
    named = set(re.findall(r"type `(\w+)`", text)) | set(re.findall(r"^- `(\w+)`: ", text, re.MULTILINE))
    named |= set(re.findall(r"--type ([a-z_]+)", text))
    assert named
    assert named <= TYPES.keys(), f"{role} names {named - TYPES.keys()}"


@pytest.mark.parametrize(("role", "text"), _texts())
def test_a_prompt_tells_how_to_finish(role: str, text: str) -> None:
    for ending in builtin_roles()[role].ends_with:
        assert f"rook mail send queen --type {ending}" in text


def test_an_ending_in_the_protocol_is_a_valid_message() -> None:
    for role in builtin_roles().values():
        for ending in role.ends_with:
            required = {field.name for field in TYPES[ending].fields if field.required}
            text = describe_reporting(role, agent="bee", parent="queen", task_id=None)
            line = next(printed for printed in text.splitlines() if f"--type {ending}" in printed)
            assert all(f'"{name}"' in line for name in required)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("orchestrator", "coordinator"), ("supervisor", "lead"), ("worker", "builder"), ("scout", "scout")],
)
def test_aliases_stand_for_roles(alias: str, name: str) -> None:
    assert find_role(None, alias).name == name


def test_an_unknown_role_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput) as refused:
        find_role(None, "wizard")
    assert "builder" in refused.value.hint


def test_only_leads_and_coordinators_sling() -> None:
    roles = builtin_roles()
    assert {role.name for role in roles.values() if role.can_spawn} == {"coordinator", "lead"}
    assert all(set(role.slings) <= roles.keys() for role in roles.values())
