"""Every permission that operations need, and how far it may reach for an agent: the one list.

Which role has which permission stands in the role's own file, and no file can go beyond this list. A permission
without reaches is for people alone.
"""

from __future__ import annotations

OWN, BENEATH, ANY = "own", "beneath", "any"
"""To what is the agent's own; to what is under its task and the agents under it as well; to anything."""
PROGRAM = "program"
"""Not a command for the agent: its program calls it, at its events. Every role has it."""

_READ = (ANY,)
_WRITE = (OWN, BENEATH, ANY)
_WHOLE = (ANY,)
_PEOPLE: tuple[str, ...] = ()

PERMISSIONS = {
    "agent.read": _READ,
    "config.read": _READ,
    "events.read": _READ,
    "learning.read": _READ,
    "mail.read": _READ,
    "project.read": _READ,
    "task.read": _READ,
    "vcs.read": _READ,
    "mail.write": _WRITE,
    "learning.write": _WRITE,
    "task.write": _WRITE,
    "vcs.write": _WRITE,
    "epic.write": _WRITE,
    "spec.write": _WRITE,
    "agent.write": _WRITE,
    "review.write": _WRITE,
    "plan.write": _WHOLE,
    "run.write": _WHOLE,
    "merge.write": _WHOLE,  # landing is for work that others made
    "hook.write": (PROGRAM,),
    "branch.write": _PEOPLE,
    "daemon.read": _PEOPLE,
    "daemon.write": _PEOPLE,
    "data.write": _PEOPLE,
    "doctor.write": _PEOPLE,
    "environment.read": _PEOPLE,
    "environment.write": _PEOPLE,
    "gate.write": _PEOPLE,  # `rook gate run` runs a branch's code outside of the sandbox
    "guard.read": _PEOPLE,
    "inbox.read": _PEOPLE,
    "inbox.write": _PEOPLE,
    "mailbox.write": _PEOPLE,
    "project.write": _PEOPLE,
    "remote.write": _PEOPLE,  # fetching and pushing use the person's own credentials
    "terminal.write": _PEOPLE,
    "worktree.write": _PEOPLE,
}


def is_for_programs(permission: str) -> bool:
    """True if only an agent's program calls for it, whatever the role."""
    return PERMISSIONS.get(permission) == (PROGRAM,)
