"""What `rook`, `rook --help`, `rook GROUP` and a mistyped command print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from rookery.base.call import stdout
from rookery.base.errors import UsageError
from rookery.base.record import Record
from rookery.ops import index, other_tools
from rookery.ops.command_line import Globals, describe, print_aliases, print_help
from rookery.ops.operation import Op

ABOUT = {
    "init": "Set up Rookery in this repository",
    "task": "Create, change and finish tasks",
    "epic": "Create and change epics: milestones with a design",
    "learning": "Write down and find what was learned",
    "mail": "Send and read messages",
    "group": "Manage named groups of mail addresses",
    "data": "Export and import all tasks",
    "vcs": "Use version control, the same way for git and jj",
    "sling": "Start an agent on a task",
    "resume": "Start an ended agent again, with its work and conversation",
    "stop": "Stop an agent",
    "pause": "Pause an agent after its current turn",
    "takeover": "Pause an agent and work in its worktree yourself",
    "handback": "Let a paused agent continue",
    "nudge": "Remind an agent",
    "interrupt": "Interrupt an agent's turn",
    "status": "Show what every agent is doing",
    "inbox": "Show what needs you, each with the command to run",
    "inspect": "Show one agent in detail",
    "attach": "Open an agent's terminal",
    "diff": "Show what an agent's branch changes",
    "path": "Print the path of an agent's worktree",
    "edit": "Open an agent's worktree in your editor",
    "agents": "Show roles, and what each agent has done",
    "spec": "Write and read specifications of tasks",
    "run": "Show, complete or undo a run: all agents slung for one goal",
    "feed": "Follow what all agents do, live",
    "logs": "Show what agents said and did",
    "trace": "Show everything that happened to an agent or a task",
    "errors": "Show what went wrong",
    "replay": "Show a run from its beginning",
    "costs": "Show what agents cost",
    "metrics": "Show numbers for each session",
    "guard": "Show what agents may do",
    "hooks": "Connect your own Claude Code session to Rookery",
    "prime": "Print what a session needs to know at its start",
    "worktree": "List, clean, rebase and restore agents' worktrees",
    "review": "List and show work in review; approve it or send it back",
    "merge": "Land branches on their base",
    "sync": "Update the base from its upstream, and push it",
    "gate": "List and run gates: commands that must pass before work lands",
    "compare": "Compare the attempts at a task, and keep one",
    "radar": "Show overlapping branches",
    "loop": "Show what Rookery does by itself, and why",
    "events": "Show everything that has happened",
    "config": "Show settings, and where each comes from",
    "env": "Show or refresh the environment of agents and gates",
    "daemon": "Manage the process that serves this project's commands",
    "doctor": "Check the installation and the project, and repair them",
    "bug-report": "Write a file with what a bug report needs",
    "backup": "Copy the project's database now",
    "restore": "List backups, or bring one back",
    "clean": "Show how large the state is, and reset parts of it",
    "deinit": "Remove Rookery from this repository",
    "demo": "See the main job in a minute, without a key",
    "completion": "Print completions for your shell",
    "complete": "Print what can be typed next, for completions",
    "turn": "Begin or end a turn, for agents' programs",
    "schema": "Print the JSON Schemas of commands, for programs",
}


@dataclass(frozen=True, slots=True)
class Section(Record):
    """Commands that belong together. The overview describes `main` and only names `more`."""

    title: str
    main: tuple[str, ...]
    more: tuple[str, ...] = ()


SECTIONS = (
    Section("Plan", ("init", "task", "epic"), ("spec", "learning")),
    Section(
        "Agents",
        ("sling", "resume", "stop", "mail"),
        (
            *(
                "agents",
                "attach",
                "edit",
                "group",
                "handback",
                "interrupt",
                "nudge",
                "path",
                "pause",
                "prime",
                "takeover",
            ),
            "worktree",
        ),
    ),
    Section(
        "Watch",
        ("inbox", "status", "inspect", "logs", "costs"),
        ("errors", "events", "feed", "metrics", "radar", "replay", "run", "trace"),
    ),
    Section("Land", ("diff", "review", "merge"), ("compare", "gate", "sync", "vcs")),
    Section(
        "Admin",
        ("doctor", "config"),
        (
            *("backup", "bug-report", "clean", "completion", "daemon", "data", "deinit", "demo", "env", "guard"),
            *("hooks", "loop", "restore"),
        ),
    ),
    Section("Plumbing", (), ("complete", "schema", "turn")),
)
"""A place for every command, also for those that are not there yet."""
_PLUMBING = SECTIONS[-1]
_WIDTH = 80
_ALIKE = 0.75
"""A word that is less alike, or begins with another letter, is no slip of the finger: `nuke` is not `nudge`."""

_OVERVIEW = """\
Rookery runs many coding agents on one repository and lands their work safely.
usage: rook COMMAND [--json] [-q] [-C DIRECTORY] …
"""
_START = """
To begin: rook init; rook task create "Write docs"; rook sling TASK; rook status
"""


def visible_groups() -> list[str]:
    """The commands that are not plumbing, in the order of the help."""
    return [name for section in SECTIONS if section is not _PLUMBING for name in present(section.main + section.more)]


def present(names: Iterable[str]) -> list[str]:
    """Those of the names that are commands."""
    return [name for name in names if name in index.GROUPS]


def show_help(words: list[str], settings: Globals) -> int:
    """Print the help that the words ask for, or raise what is wrong with them."""
    words = words[1:] if words[:1] == ["help"] else words
    wanted = [word for word in words if word not in ("--help", "-h")]
    asked = settings.help or len(words) > len(wanted)
    as_json = settings.json or "--json" in wanted
    if not wanted or wanted == ["--all"]:
        if as_json and not asked:
            raise UsageError("no command", hint="`rook --help` shows the commands")
        _print_overview(everything=bool(wanted))
        return 0
    similar = other_tools.ours(wanted)
    typed, wanted = wanted, index.expand(wanted)
    group, *rest = wanted
    if group not in index.GROUPS:
        names = [*index.GROUPS, *index.SHOWN_ALIASES]
        raise UsageError(f"`rook` has no command {typed[0]!r}", hint=_nearest(group, names, similar))
    operations = index.load_group(group)
    operation, _ = index.find(wanted)
    if operation is not None:
        print_help(operation)
        return 0
    if rest and not rest[0].startswith("-"):
        verbs = [verb for op in operations if (verb := op.name.partition(" ")[2])]
        problem = f"has no command {rest[0]!r}" if verbs else f"takes no argument {rest[0]!r}"
        raise UsageError(f"`rook {group}` {problem}", hint=_nearest(rest[0], verbs, similar, group))
    if as_json and not asked:
        raise UsageError(f"{group} needs a command", hint=f"`rook {group} --help` shows them")
    _print_group(group, operations)
    return 0 if asked else 2


def _print_overview(*, everything: bool) -> None:
    out = stdout()
    print(_OVERVIEW, end="", file=out)
    for section in SECTIONS:
        if section is _PLUMBING and not everything:
            continue
        described = present(section.main + section.more) if everything else present(section.main)
        print(f"\n{section.title}", file=out)
        for name in described:
            print(f"  {name:<11} {ABOUT[name]}", file=out)
        more = [] if everything else present(section.more)
        if more:
            print(
                textwrap.fill(", ".join(more), _WIDTH, initial_indent="  more: ", subsequent_indent=" " * 8), file=out
            )
    print(_START, end="", file=out)
    aliases = ", ".join(f"{alias} = {index.ALIASES[alias]}" for alias in index.SHOWN_ALIASES)
    print(textwrap.fill(aliases, _WIDTH, initial_indent="Aliases:  ", subsequent_indent=" " * 10), file=out)
    print("`rook COMMAND --help` explains one command, `rook help --all` lists all of them.", file=out)


def _print_group(group: str, operations: list[Op]) -> None:
    print(f"{ABOUT[group]}.\n", file=stdout())
    print("\n".join(describe(operations)), file=stdout())
    print_aliases(group)


def _nearest(word: str, words: list[str], similar: str, group: str = "") -> str:
    """What the word may mean: a command of ours that does what another tool calls so, or one that is spelled alike."""
    if similar:
        return f"perhaps `{similar}`"
    import difflib

    command = f"rook {group}".strip()
    near = [known for known in difflib.get_close_matches(word, words, 3, _ALIKE) if known[0] == word[0]]
    if near:
        return f"did you mean `{command} {near[0]}`?"
    return f"`{command} --help` shows {'the commands' if words else 'how it is used'}"
