"""What `rook`, `rook --help`, `rook GROUP` and a mistyped command print."""

from __future__ import annotations

from rookery.base.call import stdout
from rookery.base.errors import UsageError
from rookery.ops import index
from rookery.ops.command_line import Globals, print_help
from rookery.ops.operation import Op

ABOUT = {
    "init": "Make a project of this repository",
    "task": "Plan and work through tasks",
    "epic": "Milestones with a design",
    "learning": "What agents and people learned on the way",
    "mail": "Messages between agents and people",
    "group": "Named groups that mail can be sent to",
    "data": "Export and import everything",
    "vcs": "Version control, git or jj alike",
    "sling": "Start an agent on a task",
    "stop": "Stop an agent",
    "nudge": "Remind an agent",
    "interrupt": "Interrupt what an agent is doing",
    "status": "What every agent does",
    "inbox": "What waits for you",
    "inspect": "One agent at length",
    "attach": "Go into an agent's terminal",
    "agents": "Roles, and what each agent has done",
    "spec": "Specifications of tasks",
    "run": "Everything that was slung for one goal",
    "feed": "What all agents do, live",
    "logs": "What agents said and did",
    "trace": "All that happened to an agent or a task",
    "errors": "What went wrong",
    "replay": "A run again from its beginning",
    "costs": "What it cost",
    "metrics": "Sessions of agents in numbers",
    "guard": "What agents may do",
    "hook": "What agents' programs call",
    "hooks": "Rookery in your own agent session",
    "prime": "What a session should know when it starts",
    "agent": "What an agent did, turn by turn",
    "worktree": "The worktrees of agents",
    "merge": "Land branches on their base",
    "sync": "Follow the base's upstream, and push to it",
    "gate": "Commands that must pass before work lands",
    "radar": "Which branches overlap while agents work",
    "loop": "What Rookery does by itself, and why",
    "events": "What has happened",
    "config": "Settings and where they come from",
    "env": "The environment that agents and gates get",
    "daemon": "The process that serves this project's commands",
    "doctor": "Check that everything is in order, and repair it",
    "backup": "Copy the project's database now",
    "restore": "List backups, or bring one back",
    "clean": "See how large the state is, and reset parts of it",
    "completion": "Completions for your shell",
    "complete": "What completions ask for",
    "schema": "JSON Schemas of every command, for programs",
}

_START = """\
Rookery turns one repository and one goal into many coding agents that land their work safely.

A first walk:
  rook init                              make a project of this repository
  rook epic create "Ship 1.0"            plan a milestone
  rook task create "Write docs" --parent EPIC
  rook task next-ready                   what to do next
  rook task start TASK --checkout        work on a branch of its own
  rook task submit --result "…"          hand it in, with its commit recorded
  rook merge --all                       land it: that completes the task
"""


def show_help(words: list[str], settings: Globals) -> int:
    """Print the help that the words ask for, or raise what is wrong with them."""
    words = words[1:] if words[:1] == ["help"] else words
    wanted = [word for word in words if word not in ("--help", "-h")]
    asked = settings.help or len(words) > len(wanted)
    as_json = settings.json or "--json" in wanted
    if not wanted:
        if as_json and not asked:
            raise UsageError("no command", hint="`rook --help` shows the commands")
        _print_overview()
        return 0
    group, *rest = wanted
    if group not in index.GROUPS:
        raise UsageError(f"no command {group!r}", hint=_nearest(group, list(index.GROUPS)))
    operations = index.load_group(group)
    operation, _ = index.find(wanted)
    if operation is not None:
        print_help(operation)
        return 0
    if rest and not rest[0].startswith("-"):
        raise UsageError(
            f"no command {group} {rest[0]!r}", hint=_nearest(rest[0], [op.name.partition(" ")[2] for op in operations])
        )
    if as_json and not asked:
        raise UsageError(f"{group} needs a command", hint=f"`rook {group} --help` shows them")
    _print_group(group, operations)
    return 0 if asked else 2


def _print_overview() -> None:
    print(_START, file=stdout())
    print("Commands:", file=stdout())
    for group in index.GROUPS:
        print(f"  {group:<12} {ABOUT[group]}", file=stdout())
    print("\n`rook COMMAND --help` tells more; `--json` works with every command.", file=stdout())


def _print_group(group: str, operations: list[Op]) -> None:
    print(f"{ABOUT[group]}.\n", file=stdout())
    width = max(len(op.name) for op in operations)
    for op in operations:
        print(f"  rook {op.name:<{width}}  {op.summary}", file=stdout())


def _nearest(word: str, words: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, words, 1)
    return f"did you mean `{near[0]}`?" if near else "`rook --help` shows the commands"
