"""What people see: plain text in a pipe, colours and tables on a terminal, and nothing that a title smuggles in."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from conftest import Rook, git
from den import Den
from merge.yard import Yard
from rookery.base.ids import handle
from support import child_environ, rook_argv, run_rook, start_rook

_EVIL = "\x1b[31mred\x1b]0;title\x07\x9b2J\r\x08 tail \u202e"


def _on_terminal(folder: Path, *args: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run `rook` with a pseudo-terminal as all its streams; status and everything that it showed."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        rook_argv(*args),
        cwd=folder,
        env=child_environ({"TERM": "xterm-256color", "COLUMNS": "100", **(env or {})}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return child.wait(timeout=30), shown.decode()


@pytest.fixture
def evil(rook: Rook) -> str:
    """A task whose words are out to harm a terminal."""
    task = rook.json("task", "create", _EVIL, "--description", _EVIL, "--context", _EVIL).data["id"]
    rook("learning", "add", task, _EVIL)
    return str(task)


@pytest.mark.slow
def test_a_terminal_gets_colours_and_tables_unless_told_not_to(rook: Rook) -> None:
    rook("task", "create", "first")
    for words in (["task", "list"], ["events"]):
        status, shown = _on_terminal(rook.folder, *words)
        assert status == 0
        assert "\x1b[36m" in shown
        assert "first" in shown
        for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            _, plain = _on_terminal(rook.folder, *words, env=quiet)
            assert "first" in plain
            assert "\x1b[3" not in plain
        _, plain = _on_terminal(rook.folder, "--no-color", *words)
        assert "\x1b[3" not in plain


@pytest.mark.slow
def test_a_table_that_is_too_wide_keeps_every_column(repo: Path) -> None:
    yard = Yard(repo)
    branch = f"rook/human/{'b' * 30}"
    yard.branch(branch, a_txt="of the branch\n")
    yard.commit(a_txt="of main\n")
    yard.merge("--branch", branch)
    entry = yard.entry(branch)
    for columns in ("80", "200"):
        _, shown = _on_terminal(yard.folder, "merge", "list", "--all", env={"COLUMNS": columns, "TERM": "dumb"})
        for word in ("state", handle(entry["id"]), "failed", "rook/human/", "conflicts", "main", "(add/add)"):
            assert word in shown
        assert shown.count("b") >= branch.count("b")
        assert max(len(line) for line in shown.splitlines()) <= int(columns)


def test_errors_on_a_terminal_are_red_unless_told_not_to(rook: Rook) -> None:
    status, shown = _on_terminal(rook.folder, "task", "get", "nothing")
    assert status == 1
    assert "\x1b[31merror:" in shown
    for words, env in (([], {"NO_COLOR": "1"}), (["--no-color"], {})):
        _, plain = _on_terminal(rook.folder, *words, "task", "get", "nothing", env=env)
        assert "error:" in plain
        assert "\x1b" not in plain


@pytest.mark.slow
def test_words_cannot_command_the_terminal(rook: Rook, evil: str) -> None:
    (rook.folder / "evil.json").write_text('{"format": "rookery", "version": "\\u001b[2J"}')
    for words in (
        ["task", "get", evil],
        ["task", "list"],
        ["task", "tree"],
        ["learning", "list", evil],
        ["events"],
        ["data", "import", "evil.json"],
        ["task", "get", _EVIL],
        ["task", _EVIL],
    ):
        _, shown = _on_terminal(rook.folder, *words, env={"NO_COLOR": "1"})
        for harmful in ("\x1b[31m", "\x1b]0;", "\x1b[2J", "\x07", "\x9b", "\x08", "\u202e"):
            assert harmful not in shown, words


def test_a_pipe_gets_plain_text(rook: Rook, evil: str) -> None:
    for words in (["task", "get", evil], ["task", "list"], ["task", "tree"], ["events"], ["task", "progress"]):
        ran = rook(*words, env={"TERM": "xterm-256color", "FORCE_COLOR": "1"})
        assert ran.status == 0
        assert b"\x1b" not in ran.out
        assert ran.out.count(b"\n") > 0


def test_a_pipe_is_as_wide_as_is_asked_for(rook: Rook) -> None:
    title = "A title of many words " * 5
    rook("task", "create", title)
    assert max(map(len, rook("task", "list").out.decode().splitlines())) > 100
    narrow = rook("task", "list", env={"ROOKERY_COLUMNS": "60", "FORCE_COLOR": "1"}).out.decode()
    assert max(map(len, narrow.splitlines())) <= 60
    assert narrow.split().count("title") == title.split().count("title") + 1
    assert rook("task", "list", env={"ROOKERY_COLUMNS": "wide"}).status == 0


def test_quiet_prints_ids_alone(rook: Rook) -> None:
    ids = [rook("--quiet", "task", "create", f"t{n}").out.decode() for n in range(2)]
    assert rook("task", "list", "-q").out.decode() == "".join(ids)
    assert ids[0].startswith("task_")
    assert rook("task", "next-ready", "--quiet").out.decode() == ids[0]
    assert rook("data", "export", "x.json", "-q").out == b""


def test_an_import_on_a_terminal_gives_the_cursor_back(rook: Rook) -> None:
    rook("data", "export", "empty.json")
    rook("task", "create", "t")
    rook("data", "export", "one.json")
    for file in ("empty.json", "one.json"):
        status, shown = _on_terminal(rook.folder, "data", "import", file, "--clear")
        assert status == 0
        assert shown.rfind("\x1b[?25h") >= shown.rfind("\x1b[?25l")


def test_a_reader_that_leaves_sees_no_traceback(rook: Rook) -> None:
    script = rook.folder / "many.sh"
    for n in range(3):
        rook("task", "create", f"{n}", "--description", "-", stdin=b"x" * 300_000)
    command = " ".join([sys.executable, "-m", "rookery"])
    for words in ("events", "events --json", "task list --json", "task get --json $(rook task list -q | head -1)"):
        script.write_text(f'rook() {{ {command} "$@"; }}\nrook {words} | head -c 10 > /dev/null\n')
        done = subprocess.run(
            ["bash", str(script)], cwd=rook.folder, env=child_environ(), capture_output=True, timeout=60
        )
        assert done.stderr == b"", words


def test_an_interrupt_ends_quietly(rook: Rook) -> None:
    child = start_rook(rook.folder, "events", "--follow", "--json", "--limit", "0")
    rook("task", "create", "t")
    assert child.stdout is not None
    assert b"task.created" in child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (130, b"")


def test_help_and_version(tmp_path: Path) -> None:
    for words in ([], ["--help"], ["task", "--help"], ["task", "create", "--help"], ["help", "task", "get"]):
        ran = run_rook(tmp_path, *words)
        assert (ran.status, ran.err) == (0, b"")
        assert len(ran.out) > 100
    assert run_rook(tmp_path, "--version").out.startswith(b"rook ")


@pytest.mark.slow
def test_a_sling_warns_a_person_of_what_its_agent_will_lack(repo: Path) -> None:
    den = Den(repo)
    (repo / ".gitattributes").write_text("*.bin filter=lfs\n")
    (repo / "a.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    git(repo, "add", ".gitattributes", "a.bin")
    git(repo, "commit", "-qm", "Add a large file")
    status, shown = _on_terminal(repo, "sling", den.task("One"), "--name", "bee")
    den.wait_for("bee", "completed")
    assert status == 0
    assert "warning: Git LFS is not set up" in shown
