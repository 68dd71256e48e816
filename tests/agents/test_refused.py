"""Every forbidden action is refused by every way to call, and changes nothing; a caller with the right succeeds."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from actions import HIDDEN, REFUSED, STRIPPED, Scene, ask_hook, ask_shell_hook, calls_on, make_scene
from agent_rows import Agent
from conftest import git
from daemons import OwnDaemon, has_daemon
from den import DONE, Den
from rookery.daemon.hello import Guest
from rookery.db.database import Database
from rookery.hooks.model import DENIED
from rookery.ops import index
from rookery.processes.proctable import has_proc
from rookery.processes.python import module_command
from rookery.roles.catalog import builtin_roles
from rookery.roles.permissions import PERMISSIONS, PROGRAM, is_for_programs
from sandbox.cell import Cell, needs_bubblewrap
from support import Ran, add, child_environ, run_rook
from templates import copy_database, copy_repository

OPERATIONS = {op.name: op for op in index.load_all()}
BUILDER = builtin_roles()["builder"]
BY_ROLE = sorted(name for name, op in OPERATIONS.items() if op.needs not in BUILDER.rights)
"""What no builder may: a new operation is among them by itself."""
BY_PROGRAM = sorted(name for name, op in OPERATIONS.items() if is_for_programs(op.needs))
OF_PEOPLE = sorted(name for name, op in OPERATIONS.items() if not PERMISSIONS[op.needs])
CASES = [
    *((name, command) for name, commands in REFUSED.items() for command in commands),
    *(("bee", f"<{name}>") for name in BY_ROLE),
]
_scenes: list[Scene] = []


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """One project for the whole module: what is refused leaves it as it was, and the rest uses what it makes itself."""
    if not _scenes:
        root = copy_repository(tmp_path_factory.mktemp("refused") / "repo")
        (root / ".rookery").mkdir()
        copy_database(str(root / ".rookery" / "rookery.db"))
        (root / ".rookery" / ".gitignore").write_text("*\n")
        _scenes.append(make_scene(root))
        for name in _scenes[0].agents:
            _make_worktree(_scenes[0], name)
        assert _scenes[0].rook("task", "list").status == 0  # it writes down where the project is
    return _scenes[0]


def _make_worktree(scene: Scene, name: str) -> None:
    db = scene.rook.open()
    branch, path = db.all("SELECT branch, worktree FROM sessions WHERE agent = ?", (name,))[0]
    head = git(scene.root, "rev-parse", "HEAD")
    with db.write():
        db.execute("UPDATE sessions SET base_commit = ? WHERE agent = ?", (head, name))
    db.close()
    git(scene.root, "worktree", "add", "-q", "-b", branch, path)


@pytest.fixture(scope="module")
def daemons() -> Iterator[list[OwnDaemon]]:
    """The project's daemon, in this process, once it was asked for."""
    started: list[OwnDaemon] = []
    yield started
    for daemon in started:
        daemon.close()


def words_of(scene: Scene, command: str) -> list[str]:
    """The words of a case: those of the table, or for `<name>` those of that operation on what is ada's."""
    if command.startswith("<"):
        return calls_on(OPERATIONS[command[1:-1]], scene.agents["ada"], lambda _: scene.learned["ada"])[-1]
    return scene.words(command)


def run_as(scene: Scene, agent: Agent, words: list[str]) -> Ran:
    """Run `rook` as the agent does, from its worktree; the token alone proves who it is."""
    env = {name: value for name, value in agent.env.items() if name != "ROOKERY_SESSION"}
    folder = Path(agent.worktree)
    return run_rook(folder if folder.exists() else scene.root, *words, "--json", env=env)


def check_refusal(code: str, message: str, hint: str, words: list[str]) -> None:
    """A refusal says why: whose it is, or who may; and how to ask for it."""
    assert code == "not_permitted" or code.startswith("foreign_"), (words, code, message)
    assert "`rook mail send " in hint or "yours is" in hint, (words, hint)
    if code == "not_permitted":
        operation, _ = index.find([word for word in words if word != "--json"])
        assert operation is not None
        mays = [
            name for name, role in builtin_roles().items() if role.rights.get(operation.needs, PROGRAM) != PROGRAM
        ] or ["people"]
        assert all(alternative in message for alternative in mays), (words, message)
    else:
        owners = ("ada", "bee", "drone", "queen", "human", "merle", "has no owner yet", "makes no epics", "to land")
        assert any(owner in message for owner in owners), (words, message)


def test_what_reaches_beyond_the_work_is_for_people() -> None:
    """The list above follows the table; this one does not."""
    for group in (
        "attach",
        "daemon",
        "data",
        "doctor",
        "env",
        "gate run",
        "guard",
        "hooks install",
        "init",
        "mail purge",
    ):
        assert {name for name in OPERATIONS if name.startswith(group)} <= {*OF_PEOPLE}, group
    assert {"worktree restore", "vcs cleanup", "worktree clean", "hooks uninstall"} <= {*OF_PEOPLE} <= {*BY_ROLE}


