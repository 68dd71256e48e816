"""The order of the folders, and what may stand in which file. Read with `ast`: nothing is imported here."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = Path(__file__).parents[1] / "src" / "rookery"

# Imports point down this list or stay in the same folder; folders on one line do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("processes",),
    ("config",),
    ("db",),
    ("vcs", "terminal", "forge", "runtimes"),
    ("ops",),
    ("roles",),
    ("events",),
    ("tasks",),
    ("environment",),
    ("sessions",),
    ("mail",),
    ("costs",),
    ("worktrees",),
    ("sandbox",),
    ("guard",),
    ("status",),
    ("turns",),
    ("agents",),
    ("hooks",),
    ("merge",),
    ("remote",),
    ("location",),
    ("review",),
    ("inbox",),
    ("notify",),
    ("watch",),
    ("overview",),
    ("upkeep",),
    ("flows",),
    ("doctor",),
    ("demo",),
    ("client",),
    ("cli",),
    ("mcp", "web", "tui"),
    ("daemon",),
)
RANK = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}

ROOT_FILES = {
    "__init__": "holds the version alone",
    "__main__": "is `python -m rookery`, above everything",
}
LATE_IMPORTS: dict[tuple[str, str], str] = {}
"""Imports within a function that may close a circle, because both modules are complete by then."""

STARTS_PROCESSES = {
    "rookery.processes.process": "runs a child to its end",
    "rookery.processes.child": "holds a child that `process` started",
    "rookery.processes.spawning": "starts what outlives us, or has our own streams",
}
NAMES_GIT = {
    "rookery.vcs.git.repository": "the only git; behind every jj repository lies such a store too",
    "rookery.vcs.jj.program": "the only jj",
}
FINDS_STATE = {
    "rookery.ops.state_owner": "refuses state that is not ours",
    "rookery.ops.init": "`rook init` makes it, and asks `ops.state_owner` first",
    "rookery.client.main": "only tells whose daemon to call, which asks `ops.state_owner` itself",
    "rookery.daemon.routing": "only compares it with its own root",
}
OPENS_STATE = {
    "rookery.ops.state": "the way to the state, which refuses what is not ours",
}
"""Beside `db` itself, and the checks: the doctor gives them no root whose state is refused."""
NAMES_STATE_FILES = {
    "rookery.config.layout": "the one list of what lies under `.rookery/`",
    "rookery.client.discovery": "imports nothing; a test compares it with the list",
}
REF_NAMES = "rookery.vcs.ref_names"
"""The one module that says how refs are named."""
ASKS_THE_CLOCK = {
    "rookery.config.environ": "the one clock, which tests put forward",
    "rookery.base.ids": "only the order of ids counts",
    "rookery.config.loader": "compares with the times of files",
    "rookery.vcs.git.moves": "compares with the times of files",
    "rookery.vcs.git.locks": "compares with the times of files",
    "rookery.vcs.git.index_claim": "compares with the times of files",
}
TABLES: dict[str, tuple[str, ...]] = {
    "ops": ("location",),
    "events": ("events", "event_times"),
    "tasks": (
        *("tasks", "task_blockers", "tasks_search", "tasks_unindexed", "learnings", "learnings_search"),
        *("outside_files", "reviews"),
    ),
    "sessions": ("sessions", "turns", "runs", "port_blocks", "identities_due"),
    "mail": ("messages", "mail_groups", "mail_readers", "mail_readings"),
    "costs": ("turn_usage", "one_shots"),
    "worktrees": ("cleanings",),
    "merge": (
        *("merges", "merge_files", "merge_leases", "gate_runs", "open_conflicts"),
        *("radar_files", "radar_pairs", "radar_warnings"),
    ),
    "inbox": ("inbox_marks",),
    "flows": ("loop_failures", "radar_seen"),
}
"""The room that owns each table: its stores alone read and write it."""
OWNER = {table: room for room, tables in TABLES.items() for table in tables}
WRITES_SQL = {
    "rookery.db.checks": "looks at the file as a whole: its integrity, and whether the search index agrees",
    "rookery.db.database": "transactions and pragmas",
    "rookery.db.dialect": "what differs between databases, for every store",
    "rookery.db.migrate": "runs the migrations",
    "rookery.events.telemetry": "has a file of its own, with tables of its own",
}
"""Beside the stores."""
READS_ACROSS: dict[tuple[str, str], str] = {
    ("rookery.ops.store", "sessions"): "who calls is proved at every call, below the room of sessions",
    ("rookery.ops.store", "turns"): "who calls is proved at every call, below the room of sessions",
    ("rookery.ops.store", "merge_leases"): "whether a project was moved is decided before its state may be used",
    ("rookery.tasks.scope.store", "sessions"): "what an agent may change is asked where a task is handed in, below",
    ("rookery.mail.store", "turns"): "mail is new again once the turn that saw it has ended: a part of every check",
    ("rookery.mail.store", "inbox_marks"): "a question that a person has acknowledged is no longer open",
    ("rookery.costs.store", "sessions"): "costs are grouped by what the sessions were for",
    ("rookery.costs.store", "turns"): "costs are grouped by what the sessions were for",
    ("rookery.costs.store", "tasks"): "costs are grouped by what the sessions were for",
    ("rookery.tasks.landed_store", "merges"): "completed means landed, and only our records show squashed work",
    **{
        ("rookery.inbox.store", table): "what waits for a person follows from the facts of all rooms, also of the loop"
        for table in (
            "messages",
            "sessions",
            "turns",
            "tasks",
            "merges",
            "open_conflicts",
            "loop_failures",
            "reviews",
            "events",
        )
    },
    **{
        ("rookery.flows.store", table): "asked after every command and every commit, by one query"
        for table in ("sessions", "turns", "messages", "merges", "merge_leases", "cleanings", "identities_due")
    },
}
"""Joins over the tables of two rooms, in the store of the higher one; where it is the lower one, that says why."""
MOST_MODULES = 20
ANATOMY = {"model", "store", "service", "ops", "checks", "main", "__init__", "__main__"}
"""Names that modules of neighbouring folders may share: they say the same of each."""
GIT_COMMAND = re.compile(
    "add|branch|cat-file|check-.*|checkout|clean|clone|commit|commit-tree|config|diff|diff-.*|fetch|for-each-ref|gc|"
    "hash-object|init|log|ls-.*|merge|merge-.*|mktree|pack-.*|prune|push|read-tree|rebase|reset|restore|rev-.*|revert|"
    "show|show-.*|stash|status|switch|symbolic-ref|tag|update-.*|worktree|write-tree"
)
NAMES_FILES = {"rookery.lock": "a file of ours in jj's folder"}
ASKS_GIT = ("read", "ask", "write", "run", "read_bytes", "beside", "git", "run_git")
"""Methods that take the words of a git command."""
ABOVE_THE_OPERATIONS = ("cli", "daemon", "client", "mcp", "web", "tui")
PROCESS_GLOBALS = {
    "os": ("getcwd", "getcwdb", "chdir", "fchdir", "umask", "fork", "forkpty"),
    "os.path": ("expanduser",),
    "sys": ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"),
    "signal": ("signal", "alarm", "setitimer", "siginterrupt", "set_wakeup_fd"),
    "locale": ("setlocale",),
    "time": ("tzset", "localtime", "sleep"),
    "builtins": ("print", "input"),
    "subprocess.Popen": ("preexec_fn",),
}
"""What belongs to the whole process. `time.sleep` is among it because no interrupt of a call ends it."""
USES_PROCESS_GLOBALS = {
    "rookery.base.call": "stands for the process where no call is served",
    "rookery.processes.spawning": "copies a process without threads, and refuses where a call is served",
    "rookery.processes.process": "lets children be interrupted, where no call is served",
    "rookery.processes.proctree": "never leaves what it has frozen",
    "rookery.config.environ": "the system's word for the home, where the environment has none",
    "rookery.turns.interrupt": "is the runner's, a program of its own",
    "rookery.sessions.journal": "its writer is the runner's, a program of its own",
    "rookery.turns.runner": "is a program of its own",
    "rookery.turns.loop_supervisor": "is a part of such programs",
    "rookery.sandbox.wrap": "asks the system for the home of a user who is named, as in `~ada`",
    "rookery.sandbox.host": "is a program of its own",
    "rookery.sandbox.relay": "is a program of its own",
    "rookery.merge.tiers.bounds": "is a program of its own: the hook of an agent that resolves",
    "rookery.runtimes.scripted_agent.__main__": "is a program of its own",
    "rookery.runtimes.scripted_agent.prompt": "belongs to that program",
    "rookery.runtimes.scripted_agent.steps": "belongs to that program",
    "rookery.runtimes.scripted_agent.voice": "belongs to that program",
    "rookery.guard.decide": "a `~` is the home of the one user that daemon and callers have",
    "rookery.guard.shell.expansion": "a `~` is the home of the one user that daemon and callers have",
    "rookery.guard.paths": "a `~` is the home of the one user that daemon and callers have",
    "rookery.guard.shell.substitution": "a `~` is the home of the one user that daemon and callers have",
}
LONGEST = 400


@dataclass(frozen=True)
class Import:
    """One import: what is loaded, in which line, and when."""

    target: str
    line: int
    when: str
    """`start`, `call` (within a function) or `typing` (under TYPE_CHECKING)."""


@dataclass(frozen=True)
class Module:
    """A source file."""

    name: str
    path: Path
    tree: ast.Module
    text: str

    @property
    def folder(self) -> str:
        """The folder under rookery; empty for the files at the top."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 2 or (self.path.name == "__init__.py" and len(parts) == 2) else ""


