"""Which modules declare the operations of a group. A command imports its own group's modules and no others.

Modules are searched in order: what is called most stands first.
"""

from __future__ import annotations

from importlib import import_module

from rookery.ops.operation import Op, declared

GROUPS: dict[str, tuple[str, ...]] = {
    "init": ("rookery.doctor.init_ops",),
    "task": ("rookery.tasks.ops", "rookery.tasks.work_ops"),
    "epic": ("rookery.tasks.epic_ops",),
    "learning": ("rookery.tasks.learning_ops",),
    "mail": ("rookery.mail.ops",),
    "group": ("rookery.mail.group_ops",),
    "data": ("rookery.tasks.data_ops",),
    "vcs": ("rookery.ops.vcs", "rookery.tasks.cleanup_ops"),
    "sling": ("rookery.agents.ops",),
    "resume": ("rookery.review.resume_ops",),
    "stop": ("rookery.agents.stop_ops",),
    "pause": ("rookery.agents.hold_ops",),
    "takeover": ("rookery.agents.hold_ops",),
    "handback": ("rookery.agents.hold_ops",),
    "nudge": ("rookery.agents.ops",),
    "interrupt": ("rookery.turns.interrupt_ops",),
    "inbox": ("rookery.inbox.ops",),
    "status": ("rookery.overview.ops",),
    "inspect": ("rookery.status.ops",),
    "attach": ("rookery.status.ops",),
    "diff": ("rookery.review.diff_ops",),
    "path": ("rookery.review.diff_ops",),
    "edit": ("rookery.review.diff_ops",),
    "agents": ("rookery.status.ops",),
    "spec": ("rookery.agents.run_ops",),
    "run": ("rookery.agents.run_ops", "rookery.merge.ops"),
    "feed": ("rookery.status.event_ops",),
    "logs": ("rookery.status.event_ops",),
    "trace": ("rookery.status.event_ops",),
    "errors": ("rookery.status.event_ops",),
    "replay": ("rookery.status.event_ops",),
    "costs": ("rookery.costs.ops",),
    "metrics": ("rookery.overview.ops",),
    "guard": ("rookery.guard.ops",),
    "hooks": ("rookery.hooks.ops",),
    "prime": ("rookery.hooks.ops",),
    "worktree": ("rookery.worktrees.ops", "rookery.merge.ops"),
    "review": ("rookery.review.ops",),
    "merge": ("rookery.merge.ops",),
    "sync": ("rookery.remote.ops",),
    "gate": ("rookery.merge.gates.ops",),
    "compare": ("rookery.merge.compare.ops",),
    "radar": ("rookery.merge.radar.ops",),
    "loop": ("rookery.flows.ops",),
    "events": ("rookery.status.event_ops",),
    "config": ("rookery.ops.config",),
    "env": ("rookery.environment.ops",),
    "daemon": ("rookery.daemon.ops",),
    "doctor": ("rookery.doctor.ops",),
    "bug-report": ("rookery.doctor.ops",),
    "backup": ("rookery.upkeep.ops",),
    "restore": ("rookery.upkeep.ops",),
    "clean": ("rookery.upkeep.ops",),
    "deinit": ("rookery.upkeep.ops",),
    "demo": ("rookery.demo.ops",),
    "completion": ("rookery.cli.completion",),
    "complete": ("rookery.cli.completion",),
    "turn": ("rookery.hooks.turn_ops",),
    "schema": ("rookery.ops.schema_ops",),
}


ALIASES: dict[str, str] = {
    "ls": "task list",
    "ps": "status",
    "log": "logs",
    "kill": "stop",
    "spawn": "sling",
    "agent": "agents",
    "hook": "hooks",
    # Earlier names. Programs of agents that run across an upgrade still call some of them.
    "hook prompt": "turn begin",
    "hook stop": "turn end",
    "agent snapshots": "worktree snapshots",
    "agent restore": "worktree restore",
    "task approve": "review approve",
    "task request-changes": "review request-changes",
    "task request-rebase": "review request-rebase",
    "task reviews": "review list",
}
"""Other words for a command: at most two for at most two. They are no commands of their own, and no page has them."""
SHOWN_ALIASES = ("ls", "ps", "log", "kill", "spawn", "agent", "hook")
"""Those that the help of all commands lists."""


def expand(words: list[str]) -> list[str]:
    """The words with the name of the command that they mean, where they begin with another word for it."""
    for length in (2, 1):
        name = ALIASES.get(" ".join(words[:length])) if len(words) >= length else None
        if name is not None:
            return [*name.split(), *words[length:]]
    return words


def aliases_of(name: str) -> list[str]:
    """The other words for one command, or for a group of them, that people may use."""
    return [alias for alias in SHOWN_ALIASES if ALIASES[alias] == name]


def find(words: list[str]) -> tuple[Op | None, int]:
    """The operation that the first words name, and how many words that took.

    A group can be a command by itself (`rook merge`, `rook merge list`). Then a word after it that is no option and
    that it does not take is a mistyped command, not an argument.
    """
    expanded = expand(words)
    operation, taken = _find(expanded)
    return operation, taken + len(words) - len(expanded) if operation is not None else 0


def _find(words: list[str]) -> tuple[Op | None, int]:
    if not words or words[0] not in GROUPS:
        return None, 0
    for module in GROUPS[words[0]]:
        import_module(module)
        if len(words) > 1 and (operation := declared().get(" ".join(words[:2]))):
            return operation, 2
    operation = declared().get(words[0])
    if operation is None:
        return None, 0
    takes_words = any(param.positional for param in operation.params)
    is_mistyped = len(words) > 1 and not words[1].startswith("-") and not takes_words
    return (None, 0) if is_mistyped else (operation, 1)


def load_group(group: str) -> list[Op]:
    """Every operation of one group."""
    for module in GROUPS[group]:
        import_module(module)
    operations = (operation for operation in declared().values() if operation.group == group)
    return sorted(operations, key=lambda operation: operation.name)


def load_all() -> list[Op]:
    """Every operation, by group in the order of the index."""
    return [operation for group in GROUPS for operation in load_group(group)]
