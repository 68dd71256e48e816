"""What the commands that agents call all the time may load, and that importing does nothing else.

Each runs in a child without `site`, so that nothing but Rookery decides what is loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from rookery.agents import store
from rookery.agents.home import Home
from rookery.agents.model import Turn
from rookery.agents.observing import unseen_ends
from rookery.agents.reserve import Request, reserve
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path
from rookery.db.database import Database
from rookery.ops.state import check_state
from support import NOW, SOURCE, add, wait_until

LIBRARIES = str(Path(apsw.__file__).parents[1])

# Every command loads these: the edge, the parser, the registry and the context.
EDGE = {
    "rookery",
    "rookery.base",
    "rookery.base.clock",
    "rookery.base.errors",
    "rookery.base.json",
    "rookery.base.record",
    "rookery.cli",
    "rookery.cli.main",
    "rookery.cli.options",
    "rookery.cli.parse",
    "rookery.config",
    "rookery.config.environ",
    "rookery.config.project",
    "rookery.ops",
    "rookery.ops.context",
    "rookery.ops.index",
    "rookery.ops.operation",
    "rookery.ops.state",
}
STATE = {
    "rookery.agents",
    "rookery.agents.observing",
    "rookery.agents.pulse",
    "rookery.merge",
    "rookery.merge.pulse",
    "rookery.base.ids",
    "rookery.db",
    "rookery.db.database",
    "rookery.events",
    "rookery.events.model",
    "rookery.events.store",
}
TASKS = {
    "rookery.base.text",
    "rookery.db.dialect",
    "rookery.tasks",
    "rookery.tasks.assembly",
    "rookery.tasks.graph",
    "rookery.tasks.learnings",
    "rookery.tasks.lifecycle",
    "rookery.tasks.listing",
    "rookery.tasks.model",
    "rookery.tasks.ops",
    "rookery.tasks.ready",
    "rookery.tasks.service",
    "rookery.tasks.store",
}
MAIL = {
    "rookery.base.text",
    "rookery.base.token",
    "rookery.db.dialect",
    "rookery.mail",
    "rookery.mail.addressing",
    "rookery.mail.directory",
    "rookery.mail.identity",
    "rookery.mail.inbox",
    "rookery.mail.inject",
    "rookery.mail.model",
    "rookery.mail.ops",
    "rookery.mail.service",
    "rookery.mail.store",
    "rookery.mail.validation",
}
ALLOWED = {
    "mail check": EDGE | STATE | MAIL,
    "mail send": EDGE | STATE | MAIL | {"rookery.agents.wake"},
    "task get": EDGE | STATE | TASKS,
    "task next-ready": EDGE | STATE | TASKS,
    "task create": EDGE | STATE | TASKS,
    "task update": EDGE | STATE | TASKS,
    "task claim": EDGE | STATE | TASKS,
    "learning add": EDGE | STATE | TASKS | {"rookery.tasks.learning_ops"},
    "events": EDGE | STATE | {"rookery.events.ops"},
}

# What a command loads besides if it is the one to notice that a turn has ended.
NOTICES = {"rookery.base.detach", "rookery.base.proctable", "rookery.base.python"}

# What costs milliseconds and is not needed here.
HEAVY = {
    "argparse",
    "asyncio",
    "ast",
    "base64",
    "bz2",
    "concurrent",
    "contextlib",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "email",
    "enum",
    "functools",
    "gettext",
    "graphlib",
    "hashlib",
    "http",
    "importlib.metadata",
    "importlib.resources",
    "inspect",
    "json",
    "locale",
    "logging",
    "lzma",
    "multiprocessing",
    "pathlib",
    "pickle",
    "platform",
    "random",
    "re",
    "rich",
    "selectors",
    "shutil",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "textwrap",
    "threading",
    "traceback",
    "typing",
    "typing_extensions",
    "unittest",
    "urllib",
    "uuid",
    "yaml",
    "zlib",
}

_RUN = """
import sys
sys.path[:0] = sys.argv[1:3]
from rookery.cli.main import main
status = main(sys.argv[4:])
loaded = sorted(sys.modules)
import json
with open(sys.argv[3], "w") as file:
    json.dump(loaded, file)