def read_modules(source: Path) -> dict[str, Module]:
    """Every module under the folder, by its dotted name."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text()
        modules[name] = Module(name, path, ast.parse(text), text)
    return modules


@cache
def source() -> dict[str, Module]:
    """Every module of ours."""
    return read_modules(SOURCE)


def imports(module: Module, known: dict[str, Module]) -> list[Import]:
    """Everything of Rookery that the module imports, wherever it does."""
    return [
        imported for imported in _imports(module.tree.body, "start", module, known) if imported.target != module.name
    ]


def _imports(body: list[ast.stmt], when: str, module: Module, known: dict[str, Module]) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (Import(name.name, node.lineno, when) for name in node.names if _is_ours(name.name))
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module)
            if _is_ours(base):
                for name in node.names:
                    whole = f"{base}.{name.name}"
                    yield Import(whole if whole in known else base, node.lineno, when)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            inverted = isinstance(node.test, ast.UnaryOp)
            yield from _imports(node.body, when if inverted else "typing", module, known)
            yield from _imports(node.orelse, "typing" if inverted else when, module, known)
        else:
            inner = "call" if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else when
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                for child in getattr(node, field, []):
                    part = child.body if isinstance(child, ast.ExceptHandler | ast.match_case) else [child]
                    yield from _imports(part, inner, module, known)


def _base(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".")
    if module.path.name != "__init__.py":
        package = package[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def _is_ours(name: str) -> bool:
    return name == "rookery" or name.startswith("rookery.")


def against_the_order(known: dict[str, Module]) -> list[str]:
    """Imports that point up, or sideways; also for types alone, because what a module says is what it knows."""
    wrong = []
    for module in known.values():
        if not module.folder:
            continue
        for imported in imports(module, known):
            target = imported.target.split(".")[1] if "." in imported.target else ""
            if not target or target == module.folder or target not in RANK or module.folder not in RANK:
                continue
            if RANK[target] >= RANK[module.folder]:
                way = "sideways" if RANK[target] == RANK[module.folder] else "up"
                wrong.append(f"{module.name}:{imported.line} imports {imported.target}, {way}")
    return wrong


def circles(known: dict[str, Module]) -> list[str]:
    """Modules that load each other at run time."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for module in known.values():
        for imported in imports(module, known):
            late = imported.when == "call" and (module.name, imported.target) in LATE_IMPORTS
            if imported.when != "typing" and not late and imported.target in known:
                sorter.add(module.name, imported.target)
    try:
        sorter.prepare()
    except CycleError as error:
        return [" -> ".join(error.args[1])]
    return []


