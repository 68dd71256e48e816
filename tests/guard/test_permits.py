"""What agents may call: one table, asked by the guard before and by every interface when it is called."""

from __future__ import annotations

import io
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actions import ALLOWED, REFUSED, Scene, ask_hook, calls_on, make_scene
from agent_rows import Agent
from conftest import Rook
from rookery.base.call import Call, serving
from rookery.base.errors import RookError
from rookery.cli.parse import parse_operation
from rookery.config.environ import read_environ
from rookery.guard.decide import decide
from rookery.guard.model import ALLOW
from rookery.guard.model import Call as ToolCall
from rookery.guard.ownership import check_one
from rookery.guard.permits import check_permitted
from rookery.hooks import service as hooks
from rookery.hooks import tool_events as tool_hooks
from rookery.hooks.model import DENIED
from rookery.mail import group_ops
from rookery.ops import index, operation
from rookery.ops.command_line import read_globals
from rookery.ops.context import Context
from rookery.ops.model import PERSON
from rookery.ops.operation import Op
from rookery.roles.catalog import builtin_roles
from rookery.roles.permissions import OWN, PERMISSIONS, PROGRAM
from rookery.roles.rights import NotPermitted, reach_of
from rookery.tasks import learnings
from support import AUTHOR, write_role

OPERATIONS = {op.name: op for op in index.load_all()}


@pytest.fixture
def scene(project: Path) -> Scene:
    return make_scene(project)


def permit(agent: Agent, words: list[str], cwd: str | Path = "", env: dict[str, str] | None = None) -> RookError | None:
    """What `check_permitted` says to a call; None if it lets it pass."""
    settings, rest = read_globals(words)
    op, length = index.find(rest)
    assert op is not None, words
    values, _ = parse_operation(op, rest[length:], settings)
    environ = read_environ({"HOME": "/nowhere", **(agent.env if env is None else env)})
    ctx = Context(cwd=str(cwd or agent.worktree), environ=environ)
    try:
        check_permitted(ctx, op, values)
    except RookError as error:
        return error
    finally:
        ctx.close()
    return None


def permit_served(agent: Agent, words: list[str], cwd: str | Path = "") -> RookError | None:
    """The same for a call through the agent's own socket, with an environment that does not name the agent."""
    refusals: list[RookError | None] = []
    plain = {"HOME": "/nowhere", "ROOKERY_ROOT": str(agent.root)}
    call = Call(
        environ=plain,
        cwd="/",
        umask=0o22,
        pid=0,
        streams=(io.StringIO(), io.StringIO(), io.StringIO()),
        session_id=agent.session_id,
    )

    def work() -> None:
        with serving(call):
            refusals.append(permit(agent, words, cwd, plain))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return refusals[0]


@pytest.mark.parametrize(("name", "command"), [(name, words) for name, many in ALLOWED.items() for words in many])
def test_what_is_its_own_an_agent_may_change(scene: Scene, name: str, command: str) -> None:
    agent, words = scene.agents[name], scene.words(command)
    if "--help" not in words:
        assert permit(agent, words) is None
        assert permit_served(agent, words) is None
    assert ask_hook(agent, words).status == 0, ask_hook(agent, words)


def test_a_refusal_names_the_owner_and_how_to_ask(scene: Scene) -> None:
    for command, owner in (
        ("task cancel {ada.task}", "ada"),
        ("learning delete {ada.learning}", "ada"),
        ("worktree rebase drone", "queen"),
        ("group delete hive", "human"),
    ):
        refused = permit(scene.agents["bee"], scene.words(command))
        assert refused is not None
        assert owner in refused.message
        assert f"rook mail send {owner} " in refused.hint
    unowned = permit(scene.agents["bee"], scene.words("task start {epic}"))
    assert unowned is not None
    assert "has no owner yet" in unowned.message


@pytest.mark.parametrize("command", ["vcs commit -m x", "task start {bee.task} --checkout"])
def test_a_checkout_is_changed_by_its_own_agent_alone(scene: Scene, command: str) -> None:
    bee, words = scene.agents["bee"], scene.words(command)
    for folder in (scene.root, scene.agents["ada"].worktree):
        refused = permit(bee, words, folder)
        assert refused is not None
        assert refused.code == "foreign_checkout"
        assert bee.worktree in refused.hint
        assert ask_hook(bee, words, folder).status == DENIED
    assert permit(bee, words) is None
    assert ask_hook(bee, words).status == 0


def test_what_an_agent_has_claimed_is_its_own(scene: Scene) -> None:
    bee = scene.agents["bee"]
    assert permit(bee, ["task", "complete", scene.epic]) is not None
    db = scene.rook.open()
    with db.write():
        db.execute("UPDATE tasks SET assignee = 'bee' WHERE id = ?", (scene.epic,))
    db.close()
    assert permit(bee, ["task", "complete", scene.epic]) is None
    assert ask_hook(bee, ["task", "complete", scene.epic]).status == 0


def test_an_agent_cannot_act_as_another_before_the_guard_either(scene: Scene) -> None:
    bee = scene.agents["bee"]
    answer = ask_hook(bee, ["task", "claim", "--agent", "ada"])
    assert (answer.status, "leave --agent out" in answer.err) == (DENIED, True)


@pytest.mark.slow
def test_an_agent_changes_no_setting(scene: Scene) -> None:
    bee = scene.agents["bee"]
    for words in (["-c", "tasks.lease=1h", "task", "list"], ["task", "list", "-c", "tasks.lease=1h"]):
        assert scene.rook.json(*words, env=bee.env).error["code"] == "not_permitted"
        assert ask_hook(bee, words).status == DENIED
        assert scene.rook.json(*words).status == 0


