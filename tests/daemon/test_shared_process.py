"""What a process that serves many calls must not do: use what belongs to all, fork, or keep ever more."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from daemons import OwnDaemon
from rookery.daemon.routing import CLIENT, PROCESS, THREAD, route
from rookery.db.commits import SUFFIX
from support import child_environ
from test_architecture import PROCESS_GLOBALS, Module, _process_globals, make_tree, read_modules, source

OWNS_ITS_PROCESS = {
    "rookery.daemon.main": "is the daemon's process",
    "rookery.daemon.worker": "is a process for one call",
    "rookery.daemon.forkserver": "is a process of its own",
}
WAITS_FOR_NO_CALL = {
    "rookery.daemon.listener": "is the thread that accepts",
    "rookery.daemon.address": "runs before there is a call",
    "rookery.daemon.start": "runs in the caller's process",
    "rookery.daemon.link": "has a thread of its own, in a sandbox's host",
}
KEEPS = {
    "rookery.config.schema.sections": "one value",
    "rookery.config.schema.keys": "one value",
    "rookery.merge.resolve.languages._parser": "one for each language",
    "rookery.guard.shell.syntax._parser": "one value",
    "rookery.config.schema._read_documentation": "one for each section",
    "rookery.config.sources._validator": "one value",
    "rookery.ops.command_line.build_parser": "two for each operation",
    "rookery.roles.catalog.builtin_roles": "one value",
    "rookery.processes.subreaper._adopting": "one value",
    "rookery.ops.operation._declared": "the operations",
    "rookery.config.steps._times": "for tests alone",
    "rookery.processes.proctable._boots": "one boot",
    "rookery.base.call._ids": "calls that are being served",
    "rookery.processes.spawning._started": "children that run",
}


def users_of_the_process(known: dict[str, Module]) -> list[str]:
    """Modules of the daemon that use what all its calls share."""
    return [
        f"{module.name}:{line} uses {owner}.{name}"
        for module in known.values()
        if module.folder == "daemon" and module.name not in OWNS_ITS_PROCESS
        for owner, name, line in _process_globals(module)
        if name in PROCESS_GLOBALS.get(owner, ())
        if (owner, name) != ("time", "sleep") or module.name not in WAITS_FOR_NO_CALL
    ]


def unbounded(known: dict[str, Module]) -> list[str]:
    """What a module keeps without a limit: results by their arguments, and containers that begin empty."""
    unlimited = []
    for module in known.values():
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef) and any(_is_unbounded(decorator) for decorator in node.decorator_list):
                unlimited.append(f"{module.name}.{node.name}")
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if ast.unparse(node.value) in ("{}", "[]", "set()", "dict()", "list()"):
                    unlimited.append(f"{module.name}.{ast.unparse(target)}")
    return unlimited


def _is_unbounded(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator)
    return text in ("cache", "functools.cache") or ("lru_cache" in text and "maxsize=None" in text)


def other_sqlite(known: dict[str, Module]) -> list[str]:
    """Modules that would open a database by something else than apsw, whose locks the other one would drop."""
    return [
        f"{module.name}:{node.lineno}"
        for module in known.values()
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Import) and any(alias.name.startswith("sqlite3") for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlite3"))
    ]


@pytest.mark.slow
def test_the_daemon_uses_nothing_of_its_process() -> None:
    assert users_of_the_process(source()) == []


@pytest.mark.slow
def test_nothing_is_kept_without_a_limit() -> None:
    assert set(unbounded(source())) - KEEPS.keys() == set()
    assert KEEPS.keys() - set(unbounded(source())) == set()


@pytest.mark.slow
def test_only_apsw_opens_a_database() -> None:
    assert other_sqlite(source()) == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (users_of_the_process, "import os\nos.chdir('/')\n"),
        (users_of_the_process, "import os\nos.fork()\n"),
        (users_of_the_process, "import time\ntime.sleep(1)\n"),
        (unbounded, "from functools import cache\n@cache\ndef f(x): ...\n"),
        (unbounded, "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef f(x): ...\n"),
        (unbounded, "_seen: dict[str, int] = {}\n"),
        (other_sqlite, "from sqlite3 import connect\n"),
    ],
)
def test_a_violation_is_seen(rule: Callable[[dict[str, Module]], list[str]], text: str, tmp_path: Path) -> None:
    assert rule(read_modules(make_tree(tmp_path, {"daemon/a.py": text})))


_seen: list[str] = []
_is_watching = False


def _watch(event: str, args: tuple[object, ...]) -> None:
    """Note copies of the process, and files of a database that Python opens; apsw does so by itself."""
    is_fork = event in ("os.fork", "os.forkpty")
    is_database = event == "open" and "rookery.db" in str(args[0]) and not str(args[0]).endswith(SUFFIX)
    if _is_watching and (is_fork or is_database):
        _seen.append(f"{event} {args}")


def test_no_call_forks_or_opens_the_database_by_itself(project: Path) -> None:
    """A copy of a process with threads has their locks, and none of the threads that would release them.

    And closing a plain file drops the locks that SQLite has on it in the same process.
    """
    global _is_watching
    sys.addaudithook(_watch)
    daemon = OwnDaemon(str(project))
    _is_watching = True
    try:
        for words in (["task", "list"], ["status"], ["hooks", "status"], ["merge", "list"], ["vcs", "status"]):
            assert daemon.run(words, project, child_environ(), b"", 60) is not None
    finally:
        _is_watching = False
        daemon.close()
    assert _seen == []


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["merge", "run"], PROCESS),
        (["radar"], PROCESS),
        (["data", "export", "x"], PROCESS),
        (["replay"], PROCESS),
        (["doctor"], PROCESS),
        (["mail", "wait"], PROCESS),
        (["logs", "--follow"], PROCESS),
        (["logs"], THREAD),
        (["merge", "--help"], THREAD),
        (["merge", "--", "--help"], PROCESS),
        (["worktree", "list"], THREAD),
        (["task", "list"], THREAD),
        (["daemon", "stop"], CLIENT),
        (["-C", "/", "task", "list"], CLIENT),
    ],
)
def test_what_computes_or_waits_gets_a_process(words: list[str], where: str, project: Path) -> None:
    assert route(words, str(project), str(project))[0] == where