sys.exit(status)
"""


def run_bare(script: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A child with this Rookery and the installed libraries on its path, and nothing else."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", script, SOURCE, LIBRARIES, *words],
        cwd=cwd,
        env={"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def load(project: Path, *words: str) -> tuple[set[str], Any]:
    """The modules that a command loads, and the data that it gives."""
    report = project / "loaded.json"
    done = run_bare(_RUN, str(report), *words, "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout.splitlines()[-1])["data"]
    return set(json.loads(report.read_text())), data


@pytest.fixture
def task(project: Path) -> str:
    """The id of a task in the project."""
    found: str = load(project, "task", "create", "something")[1]["id"]
    return found


@pytest.mark.parametrize("command", ALLOWED)
def test_a_hot_command_loads_only_what_it_needs(command: str, project: Path, task: str) -> None:
    more = {
        "mail send": ["human", "--subject", "found something"],
        "task get": [task],
        "task create": ["another"],
        "task update": [task, "--priority", "2"],
        "task claim": ["--lease", "1h"],
        "learning add": [task, "found out"],
    }
    loaded, _ = load(project, *command.split(), *more.get(command, []))
    ours = {name for name in loaded if name.partition(".")[0] == "rookery"}
    assert ours - ALLOWED[command] == set()
    assert {name for name in loaded if name in HEAVY or name.partition(".")[0] in HEAVY} == set()


def test_a_command_that_notices_the_end_of_a_turn_only_starts_the_process_that_looks(project: Path, task: str) -> None:
    db = Database.open(database_path(str(project)))
    home = Home(str(project), db, load_config(str(project), read_environ({}), {}).config)
    for name in ("one", "two"):
        request = Request(add(db), "builder", "human", "0" * 40, name=name, mode="tmux")
        session = reserve(home, request)
        store.change_session(db, session, "", actor=name, at=NOW, state="waiting", step="ready", runner_pid=None)
    turn = Turn("trn_1", session.id, 1, "begin", "done", None, None, 0, None, None, NOW, NOW)
    store.insert_turn(db, turn, session.agent, at=NOW)
    assert unseen_ends(db) == 1
    loaded, _ = load(project, "mail", "check")
    ours = {name for name in loaded if name.partition(".")[0] == "rookery"}
    assert ours - ALLOWED["mail check"] == NOTICES
    assert {name for name in loaded if name in HEAVY or name.partition(".")[0] in HEAVY} == set()
    wait_until(lambda: unseen_ends(db) is None)
    db.close()


def test_the_lists_can_fail(project: Path) -> None:
    """`config show` is not hot, and what it loads is seen in the same way."""
    loaded, _ = load(project, "config", "show")
    assert {"yaml", "dataclasses", "rookery.config.loader"} <= loaded
    assert "rookery.config.loader" not in set().union(*ALLOWED.values())


# Imports every module while the environment bites, and reports what is opened for writing, made or started.
_IMPORT_ALL = """
import os, sys
sys.path[:0] = sys.argv[1:3]
sys.dont_write_bytecode = True
from importlib import import_module
import importlib.util, pkgutil

# Libraries may read the environment when they are loaded, and do: they come first.
for name in ("apsw", "yaml", "rich.console", "rich.progress", "rich.table", "rich.tree", "platform", "tempfile",
             "subprocess", "difflib", "graphlib", "dataclasses", "traceback", "importlib.metadata"):
    import_module(name)
import rookery
names = [each.name for each in pkgutil.walk_packages(rookery.__path__, "rookery.", onerror=lambda name: None)]

class Poison(dict):
    def _bite(self, *_words, **_named):
        raise AssertionError("the environment was read")
    __getitem__ = get = __contains__ = __iter__ = keys = items = values = copy = _bite

CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.putenv",
           "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "shutil.rmtree"}
seen = []

def watch(event, args):
    if event in CHANGES:
        seen.append(f"{event} {args}")
    elif event == "open" and (args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or "w" in str(args[1])):
        seen.append(f"{event} {args}")

sys.addaudithook(watch)
os.environ = Poison()
os.getenv = os.environ.get
for name in names:
    if not name.endswith("__main__"):
        import_module(name)
        if seen:
            sys.exit(f"{name}: {seen}")
