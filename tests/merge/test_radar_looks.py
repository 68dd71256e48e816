"""When a turn has ended, one process looks at the radar; whatever is killed, every agent is warned once."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import git
from rookery.agents.reservation import Request, reserve
from rookery.base.ids import TURN, new_id
from rookery.flows import loop, radar
from rookery.flows.radar import MOST_TRIES
from rookery.flows.store import unseen_ends
from rookery.merge.merger import Merger
from rookery.ops.context import Context
from rookery.ops.state_owner import check_state
from rookery.processes.python import module_command
from rookery.sandbox.probe import probe
from rookery.sessions import store
from rookery.sessions.model import Session, Turn
from rookery.turns.interactive import end_turn
from support import add, child_environ, die_at, rook_argv, wait_until

from .yard import Yard

pytestmark = pytest.mark.slow

_SANDBOX = probe()


class Field:
    """Two agents in terminals without a watcher, and the turns that they end."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.folder = yard.folder
        self.merger: Merger = yard.merger()
        self.db = self.merger.ctx.db
        yard.commit(shared_txt="1\n2\n3\n")
        self.one = self._settle("one")
        self.two = self._settle("two")

    def _settle(self, name: str) -> Session:
        task = add(self.db, f"Task of {name}")
        request = Request(task, "builder", "human", self.yard.main(), name=name, mode="tmux")
        session = reserve(self.merger.ctx, request)
        self.yard.branch(session.branch, shared_txt=f"1\n{name}\n3\n")
        return store.change_session(
            self.db, session, "", actor=name, at=self.merger.ctx.now(), move="wait", step="ready", runner_pid=None
        )

    def begin_turn(self, session: Session) -> Turn:
        """A turn begins."""
        number = len(store.turns(self.db, session.id)) + 1
        at = self.merger.ctx.now()
        turn = Turn(new_id(TURN), session.id, number, "begin", "running", None, None, None, None, None, at, None)
        store.insert_turn(self.db, turn, session.agent, at=at)
        known = store.session(self.db, session.id)
        store.change_session(self.db, known, "", actor=session.agent, at=at, move="begin turn")
        return turn

    def end_turn(self, turn: Turn) -> None:
        """End the turn without a notice to any process."""
        store.change_turn(self.db, turn, state="done", ended_at=self.merger.ctx.now())

    def turn(self, session: Session) -> None:
        """A whole turn."""
        self.end_turn(self.begin_turn(session))

    def notice(self) -> None:
        """Have the radar looked at, if there is something to see."""
        home = self.merger.ctx
        for action in radar.decide(radar.read(home), home.clock()).actions:
            loop.act(home, action, lambda _text: None)

    def warnings(self) -> dict[str, int]:
        """How many warnings each has got."""
        return dict(self.db.all("SELECT recipient, count(*) FROM messages WHERE sender = 'rook' GROUP BY recipient"))

    def is_seen(self) -> bool:
        """True if nothing is left to see."""
        return unseen_ends(self.db) is None

    @property
    def lock(self) -> Path:
        """The file whose lock the process holds; what it says is how often that was started."""
        return self.folder / ".rookery/run/radar.lock"

    @property
    def log(self) -> str:
        """The observer's log."""
        path = self.folder / ".rookery/run/radar.log"
        return path.read_text() if path.exists() else ""

    @contextmanager
    def held(self) -> Iterator[int]:
        """Hold the lock, as an observer at work does."""
        self.lock.parent.mkdir(exist_ok=True)
        handle = os.open(self.lock, os.O_RDWR | os.O_CREAT)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield handle
        finally:
            os.close(handle)

    def wait_for_the_end(self) -> None:
        """Wait until no process is at work."""

        def is_free() -> bool:
            with open(self.lock) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
            return True

        wait_until(is_free)

    def killed(self, step: str) -> None:
        """Look, in a process that is killed right after a step."""
        with self.held() as lock:
            argv = [*module_command("rookery.flows.radar"), str(self.folder), str(lock), "1"]
            die_at(step, argv, self.folder, pass_fds=[lock])


