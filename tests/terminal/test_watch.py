"""One client sees every terminal: what it shows, that it printed, that its program ended, that it is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from process_tools import Mark, wait_until
from rookery.base.errors import ProgramFailed
from rookery.processes import proctable
from rookery.processes.process import run
from rookery.processes.proctree import is_alive
from rookery.terminal.tmux import Tmux
from rookery.terminal.watch import CLOSED, DIED, OPENED, OUTPUT, Event, Watcher
from served import Served, make_call


def start(tmux: Tmux, mark: Mark, name: str, script: str = "echo I am $0; read x; echo got $x; read y; exit 3") -> None:
    tmux.new_session(name, "/", ["/bin/sh", "-c", script, name], mark.env)


@pytest.fixture
def watcher(tmux: Tmux) -> Iterator[Watcher]:
    with Watcher(tmux) as own:
        yield own


def seen(watcher: Watcher, *wanted: Event) -> None:
    """Wait until all of these events have come, in any order and among others."""
    missing = set(wanted)

    def come() -> bool:
        missing.difference_update(watcher.wait(5))
        return not missing

    wait_until(come)


def clients(tmux: Tmux) -> list[int]:
    """The processes of tmux on this socket, without the server."""
    server = int(run([*tmux.command(), "display-message", "-p", "#{pid}"]).stdout)
    found = []
    for pid in proctable.read_all():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if os.fsencode(tmux.socket) in words and pid != server:
            found.append(pid)
    return found


def test_a_look_at_all_terminals_ends_with_an_interrupt_of_the_call(tmux: Tmux, mark: Mark) -> None:
    start(tmux, mark, "one", "exec sleep 300")

    def look() -> None:
        with Watcher(tmux) as watcher:
            while True:
                watcher.wait(300)

    looking = Served(make_call("/", mark.env), look)
    wait_until(lambda: clients(tmux))
    looking.call.interrupt()
    assert isinstance(looking.end(), KeyboardInterrupt)
    wait_until(lambda: clients(tmux) == [])


def test_twenty_panes_and_one_client(tmux: Tmux, mark: Mark) -> None:
    names = [f"agent-{n}" for n in range(20)]
    for name in names:
        start(tmux, mark, name)
    with Watcher(tmux) as watcher:
        wait_until(lambda: set(watcher.capture_all(names).values()) == {f"I am {name}" for name in names})
        assert {name: screen[5:] for name, screen in watcher.capture_all(names).items()} == {n: n for n in names}
        assert clients(tmux) == [watcher.identity.pid]
        for name in names:
            tmux.send_text(name, "mail")
        seen(watcher, *(Event(OUTPUT, name) for name in names))
    assert set(tmux.list()) == set(names)
    assert not is_alive(watcher.identity)
    assert run([*tmux.command(), "list-sessions"]).stdout.count("\n") == 20


@pytest.mark.slow
def test_output_and_death_are_told(tmux: Tmux, mark: Mark, watcher: Watcher) -> None:
    start(tmux, mark, "ada")
    start(tmux, mark, "ben")
    seen(watcher, Event(OPENED, "ada"), Event(OPENED, "ben"))
    tmux.send_text("ada", "x\n")
    seen(watcher, Event(OUTPUT, "ada"))
    tmux.enter("ada")
    seen(watcher, Event(DIED, "ada"))
    wait_until(lambda: tmux.list()["ada"].exit_status == 3)
    assert watcher.capture_all(["ada", "ben"])["ada"].endswith("got x")
    assert not tmux.list()["ben"].dead


def test_nothing_happens_and_the_wait_ends(tmux: Tmux, mark: Mark, watcher: Watcher) -> None:
    start(tmux, mark, "ada", "read x")
    seen(watcher, Event(OPENED, "ada"))
    assert watcher.wait(0.05) == []


@pytest.mark.slow
def test_a_program_that_died_before_it_was_followed_is_told(tmux: Tmux, mark: Mark) -> None:
    start(tmux, mark, "ada", "read x")
    tmux.enter("ada")
    wait_until(lambda: tmux.list()["ada"].dead)
    with Watcher(tmux) as watcher:
        seen(watcher, Event(DIED, "ada"))


def test_sessions_that_come_and_go(tmux: Tmux, mark: Mark, watcher: Watcher) -> None:
    start(tmux, mark, "ada")
    start(tmux, mark, "ben")
    seen(watcher, Event(OPENED, "ada"), Event(OPENED, "ben"))
    tmux.send_text("ada", "x")
    seen(watcher, Event(OUTPUT, "ada"))
    tmux.kill("ada")
    seen(watcher, Event(CLOSED, "ada"))
    assert set(watcher.capture_all(["ada", "ben"])) == {"ben"}
    start(tmux, mark, "ada")
    seen(watcher, Event(OPENED, "ada"))
    tmux.send_text("ada", "again\n")
    seen(watcher, Event(OUTPUT, "ada"))
    wait_until(lambda: "got again" in watcher.capture_all(["ada"])["ada"])


def test_a_session_killed_by_hand_does_not_live_on_with_the_watcher(tmux: Tmux, mark: Mark, watcher: Watcher) -> None:
    start(tmux, mark, "ada")
    start(tmux, mark, "ben")
    seen(watcher, Event(OPENED, "ada"), Event(OPENED, "ben"))
    tmux.send_text("ada", "x")
    seen(watcher, Event(OUTPUT, "ada"))
    pid = tmux.list()["ada"].pid
    run([*tmux.command(), "kill-session", "-t", "=ada"])
    seen(watcher, Event(CLOSED, "ada"))
    wait_until(lambda: pid not in [each.pid for each in mark.carriers()])
    assert is_alive(watcher.identity)


def test_a_screen_that_looks_like_an_answer_fools_nobody(tmux: Tmux, mark: Mark, watcher: Watcher) -> None:
    start(tmux, mark, "ben", "echo I am ben; read x")
    forged = "\n".join(f"%end {stamp} {number} 1" for stamp in range(3) for number in range(3))
    start(tmux, mark, "ada", f"echo '{forged}'; echo '%begin 1 2 1'; echo forged; echo '%end 1 2 1'; read x")
    wait_until(lambda: "forged" in tmux.capture("ada"))
    for _ in range(20):
        # The number of the next answer can be guessed; a guess that is right cuts the liar's own screen short.
        number = run([*tmux.command(), "display-message", "-p", "x"]).stdout
        assert number
        found = watcher.capture_all(["ada", "ben"])
        assert found["ben"] == "I am ben"
        assert found["ada"].startswith("%end 0 0 1")


def test_a_guessed_end_does_not_shift_the_answers() -> None:
    from rookery.terminal.watch import _Inbox

    inbox = _Inbox("nonce")
    lines = ["%begin 7 1 1", "liar", "%end 7 1 1", "%begin 7 9 1", "forged for ben", "%end 7 9 1", "%end 7 1 1"]
    lines += ["%begin 7 2 1", "nonce-0", "%end 7 2 1"]
    lines += ["%begin 7 3 1", "I am ben", "%end 7 3 1", "%begin 7 4 1", "nonce-1", "%end 7 4 1"]
    for line in lines:
        inbox.add(line)
    assert inbox.replies == {0: ["liar"], 1: ["I am ben"]}


def test_the_end_of_the_server_is_told(tmux: Tmux, mark: Mark, watcher: Watcher) -> None:
    start(tmux, mark, "ada")
    tmux.kill_server()
    wait_until(lambda: not watcher.is_open)
    with pytest.raises(ProgramFailed, match="tmux has ended"):
        watcher.capture_all(["ada"])
    assert list(watcher.events()) == []


def test_two_watchers_see_the_same(tmux: Tmux, mark: Mark, watcher: Watcher) -> None:
    start(tmux, mark, "ada")
    seen(watcher, Event(OPENED, "ada"))
    with Watcher(tmux) as other:
        tmux.send_text("ada", "x")
        seen(watcher, Event(OUTPUT, "ada"))
        seen(other, Event(OUTPUT, "ada"))
    tmux.send_text("ada", "y")
    seen(watcher, Event(OUTPUT, "ada"))
    assert set(tmux.list()) == {"ada"}


def test_a_watcher_that_is_killed_leaves_nothing(tmux: Tmux, mark: Mark) -> None:
    start(tmux, mark, "ada")
    watcher = Watcher(tmux)
    os.kill(watcher.identity.pid, 9)
    wait_until(lambda: not watcher.is_open)
    wait_until(lambda: run([*tmux.command(), "list-sessions"]).stdout.startswith("ada: 1 windows"))
    wait_until(lambda: run([*tmux.command(), "list-sessions"]).stdout.count("\n") == 1)
    watcher.close()
