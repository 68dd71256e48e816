"""An operation that says it reads changes nothing: no row, no file; it starts only git's reading commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from actions import Scene, make_scene
from rookery.db.database import Database
from rookery.ops import index, operation
from rookery.ops.operation import Op, Param
from support import child_environ

# Runs commands one after the other in a process of its own. Prints for each its status, the programs that it started
# and what differs in the folder afterwards.
_RUN = """
import json, os, sys, time
calls, root = json.loads(sys.argv[1]), sys.argv[2]
from rookery.ops import index
from rookery.cli.main import main
index.load_all()
started = []

def watch(event, args):
    if event == "subprocess.Popen":
        started.append([os.fsdecode(each) for each in args[1]])
    elif event in ("os.fork", "os.posix_spawn", "os.exec", "os.system"):
        started.append([event, *map(repr, args[:2])])

sys.addaudithook(watch)
SQLITE = ("-wal", "-shm")

def look():
    seen = {}
    for folder, folders, files in os.walk(root):
        if folder == os.path.join(root, ".rookery"):
            folders.remove("cache") if "cache" in folders else None
        for name in files:
            path = os.path.join(folder, name)
            state = os.lstat(path)
            if name.endswith(SQLITE):
                continue
            seen[path] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return seen

main(["status", "--json"])  # what a first command makes, whatever it is
report = {}
for name, words in calls.items():
    started.clear()
    before = look()
    sys.stdout = open(os.devnull, "w")
    status = main(words)
    sys.stdout = sys.__stdout__
    after = look()
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    report[name] = [status, [list(each) for each in started], changed]
print(json.dumps(report))
"""

GIT_READS = {
    *("rev-parse", "status", "log", "diff", "diff-tree", "for-each-ref", "merge-base", "rev-list", "show", "ls-files"),
    *(
        "cat-file",
        "config",
        "ls-tree",
        "merge-tree",
        "worktree list",
        "symbolic-ref",
        "var",
        "check-ignore",
        "name-rev",
    ),
    *("name-rev", "show-ref", "version", "--version", "diff-index", "diff-files", "patch-id", "cherry", "check-attr"),
}
FOLLOWING = {"feed"}
NOTHING_TO_SHOW = {"spec show", "merge explain", "inbox show", "review show", "path", "diff"}
"""Here there is no specification, no landing, nothing of that key in the inbox, no work in review, and no worktree."""
ALSO_STARTED = {
    ("inspect", "tmux"): "shows the agent's screen",
    ("vcs diff", "add"): "puts untracked files into an index and objects of its own, which are thrown away",
}


def _value(scene: Scene, param: Param) -> str:
    named = {
        operation.TASKS: scene.agents["bee"].task,
        operation.AGENTS: "bee",
        operation.BRANCHES: "work",
        operation.SETTINGS: "tasks.lease",
        operation.RUNS: "run_",
        operation.ROLES: "builder",
    }
    if param.choices:
        return param.choices[0]
    return named.get(param.names) or {"input": "{}", "tool": "Bash", "subject": "bee", "operation": "status"}.get(
        param.name, "x"
    )


def _words(scene: Scene, op: Op) -> list[str]:
    words = op.name.split()
    for param in op.params:
        if param.required or (param.positional and param.many):
            words += [_value(scene, param)] if param.positional else [param.flag, _value(scene, param)]
    return [*words, "--json"]


@pytest.mark.slow
def test_what_reads_leaves_everything_as_it_was(project: Path) -> None:
    scene = make_scene(project)
    git = ["git", "-C", str(project)]
    subprocess.run([*git, "branch", "work"], check=True)
    reads = {
        declared.name: declared
        for declared in index.load_all()
        if not declared.changes_state and declared.name not in FOLLOWING
    }
    calls = {name: _words(scene, declared) for name, declared in reads.items()}
    env = child_environ({"ROOKERY_DAEMON": "off"})
    done = subprocess.run(
        [sys.executable, "-c", _RUN, json.dumps(calls), str(project)],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report.keys() == calls.keys()
    bugs = {name: status for name, (status, _, _) in report.items() if status == 3}
    assert bugs == {}, done.stderr[-3000:]
    refused = {name for name, (status, _, _) in report.items() if status}
    assert refused == NOTHING_TO_SHOW
    left = {name: changed for name, (_, _, changed) in report.items() if changed}
    assert left == {}
    started = {(name, _command(words)) for name, (_, programs, _) in report.items() for words in programs}
    assert {program for program in started if program[1] not in GIT_READS} == ALSO_STARTED.keys()


def _command(words: list[str]) -> str:
    name = words[0].rpartition("/")[2]
    return _git_command(words) if name == "git" else name


def _git_command(words: list[str]) -> str:
    rest = iter(words[1:])
    for word in rest:
        if word in ("-c", "-C", "--git-dir", "--work-tree"):
            next(rest)
        elif not word.startswith("-"):
            return f"worktree {next(rest)}" if word == "worktree" else word
    return "--version" if "--version" in words else ""


def test_a_database_that_only_reads_refuses_a_change(tmp_path: Path) -> None:
    db = Database.create(str(tmp_path / "rookery.db"))
    db.only_read()
    with pytest.raises(RuntimeError, match="only reads"), db.write():
        pytest.fail("a transaction began")
    with pytest.raises(Exception, match="readonly"):
        db.execute("DELETE FROM tasks")
    db.close()
