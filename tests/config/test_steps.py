"""One clock for all processes of a test, and processes that die at a step; an agent can use neither."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from conftest import Clock, Rook
from rookery.config import steps
from rookery.config.environ import now, read_environ, unmarked_environ
from served import Served, make_call
from support import child_environ

MARKS = ("ROOKERY_TOKEN", "ROOKERY_SESSION", "ROOKERY_SOCKET", "ROOKERY_CONFINED")

_STEPS = """
from rookery.config import steps
for name in ("a", "b", "a", "b"):
    print(name, end="", flush=True)
    steps.reached(name)
"""


def run_steps(**env: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", _STEPS], env=child_environ(env), capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize(("target", "printed"), [("a", "a"), ("b", "ab"), ("b:2", "abab"), (":3", "aba")])
def test_a_process_dies_at_the_step(target: str, printed: str) -> None:
    assert run_steps(ROOKERY_TEST_KILL=target) == (-signal.SIGKILL, printed)


@pytest.mark.parametrize("target", ["c", "a:3", ":5", ""])
def test_a_step_that_is_not_reached_kills_nothing(target: str) -> None:
    assert run_steps(ROOKERY_TEST_KILL=target) == (0, "abab")


@pytest.mark.parametrize("mark", MARKS)
def test_an_agent_cannot_let_rook_die_at_a_step(mark: str) -> None:
    assert run_steps(ROOKERY_TEST_KILL="a", **{mark: "x"}) == (0, "abab")


def test_an_interrupted_call_ends_at_the_next_step() -> None:
    done: list[str] = []

    def work() -> None:
        for name in ("a", "b"):
            done.append(name)
            steps.reached(name)

    call = make_call()
    assert Served(call, work).end() is None
    call.interrupt()
    assert isinstance(Served(call, work).end(), KeyboardInterrupt)
    assert done == ["a", "b", "a"]


def test_all_processes_have_the_time_of_the_test(rook: Rook, clock: Clock) -> None:
    rook("task", "create", "work")
    assert rook.json("task", "claim", "--agent", "ada", "--lease", "1h").data["state"] == "IN_PROGRESS"
    assert rook.json("task", "claim", "--agent", "bob").data is None
    clock.advance(hours=2)
    assert rook.json("task", "claim", "--agent", "bob").data["assignee"] == "bob"
    assert now() == pytest.approx(time.time() + 7200, abs=5)


@pytest.mark.parametrize("mark", MARKS)
def test_an_agent_cannot_move_the_clock(mark: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.advance(hours=2)
    monkeypatch.setenv(mark, "x")
    assert now() == pytest.approx(time.time(), abs=5)


@pytest.mark.parametrize("mark", MARKS)
def test_what_an_agent_starts_without_its_mark_does_not_get_them(
    mark: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOKERY_TEST_KILL", "a")
    assert unmarked_environ().keys() >= {"ROOKERY_TEST_CLOCK", "ROOKERY_TEST_KILL"}
    monkeypatch.setenv(mark, "x")
    assert unmarked_environ().keys() & {"ROOKERY_TEST_CLOCK", "ROOKERY_TEST_KILL"} == set()


def test_they_are_no_settings(clock: Clock) -> None:
    assert read_environ().settings == {}