@pytest.fixture
def field(yard: Yard) -> Iterator[Field]:
    field = Field(yard)
    yield field
    field.db.close()


def test_a_warning_comes_without_any_call_of_rook(yard: Yard) -> None:
    yard.settings("sandbox:\n  mode: 'off'\n")
    yard.commit(shared_txt="1\n2\n3\n")
    go = yard.folder.parent / "go"
    for name in ("one", "two"):
        begin = {"run": f"while ! test -e {go}; do sleep 0.02; done"}
        change = {"edit": {"path": "shared.txt", "replace": ["2", name]}}
        yard.sling(name, [begin, change, {"wait": "mail"}, {"hang": True}])
    db = yard.rook.open()
    go.touch()

    def warnings() -> dict[str, str]:
        return dict(db.all("SELECT recipient, subject FROM messages WHERE sender = 'rook' ORDER BY recipient"))

    wait_until(lambda: len(warnings()) == 2, 60)
    assert warnings() == {"one": "Your work would conflict with two's", "two": "Your work would conflict with one's"}
    # The warning has woken the waiting agents.
    wait_until(lambda: db.value("SELECT count(*) FROM turns WHERE number = 2 AND state = 'running'") == 2, 60)
    db.close()
    for name in ("one", "two"):
        yard.rook("stop", name)


def test_a_command_that_notices_has_it_done_and_goes_on(field: Field) -> None:
    field.turn(field.one)
    assert field.yard.rook("loop", "run").status == 0
    wait_until(field.is_seen)
    assert field.warnings() == {"one": 1, "two": 1}
    assert field.db.value("SELECT count(*) FROM events WHERE type = 'radar.conflict' AND actor = 'rook'") == 1
    field.wait_for_the_end()
    assert field.lock.read_text() == "1 1\n"
    assert field.yard.rook("loop", "run").status == 0
    assert field.lock.read_text() == "1 1\n"
    assert field.log == ""


def test_the_end_of_a_turn_in_a_terminal_is_seen(field: Field) -> None:
    field.begin_turn(field.one)
    end_turn(field.merger.ctx, field.one.id)
    field.notice()
    wait_until(field.is_seen)
    assert field.warnings() == {"one": 1, "two": 1}


def test_a_turn_that_began_first_and_ended_last_is_seen(field: Field) -> None:
    long = field.begin_turn(field.one)
    field.turn(field.two)
    assert unseen_ends(field.db) == 1
    field.yard.rook("loop", "run")
    wait_until(field.is_seen)
    field.end_turn(long)
    assert unseen_ends(field.db) == 2


def test_where_no_work_can_overlap_nothing_is_started(field: Field) -> None:
    assert unseen_ends(field.db) is None
    field.turn(field.one)
    for session in (field.one, field.two):
        known = store.session(field.db, session.id)
        store.change_session(field.db, known, "", actor="one", at=field.merger.ctx.now(), move="end")
    assert unseen_ends(field.db) is None
    assert field.yard.rook("loop", "run").status == 0
    assert not field.lock.exists()


def test_a_first_agent_alone_costs_nothing(yard: Yard) -> None:
    yard.sling("one", [{"edit": {"path": "a.txt", "text": "a\n"}}, {"wait": "mail"}])
    yard.wait_for("one", "waiting")
    assert not (yard.folder / ".rookery/run/radar.lock").exists()
    yard.rook("stop", "one")


def test_an_agent_at_work_is_warned_of_one_that_is_done(field: Field) -> None:
    at = field.merger.ctx.now()
    known = store.session(field.db, field.one.id)
    store.change_session(field.db, known, "", actor="one", at=at, move="end", outcome="completed")
    field.turn(field.two)
    field.yard.rook("loop", "run")
    wait_until(field.is_seen)
    assert field.warnings() == {"two": 1}


