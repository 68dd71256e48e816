"""How refs are named: the agents' branches, and what is kept under `refs/rookery/`.

Names of saved refs are without that beginning, as in `Vcs.snapshot` and `Vcs.saved_refs`.
"""

from __future__ import annotations

import hashlib
import shlex
from urllib.parse import quote

from rookery.base.ids import handle

HEADS = "refs/heads/"
"""Git's own beginning of a branch."""
AGENT_BRANCHES = "rook/"
"""The beginning of every agent's branch."""

SAVED = "refs/rookery/"
"""What Rookery keeps; no hook of the user's hears of it."""
LEASES = "lease/"
"""The fences of bases, see `fence_ref`."""
LANDINGS = "merge/"
"""What has landed, or would have, by entry."""
UNDOINGS = "undo/"
"""What the base became when a landing was undone, by entry."""
UNDONE_WORK = "undone/"
"""Work whose landing was undone and that has not landed again, see `undone_name`."""
OPENED = "resolve/opened/"
"""The files of a conflict as they were given to a person, by entry."""
RESOLVED_WORK = "resolve/done/"
"""What a person has committed to resolve a conflict, by entry."""
UPSTREAMS = "upstream/"
"""The last commit of a base's upstream that is known, see `upstream_ref_name`."""
FETCHED = "fetched/"
"""Where the upstream of a base is fetched to, see `upstream_ref_name`."""
PUSHINGS = "push/"
"""What is being pushed to the upstream of a base, see `upstream_ref_name`."""
SYNCED_FROM = "synced/"
"""What a base was before it followed its upstream, until that is recorded, see `synced_from_name`."""
RESCUE = "rescue/"
"""What a command would otherwise have lost, by agent."""
RESCUE_UNDO = f"{RESCUE}undo/"
"""What the base was before a landing was undone, by entry."""
SNAPSHOTS = "snapshots/"
"""Worktrees at the end of a turn, by agent and session."""

_LONGEST = 200
_SHORT = 8
_LONGER = 12


def branch_names(agent: str, task_id: str) -> tuple[str, ...]:
    """What the branch of an agent's work on a task may be named: after its handle, else after a longer ending."""
    endings = handle(task_id), task_id[-_LONGER:].lower(), task_id
    return tuple(f"{AGENT_BRANCHES}{agent}/{ending}" for ending in endings)


def branch_name(agent: str, task_id: str) -> str:
    """The usual branch of an agent's work on a task."""
    return branch_names(agent, task_id)[0]


def task_ending(branch: str) -> str:
    """The end of the id of the task that an agent's branch is named after, or the whole id."""
    return branch.rpartition("/")[2].upper().replace("TASK_", "task_")


def rescue_name(agent: str, now: str) -> str:
    """Where work is saved; a ref cannot hold the colons of a time."""
    return f"{RESCUE}{agent}/{now.replace(':', '').replace('-', '').replace('.', '')}"


def snapshot_name(agent: str, session_id: str, turn: int) -> str:
    """Where a turn's snapshot is kept. Ids made at about the same time begin alike, so their ends are taken."""
    return f"{SNAPSHOTS}{agent}/{session_id[-_SHORT:].lower()}/{turn}"


def undone_name(branch: str) -> str:
    """Where the undone work of a branch is marked."""
    return UNDONE_WORK + _flat(branch)


def bring_back(branch: str, commit: str) -> str:
    """How a branch is made again that was deleted, for a hint."""
    return f"`git branch {shlex.quote(branch)} {commit}` brings it back"


def fence_ref(base: str) -> str:
    """The whole name of a base's fence."""
    return SAVED + LEASES + _short_flat(base)


def upstream_ref_name(kind: str, base: str, upstream: str) -> str:
    """What is kept of an upstream of a base: a base that gets another one begins with nothing."""
    return kind + _short_flat(base, upstream)


def synced_from_name(base: str) -> str:
    """Where a base was before it followed its upstream."""
    return SYNCED_FROM + _short_flat(base)


def _short_flat(*names: str) -> str:
    """Names in one level; what is too long for a file is replaced by its hash."""
    name = "@".join(map(_flat, names))  # in each of them it is quoted
    return name if len(name) <= _LONGEST else hashlib.sha256(name.encode()).hexdigest()


def _flat(branch: str) -> str:
    """A branch's name in one level: what is kept for `work` must not keep a ref for `work/more` from being made."""
    return quote(branch, safe="", errors="surrogateescape")
