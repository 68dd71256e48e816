"""A project's own roles: files in `.rookery/roles/`, and every mistake that they can hold."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rookery.base.check import ERROR, OK, Place
from rookery.base.errors import InvalidInput, Refused
from rookery.roles.catalog import builtin_roles, find_role, list_roles, read_role, role_groups
from rookery.roles.checks import check_roles
from rookery.roles.model import RELAXED, STRICT, Role, RoleInvalid
from support import write_role

WHOLE = """\
purpose: writes the documentation
profile: relaxed
writes: scope
rights:
  mail.read: any
  mail.write: own
"""

GUIDE = Path(__file__).parents[2] / "docs/guides/agents.md"


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


def problem(root: str, name: str = "writer") -> str:
    """What is wrong with a role's file."""
    with pytest.raises(RoleInvalid) as refused:
        read_role(root, name)
    return refused.value.message


def test_a_project_adds_a_role(root: str) -> None:
    write_role(root, "writer", f"name: writer\naliases: [author]\n{WHOLE}", "# Writer\n\nYou write.\n")
    role = find_role(root, "author")
    assert (role.name, role.profile, role.prompt) == ("writer", RELAXED, "# Writer\n\nYou write.\n")
    assert role.rights == {"mail.read": "any", "mail.write": "own", "hook.write": "program"}
    assert [listed.name for listed in list_roles(root)] == [*builtin_roles(), "writer"]


def test_the_example_of_the_guide_is_a_role(root: str) -> None:
    example = GUIDE.read_text().partition("```markdown\n")[2].partition("```")[0]
    write_role(root, "writer").write_text(example)
    role = find_role(root, "author")
    assert (role.name, role.profile, role.writes) == ("writer", RELAXED, "scope")
    assert role.prompt.startswith("# Writer")


def test_every_key_is_in_the_guide() -> None:
    table = GUIDE.read_text().partition("| key | says |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z_]+)`", "\n".join(line.split("|")[1] for line in table.splitlines()[2:])))
    assert named == {*Role.field_names(), "extends"} - {"prompt"}


def test_a_role_that_extends_another_names_only_what_differs(root: str) -> None:
    front = "extends: builder\nprofile: strict\ntools: [Read, Edit]\nrights: {vcs.write: none, run.write: any}"
    write_role(root, "writer", front)
    role, builder = read_role(root, "writer"), builtin_roles()["builder"]
    assert role.rights == {name: reach for name, reach in builder.rights.items() if name != "vcs.write"} | {
        "run.write": "any"
    }
    assert (role.profile, role.tools, role.aliases) == (STRICT, ("Read", "Edit"), ())
    assert (role.purpose, role.prompt, role.writes) == (builder.purpose, builder.prompt, builder.writes)


def test_a_file_replaces_a_built_in_role_and_keeps_its_aliases(root: str) -> None:
    write_role(root, "builder", "extends: builder\nmodel: opus\nruntime: scripted", "Build like us.\n")
    role = find_role(root, "worker")
    assert (role.name, role.model, role.runtime, role.prompt) == ("builder", "opus", "scripted", "Build like us.\n")
    assert role.rights == builtin_roles()["builder"].rights


def test_a_file_without_front_matter_replaces_the_prompt_alone(root: str) -> None:
    path = write_role(root, "builder")
    path.write_text("Build like us.\n")
    assert read_role(root, "builder") == builtin_roles()["builder"].replace(prompt="Build like us.\n")
    assert read_role(root, "scout") == builtin_roles()["scout"]


def test_the_text_for_resolving_conflicts_is_no_role(root: str) -> None:
    path = write_role(root, "resolver")
    path.write_text("Keep both sides.\n")
    assert len(list_roles(root)) == len(builtin_roles())
    assert [finding.status for finding in check_roles(Place(root, root))] == [OK]


def test_a_changed_file_counts_at_once(root: str) -> None:
    path = write_role(root, "writer", WHOLE, "One.\n")
    assert read_role(root, "writer").prompt == "One.\n"
    write_role(root, "writer", WHOLE, "Another.\n")
    assert read_role(root, "writer").prompt == "Another.\n"
    path.unlink()
    with pytest.raises(InvalidInput):
        read_role(root, "writer")


def test_a_file_that_has_not_changed_is_read_once(root: str) -> None:
    write_role(root, "writer", WHOLE, "One.\n")
    assert read_role(root, "writer") is read_role(root, "writer")


