"""Snapshots of turns: every turn's end is kept, can be looked at, and can be gone back to."""

from __future__ import annotations

from rookery.vcs.detect import open_vcs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rookery.config.model import VcsConfig

PREFIX = "snapshots/"
RESCUE = "rescue/"
_SHORT = 8


def take(
    _root: str,
    settings: VcsConfig,
    *,
    agent: str,
    session_id: str,
    turn: int,
    worktree: str,
    include_ignored: tuple[str, ...] = (),
) -> str:
    """Keep a worktree as it is at the end of a turn; returns the name beneath `refs/rookery/`."""
    name = name_of(agent, session_id, turn)
    open_vcs(worktree, settings).snapshot(
        name, f"Turn {turn} of {agent}", include_ignored=include_ignored, replace=True
    )
    return name


def name_of(agent: str, session_id: str, turn: int) -> str:
    """Where a turn's snapshot is kept. Ids made at about the same time end differently, not begin so."""
    return f"{PREFIX}{agent}/{session_id[-_SHORT:].lower()}/{turn}"
