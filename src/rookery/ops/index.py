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
    "stop": ("rookery.agents.ops",),
    "nudge": ("rookery.agents.ops",),
    "interrupt": ("rookery.turns.interrupt_ops",),
    "inbox": ("rookery.inbox.ops",),
    "status": ("rookery.overview.ops",),
    "inspect": ("rookery.status.ops",),
    "attach": ("rookery.status.ops",),
    "agents": ("rookery.status.ops",),
    "spec": ("rookery.agents.run_ops",),
    "run": ("rookery.agents.run_ops", "rookery.merge.ops"),
    "feed": ("rookery.status.event_ops",),
    "logs": ("rookery.status.event_ops",),
    "trace": ("rookery.status.event_ops",),
    "errors": ("rookery.status.event_ops",),
    "replay": ("rookery.status.event_ops",),
    "costs": ("rookery.costs.ops",),
    "metrics": ("rookery.status.ops",),
    "guard": ("rookery.guard.ops",),
    "hook": ("rookery.hooks.ops",),
    "hooks": ("rookery.hooks.ops",),
    "prime": ("rookery.hooks.ops",),
    "agent": ("rookery.worktrees.ops",),
    "worktree": ("rookery.worktrees.ops", "rookery.merge.ops"),
    "merge": ("rookery.merge.ops",),
    "sync": ("rookery.remote.ops",),
    "gate": ("rookery.merge.gates.ops",),
    "radar": ("rookery.merge.radar.ops",),
    "loop": ("rookery.flows.ops",),
    "events": ("rookery.status.event_ops",),
    "config": ("rookery.ops.config",),
    "env": ("rookery.environment.ops",),
    "daemon": ("rookery.daemon.ops",),
    "doctor": ("rookery.doctor.ops",),
    "backup": ("rookery.upkeep.ops",),
    "restore": ("rookery.upkeep.ops",),
    "clean": ("rookery.upkeep.ops",),
    "completion": ("rookery.cli.completion",),
    "complete": ("rookery.cli.completion",),
    "schema": ("rookery.ops.schema_ops",),
}


ALIASES: dict[str, str] = {}
"""Other words for a command: at most two for at most two. They are no commands of their own, and no page has them."""


def find(words: list[str]) -> tuple[Op | None, int]:
    """The operation that the first words name, and how many words that took.

    A group can be a command by itself (`rook merge`, `rook merge list`). Then a word after it that is no option and
    that it does not take is a mistyped command, not an argument.
    """
    for length in (2, 1):
        alias = ALIASES.get(" ".join(words[:length])) if len(words) >= length else None
        if alias is not None:
            meant = alias.split()
            operation, taken = _find([*meant, *words[length:]])
            return operation, taken - len(meant) + length if operation is not None else 0
    return _find(words)


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