@pytest.mark.parametrize("step", ["radar scanned", "agents warned", "radar looked", "ends recorded", "radar let go"])
def test_killed_at_any_step_every_agent_is_warned_once(field: Field, step: str) -> None:
    field.turn(field.one)
    field.killed(step)
    assert field.is_seen() == (step in ("ends recorded", "radar let go"))
    assert field.yard.rook("loop", "run").status == 0
    wait_until(field.is_seen)
    assert field.warnings() == {"one": 1, "two": 1}
    assert field.db.value("SELECT count(*) FROM events WHERE type = 'radar.conflict'") == 1


def test_many_commands_at_once_start_one_process(field: Field) -> None:
    field.turn(field.one)
    children = [
        subprocess.Popen(
            rook_argv("task", "create", "x"), cwd=field.folder, env=child_environ(), stdout=subprocess.DEVNULL
        )
        for _ in range(6)
    ]
    assert [child.wait(60) for child in children] == [0] * 6
    wait_until(field.is_seen)
    assert field.lock.read_text() == "1 1\n"
    assert field.warnings() == {"one": 1, "two": 1}


def test_while_one_observer_is_at_work_no_other_is_started(field: Field) -> None:
    field.turn(field.one)
    with field.held():
        assert field.yard.rook("loop", "run").status == 0
        field.notice()
    assert field.lock.read_text() == ""
    assert not field.is_seen()