@pytest.mark.parametrize(("name", "command"), CASES)
def test_on_the_command_line(scene: Scene, name: str, command: str) -> None:
    words, before = words_of(scene, command), scene.state()
    ran = run_as(scene, scene.agents[name], words)
    assert ran.status == 1, ran
    check_refusal(ran.error["code"], ran.error["message"], ran.error["hint"], words)
    assert scene.state() == before


@pytest.mark.parametrize(("name", "command"), [*CASES, *(("bee", f"<{name}>") for name in BY_PROGRAM)])
def test_by_the_hook(scene: Scene, name: str, command: str) -> None:
    before = scene.state()
    answer = ask_hook(scene.agents[name], words_of(scene, command))
    assert answer.status == DENIED
    assert "instead:" in answer.err
    assert scene.state() == before


def _is_short(command: str) -> bool:
    words = command.strip("<>").split()
    operation, _ = index.find(words)
    return words[0] in ("init", "daemon") or (operation is not None and not operation.long)


IN_PROCESSES = [pytest.mark.slow, pytest.mark.sweep]
"""A process of its own takes its time; of what the daemon runs in such a sample will do."""


@pytest.mark.parametrize(
    ("name", "command"),
    [pytest.param(*case, marks=[] if _is_short(case[1]) else IN_PROCESSES) for case in CASES],
)
def test_through_the_socket_of_a_sandbox(scene: Scene, daemons: list[OwnDaemon], name: str, command: str) -> None:
    if not daemons:
        daemons.append(OwnDaemon(str(scene.root)))
    words, before, agent = words_of(scene, command), scene.state(), scene.agents[name]
    environ = child_environ({"ROOKERY_ROOT": str(scene.root), "ROOKERY_CONFINED": "1"})
    ran = Ran(*daemons[0].run_as(Guest(agent.session_id, environ, agent.worktree), [*words, "--json"]))
    assert ran.status == 1, ran
    if ran.error["code"] != "out_of_sandbox":
        check_refusal(ran.error["code"], ran.error["message"], ran.error["hint"], words)
    assert scene.state() == before


class Deed(NamedTuple):
    """Something that is done to a task, and what a person does before, so that it can be done."""

    command: str
    before: tuple[str, ...] = ()


DEEDS = [
    Deed("task update {task} --title changed"),
    Deed("task block {task} --by {epic}"),
    Deed("task unblock {task} --by {epic}", ("task block {task} --by {epic}",)),
    Deed("task start {task}"),
    Deed("task complete {task}", ("task start {task}",)),
    Deed("task archive {task}", ("task cancel {task}",)),
    Deed("task unarchive {task}", ("task cancel {task}", "task archive {task}")),
    Deed("task cancel {task}"),
    Deed("task fail {task}", ("task start {task}",)),
    Deed("task reopen {task}", ("task cancel {task}",)),
    Deed("task delete {task}"),
    Deed("task create more --parent {task}"),
    Deed("learning add {task} wisdom"),
]
EPIC_DEEDS = [
    Deed("epic update {task} --title changed"),
    Deed("epic cancel {task}"),
    Deed("epic archive {task}", ("epic cancel {task}",)),
    Deed("epic unarchive {task}", ("epic cancel {task}", "epic archive {task}")),
    Deed("epic reopen {task}", ("epic cancel {task}",)),
    Deed("epic delete {task}"),
]
MAY = {"owner": "ada", "lead": "queen", "coordinator": "cora", "person": None}


def run_as_anyone(scene: Scene, name: str | None, words: list[str]) -> Ran:
    if name is None:
        return run_rook(scene.root, *words, "--json")
    return run_as(scene, scene.agents[name], words)


def prepare(scene: Scene, deed: Deed, who: str, *, is_epic: bool = False) -> list[str]:
    """The words of a deed on a new task: ada's, under the lead's, or an epic that is a lead's by its assignment."""
    db = scene.rook.open()
    task = add(db, "new", scene.agents["queen"].task if who == "lead" and not is_epic else None)
    for command in deed.before:
        assert run_as_anyone(scene, None, scene.words(command.replace("{task}", task))).status == 0
    with db.write():
        owner = "queen" if who == "lead" and is_epic else "ada" if who == "owner" else None
        db.execute("UPDATE tasks SET assignee = ? WHERE id = ?", (owner, task))
    db.close()
    return scene.words(deed.command.replace("{task}", task))


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.command)
@pytest.mark.parametrize("who", MAY)
def test_who_may_succeeds_where_another_is_refused(scene: Scene, who: str, deed: Deed) -> None:
    words = prepare(scene, deed, who)
    before = scene.state()
    assert run_as_anyone(scene, "bee", words).error["code"] == "foreign_task"
    assert ask_hook(scene.agents["bee"], words).status == DENIED
    assert scene.state() == before
    name = MAY[who]
    assert name is None or ask_hook(scene.agents[name], words).status == 0
    ran = run_as_anyone(scene, name, words)
    assert ran.status == 0, ran
    assert scene.state() != before


