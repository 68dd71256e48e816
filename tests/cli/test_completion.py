"""Completions in the shells themselves: what each offers for a line, asked of a real project."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Rook
from rookery.base.ids import handle
from rookery.cli.completion import SCRIPTS, SHELLS
from rookery.cli.help import visible_groups
from rookery.daemon.routing import THREAD, route
from support import child_environ

Plan = tuple[Path, str, str]


@pytest.fixture
def plan(project: Path) -> Plan:
    """A project with an epic and a task in it."""
    rook = Rook(project)
    epic = rook.json("epic", "create", "Ship the parser").data["id"]
    task = rook.json("task", "create", "Write the lexer: part 1", "--parent", epic).data["id"]
    return project, epic, task


def candidates(rook: Rook, *words: str) -> list[dict[str, str]]:
    ran = rook("--json", "complete", "--", *words)
    answer: list[dict[str, str]] = json.loads(ran.out)["data"]
    return answer


def offered(rook: Rook, *words: str) -> list[str]:
    return [candidate["word"] for candidate in candidates(rook, *words)]


def run_shell(words: list[str], folder: Path) -> str:
    env = _environ(folder)
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=True).stdout


def test_commands_options_and_choices_come_from_the_operations(rook: Rook) -> None:
    assert offered(rook, "") == visible_groups()
    assert not {"turn", "complete", "schema"} & {*offered(rook, "")}
    assert offered(rook, "ps", "--wa") == offered(rook, "status", "--wa")
    assert offered(rook, "log", "--fol") == ["--follow"]
    assert offered(rook, "ls", "--state", "PENDING-") == ["pending-review"]
    assert offered(rook, "agent", "dis") == ["discover"]
    assert offered(rook, "ep") == ["epic"]
    assert offered(rook, "task", "next") == ["next-ready"]
    assert set(offered(rook, "learning", "")) == {"add", "list", "search", "delete"}
    assert offered(rook, "task", "list", "--rea") == ["--ready"]
    assert "--json" in offered(rook, "task", "list", "--")
    for typed in ("pending-", "PENDING-", "Pending-R"):
        assert offered(rook, "task", "list", "--state", typed) == ["pending-review"]
    assert offered(rook, "completion", "f") == ["fish"]
    assert offered(rook, "--json", "task", "cla") == ["claim"]
    assert offered(rook, "-C", "/", "task", "cla") == ["claim"]
    assert offered(rook, "nonsense", "") == offered(rook, "-C", "") == offered(rook, "data", "import", "") == []


def test_what_there_is_comes_from_the_project(plan: Plan) -> None:
    project, epic, task = plan
    rook = Rook(project)
    shown = candidates(rook, "task", "get", "")
    assert shown == [
        {"word": handle(epic), "about": "Ship the parser"},
        {"word": handle(task), "about": "Write the lexer: part 1"},
    ]
    assert offered(rook, "task", "create", "x", "--parent", epic[:-2]) == [epic], "a whole id that is typed goes on"
    assert offered(rook, "task", "get", f"task_{handle(task)[:3]}") == [f"task_{handle(task)}"]
    assert offered(rook, "task", "get", handle(task)[:4].upper()) == [handle(task)]
    assert offered(rook, "task", "get", "lexer") == [handle(task)]
    assert offered(rook, "task", "get", "e") == [], "two titles have an e"
    assert "tasks.lease" in offered(rook, "config", "explain", "tasks.")
    assert "database" in offered(rook, "doctor", "--category", "d")
    assert offered(rook, "merge", "--branch", "ma") == ["main"]
    assert offered(rook, "mail", "send", "@bu") == ["@builders"]
    assert offered(rook, "sling", task, "--role", "bui") == ["builder"]


def test_gates_come_from_the_configuration(project: Path) -> None:
    (project / ".rookery" / "config.local.yaml").write_text("gates:\n- {name: unit, run: pytest}\n")
    assert candidates(Rook(project), "gate", "run", "") == [{"word": "unit", "about": "pytest"}]


def test_the_daemon_answers_in_a_thread(project: Path) -> None:
    assert route(["complete", "--", "task", "get", ""], str(project), str(project))[0] == THREAD


def test_outside_of_a_project_there_are_still_commands(tmp_path: Path) -> None:
    assert offered(Rook(tmp_path), "task", "cla") == ["claim"]
    assert offered(Rook(tmp_path), "task", "get", "") == []


def _environ(shell_home: Path) -> dict[str, str]:
    programs = os.path.dirname(sys.executable)
    return child_environ(
        {"PATH": f"{programs}:{os.environ['PATH']}", "TERM": "dumb", "HOME": str(shell_home), "ROOKERY_DAEMON": "off"}
    )


def in_bash(folder: Path, line: str) -> list[str]:
    """What bash puts in place of the last word, by its own rules for where a word begins."""
    word = line.rpartition(" ")[2].rpartition("@")[2]
    before = len(line[: len(line) - len(word)].replace("@", " @ ").split())
    ask = (
        f"COMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_CWORD={before}; COMP_TYPE=9; COMP_WORDS[{before}]='{word}'; "
        '_rook; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    words = ["bash", "--norc", "-c", f"{SCRIPTS['bash']}\n{ask}"]
    return [line[: len(line) - len(word)] + candidate for candidate in run_shell(words, folder).split()]


def in_zsh(folder: Path, line: str) -> list[str]:
    """The line after TAB, typed into a real terminal: `print` shows it as one word."""
    begin = "PS1=; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -D -u\n" + SCRIPTS["zsh"]
    show = "show_line() { print -r -- \"<$BUFFER>\" }; zle -N show_line; bindkey '^X' show_line\n"
    (folder / "start.zsh").write_text(begin + show)
    seen = _type(["zsh", "-f", "-i"], folder, ["source ./start.zsh; echo re''ady\r", f"{line}\t", "\x18"], "ready")
    return [seen.rpartition("<")[2].partition(">")[0].strip()]


def _type(argv: list[str], folder: Path, keys: list[str], ready: str) -> str:
    """What a program in a terminal of its own prints while keys are typed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(argv[0], argv, _environ(folder))
    seen = ""
    try:
        for number, key in enumerate(keys):
            os.write(terminal, key.encode())
            seen += _read(terminal, ready if number == 0 else ">" if number == len(keys) - 1 else "")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return seen


