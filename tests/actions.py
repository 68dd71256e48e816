"""Agents in a project, what they may not do there and what they may: one table for the tests of every way to call."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agent_rows import Agent
from conftest import Rook
from rookery.hooks import service as hooks
from rookery.hooks.model import Answer
from rookery.mail import group_ops
from rookery.ops import operation
from rookery.ops.context import Context
from rookery.ops.operation import Op
from rookery.tasks import learnings
from support import AUTHOR, add, manifest


class Scene(NamedTuple):
    """A project with agents in it, and what is theirs."""

    root: Path
    rook: Rook
    agents: dict[str, Agent]
    epic: str
    learned: dict[str, str]

    def words(self, text: str) -> list[str]:
        """A command with the names of what is there filled in."""
        return shlex.split(self.fill(text))

    def fill(self, text: str) -> str:
        """A text with the names of what is there filled in."""
        ids = {f"{name}.task": agent.task for name, agent in self.agents.items()}
        ids |= {f"{name}.learning": learning for name, learning in self.learned.items()} | {"epic": self.epic}
        for key, value in ids.items():
            text = text.replace("{" + key + "}", value)
        return text

    def state(self) -> dict[str, object]:
        """Every row of every table, and every file of the repository and the project: refs, settings, specs, all."""
        db = self.rook.open()
        try:
            tables = db.all("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
            rows: dict[str, object] = {name: sorted(db.all(f"SELECT * FROM {name}"), key=repr) for (name,) in tables}
        finally:
            db.close()
        folder = self.root / ".rookery"
        # The database is compared by its rows. The rest is no state: answers of version control, where the daemon is,
        # and the record of an agent's tool calls, where those that are denied belong.
        without = ("rookery.db", "cache", "run", "telemetry.db")
        files = manifest(self.root, without=tuple(str(folder / name) for name in without))
        return rows | {path: what for path, what in files.items() if not path.endswith(("/events.ndjson", "/log.txt"))}


def make_scene(project: Path) -> Scene:
    """A lead with a builder under it, two builders, a merger, a coordinator, and an epic that no agent owns."""
    rook = Rook(project)
    queen = Agent(project, "queen", "lead")
    agents = {"queen": queen, "ada": Agent(project, "ada"), "bee": Agent(project, "bee")}
    agents["drone"] = Agent(project, "drone", under=queen)
    agents["merle"] = Agent(project, "merle", "merger")
    agents["cora"] = Agent(project, "cora", "coordinator")
    db = rook.open()
    epic = add(db, "milestone")
    group_ops.create(Context.at(str(project), db), "hive", ("ada", "bee"))
    learned = {name: learnings.add(db, agent.task, "found out", AUTHOR).id for name, agent in agents.items()}
    db.close()
    return Scene(project, rook, agents, epic, learned)


def ask_hook(agent: Agent, words: list[str], cwd: str | Path = "") -> Answer:
    """What the hook before a tool says to the command `rook …`."""
    return ask_shell_hook(agent, shlex.join(["rook", *words]), cwd)


def ask_shell_hook(agent: Agent, command: str, cwd: str | Path = "") -> Answer:
    """What the hook before a tool says to a line of shell."""
    return ask_tool_hook(agent, "Bash", {"command": command}, cwd)


def ask_tool_hook(agent: Agent, tool: str, tool_input: dict[str, str], cwd: str | Path = "") -> Answer:
    """What the hook before a tool says to any tool."""
    payload = {"tool_name": tool, "tool_input": tool_input, "cwd": str(cwd or agent.worktree)}
    token = agent.env["ROOKERY_TOKEN"]
    return hooks.handle(str(agent.root), agent.session_id, "pre-tool", json.dumps(payload).encode(), token)


STRIPPED = [
    *(
        f"env {option} {{}}"
        for option in ("-u ROOKERY_TOKEN", "-uROOKERY_TOKEN", "-vu ROOKERY_TOKEN", "-i", "-", "-vi")
    ),
    *(f"env --{name}=ROOKERY_TOKEN {{}}" for name in ("u", "un", "unse", "unset")),
    *(f"env --{name} ROOKERY_TOKEN {{}}" for name in ("u", "uns", "unset")),
    *(f"env --{name} {{}}" for name in ("i", "ig", "ignore-env", "ignore-environment")),
    *(
        "unset ROOKERY_TOKEN; {}",
        "unset ${{!ROOKERY_*}}; {}",
        "x=ROOKERY_TOKEN; unset $x; {}",
        "export -n ROOKERY_TOKEN; {}",
    ),
    *("unset $(printenv | grep -o '^ROOKERY_[A-Z]*'); {}", "exec -c {}", "ROOKERY_TOKEN= {}", "ROOKERY_AGENT=human {}"),
    *("env ROOKERY_AGENT=human {}", "declare +x ROOKERY_TOKEN; {}", "sh -c 'env -i {}'", "setsid env -i {}"),
    *("(env -i setsid {} &)", "( ( unset ROOKERY_TOKEN; setsid {} & ) & )", "nohup env --u=ROOKERY_TOKEN {} &"),
    *("env --s='-i {}'", "env -S '-i {}'", "env --split-s '-i {}'", "timeout 5 env -i {}", "find . -exec env -i {} +"),
]
"""Lines of shell that take an agent's identity away before they call."""
HIDDEN = [
    *("setsid {}", "setsid -f {}", "(setsid {} &)", "( ( {} & ) & )", "nohup {} &", "sh -c '{} &'", "env A=1 {}"),
    *("bash -c '(setsid {} &) &'", "exec {}", "command {}", "timeout 5 {}", "env -u HOME {}", "env -- {}", "eval '{}'"),
    *("env --unset=HOME {}", "env -vu HOME {}", "env --u HOME {}", "xargs {} < /dev/null", "f() {{ {}; }}; f"),
]
"""Lines of shell that hide a call behind other processes."""
REFUSED = {
    "bee": [
        *(f"epic {verb} {{epic}}" for verb in ("delete", "cancel", "archive", "unarchive", "reopen", "update")),
        "epic update {bee.task} --title x",
        "epic create more",
        *(
            f"task {verb} {{ada.task}}"
            for verb in (
                "start",
                "submit",
                "complete",
                "archive",
                "unarchive",
                "delete",
                "cancel",
                "fail",
                "reopen",
                "release",
            )
        ),
        *("task update {ada.task} --title x", "task renew {ada.task}", "task unblock {ada.task}"),
        *("task block {ada.task} --by {bee.task}", "task update {epic} --context x", "task start {epic}"),
        *("task update {bee.task} --parent {ada.task}", "task update {bee.task} --parent none"),
        *("task create more", "task create more --parent {ada.task}", "task create more --parent {epic}"),
        *("learning add {ada.task} wrong", "learning delete {ada.learning}"),
        *("worktree rebase ada", "worktree clean ada", "worktree restore ada --turn 1", "vcs cleanup --delete"),
        *("group delete hive", "group add hive human", "group remove hive bee"),
        *(
            "spec write {bee.task} --body x",
            "sling {ada.task}",
            "stop ada",
            "interrupt ada",
            "merge --all",
            "merge run",
        ),
        *("run complete", "data import x", "gate run", "mail purge --all", "doctor"),
    ],
    "queen": [
        *("epic update {epic} --title x", "epic delete {epic}", "epic create more", "task create more"),
        *("task cancel {ada.task}", "task update {ada.task} --priority 1", "task create more --parent {ada.task}"),
        *("task update {drone.task} --parent {ada.task}", "task update {drone.task} --parent none"),
        *("stop ada", "interrupt bee", "sling {epic} --role lead", "spec write {ada.task} --body x"),
        *("learning add {bee.task} x", "learning delete {bee.learning}", "group delete hive", "attach ada"),
        *("run complete", "merge --all", "worktree rebase drone", "vcs commit -m x"),
    ],
    "merle": ["run undo run_1", "task complete {ada.task}", "worktree rebase ada", "task create more", "stop ada"],
}
ALLOWED = {
    "bee": [
        *("task complete {bee.task}", "task update {bee.task} --title x", "task block {bee.task} --by {ada.task}"),
        *("task create more --parent {bee.task}", "task claim", "task claim --agent bee", "task start {bee.task}"),
        *("learning add {bee.task} x", "learning delete {bee.learning}", "worktree rebase bee", "vcs commit -m x"),
        *("mail send ada --subject x", "group create mine ada", "task get {ada.task}", "epic get {epic}", "status"),
    ],
    "queen": [
        *("epic update {queen.task} --title x", "task cancel {drone.task}", "task create more --parent {queen.task}"),
        *("task update {drone.task} --parent {queen.task}", "sling {drone.task}", "stop drone", "interrupt drone"),
        *(
            "spec write {drone.task} --body x",
            "learning delete {drone.learning}",
            "nudge ada",
            "task create more --help",
        ),
    ],
    "merle": ["merge --all", "merge --branch ada", "merge undo ada", "worktree rebase merle", "merge cancel ada"],
}