os.write(1, f"{len(names)} modules".encode())
"""


@pytest.mark.slow
def test_importing_prints_nothing_changes_nothing_and_reads_no_environment(tmp_path: Path) -> None:
    done = run_bare(_IMPORT_ALL, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" modules")
    assert int(done.stdout.split()[0]) > 40
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import os\nHOME = os.environ['HOME']\n", "the environment was read"),
        ("import os\nHOME = os.getenv('HOME')\n", "the environment was read"),
        ("import os\nos.makedirs('somewhere')\n", "os.mkdir"),
        ("open('somewhere', 'w')\n", "open"),
        ("print('hello')\n", ""),
    ],
)
def test_an_import_that_does_something_is_seen(body: str, said: str, tmp_path: Path) -> None:
    package = tmp_path / "source" / "rookery"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "bad.py").write_text(body)
    script = _IMPORT_ALL.replace("sys.argv[1:3]", f"[{str(tmp_path / 'source')!r}, sys.argv[2]]", 1)
    done = run_bare(script, cwd=tmp_path)
    assert said in done.stderr
    assert done.returncode != 0 or done.stdout != "1 modules"


HOOK = {
    "rookery",
    "rookery.agents",
    "rookery.agents.hook_model",
    "rookery.agents.hooks",
    "rookery.agents.records",
    "rookery.agents.tool_hooks",
    "rookery.base",
    "rookery.base.clock",
    "rookery.base.errors",
    "rookery.base.ids",
    "rookery.base.json",
    "rookery.base.record",
    "rookery.base.text",
    "rookery.base.token",
    "rookery.cli",
    "rookery.cli.hook",
    "rookery.config",
    "rookery.config.environ",
    "rookery.config.project",
    "rookery.db",
    "rookery.db.database",
    "rookery.events",
    "rookery.events.telemetry",
    "rookery.events.traces",
    "rookery.ops",
    "rookery.ops.state",
}

_FIRE = """
import io, os, sys
sys.path[:0] = sys.argv[1:3]
from rookery.cli.hook import main
report, event = sys.argv[3:5]
os.environ |= dict(word.split("=", 1) for word in sys.argv[6:])
sys.stdin = io.TextIOWrapper(io.BytesIO(sys.argv[5].encode()))
def leave(status):
    loaded = sorted(sys.modules)
    import json
    with open(report, "w") as file:
        json.dump([status, loaded], file)
    raise SystemExit
os._exit = leave
sys.argv[1:] = [event]
main()
"""


@pytest.mark.parametrize(
    ("event", "call"),
    [
        ("post-tool", {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "a", "duration_ms": 3}),
        ("pre-tool", {"tool_name": "Read", "tool_input": {"file_path": "a"}}),
        ("pre-tool", {"tool_name": "Bash", "tool_input": {"command": "ls | head"}}),
    ],
)
def test_a_hook_loads_only_what_it_needs(event: str, call: dict[str, Any], project: Path, task: str) -> None:
    root = str(project)
    db = Database.open(database_path(root))
    home = Home(root, db, load_config(root, read_environ({}), {}).config)
    session = reserve(home, Request(task=task, role="builder", caller="human", base_commit="0" * 40))
    db.close()
    check_state(root)  # at the first call after the index has changed, git is asked
    token = (project / ".rookery/sessions" / session.id / "token").read_text()
    given = {"ROOT": root, "AGENT": session.agent, "SESSION": session.id, "TOKEN": token}
    report = project / "loaded.json"
    done = run_bare(
        _FIRE,
        str(report),
        event,
        json.dumps(call),
        *(f"ROOKERY_{key}={value}" for key, value in given.items()),
        cwd=project,
    )
    assert done.stderr == ""
    status, loaded = json.loads(report.read_text())
    assert status == 0
    ours = {name for name in loaded if name.partition(".")[0] == "rookery"}
    guard = {name for name in ours if name.startswith(("rookery.agents.guard", "rookery.agents.roles"))}
    assert bool(guard) == (event == "pre-tool")
    assert ours - guard - HOOK == set()
    assert {name for name in loaded if name in HEAVY or name.partition(".")[0] in HEAVY} == set()
