"""Roles and their prompts: a prompt names only what exists."""

from __future__ import annotations

import re
import shlex

import pytest

from rookery.base.errors import InvalidInput
from rookery.ops import index
from rookery.ops.operation import Op, declared
from rookery.roles.messages import TYPES
from rookery.roles.model import PROFILES, ROLES, find_role, read_prompt
from rookery.turns import protocol


def _texts() -> list[tuple[str, str]]:
    return [
        (
            role.name,
            read_prompt(role, "/nowhere") + protocol.describe(role, agent="bee", parent="queen", task_id="task_1"),
        )
        for role in ROLES.values()
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
    for ending in ROLES[role].ends_with:
        assert f"rook mail send queen --type {ending}" in text


def test_an_ending_in_the_protocol_is_a_valid_message() -> None:
    for role in ROLES.values():
        for ending in role.ends_with:
            required = {each.name for each in TYPES[ending].fields if each.required}
            text = protocol.describe(role, agent="bee", parent="queen", task_id=None)
            line = next(each for each in text.splitlines() if f"--type {ending}" in each)
            assert all(f'"{name}"' in line for name in required)


def test_every_role_has_only_permissions_that_some_operation_needs() -> None:
    known = {operation.needs for operation in _operations().values()} | {"merge.write", "worktree.read"}
    for role in ROLES.values():
        assert role.needs <= known, role.name
        assert role.profile in PROFILES
        assert set(role.spawns) <= ROLES.keys()


@pytest.mark.parametrize(
    ("alias", "name"),
    [("orchestrator", "coordinator"), ("supervisor", "lead"), ("worker", "builder"), ("scout", "scout")],
)
def test_aliases_stand_for_roles(alias: str, name: str) -> None:
    assert find_role(alias).name == name


def test_an_unknown_role_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput) as refused:
        find_role("wizard")
    assert "builder" in refused.value.hint


def test_a_project_can_overrule_a_prompt(tmp_path: object) -> None:
    import pathlib

    folder = pathlib.Path(str(tmp_path)) / ".rookery" / "roles"
    folder.mkdir(parents=True)
    (folder / "builder.md").write_text("Build like us.\n")
    assert read_prompt(ROLES["builder"], str(tmp_path)) == "Build like us.\n"
    assert "Scout" in read_prompt(ROLES["scout"], str(tmp_path))


def test_only_leads_and_coordinators_sling() -> None:
    assert {role.name for role in ROLES.values() if role.can_spawn} == {"coordinator", "lead"}
