"""Help in groups, other words for commands, and hints for what people know from other tools."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from actions import Scene, ask_hook, ask_shell_hook, make_scene
from conftest import Rook
from rookery.cli.help import ABOUT, SECTIONS
from rookery.hooks.model import DENIED
from rookery.ops import index
from rookery.ops.command_line import GLOBALS, build_parser, describe
from rookery.ops.operation import FLAG
from rookery.ops.other_tools import OTHERS

WORDS = frozenset(
    {"AGE", "BRANCH", "CATEGORY", "COMMIT", "CONVERSATION", "FILE", "FOLDER", "ID", "JSON", "KEY=VALUE", "MESSAGE"}
    | {"MODEL", "N", "NAME", "PATTERN", "ROLE", "RUN", "SESSION", "STATE", "SUBJECT", "TASK", "TEXT", "TIME", "TITLE"}
    | {"TOOL", "TYPE", "OUTCOME", "VARIABLE", "WHEN", "WHY"}
)


def text(rook: Rook, *words: str) -> str:
    return rook(*words).out.decode()


def test_every_command_has_one_place_in_the_help() -> None:
    places = Counter(name for section in SECTIONS for name in section.main + section.more)
    assert [name for name in index.GROUPS if name not in places] == [], "give these a place in SECTIONS of cli/help.py"
    assert [name for name, times in places.items() if times > 1] == []
    assert ABOUT.keys() == index.GROUPS.keys(), "describe each command in ABOUT of cli/help.py, and no other"


def test_no_two_commands_differ_by_an_s() -> None:
    assert [name for name in index.GROUPS if name + "s" in index.GROUPS] == []


def test_the_help_fits_a_screen_and_hides_the_plumbing(rook: Rook) -> None:
    for words in (("--help",), ("help",), ()):
        lines = text(rook, *words).splitlines()
        assert len(lines) <= 41
        assert max(map(len, lines)) <= 80
        shown = "\n".join(lines)
        assert [title for title in ("Plan", "Agents", "Watch", "Land", "Admin") if f"\n{title}\n" not in shown] == []
        assert "schema" not in shown
        assert "ps = status" in shown


def test_the_whole_list_shows_every_command_with_what_it_does(rook: Rook) -> None:
    shown = text(rook, "help", "--all")
    assert [
        name for name, about in ABOUT.items() if not re.search(rf"^  {name} +{re.escape(about)}$", shown, re.M)
    ] == []


def test_the_help_of_every_command_fits_80_columns() -> None:
    for operation in index.load_all():
        wide = [line for line in build_parser(operation).format_help().splitlines() if len(line) > 80]
        assert wide == [], operation.name
    for group in index.GROUPS:
        assert [row for text in describe(index.load_group(group)) for row in text.splitlines() if len(row) > 80] == []


def test_what_stands_for_a_value_is_a_word_for_what_is_wanted() -> None:
    params = [param for operation in index.load_all() for param in operation.params if not param.positional]
    values = {param.value for param in (*params, *GLOBALS) if param.kind != FLAG}
    assert {value for value in values if not value.startswith("{")} <= WORDS, "a noun: see _VALUES in ops/operation.py"


@pytest.mark.parametrize("alias", index.ALIASES)
def test_an_alias_is_the_command_and_hides_none(alias: str) -> None:
    name = index.ALIASES[alias]
    if name in index.GROUPS and index.find([name])[0] is None:
        assert index.load_group(name)
    else:
        operation, taken = index.find([*alias.split(), "--json"])
        assert operation is not None
        assert (operation.name, taken) == (name, len(alias.split()))
    assert alias.partition(" ")[0] not in index.GROUPS or " " in alias


@pytest.mark.parametrize("alias", index.SHOWN_ALIASES)
def test_the_help_of_an_alias_is_that_of_its_command(rook: Rook, alias: str) -> None:
    name = index.ALIASES[alias]
    shown = text(rook, alias, "--help")
    assert shown.startswith(f"usage: rook {name} " if index.find([name])[0] or " " in name else ABOUT[name])
    assert shown == text(rook, "help", alias) == text(rook, *name.split(), "--help")
    assert f"alias: rook {alias}\n" in shown


def test_an_alias_runs(rook: Rook) -> None:
    task = rook.json("task", "create", "One").data["id"]
    assert rook("ls").out == rook("task", "list").out != b""
    assert [row["id"] for row in rook.json("ls", "--limit", "1").data] == [task]
    assert rook("ps").out == rook("status").out
    assert rook("kill", "no-such-agent").status == rook("stop", "no-such-agent").status == 1
    assert rook("agent", "discover").out == rook("agents", "discover").out


@pytest.fixture
def scene(project: Path) -> Scene:
    return make_scene(project)


def test_the_guard_judges_an_alias_as_its_command(scene: Scene) -> None:
    bee = scene.agents["bee"]
    assert ask_hook(bee, ["ls"]).status == 0
    assert ask_hook(bee, ["log", "bee"]).status == 0
    for alias, name in ((["kill", "ada"], ["stop", "ada"]), (["hook", "stop"], ["turn", "end"])):
        denied = ask_hook(bee, alias)
        assert denied.status == DENIED
        assert denied.err == ask_hook(bee, name).err
    assert ask_shell_hook(bee, "while true; do rook ps; done").status == DENIED
    unknown = ask_hook(bee, ["commit"])
    assert unknown.status == DENIED
    assert "rook vcs commit" in unknown.err


@pytest.mark.parametrize("words", OTHERS)
def test_a_command_of_another_tool_gets_ours(rook: Rook, words: str) -> None:
    ours = OTHERS[words]
    name = ours.removeprefix("rook ").split()
    assert name == ["--version"] or index.find(name)[0] is not None, ours
    assert index.find(words.split())[0] is None, "it is a command of ours: take the hint out"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["commit", "-m", "x"], "perhaps `rook vcs commit --message TEXT`"),
        (["run", "task_x"], "perhaps `rook sling TASK`"),
        (["task", "done", "x"], "perhaps `rook task complete TASK`"),
        (["mrege"], "did you mean `rook merge`?"),
        (["task", "lst"], "did you mean `rook task list`?"),
        (["restart", "bee"], "perhaps `rook resume NAME`"),
        (["approve", "x"], "perhaps `rook review approve TASK`"),
        (["update"], "`rook --help` shows the commands"),
        (["clear-all"], "`rook --help` shows the commands"),
        (["status", "bogus"], "`rook status --help` shows how it is used"),
        (["nothing-like-it"], "`rook --help` shows the commands"),
        (["task", "nothing-like-it"], "`rook task --help` shows the commands"),
    ],
)
def test_what_is_no_command_gets_a_hint(rook: Rook, words: list[str], hint: str) -> None:
    done = rook(*words)
    assert done.status == 2
    assert done.err.decode().splitlines()[-1] == f"hint: {hint}"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nothing-like-it", "`rook` has no command 'nothing-like-it'"),
        ("agent list", "`rook agents` has no command 'list'"),
        ("merge bogus", "`rook merge` has no command 'bogus'"),
        ("status bogus", "`rook status` takes no argument 'bogus'"),
    ],
)
def test_what_is_no_command_is_refused_in_english(rook: Rook, line: str, says: str) -> None:
    assert rook(*line.split()).err.decode().splitlines()[0] == f"error: {says}"