@pytest.mark.parametrize("deed", EPIC_DEEDS, ids=lambda deed: deed.command)
@pytest.mark.parametrize("who", ["lead", "coordinator", "person"])
def test_who_may_change_an_epic_succeeds_where_others_are_refused(scene: Scene, who: str, deed: Deed) -> None:
    words = prepare(scene, deed, who, is_epic=True)
    before = scene.state()
    refused = {"bee": "not_permitted", "merle": "not_permitted"} | ({} if who == "lead" else {"queen": "foreign_task"})
    for name, code in refused.items():
        assert run_as_anyone(scene, name, words).error["code"] == code
        assert ask_hook(scene.agents[name], words).status == DENIED
    assert scene.state() == before
    name_ = MAY[who]
    assert name_ is None or ask_hook(scene.agents[name_], words).status == 0
    ran = run_as_anyone(scene, name_, words)
    assert ran.status == 0, ran
    assert scene.state() != before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ada", "cora", None])
def test_a_worktree_is_rebased_by_its_agent_the_coordinator_and_people(scene: Scene, name: str | None) -> None:
    git(scene.root, "commit", "-q", "--allow-empty", "-m", "The base goes on")
    before = scene.state()
    for other in ("bee", "merle"):
        assert run_as_anyone(scene, other, ["worktree", "rebase", "ada"]).error["code"] == "foreign_agent"
    assert run_as_anyone(scene, "queen", ["worktree", "rebase", "ada"]).error["code"] == "not_permitted"
    assert scene.state() == before
    _set_state(scene, "ada", "working" if name == "ada" else "waiting")  # no other agent may rebase it while it works
    ran = run_as_anyone(scene, name, ["worktree", "rebase", "ada"])
    _set_state(scene, "ada", "working")
    assert ran.status == 0, ran
    assert git(scene.root, "rev-parse", "HEAD") == git(Path(scene.agents["ada"].worktree), "rev-parse", "HEAD")


def _set_state(scene: Scene, name: str, state: str) -> None:
    db = scene.rook.open()
    with db.write():
        db.execute("UPDATE sessions SET state = ? WHERE agent = ?", (state, name))
    db.close()


@pytest.mark.slow
def test_people_are_refused_nothing_that_is_theirs(project: Path) -> None:
    """An operation may fail, as there is no terminal or snapshot, but not because of its caller."""
    scene = make_scene(project)
    for operation in OF_PEOPLE:
        words = calls_on(OPERATIONS[operation], scene.agents["ada"], lambda _: scene.learned["ada"])[-1]
        ran = run_rook(project, *words, "--json")
        assert ran.status in (0, 1), (words, ran)
        code = "" if ran.status == 0 else ran.error["code"]
        assert code not in ("not_permitted", "forged_sender"), words
        assert not code.startswith("foreign_"), words


@pytest.mark.parametrize("line", STRIPPED)
def test_the_hook_lets_no_agent_drop_its_identity(scene: Scene, line: str) -> None:
    answer = ask_shell_hook(scene.agents["bee"], line.format("rook mail check"))
    assert answer.status == DENIED
    assert "instead:" in answer.err


@pytest.mark.parametrize("line", HIDDEN)
def test_the_hook_sees_through_what_is_around_a_call(scene: Scene, line: str) -> None:
    bee = scene.agents["bee"]
    assert ask_shell_hook(bee, line.format(f"rook epic delete {scene.epic}")).status == DENIED
    assert ask_shell_hook(bee, line.format("rook mail check")).status == 0


_ROOK = shlex.join(module_command("rookery.cli.main"))
_NAMES = "ROOKERY_AGENT ROOKERY_TOKEN ROOKERY_SESSION ROOKERY_TURN ROOKERY_ROOT ROOKERY_RUNNER"
_TRY = f"""
while [ -n "$2" ] && [ -e "/proc/$2/stat" ]; do sleep 0.02; done
{_ROOK} $COMMAND --json > $1.new 2>&1
echo $? >> $1.new
mv $1.new $1
"""
_EMPTIED = 'env -i COMMAND="$COMMAND" PATH="$PATH"'
TRIES = {
    "plainly": "sh TRY",
    "without the token": "env --u=ROOKERY_TOKEN sh TRY",
    "without the token and the name": "env --u=ROOKERY_TOKEN --uns=ROOKERY_AGENT sh TRY",
    "unset": f"(unset {_NAMES}; sh TRY)",
    "as a person": "ROOKERY_AGENT=human sh TRY",
    "emptied": f"{_EMPTIED} sh TRY",
    "emptied in a session of its own": f"{_EMPTIED} setsid sh TRY",
    "emptied, by one whose parent has ended": f"({_EMPTIED} setsid sh TRY $STARTER >/dev/null 2>&1 &)",
    "by a child that forked twice": f"( ( unset {_NAMES}; setsid nohup sh TRY $STARTER >/dev/null 2>&1 & ) & )",
}


