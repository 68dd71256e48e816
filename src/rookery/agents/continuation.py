"""What a resumed agent gets of its earlier session: variables, conversation, and work that was not committed."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

from rookery.config import layout
from rookery.ops.context import Context
from rookery.runtimes.registry import open_runtime
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.worktrees import provision, reopening


def keep_provided(ctx: Context, session: Session, ports: tuple[int, int] | None) -> dict[str, str]:
    """The variables of an agent whose worktree is still there: nothing is put into it a second time.

    The setup command would take the agent's new files for its own, and hide them from commits.
    """
    earlier = os.path.join(ctx.session_folder(session.settings.resumed_from), layout.SESSION_MANIFEST)
    with suppress(FileNotFoundError):  # with its time, by which files count as the agent's own
        shutil.copy2(earlier, os.path.join(ctx.session_folder(session.id), layout.SESSION_MANIFEST))
    return provision.environment_of(ctx.config.provision, ports)


def bring_back(ctx: Context, session: Session) -> Session:
    """Give a resumed agent its conversation and, in a worktree that was made again, what it had not committed."""
    earlier = store.session(ctx.db, session.settings.resumed_from)
    if session.runtime_session is not None:
        runtime = open_runtime(session.runtime)
        runtime.continue_from(ctx.runtime_folder(session.id), ctx.runtime_folder(earlier.id))
    if not session.settings.is_new:
        return session
    restored = reopening.restore_uncommitted(ctx, session, earlier)
    return session.replace(settings=session.settings.replace(restored=restored))
