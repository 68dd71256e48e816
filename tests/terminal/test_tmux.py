"""Agents run in terminals of their own: Rookery starts them, types to them and reads their output exactly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from process_tools import Mark, wait_until
from rookery.base.errors import InvalidInput, InvalidState, NotFound, ProgramFailed
from rookery.processes.process import run
from rookery.processes.proctree import identify, marked
from rookery.terminal.tmux import Tmux, plain_text, private_folder, socket_path

NASTY = [
    "a;",
    ";",
    "x\\;",
    "it's",
    '"q"',
    "$HOME",
    "~",
    "#{pid}",
    "%if",
    "{",
    "}",
    "-n",
    "",
    "two\nlines",
    "\t",
    "🐦‍⬛ é",
]


def start(tmux: Tmux, mark: Mark, script: str, name: str = "ada", **env: str) -> None:
    """Run a shell script in a session."""
    tmux.new_session(name, "/", ["/bin/sh", "-c", script], {**mark.env, **env})


def shows(tmux: Tmux, text: str, name: str = "ada") -> None:
    """Wait until the terminal shows the text."""
    wait_until(lambda: text in tmux.capture(name))


class TestStarting:
    """What is started is what was asked for."""

    def test_arguments_folder_and_environment_arrive_as_they_are(self, tmux: Tmux, mark: Mark, tmp_path: Path) -> None:
        folder = tmp_path / "it's; here #{pid}"
        folder.mkdir()
        values = dict(zip("ABCDEFGHIJKLMNOP", NASTY, strict=True))
        code = "import json, os, sys; json.dump([sys.argv[2:], os.getcwd(), dict(os.environ)], open(sys.argv[1], 'w'))"
        out = tmp_path / "out"
        argv = [sys.executable, "-c", f"{code}; input()", str(out), *NASTY]
        tmux.new_session("ada", str(folder), argv, {**mark.env, **values, "PATH": "/only/here"})
        wait_until(lambda: out.exists() and out.read_text().endswith("}]"))
        seen, cwd, env = json.loads(out.read_text())
        assert seen == NASTY
        assert cwd == str(folder)
        assert {key: env[key] for key in values} == values
        assert env["PATH"] == "/only/here"

    def test_a_program_without_arguments_goes_through_no_shell(self, tmux: Tmux, mark: Mark, tmp_path: Path) -> None:
        program = tmp_path / "a b; touch oops"
        program.symlink_to("/bin/cat")
        tmux.new_session("ada", str(tmp_path), [str(program)], mark.env)
        tmux.send_text("ada", "echo")
        shows(tmux, "echo")
        assert not (tmp_path / "oops").exists()

    def test_no_variable_of_the_servers_starter_reaches_a_pane(
        self, tmux: Tmux, mark: Mark, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ROOKERY_SESSION", "another-session")
        monkeypatch.setenv("SECRET", "of-the-starter")
        tmux.new_session("ada", "/", ["/bin/sh", "-c", "env; read x"], {"ROOKERY_SESSION": mark.value})
        shows(tmux, mark.value)
        assert "of-the-starter" not in tmux.capture("ada")
        assert "another-session" not in tmux.capture("ada")
        assert marked("ROOKERY_SESSION", "another-session") == []

    def test_the_identity_is_the_programs(self, tmux: Tmux, mark: Mark) -> None:
        tmux.new_session("ada", "/", ["sleep", "300"], mark.env)
        wait_until(lambda: [process.pid for process in mark.carriers()] == [tmux.list()["ada"].pid])
        assert tmux.has("ada")
        assert not tmux.has("ad")

    def test_an_environment_of_any_size(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, 'echo "${#BIG} of them"; read x', BIG="x" * 100_000)
        shows(tmux, "100000 of them")

    def test_what_cannot_be_started_is_reported(self, tmux: Tmux, mark: Mark, tmp_path: Path) -> None:
        with pytest.raises(ProgramFailed, match="is gone"):
            tmux.new_session("ada", str(tmp_path / "gone"), ["cat"], mark.env)
        with pytest.raises(ProgramFailed, match="not installed") as caught:
            tmux.new_session("ada", "/", ["no-such-program", "x"], mark.env)
        assert "PATH" in caught.value.hint
        assert tmux.list() == {}
        start(tmux, mark, "read x")
        with pytest.raises(ProgramFailed, match="duplicate session: ada"):
            start(tmux, mark, "read x")

    @pytest.mark.parametrize("name", ["", "a b", "a:b", "a.b", "-t", "é", "=a", "x" * 101])
    def test_names_that_tmux_would_read_otherwise(self, tmux: Tmux, name: str) -> None:
        with pytest.raises(InvalidInput):
            tmux.new_session(name, "/", ["true"], {})


class TestTyping:
    """What is sent arrives, to the last byte."""

    def received(self, tmux: Tmux, mark: Mark, reader: Path, text: str) -> bytes:
        out = reader.with_name("received")
        tmux.new_session("ada", "/", [sys.executable, str(reader), str(out)], mark.env)
        shows(tmux, "up")
        tmux.send_text("ada", text)
        tmux.enter("ada")
        wait_until(lambda: out.exists() and out.read_bytes().endswith(b"\r"))
        return out.read_bytes()

    @pytest.mark.parametrize(
        "text", ["plain", "--", "-l -t x", "a;", ";", "\\;", "Enter", "C-c", "é 🐦‍⬛ 日本", "#{pid}~$HOME"]
    )
    def test_a_short_line_is_typed(self, tmux: Tmux, mark: Mark, reader: Path, text: str) -> None:
        assert self.received(tmux, mark, reader, text) == text.encode() + b"\r"

    def test_four_hundred_lines_are_pasted(self, tmux: Tmux, mark: Mark, reader: Path) -> None:
        lines = [f"{n}: {NASTY[n % len(NASTY)]}\t'\"`\\ 🐦 {'-' * (n % 97)};" for n in range(400)]
        text = "\n".join(["-- begins with dashes", *lines])
        got = self.received(tmux, mark, reader, text)
        assert got == b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~\r"

    def test_what_a_terminal_would_obey_is_left_out(self, tmux: Tmux, mark: Mark, reader: Path) -> None:
        text = "one\x1b[201~\x03\x04\r\ntwo\x9b2J\x7f\ttail"
        got = self.received(tmux, mark, reader, text)
        assert got == b"\x1b[200~one[201~\rtwo2J\ttail\x1b[201~\r"
        assert plain_text(text) == "one[201~\ntwo2J\ttail"

    def test_an_interrupt(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, 'trap "echo caught; exit 5" INT; echo up; while :; do sleep 0.05; done')
        shows(tmux, "up")
        tmux.send_key("ada", "C-c")
        wait_until(lambda: tmux.list()["ada"].dead)
        assert "caught" in tmux.capture("ada")
        wait_until(lambda: tmux.list()["ada"].exit_status == 5)

    def test_nothing_is_sent_where_there_is_no_session(self, tmux: Tmux, mark: Mark) -> None:
        with pytest.raises(NotFound):
            tmux.send_text("ada", "hello")
        start(tmux, mark, "read x")
        with pytest.raises(NotFound):
            tmux.send_text("ad", "hello")
        tmux.enter("ada")
        wait_until(lambda: tmux.list()["ada"].dead)
        with pytest.raises(InvalidState, match="has ended"):
            tmux.send_text("ada", "hello")

    def test_the_agent_is_meant_whatever_a_person_opens_beside_it(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, "read x; echo got $x; read y")
        run([*tmux.command(), "split-window", "-t", "=ada:0", "sleep 300"], env=mark.env)
        run([*tmux.command(), "new-window", "-t", "=ada", "sleep 300"], env=mark.env)
        tmux.send_text("ada", "mine")
        tmux.enter("ada")
        shows(tmux, "got mine")
        assert len(tmux.list()) == 1


class TestReading:
    """A program's output can be read, also after its end."""

    def test_the_screen_and_the_history(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, "seq 1000; read x")
        shows(tmux, "1000")
        assert tmux.capture("ada").splitlines()[-1] == "1000"
        assert "\n900\n" not in tmux.capture("ada")
        assert tmux.capture("ada", 300).splitlines() == [str(n) for n in range(701, 1001)]

    def test_long_lines_stay_whole(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, f"echo {'x' * 500}; read x")
        shows(tmux, "x" * 500)

    def test_last_words_and_status_of_a_program_that_dies(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, "read x; echo goodbye; exit 42")
        tmux.enter("ada")
        wait_until(lambda: tmux.list()["ada"].dead)
        wait_until(lambda: tmux.list()["ada"].exit_status == 42)
        assert tmux.capture("ada").split() == ["goodbye"]
        assert tmux.has("ada")

    @pytest.mark.slow
    def test_a_status_that_tmux_itself_has_missed_is_still_found(self, tmux: Tmux, mark: Mark) -> None:
        for _ in range(20):
            tmux.new_session("ada", "/", ["sleep", "300"], mark.env)
            os.kill(tmux.list()["ada"].pid, 9)
            wait_until(lambda: tmux.list()["ada"].exit_status == -9)
            tmux.kill("ada")

    def test_the_status_of_one_that_ends_well(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, "read x")
        assert tmux.list()["ada"].exit_status is None
        tmux.enter("ada")
        wait_until(lambda: tmux.list()["ada"].exit_status == 0)

    def test_a_signal_is_told_from_a_status(self, tmux: Tmux, mark: Mark) -> None:
        tmux.new_session("ada", "/", ["sleep", "300"], mark.env)
        os.kill(tmux.list()["ada"].pid, 9)
        wait_until(lambda: tmux.list()["ada"].dead)
        wait_until(lambda: tmux.list()["ada"].exit_status == -9)

    def test_all_screens_at_once(self, tmux: Tmux, mark: Mark) -> None:
        names = [f"agent-{number}" for number in range(20)]
        for name in names:
            start(tmux, mark, "printf '\\n\\nI am %s' $NAME; read x", name, NAME=name)
        wait_until(lambda: tmux.capture_all(names) == {name: f"\n\nI am {name}" for name in names})
        tmux.kill("agent-3")
        tmux.enter("agent-4")
        wait_until(lambda: tmux.list()["agent-4"].dead)
        screens = tmux.capture_all(["gone", *names])
        assert set(names) - set(screens) == {"agent-3"}
        assert tmux.capture_all(["gone"]) == {}

    def test_a_session_that_is_closed_meanwhile_is_left_out(
        self, tmux: Tmux, mark: Mark, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("ada", "ben", "cora"):
            start(tmux, mark, f"echo I am {name}; read x", name)
            shows(tmux, f"I am {name}", name)
        panes = tmux.list()
        monkeypatch.setattr(tmux, "list", lambda: panes)
        tmux.kill("ben")
        screens = tmux.capture_all(["ada", "ben", "cora"])
        assert screens == {"ada": "I am ada"}  # the rest comes with the next look

    def test_nothing_to_read(self, tmux: Tmux) -> None:
        assert tmux.list() == {}
        assert tmux.capture_all(["ada"]) == {}
        with pytest.raises(NotFound):
            tmux.capture("ada")


class TestEnding:
    """Sessions go one by one or all at once."""

    def test_kill_takes_one_and_can_be_repeated(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, "read x")
        start(tmux, mark, "read x", name="ada-2")
        tmux.kill("ada")
        tmux.kill("ada")
        assert set(tmux.list()) == {"ada-2"}
        tmux.kill_server()
        tmux.kill_server()
        assert tmux.list() == {}
        wait_until(lambda: not mark.carriers())

    def test_a_person_can_attach_from_within_another_tmux(self, tmux: Tmux, mark: Mark) -> None:
        start(tmux, mark, "echo the agent; read x")
        look = tmux.attach_command("ada")
        tmux.new_session("person", "/", look, mark.env)
        shows(tmux, "the agent", name="person")
        clients = run([*tmux.command(), "list-clients", "-t", "=ada"]).stdout
        assert clients.count("\n") == 1


class TestSocket:
    """The socket is private, and its path never too long."""

    def test_it_lies_in_the_project_where_that_fits(self) -> None:
        assert socket_path("/home/ada/acme") == "/home/ada/acme/.rookery/run/tmux.sock"
        long = socket_path("/home/" + "x" * 100)
        assert len(long) < 103
        assert long == socket_path("/home/" + "x" * 100)
        assert long != socket_path("/home/" + "y" * 100)

    def test_its_folder_is_closed_to_others(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        folder.mkdir(mode=0o755)
        private_folder(str(folder))
        assert folder.stat().st_mode & 0o777 == 0o700
        (tmp_path / "link").symlink_to(folder)
        with pytest.raises(ProgramFailed, match="not a folder of yours"):
            private_folder(str(tmp_path / "link"))

    def test_a_socket_that_may_not_be_used_is_no_empty_list(self, tmp_path: Path) -> None:
        with pytest.raises(ProgramFailed, match="tmux says"):
            Tmux(str(tmp_path / ("x" * 120))).list()

    def test_without_tmux_there_is_a_hint(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(ProgramFailed, match="not installed") as caught:
            Tmux(str(tmp_path / "s")).list()
        assert "headless" in caught.value.hint


def test_a_user_configuration_is_not_read(tmux: Tmux, mark: Mark) -> None:
    home = Path(os.environ["HOME"])
    (home / ".tmux.conf").write_text("set -g base-index 5\nset -g remain-on-exit off\n")
    start(tmux, mark, "read x")
    assert identify(tmux.list()["ada"].pid) is not None
    shown = subprocess.run([*tmux.command(), "show", "-g", "base-index"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "base-index 0"
