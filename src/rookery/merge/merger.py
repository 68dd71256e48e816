"""One merger at work: the repository it lands in, who asked for it, and which gates have failed so far."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from rookery.base.errors import InvalidInput, InvalidState
from rookery.config import layout
from rookery.merge import store
from rookery.merge.model import Entry, GateRun
from rookery.ops.context import Context
from rookery.sessions import store as agents
from rookery.worktrees import service as worktrees


class Merger:
    """A project's repository, open for landing."""

    def __init__(self, ctx: Context, actor: str, say: Callable[[str], object] = lambda _text: None) -> None:
        self.ctx = ctx
        self.actor = actor
        self.say = say
        """Called with the output of gates, as it comes, and with every step."""
        self.vcs = worktrees.open_repository(ctx)
        self.merging = self.vcs.merging()
        self.merging.refresh()
        self.red: dict[tuple[str, str], GateRun] = {}
        """Gates that failed, by tree and command, since we began; a later command tries them again."""
        self.gate_runs = 0
        self.beat: Callable[[], object] = lambda: None
        """Called all the while when something takes long: it extends the lease, once there is one."""

    def base(self, name: str | None = None) -> str:
        """The branch to land on: the named one, else the project's."""
        branch = name or self.ctx.config.project.base or self.vcs.default_branch()
        if not branch:
            raise InvalidState("there is no branch to land on", hint="set project.base, or say --into BRANCH")
        if self.vcs.branch_tip(branch) is None:
            hint = "`rook vcs status` shows where you are" if self.vcs.branches() else "make a first commit"
            raise InvalidInput(f"there is no branch {branch} to land on", hint=hint)
        return branch

    def into(self, base: str) -> str:
        """The option that names a base in a command, for a hint; nothing for the project's own."""
        is_own = base == (self.ctx.config.project.base or self.vcs.default_branch())
        return "" if is_own else f" --into {shlex.quote(base)}"

    def branch(self, name: str) -> str:
        """A branch by its name, or the last branch of the agent of that name."""
        if self.merging.tip(name) is not None:
            return name
        session = agents.latest(self.ctx.db, name)
        return name if session is None else session.branch

    def change(self, entry: Entry, step: str, **changes: Any) -> Entry:
        """Within a transaction: take an entry one step on, now, if it is still as the caller saw it."""
        return store.change(self.ctx.db, entry, step, actor=self.actor, at=self.ctx.now(), **changes)

    def scratch(self, name: str) -> str:
        """The path of a scratch folder."""
        return self.ctx.path(layout.SCRATCH, name)