_SAMPLES: dict[str, Callable[[Agent, Callable[[str], str]], str]] = {
    **{operation.TASKS: lambda owner, _: owner.task, operation.AGENTS: lambda owner, _: owner.name},
    **{operation.PLACES: lambda owner, _: owner.task, operation.MOVES: lambda owner, _: owner.task},
    operation.LEARNINGS: lambda owner, learn: learn(owner.task),
    operation.WORK: lambda owner, _: owner.name,
    operation.BRANCHES: lambda owner, _: owner.name,
    operation.MAIL_GROUPS: lambda owner, _: f"of-{owner.name}",
}


def calls_on(op: Op, owner: Agent, learn: Callable[[str], str]) -> list[list[str]]:
    """The operation on what is the owner's: with what it must be given, and with all that it can change."""
    short, long = op.name.split(), op.name.split()
    for param in op.params:
        kind = (op.owns or {}).get(param.name)
        if kind == operation.CHECKOUTS:
            long.append(param.flag)
            continue
        value = _SAMPLES[kind](owner, learn) if kind else _sample(param)
        if param.required or (param.many and param.positional):
            short += [value] if param.positional else [param.flag, value]
        if param.required or kind or (param.many and param.positional):
            long += [value] if param.positional else [param.flag, value]
    if op.name == "feed":
        short = long = [*short, "--limit", "1"]
    return [short] if short == long else [short, long]


def _sample(param: operation.Param) -> str:
    if param.choices:
        return param.choices[0]
    return "1" if param.kind == operation.INTEGER else "{}" if param.name == "input" else "other"
