"""What an agent's terminal shows: as long as it is open, and the last of it once it is closed, kept as a file."""

from __future__ import annotations

import os
from contextlib import suppress

from rookery.base.draft import write_whole
from rookery.base.errors import ProgramFailed, Refused
from rookery.base.files import read_text
from rookery.config import layout
from rookery.ops.context import Context
from rookery.runtimes.model import TMUX
from rookery.sessions.model import Session
from rookery.terminal.tmux import Tmux

_MOST_LINES = 200
_MOST_CHARACTERS = 50_000


def keep_screen(ctx: Context, session: Session) -> None:
    """Write what an agent's terminal shows into the session's folder, before it is closed; safe to repeat.

    A terminal that is gone leaves what was kept before, and a disk that is full keeps no agent from ending.
    """
    if session.mode != TMUX:
        return
    with suppress(ProgramFailed, Refused, OSError):
        screen = Tmux(ctx.tmux_socket).capture(session.terminal, _MOST_LINES)
        if screen:
            write_whole(_path(ctx, session), screen[-_MOST_CHARACTERS:] + "\n")


def read_screen(ctx: Context, session: Session) -> str | None:
    """What the terminal shows now, or what it showed last; None if the agent has none."""
    if session.mode != TMUX:
        return None
    tmux = Tmux(ctx.tmux_socket)
    if session.is_alive and tmux.has(session.terminal):
        return tmux.capture(session.terminal)
    return read_text(_path(ctx, session), errors="replace")


def _path(ctx: Context, session: Session) -> str:
    return os.path.join(ctx.session_folder(session.id), layout.SESSION_SCREEN)