@pytest.mark.slow
@pytest.mark.skipif(not has_proc(), reason="without /proc parents are not looked at")
def test_no_trick_makes_an_agents_process_a_person(repo: Path, tmp_path: Path) -> None:
    den = Den(repo)
    epic = den.task("Milestone")
    (tmp_path / "try.sh").write_text(_TRY)
    steps = []
    for number, line in enumerate(TRIES.values()):
        out = tmp_path / f"out-{number}"
        words = line.replace("TRY", f"{tmp_path}/try.sh {out}").replace("$STARTER", "$$")
        steps += [
            {"run": f"cd {repo}; export COMMAND='epic delete {epic}'; {words}"},
            {"run": f"while [ ! -e {out} ]; do sleep 0.02; done"},
        ]
    db = den.rook.open()
    before = db.all("SELECT * FROM tasks WHERE id = ?", (epic,))
    refs = git(repo, "for-each-ref", "refs/heads/main", "refs/tags")
    den.sling(den.task("Try", [*steps, DONE]), "--name", "bee")
    den.wait_for("bee", "completed")
    for number, name in enumerate(TRIES):
        answer, status = (tmp_path / f"out-{number}").read_text().splitlines()
        code = "not_permitted" if name == "plainly" else "forged_sender"
        assert (json.loads(answer)["error"]["code"], status) == (code, "1"), (name, answer)
    assert db.all("SELECT * FROM tasks WHERE id = ?", (epic,)) == before
    assert db.value("SELECT count(*) FROM events WHERE subject = ? AND actor <> 'human'", (epic,)) == 0
    db.close()
    assert git(repo, "for-each-ref", "refs/heads/main", "refs/tags") == refs
    assert den.rook.json("epic", "delete", epic).status == 0


@pytest.mark.slow
@needs_bubblewrap
@pytest.mark.parametrize("daemon", ["on", "off"])
def test_in_a_real_sandbox(repo: Path, monkeypatch: pytest.MonkeyPatch, daemon: str) -> None:
    monkeypatch.setenv("ROOKERY_DAEMON", daemon)
    cell = Cell(repo)
    epic, other, own = cell.task("Milestone"), cell.task("Another's"), cell.task("Own")
    db = cell.rook.open()
    with db.write():
        db.execute("UPDATE tasks SET assignee = 'ada' WHERE id = ?", (other,))
        db.execute("UPDATE tasks SET assignee = 'bee' WHERE id = ?", (own,))
    refused = [
        *(f"epic delete {epic}", f"epic update {epic} --title x", f"task update {other} --title x"),
        *(f"task complete {other}", f"task delete {other}", f"task block {other} --by {epic}"),
        *("mail purge --all", "gate run", "vcs cleanup --delete", "doctor --fix", "daemon stop"),
    ]
    unset = f"unset {_NAMES};"
    forms = [
        "rook {}",
        f"{unset} rook {{}}",
        "env -u ROOKERY_AGENT setsid rook {}",
        f"({unset} setsid rook {{}} | cat)",
    ]
    lines = [forms[number % len(forms)].format(f"{words} --json") for number, words in enumerate(refused)]
    before = _of_others(db, own), git(repo, "for-each-ref", "refs/heads/main", "refs/tags")
    outputs = cell.run(*lines, f"rook task update {own} --title changed --json")
    assert (_of_others(db, own), git(repo, "for-each-ref", "refs/heads/main", "refs/tags")) == before
    for words, answer in zip(refused, outputs, strict=False):
        error = json.loads(answer.splitlines()[0])["error"]
        assert error["code"] in ("not_permitted", "foreign_task"), (words, answer)
        check_refusal(error["code"], error["message"], error["hint"], words.split())
    assert db.value("SELECT title FROM tasks WHERE id = ?", (own,)) == "changed", outputs[-1]
    db.close()
    assert has_daemon(repo) == (daemon == "on")
    cell.close()


def _of_others(db: Database, own: str) -> object:
    """The tasks that were there before the agent, except its own, and their events."""
    return (
        db.all("SELECT * FROM tasks WHERE id <> ? AND title IN ('Milestone', 'Another''s') ORDER BY seq", (own,)),
        db.all("SELECT type, subject FROM events WHERE subject IN (SELECT id FROM tasks WHERE title = 'Milestone')"),
    )