@pytest.mark.parametrize(
    ("front", "line", "complaint"),
    [
        ("extends: builder\ncolour: red", 3, "a role has no colour"),
        ("extends: builder\nprofle: strict", 3, "did you mean profile?"),
        ("extends: wizard", 2, "no built-in role wizard to extend; one of coordinator, lead"),
        ("extends: builder\nname: author", 3, "the file is called writer.md"),
        ("extends: builder\nprofile: reckless", 3, "strict, relaxed, yolo"),
        ("extends: builder\nwrites: everything", 3, "nothing, scope"),
        ("extends: builder\nruntime: abacus", 3, "scripted"),
        ("extends: builder\nruns_checks: perhaps", 3, "one of true, yes, false, no"),
        ("extends: builder\nends_with: [hooray]", 3, "worker_done"),
        ("extends: builder\nends_with: [worker_died]", 3, "worker_done"),
        ("extends: builder\nends_with: []", 3, "could never finish"),
        ("extends: builder\nrights: {mail.write: none}", 1, "could never finish"),
        ("extends: builder\nrights: {moon.write: any}", 3, "no permission moon.write"),
        ("extends: builder\nrights: {task.wirte: own}", 3, "did you mean task.write?"),
        ("extends: builder\nrights: {gate.write: any}", 3, "gate.write is for people alone"),
        (
            "extends: builder\nrights: {task.write: everywhere}",
            3,
            "reach 'everywhere'; one of own, beneath, any",
        ),
        ("extends: builder\nrights: {task.write: program}", 3, "cannot reach 'program'"),
        ("extends: builder\nrights: {hook.write: any}", 3, "cannot reach 'any'; one of program"),
        ("extends: builder\nrights: {hook.write: none}", 3, "cannot reach 'none'"),
        ("extends: builder\nrights: {task.write: [any]}", 3, "cannot reach"),
        ("extends: builder\nrights: [task.write]", 3, "rights must hold `key: value` lines"),
        ("extends: builder\nrights: {task.write: own, task.write: any}", 3, "task.write is given twice"),
        ("extends: builder\nprofile: strict\nprofile: yolo", 4, "profile is given twice"),
        ("extends: builder\ntools: [Raed]", 3, "there is no tool Raed"),
        ("extends: builder\ntools: [Task]", 3, "no agent may use Task"),
        ("extends: builder\ntools: Read", 3, "`all` or a list"),
        ("extends: builder\ntools: [[Read]]", 3, "there is no tool"),
        ("extends: builder\naliases: [worker]", 3, "worker is a name of the role builder"),
        ("extends: builder\naliases: [Big One]", 3, "'Big One' is not a valid name for a role"),
        ("extends: builder\nslings: [wizard]", None, "it slings wizard, and there is no such role"),
        ("purpose: nothing else", 1, "it lacks profile, writes, rights"),
        (WHOLE, 1, "it has no prompt"),
        ("extends: [", 3, "it is not YAML"),
        ("just a text", 2, "`key: value` lines"),
    ],
)
def test_a_mistake_is_reported_at_its_line(root: str, front: str, line: int | None, complaint: str) -> None:
    path = write_role(root, "writer", front)
    message = problem(root)
    assert message.startswith(str(path) if line is None else f"{path}:{line}:"), message
    assert complaint in message


def test_one_mistake_is_reported_once(root: str) -> None:
    write_role(root, "writer", WHOLE.replace("relaxed", "reckless"), "You write.\n")
    assert len(problem(root).splitlines()) == 1


def test_front_matter_without_an_end(root: str) -> None:
    path = write_role(root, "writer")
    path.write_text("---\nextends: builder\n")
    assert "front matter has no end" in problem(root)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("Writer", "not a valid name"), ("1st", "not a valid name"), ("worker", "call the file builder.md")],
)
def test_a_bad_name_is_refused(root: str, name: str, complaint: str) -> None:
    write_role(root, name, "extends: builder")
    assert complaint in problem(root, name)


def test_a_text_alone_replaces_the_prompt_of_no_other_role(root: str) -> None:
    path = write_role(root, "writer")
    path.write_text("You write.\n")
    assert "no built-in role writer" in problem(root)


def test_a_broken_file_breaks_its_own_role_alone(root: str) -> None:
    write_role(root, "builder", "extends: wizard")
    write_role(root, "writer", "extends: scout\nslings: [builder]")
    for text in ("builder", "worker"):
        with pytest.raises(RoleInvalid):
            find_role(root, text)
    assert [role_groups(root)[group] for group in ("builders", "workers")] == ["builder", "builder"]
    assert "builder" not in {role.name for role in list_roles(root)}
    assert read_role(root, "writer").slings == ("builder",)
    assert read_role(root, "scout") == builtin_roles()["scout"]
    (finding,) = check_roles(Place(root, root))
    assert finding.status == ERROR
    assert "builder.md:2:" in finding.message
    assert finding.hint


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_link_to_elsewhere_is_no_role(root: str, tmp_path: Path, linked: str) -> None:
    """Otherwise one could lead into a worktree, where an agent writes."""
    path = write_role(tmp_path / "worktree", "builder", "extends: builder\nrights: {merge.write: any}")
    own = Path(root, ".rookery", "roles")
    own.parent.mkdir()
    if linked == "folder":
        own.symlink_to(path.parent)
    else:
        own.mkdir()
        (own / "builder.md").symlink_to(path)
    assert "not a plain file" in problem(root, "builder")


def test_no_name_leads_out_of_the_folder(root: str, tmp_path: Path) -> None:
    write_role(root, "writer", "extends: builder")
    (tmp_path / ".rookery" / "evil.md").write_text("---\nextends: builder\n---\n")
    with pytest.raises(Refused):
        read_role(root, "../evil")
    with pytest.raises(Refused):
        find_role(root, os.path.join(root, ".rookery", "roles", "writer"))


def test_names_that_two_roles_share_are_reported(root: str) -> None:
    write_role(root, "writer", "extends: builder\naliases: [author]")
    write_role(root, "poet", "extends: builder\naliases: [author]")
    with pytest.raises(InvalidInput, match="author is a name of poet and writer"):
        find_role(root, "author")
    (finding,) = check_roles(Place(root, root))
    assert (finding.status, finding.message) == (ERROR, "author is a name of poet and writer")


def test_groups_of_mail_follow_the_names(root: str) -> None:
    write_role(root, "writer", "extends: builder\naliases: [author]")
    groups = role_groups(root)
    assert {groups[name] for name in ("writers", "authors")} == {"writer"}
    assert [groups[name] for name in ("workers", "supervisors", "orchestrators")] == ["builder", "lead", "coordinator"]