@pytest.mark.parametrize("moment", ["radar looked", "radar let go"])
def test_a_turn_that_ends_meanwhile_is_looked_at_too(
    field: Field, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the process that noticed its end started no observer because ours was about to end."""
    looks, late = [], [field.two]

    def reached(step: str) -> None:
        if step == "radar scanned":
            looks.append(step)
        if step == moment and late:
            field.turn(late.pop())

    monkeypatch.setattr("rookery.config.steps.reached", reached)
    field.turn(field.one)
    with field.held() as lock:
        radar.run(field.merger.ctx, lock, 1)
    assert len(looks) == 2
    assert field.db.value("SELECT seq FROM radar_seen") == 2


def test_the_rest_is_left_to_another_that_was_faster(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    others = []

    def reached(step: str) -> None:
        if step == "radar let go":
            field.turn(field.two)
            others.append(os.open(field.lock, os.O_RDWR))
            fcntl.flock(others[0], fcntl.LOCK_EX | fcntl.LOCK_NB)

    monkeypatch.setattr("rookery.config.steps.reached", reached)
    field.turn(field.one)
    with field.held() as lock:
        radar.run(field.merger.ctx, lock, 1)
    os.close(others[0])
    assert unseen_ends(field.db) == 2


def test_a_look_that_fails_is_tried_a_few_times_and_again_with_the_next_turn(field: Field) -> None:
    check_state(str(field.folder))  # while git can still say what it tracks
    head = field.folder / ".git" / "HEAD"
    whole = head.read_text()
    head.write_text("nonsense\n")
    field.turn(field.one)
    for number in range(1, MOST_TRIES + 1):
        assert not field.is_seen()
        assert field.yard.rook("loop", "run").status == 0
        field.wait_for_the_end()
        assert len(field.log.splitlines()) == number, field.log
    assert field.is_seen()
    assert f"try {MOST_TRIES} failed" in field.log
    assert field.yard.rook("loop", "run").status == 0
    field.wait_for_the_end()
    assert field.lock.read_text() == f"1 {MOST_TRIES}\n"
    head.write_text(whole)
    field.turn(field.two)
    assert field.yard.rook("loop", "run").status == 0
    wait_until(field.is_seen)
    assert field.warnings() == {"one": 1, "two": 1}


def test_a_process_that_always_dies_is_not_started_for_ever(field: Field) -> None:
    field.turn(field.one)
    field.lock.parent.mkdir(exist_ok=True)
    field.lock.write_text(f"1 {MOST_TRIES}\n")
    field.notice()
    field.wait_for_the_end()
    assert field.lock.read_text() == f"1 {MOST_TRIES}\n"
    assert not field.is_seen()
    field.turn(field.one)
    field.notice()
    wait_until(field.is_seen)


@pytest.mark.parametrize("content", ["", "1\n", "1 many\n", "x" * 10_000, "\0\0 \0", "0 9\n", "1 ²\n"])
def test_a_spoilt_lock_file_is_no_obstacle(field: Field, content: str) -> None:
    field.lock.parent.mkdir(exist_ok=True)
    field.lock.write_text(content)
    field.turn(field.one)
    field.notice()
    wait_until(field.is_seen)
    assert field.lock.read_text() == "1 1\n"


def test_where_it_cannot_be_started_the_caller_goes_on(field: Field) -> None:
    field.turn(field.one)
    field.lock.mkdir(parents=True)
    assert field.yard.rook("task", "create", "x").status == 0
    assert not list(field.folder.glob(".rookery/logs/bug-*"))
    field.lock.rmdir()
    gone = str(field.folder / "gone")
    field.merger.ctx = Context.at(gone, field.merger.ctx.db, field.merger.ctx.config)
    field.notice()
    assert not (field.folder / "gone").exists()


def test_a_project_that_has_gone_is_reported_in_a_line(field: Field, tmp_path: Path) -> None:
    with field.held() as lock:
        argv = [sys.executable, "-m", "rookery.flows.radar", str(tmp_path / "gone"), str(lock), "1"]
        done = subprocess.run(argv, env=child_environ(), pass_fds=[lock], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stderr.count(b"\n") == 1
    assert b"try 1 failed" in done.stderr


def test_it_carries_no_mark_of_the_agent_whose_command_noticed(field: Field, tmp_path: Path) -> None:
    """What git is given by the process shows what that has. A caller without standard input is no obstacle."""
    environment = tmp_path / "environment"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    real = git(field.folder, "--exec-path")
    program.write_text(f'#!/bin/sh\nenv >> {environment}\nexec {real}/git "$@"\n')
    program.chmod(0o755)
    check_state(str(field.folder))  # so that the command itself does not have to ask git
    field.turn(field.one)
    token = (field.folder / ".rookery/sessions" / field.one.id / "token").read_text()
    marks = {"ROOT": str(field.folder), "AGENT": "one", "SESSION": field.one.id, "TOKEN": token}
    marks["TURN"] = str(field.db.value("SELECT id FROM turns WHERE session_id = ?", (field.one.id,)))
    env = {f"ROOKERY_{name}": value for name, value in marks.items()}
    env |= {"PATH": f"{program.parent}:{os.environ['PATH']}", "ROOKERY_VCS_TIMEOUT": "77s"}
    argv = ["/bin/sh", "-c", '"$@" <&-', "sh", *rook_argv("mail", "check", "--json")]
    subprocess.run(argv, cwd=field.folder, env=child_environ(env), timeout=60, check=True)
    wait_until(field.is_seen)
    field.wait_for_the_end()
    ours = {line.partition("=")[0] for line in environment.read_text().splitlines() if line.startswith("ROOKERY_")}
    assert ours - {"ROOKERY_DAEMON"} == {"ROOKERY_VCS_TIMEOUT"}
    assert field.warnings() == {"one": 1, "two": 1}


@pytest.mark.skipif(not _SANDBOX.works, reason=f"no sandbox here: {_SANDBOX.reason}")
def test_a_command_from_within_a_sandbox_has_it_done_outside(field: Field) -> None:
    field.yard.settings("sandbox:\n  mode: 'on'\n")
    steps = [{"run": "while ! test -e go; do sleep 0.02; done"}, {"rook": ["mail", "check"]}, {"hang": True}]
    field.yard.sling("three", steps)
    three = store.living(field.db, "three")
    assert three is not None
    assert three.settings.sandbox == "bubblewrap"
    field.turn(field.one)
    Path(three.worktree, "go").touch()
    wait_until(field.is_seen, 60)
    assert field.warnings() == {"one": 1, "two": 1}
    assert field.log == ""
    field.yard.rook("stop", "three")