def test_a_person_may_do_everything(scene: Scene) -> None:
    for command in (*REFUSED["bee"], *REFUSED["queen"]):
        environ = {"HOME": "/nowhere", "ROOKERY_ROOT": str(scene.root)}
        assert permit(scene.agents["bee"], scene.words(command), scene.root, environ) is None


def test_a_person_is_asked_for_nothing_where_there_is_no_project(tmp_path: Path) -> None:
    ctx = Context(cwd=str(tmp_path), environ=read_environ({"HOME": "/nowhere"}))
    for op in OPERATIONS.values():
        check_permitted(ctx, op, {})
    assert not ctx.has_database


def test_every_operation_that_changes_something_says_whose_it_is() -> None:
    kinds = {getattr(operation, name) for name in _KINDS}
    for op in OPERATIONS.values():
        assert not op.changes_state or op.owns is not None, f"{op.name} does not say what it changes: owns=…"
        for param, kind in (op.owns or {}).items():
            assert kind in kinds, op.name
            assert param == operation.HERE or param in {one.name for one in op.params}, op.name
        about = {
            "task": {operation.TASKS, operation.WORK},
            "epic": {operation.TASKS},
            "learning": {operation.LEARNINGS},
        }
        about |= {"name": {operation.AGENTS}} if op.group in ("worktree", "agent", "stop", "interrupt") else {}
        for one in op.params:
            if op.changes_state and one.positional and one.name in about:
                assert (op.owns or {}).get(one.name) in about[one.name], f"{op.name} {one.name}"


_KINDS = ("TASKS", "PLACES", "MOVES", "LEARNINGS", "AGENTS", "WORK", "BRANCHES", "MAIL_GROUPS", "CHECKOUTS")


def test_the_list_knows_every_permission_and_no_other() -> None:
    assert PERMISSIONS.keys() == {op.needs for op in OPERATIONS.values()}


def test_no_permission_can_reach_further_than_that_of_some_built_in_role() -> None:
    """Otherwise a project's own role could have what no role of Rookery's has."""
    for permission, reaches in PERMISSIONS.items():
        used = {role.rights[permission] for role in builtin_roles().values() if permission in role.rights}
        assert used <= set(reaches), permission
        assert set(reaches[-1:]) <= used, permission


def test_an_operation_that_the_table_does_not_know_is_for_people(scene: Scene) -> None:
    new = Op("status", (), lambda _ctx: None, None, "moon.write", "")
    ctx = Context(cwd=str(scene.root), environ=read_environ({"HOME": "/nowhere", **scene.agents["queen"].env}))
    with pytest.raises(NotPermitted):
        check_permitted(ctx, new, {})
    ctx.close()


@pytest.fixture
def callers(project: Path) -> Iterator[tuple[list[Agent], Agent, Callable[[str], Any]]]:
    """An agent of each role, another one, and a function that adds a learning to a task."""
    agents = [Agent(project, f"one-{role}", role) for role in builtin_roles()]
    other = Agent(project, "other")
    rook = Rook(project)
    db = rook.open()
    for agent in (*agents, other):
        ctx = Context.at(str(project), db)
        ctx.environ = read_environ({"HOME": "/nowhere", **agent.env})
        group_ops.create(ctx, f"of-{agent.name}", ("human",))
    yield agents, other, lambda name: learnings.add(db, name, "found out", AUTHOR).id
    db.close()


@pytest.mark.slow
def test_guard_and_permits_say_the_same_to_every_role_of_every_operation(
    callers: tuple[list[Agent], Agent, Callable[[str], Any]],
) -> None:
    agents, other, learn = callers
    compared = 0
    for agent in agents:
        db = Rook(agent.root).open()
        caller = hooks.find_caller(db, agent.session_id, None)
        assert caller is not None
        for op in OPERATIONS.values():
            for owner in (agent, other):
                for words in calls_on(op, owner, learn):
                    bounds = tool_hooks.bounds_of(str(agent.root), db, caller, owner.worktree)
                    call = ToolCall("Bash", {"command": shlex.join(["rook", *words]), "run_in_background": True})
                    verdict = decide(builtin_roles()[agent.role], "yolo", bounds, call)
                    refused = permit(agent, words, owner.worktree)
                    by_program = reach_of(builtin_roles()[agent.role], op.needs) == PROGRAM
                    expected = refused is None and not by_program
                    assert (verdict.verdict == ALLOW) == expected, (agent.role, words, verdict, refused)
                    compared += 1
        db.close()
    assert compared > 2 * len(builtin_roles()) * len(OPERATIONS) * 0.9


def test_the_guard_follows_the_file_of_the_role(scene: Scene) -> None:
    """Guard and permits both follow a change of the file at once."""
    bee, words = scene.agents["bee"], ["run", "complete"]
    assert permit(bee, words) is not None
    assert ask_hook(bee, words).status == DENIED
    write_role(scene.root, "builder", "extends: builder\nrights: {run.write: any}")
    assert permit(bee, words) is None
    assert ask_hook(bee, words).status == 0


def test_a_kind_that_is_not_known_is_our_bug(scene: Scene) -> None:
    db = scene.rook.open()
    with pytest.raises(LookupError):
        check_one(db, PERSON, "moon", "x", OWN)
    db.close()