def out_of_place(known: dict[str, Module]) -> list[str]:
    """Folders that are not in the list, and files at the top that are not known."""
    wrong = [
        f"{module.name} is in no layer" for module in known.values() if module.folder and module.folder not in RANK
    ]
    tops = {module.path.stem for module in known.values() if not module.folder}
    return wrong + [f"rookery.{name} belongs into a folder" for name in sorted(tops - ROOT_FILES.keys())]


def readers_of_the_environment(known: dict[str, Module]) -> list[str]:
    """Modules outside of config/ that look at the environment."""
    names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    return [
        f"{module.name}:{line} uses os.{name}"
        for module in known.values()
        if module.folder != "config"
        for name, line in _uses(module, "os")
        if name in names
    ]


_OF_THREADS = {"Future", "ThreadPoolExecutor"}


def starters_of_processes(known: dict[str, Module]) -> list[str]:
    """Modules that could start a child by themselves. Of the futures, those of threads start none."""
    forbidden = {"subprocess", "multiprocessing", "pty", "concurrent.futures", "asyncio.subprocess"}
    risky = ("system", "popen", "exec", "spawn", "posix_spawn", "fork")
    wrong = []
    for module in known.values():
        if module.name in STARTS_PROCESSES:
            continue
        for node in ast.walk(module.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not {alias.name for alias in node.names} <= _OF_THREADS:
                names.append(node.module or "")
            wrong += [f"{module.name}:{node.lineno} imports {name}" for name in names if name in forbidden]  # type: ignore[attr-defined]
        wrong += [
            f"{module.name}:{line} uses os.{name}" for name, line in _uses(module, "os") if name.startswith(risky)
        ]
    return wrong


def _uses(module: Module, owner: str) -> Iterator[tuple[str, int]]:
    """Attributes of a module that are used, and names imported from it."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == owner:
            yield node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == owner:
            yield from ((alias.name, node.lineno) for alias in node.names)


def askers_of_the_clock(known: dict[str, Module]) -> list[str]:
    """Modules that ask the machine for the time: tests could not put it forward."""
    return [
        f"{module.name}:{line} uses time.{name}"
        for module in known.values()
        if module.name not in ASKS_THE_CLOCK
        for name, line in _uses(module, "time")
        if name in ("time", "time_ns")
    ]


def callers_of_git(known: dict[str, Module]) -> list[str]:
    """Argument lists that begin with git or jj: list displays anywhere, tuples where a call takes them first."""
    wrong = []
    for module in known.values():
        if module.name in NAMES_GIT:
            continue
        for node in ast.walk(module.tree):
            lists = [node] if isinstance(node, ast.List) else []
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Tuple):
                lists = [node.args[0]]  # type: ignore[list-item]
            for argv in lists:
                first = argv.elts[0] if argv.elts else None
                if isinstance(first, ast.Constant) and first.value in ("git", "jj"):
                    wrong.append(f"{module.name}:{argv.lineno} runs {first.value}")
    return wrong


def words_for_git(known: dict[str, Module]) -> list[str]:
    """Modules outside of vcs/ that give a repository the words of a git command, instead of calling a method."""
    wrong = []
    for module in known.values():
        if module.folder == "vcs":
            continue
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            first = _first_word(node)
            if node.func.attr in ASKS_GIT and isinstance(first, str) and GIT_COMMAND.fullmatch(first):
                wrong.append(f"{module.name}:{node.lineno} asks for git {first}")
    return wrong


def _first_word(call: ast.Call) -> object:
    """The first argument of a call, also of one such as `run(*("log", "--raw"), tip)`."""
    first: ast.expr | None = call.args[0] if call.args else None
    while isinstance(first, ast.Starred | ast.Tuple | ast.List):
        first = first.value if isinstance(first, ast.Starred) else next(iter(first.elts), None)
    return first.value if isinstance(first, ast.Constant) else None


_STATEMENT = re.compile(r"^\s*(SELECT|INSERT|REPLACE|UPDATE|DELETE|WITH)\s|\b(FROM|INTO|JOIN)\s+[a-z_]+\b")
_WRITTEN = re.compile(r"\b(?:INTO|UPDATE|DELETE FROM)\s+([a-z_]+)\b")
_TABLE = re.compile(r"\b(?:FROM|INTO|JOIN|UPDATE)\s+([a-z_]+)\b")


def sql_outside_of_stores(known: dict[str, Module]) -> list[str]:
    """Statements, or parts of them, in modules that are no stores."""
    return [
        f"{module.name}:{line} has SQL: {text[:40]!r}"
        for module in known.values()
        if not _is_store(module) and module.name not in WRITES_SQL
        for text, line in _texts(module)
        if _STATEMENT.search(text)
    ]


def tables_of_others(known: dict[str, Module]) -> list[str]:
    """Stores that name a table which another room owns."""
    return [
        f"{module.name}:{line} names {table}, which is {OWNER[table]}'s"
        for module in known.values()
        if _is_store(module)
        for text, line in _texts(module)
        for table in _TABLE.findall(text)
        if OWNER.get(table, module.folder) != module.folder
        and ((module.name, table) not in READS_ACROSS or table in _WRITTEN.findall(text))
    ]


def transactions_in_stores(known: dict[str, Module]) -> list[str]:
    """Stores that open a transaction: their callers do, around all that belongs together."""
    return [
        f"{module.name}:{node.lineno} opens a transaction"
        for module in known.values()
        if _is_store(module)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("db.write", "db.read")
    ]


def _is_store(module: Module) -> bool:
    return module.path.stem == "store" or module.path.stem.endswith("_store")


def _texts(module: Module) -> Iterator[tuple[str, int]]:
    """Every string, with its line: an f-string as one, with `{}` for what is filled in."""
    nodes = list(ast.walk(module.tree))
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            yield (
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
                node.lineno,
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno


def crowded(known: dict[str, Module]) -> list[str]:
    """Folders that two rooms share."""
    counts: dict[Path, int] = {}
    for module in known.values():
        if module.path.stem != "__init__":
            counts[module.path.parent] = counts.get(module.path.parent, 0) + 1
    return [f"{folder.name} has {count} modules" for folder, count in counts.items() if count > MOST_MODULES]


def namesakes(known: dict[str, Module]) -> list[str]:
    """Modules of one name in neighbouring folders: in two folders of one, or in a folder and the one above."""
    folders: dict[str, list[Path]] = {}
    for module in known.values():
        if module.path.stem not in ANATOMY:
            folders.setdefault(module.path.stem, []).append(module.path.parent)
    return [
        f"{name} is in {one.name} and in {other.name}"
        for name, places in folders.items()
        for number, one in enumerate(places)
        for other in places[number + 1 :]
        if one.parent in (other, other.parent) or one == other.parent
    ]


def lost_names(known: dict[str, Module]) -> list[str]:
    """Names of modules in strings, by which programs are started and operations are found, that are no modules."""
    return [
        f"{module.name}:{line} names {name}"
        for module in known.values()
        for text, line in _texts(module)
        for name in re.findall(r"\brookery(?:\.[a-z_][a-z_0-9]*)+", text)
        if name not in known and name.removeprefix("rookery.") not in RANK and name not in NAMES_FILES
    ]


def ways_around_the_check_of_state(known: dict[str, Module]) -> list[str]:
    """Modules that find or open a project's state without asking whether it may be used."""
    wrong = []
    for module in known.values():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called.endswith("find_root") and module.name not in FINDS_STATE:
                wrong.append(f"{module.name}:{node.lineno} calls find_root")
            is_free = module.name in OPENS_STATE or module.folder == "db" or module.name.endswith(".checks")
            if called.endswith("Database.open") and not is_free:
                wrong.append(f"{module.name}:{node.lineno} opens the database")
    return wrong


def spellers_of_state_paths(known: dict[str, Module]) -> list[str]:
    """Modules that spell a path under `.rookery/` by themselves: its name, or a word where `config.layout` has one.

    Sentences may name such a path: what has a space in it is prose, as docstrings are.
    """
    wrong = []
    for module in known.values():
        if module.name in NAMES_STATE_FILES:
            continue
        for node in ast.walk(module.tree):
            value = node.value if isinstance(node, ast.Constant) else None
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            if isinstance(text, str) and ".rookery" in text.split("/") and " " not in text:
                wrong.append(f"{module.name}:{node.lineno} spells {text}")  # type: ignore[attr-defined]
            if isinstance(node, ast.Call):
                wrong += [f"{module.name}:{node.lineno} spells {ast.unparse(path)}" for path in _spelled(node)]
    return wrong


def _spelled(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that stand for a name which `config.layout` should have."""
    called = ast.unparse(call.func)
    names = {"os.path.join": 1, "layout.path": 1, "layout.session_path": 2}
    if called == "os.path.join":
        first = ast.unparse(call.args[0]) if call.args else ""
        by_folder = [arg for arg in call.args if ast.unparse(arg) in ("FOLDER", "layout.FOLDER")]
        is_state = "session_folder" in first or "layout." in first
        return by_folder + [arg for arg in call.args[1:2] if is_state and _is_literal(arg)]
    position = names.get(called, 0 if called.endswith("ctx.path") else None)
    return [] if position is None else [arg for arg in call.args[position : position + 1] if _is_literal(arg)]


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""


def spellers_of_refs(known: dict[str, Module]) -> list[str]:
    """Modules that spell a branch's ref, an agent's branch or a ref of Rookery's by themselves; sentences may."""
    return [
        f"{module.name}:{node.lineno} spells {node.value}"
        for module in known.values()
        if module.name != REF_NAMES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.startswith(("refs/rookery", "refs/heads", "rook/")) and " " not in node.value
    ]


def too_long(known: dict[str, Module]) -> list[str]:
    """Files that no longer fit in one head."""
    lengths = {module.name: module.text.count("\n") for module in known.values()}
    return [f"{name} has {length} lines" for name, length in lengths.items() if length > LONGEST]


def undocumented(known: dict[str, Module]) -> list[str]:
    """Modules that do not say what they own."""
    return [module.name for module in known.values() if not ast.get_docstring(module.tree)]


def printers(known: dict[str, Module]) -> list[str]:
    """Modules outside of cli/ that print."""
    return [
        f"{module.name}:{node.lineno} prints"
        for module in known.values()
        if module.folder != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def users_of_process_globals(known: dict[str, Module]) -> list[str]:
    """Modules below the interfaces that use what many calls of one process share. They should use `base.call`."""
    return [
        f"{module.name}:{line} uses {owner}.{name}"
        for module in known.values()
        if module.folder and module.folder not in ABOVE_THE_OPERATIONS and module.name not in USES_PROCESS_GLOBALS
        for owner, name, line in _process_globals(module)
        if name in PROCESS_GLOBALS.get(owner, ())
    ]


def _process_globals(module: Module) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node.value), node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield "builtins", node.func.id, node.lineno
            yield from (("subprocess.Popen", keyword.arg or "", node.lineno) for keyword in node.keywords)


RULES: tuple[Callable[[dict[str, Module]], list[str]], ...] = (
    against_the_order,
    circles,
    out_of_place,
    readers_of_the_environment,
    starters_of_processes,
    askers_of_the_clock,
    callers_of_git,
    words_for_git,
    sql_outside_of_stores,
    tables_of_others,
    transactions_in_stores,
    crowded,
    namesakes,
    lost_names,
    ways_around_the_check_of_state,
    spellers_of_state_paths,
    spellers_of_refs,
    too_long,
    undocumented,
    printers,
    users_of_process_globals,
)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rule(rule: Callable[[dict[str, Module]], list[str]]) -> None:
    known = source()
    assert len(known) > 40
    assert rule(known) == []


def test_exceptions_are_still_needed() -> None:
    known = source()
    for module, target in LATE_IMPORTS:
        assert any(imported.target == target and imported.when == "call" for imported in imports(known[module], known))
    assert STARTS_PROCESSES.keys() <= known.keys()
    assert NAMES_GIT.keys() <= known.keys()
    assert FINDS_STATE.keys() | OPENS_STATE.keys() <= known.keys()
    assert NAMES_STATE_FILES.keys() | {REF_NAMES} <= known.keys()
    assert ASKS_THE_CLOCK.keys() <= known.keys()
    assert USES_PROCESS_GLOBALS.keys() <= known.keys()
    assert WRITES_SQL.keys() <= known.keys()
    for name, table in READS_ACROSS:
        assert any(table in _TABLE.findall(text) for text, _ in _texts(known[name])), (name, table)


def test_every_table_has_an_owner() -> None:
    migrations = "".join(path.read_text() for path in (SOURCE / "db" / "migrations").glob("*.sql"))
    assert OWNER.keys() == set(re.findall(r"^CREATE (?:VIRTUAL )?TABLE (\w+)", migrations, re.MULTILINE))


DOC = '"""Something."""\n'

# What each rule must catch: files of a made-up tree, and a part of the message.
VIOLATIONS: dict[str, tuple[Callable[[dict[str, Module]], list[str]], dict[str, str], str]] = {
    "up": (against_the_order, {"base/a.py": "import rookery.tasks.b\n", "tasks/b.py": ""}, "up"),
    "up, in a function": (
        against_the_order,
        {"db/a.py": "def f():\n    from rookery.tasks import b\n", "tasks/b.py": ""},
        "rookery.tasks.b, up",
    ),
    "up, for types": (
        against_the_order,
        {"db/a.py": "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from rookery.ops.b import C\n", "ops/b.py": ""},
        "rookery.ops.b, up",
    ),
    "up, relative": (against_the_order, {"db/a.py": "from ..ops import b\n", "ops/b.py": ""}, "rookery.ops.b, up"),
    "up, in an except": (
        against_the_order,
        {"db/a.py": "try:\n    pass\nexcept OSError:\n    import rookery.cli.b\n", "cli/b.py": ""},
        "up",
    ),
    "sideways": (against_the_order, {"mcp/a.py": "from rookery.web.b import c\n", "web/b.py": ""}, "sideways"),
    "a circle": (
        circles,
        {"db/a.py": "from rookery.db import b\n", "db/b.py": "def f():\n    from rookery.db.a import g\n"},
        "rookery.db.a",
    ),
    "a folder without a layer": (out_of_place, {"utils/a.py": ""}, "rookery.utils.a"),
    "a file without a folder": (out_of_place, {"helpers.py": ""}, "rookery.helpers"),
    "os.environ": (readers_of_the_environment, {"db/a.py": "import os\nos.environ['X']\n"}, "os.environ"),
    "getenv by name": (readers_of_the_environment, {"db/a.py": "from os import getenv\n"}, "os.getenv"),
    "subprocess": (starters_of_processes, {"vcs/a.py": "import subprocess\n"}, "subprocess"),
    "futures": (starters_of_processes, {"vcs/a.py": "import concurrent.futures\n"}, "concurrent.futures"),
    "processes as futures": (
        starters_of_processes,
        {"vcs/a.py": "from concurrent.futures import Future, ProcessPoolExecutor\n"},
        "concurrent.futures",
    ),
    "subprocess by name": (starters_of_processes, {"vcs/a.py": "from subprocess import run\n"}, "subprocess"),
    "os.execv": (starters_of_processes, {"cli/a.py": "import os\nos.execv('a', [])\n"}, "os.execv"),
    "time.time": (askers_of_the_clock, {"tasks/a.py": "import time\ntime.time()\n"}, "uses time.time"),
    "the time by name": (askers_of_the_clock, {"tasks/a.py": "from time import time\n"}, "uses time.time"),
    "git": (callers_of_git, {"tasks/a.py": "run(['git', 'status'])\n"}, "runs git"),
    "jj": (callers_of_git, {"vcs/a.py": "argv = ['jj', *words]\n"}, "runs jj"),
    "git in a tuple": (callers_of_git, {"tasks/a.py": "run(('git', 'status'))\n"}, "runs git"),
    "words for git": (words_for_git, {"merge/a.py": "store.read('rev-parse', 'HEAD')\n"}, "git rev-parse"),
    "words for git, unpacked": (words_for_git, {"merge/a.py": "store.run(*('log', '--raw'), tip)\n"}, "git log"),
    "a statement": (sql_outside_of_stores, {"tasks/a.py": "db.one('SELECT 1 FROM tasks')\n"}, "rookery.tasks.a:2"),
    "a part of a statement": (
        sql_outside_of_stores,
        {"tasks/a.py": "JOIN = ' LEFT JOIN tasks p ON p.id = t.parent_id'\n"},
        "LEFT JOIN tasks",
    ),
    "a statement with names filled in": (
        sql_outside_of_stores,
        {"tasks/a.py": "sql = f'UPDATE {table} SET {columns}'\n"},
        "UPDATE {} SET",
    ),
    "a statement within an f-string": (
        sql_outside_of_stores,
        {"tasks/a.py": "sql = f'{any_of(\"SELECT id FROM tasks\")} LIMIT 1'\n"},
        "SELECT id FROM tasks",
    ),
    "a table of another room": (
        tables_of_others,
        {"mail/store.py": "sql = f'SELECT {names} FROM sessions'\n"},
        "names sessions, which is sessions's",
    ),
    "a table of another room, written": (
        tables_of_others,
        {"status/view_store.py": "sql = 'UPDATE tasks SET title = ?'\n"},
        "names tasks",
    ),
    "a table that may only be read": (
        tables_of_others,
        {"mail/store.py": "sql = 'DELETE FROM turns WHERE id = ?'\n"},
        "names turns",
    ),
    "a transaction": (
        transactions_in_stores,
        {"mail/store.py": "def f(db):\n    with db.write():\n        pass\n"},
        "rookery.mail.store:3",
    ),
    "a crowd": (crowded, {f"tasks/a{number}.py": "" for number in range(21)}, "tasks has 21 modules"),
    "a name next door": (namesakes, {"mail/a.py": "", "tasks/a.py": ""}, "a is in mail and in tasks"),
    "a name below": (namesakes, {"merge/a.py": "", "merge/radar/a.py": ""}, "a is in merge and in radar"),
    "a name that is gone": (
        lost_names,
        {"turns/a.py": "start('rookery.turns.runner')\n"},
        "names rookery.turns.runner",
    ),
    "a name that is gone, in an f-string": (
        lost_names,
        {"cli/a.py": "load(f'rookery.cli.views.{name}')\n"},
        "names rookery.cli.views",
    ),
    "state found": (
        ways_around_the_check_of_state,
        {"cli/a.py": "from rookery.config.project import find_root\nfind_root('.')\n"},
        "find_root",
    ),
    "state opened": (ways_around_the_check_of_state, {"mail/a.py": "db = Database.open('x')\n"}, "opens the database"),
    "the state's name": (spellers_of_state_paths, {"db/a.py": "join(root, '.rookery')\n"}, "spells .rookery"),
    "a state path": (spellers_of_state_paths, {"db/a.py": "P = f'{root}/.rookery/run/x'\n"}, "spells /.rookery/run/x"),
    "a state path, joined": (
        spellers_of_state_paths,
        {"db/a.py": "import os\nos.path.join(root, FOLDER, 'x')\n"},
        "spells FOLDER",
    ),
    "a state file": (spellers_of_state_paths, {"mail/a.py": "self.ctx.path('run', 'x')\n"}, "spells 'run'"),
    "a state file by its root": (spellers_of_state_paths, {"mail/a.py": "layout.path(root, 'run')\n"}, "spells 'run'"),
    "a session's file": (
        spellers_of_state_paths,
        {"mail/a.py": "import os\nos.path.join(ctx.session_folder(one), 'x')\n"},
        "spells 'x'",
    ),
    "a ref": (spellers_of_refs, {"merge/a.py": "ref = f'refs/rookery/rescue/{name}'\n"}, "spells refs/rookery/rescue/"),
    "a branch": (spellers_of_refs, {"merge/a.py": "vcs.branches('rook/')\n"}, "spells rook/"),
    "a long file": (too_long, {"db/a.py": "\n" * 401}, "402 lines"),
    "no docstring": (undocumented, {"db/a.py": "-"}, "rookery.db.a"),
    "print": (printers, {"db/a.py": "print('x')\n"}, "rookery.db.a:2 prints"),
    "the folder": (users_of_process_globals, {"db/a.py": "import os\nos.getcwd()\n"}, "uses os.getcwd"),
    "the folder by name": (users_of_process_globals, {"db/a.py": "from os import chdir\n"}, "uses os.chdir"),
    "the umask": (users_of_process_globals, {"db/a.py": "import os\nos.umask(0)\n"}, "uses os.umask"),
    "a stream": (users_of_process_globals, {"ops/a.py": "import sys\nsys.stdout.write('x')\n"}, "uses sys.stdout"),
    "a question": (users_of_process_globals, {"ops/a.py": "input('x')\n"}, "uses builtins.input"),
    "a signal": (users_of_process_globals, {"ops/a.py": "import signal\nsignal.signal(2, 1)\n"}, "signal.signal"),
    "the zone": (users_of_process_globals, {"ops/a.py": "import time\ntime.localtime()\n"}, "uses time.localtime"),
    "a sleep": (users_of_process_globals, {"ops/a.py": "import time\ntime.sleep(1)\n"}, "uses time.sleep"),
    "the home": (users_of_process_globals, {"ops/a.py": "import os\nos.path.expanduser('~')\n"}, "expanduser"),
    "a copy of the process": (users_of_process_globals, {"ops/a.py": "import os\nos.fork()\n"}, "uses os.fork"),
    "preexec_fn": (users_of_process_globals, {"ops/a.py": "Popen(['x'], preexec_fn=f)\n"}, "preexec_fn"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_rule_catches_a_violation(name: str, tmp_path: Path) -> None:
    rule, files, message = VIOLATIONS[name]
    known = read_modules(make_tree(tmp_path, files))
    assert any(message in complaint for complaint in rule(known)), rule(known)


def test_rules_are_content_with_a_good_tree(tmp_path: Path) -> None:
    files = {
        "base/a.py": "import os\n",
        "config/b.py": "import os\nHOME = os.environ['HOME']\n",
        "vcs/git/repository.py": "argv = ['git', 'status']\nstore.read('status')\n",
        "tasks/store.py": "get = 'SELECT id FROM tasks'\n",
        "tasks/deep/store.py": "other = 'Tasks FROM the store: rookery.tasks.store'\n",
        "mail/d.py": "HINT = 'see .rookery/logs for more'\nlayout.path(root, layout.SPECS, 'a.md')\n",
        "cli/c.py": "from rookery.base import a\nfrom rookery.vcs.git.repository import argv\nprint(argv)\n",
    }
    known = read_modules(make_tree(tmp_path, files))
    assert [wrong for rule in RULES for wrong in rule(known)] == []


def make_tree(folder: Path, files: dict[str, str]) -> Path:
    source = folder / "rookery"
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n" if text == "-" else DOC + text)
    return source