def _read(terminal: int, until: str) -> str:
    """Everything up to a text; without one, until the shell has been quiet for a while."""
    seen, deadline = "", time.monotonic() + 30
    while time.monotonic() < deadline and (not until or until not in seen):
        ready, _, _ = select.select([terminal], [], [], 30 if until else 3)
        if not ready:
            break
        seen += os.read(terminal, 1 << 16).decode(errors="replace")
    return seen


def in_fish(folder: Path, line: str) -> list[str]:
    """What fish lists, by its own command for that."""
    words = ["fish", "--no-config", "-c", f"{SCRIPTS['fish']}\ncomplete -C {line!r}"]
    before = line[: len(line) - len(line.rpartition(" ")[2])]
    return [before + candidate.partition("\t")[0] for candidate in run_shell(words, folder).splitlines()]


IN: dict[str, Callable[[Path, str], list[str]]] = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_ids_and_groups(shell: str, plan: Plan) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    project, _, task = plan
    complete = IN[shell]
    assert complete(project, "rook task next") == ["rook task next-ready"]
    assert complete(project, f"rook task get {task[:-2]}") == [f"rook task get {task}"]
    assert complete(project, "rook mail send @bu") == ["rook mail send @builders"]
    if shell != "fish":  # which lists only what begins with, or holds, the word that was typed
        assert complete(project, "rook task get lexer") == [f"rook task get {handle(task)}"]


@pytest.mark.parametrize("shell", ["bash"])
def test_where_nothing_is_known_files_are_completed(shell: str, project: Path) -> None:
    assert in_bash(project, "rook data import ./") == []
    assert "-o default" in SCRIPTS[shell]
