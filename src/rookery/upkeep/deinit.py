"""Removes Rookery from a repository: the worktrees first, then the database, then everything else of the state.

Without its database a project is none, so its daemon and its loop end by themselves. A kill before that leaves a
project; after it only files are left. The next `rook deinit` goes on in both cases.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from rookery.base import call as calls
from rookery.base.errors import InvalidInput, InvalidState, NotInitialised, Refused, StorageFailed
from rookery.base.text import plural
from rookery.config import layout, steps
from rookery.config.project import database_path
from rookery.db.copies import copy_to
from rookery.db.migrate import remove as remove_database
from rookery.hooks import settings as session_hooks
from rookery.merge.merger import Merger
from rookery.merge.person import service as conflicts
from rookery.merge.person import store as open_conflicts
from rookery.ops.context import Context
from rookery.sessions import store as sessions
from rookery.turns.stop import stop
from rookery.upkeep import salvage
from rookery.upkeep.backups import check_at_rest
from rookery.upkeep.model import Removal
from rookery.vcs.folders import delete_tree, is_below, tree_size
from rookery.vcs.ref_names import AGENT_BRANCHES
from rookery.vcs.tracked import tracked_files
from rookery.worktrees.cleaning import KEPT, Cleaner
from rookery.worktrees.place import elsewhere, remove_empty
from rookery.worktrees.removal import Remover

_PATIENCE = 20.0
_PAUSE = 0.05


@dataclass(frozen=True)
class Deinit:
    """Takes one project away."""

    ctx: Context
    backup: str | None
    """Where a copy of the database goes."""
    force: bool

    @cached_property
    def root(self) -> str:
        """The project's root; of one whose removal was cut off, that of its repository."""
        return salvage.root_of(self.ctx)

    @cached_property
    def has_database(self) -> bool:
        """False if an earlier removal was cut off."""
        return os.path.exists(database_path(self.root))

    def plan(self) -> Removal:
        """What goes and what stays."""
        folder = layout.path(self.root)
        hooks, committed = False, []
        with suppress(Refused, OSError):
            hooks = bool(session_hooks.status(self.root).events)
        with suppress(Refused):
            committed = tracked_files(self.root)
        plan = Removal(self.root, tree_size(folder), self._worktrees(), (), (), 0, hooks, tuple(committed), self.backup)
        if not self.has_database:
            return plan
        try:
            remover = Remover(self.ctx)
            names = sorted(remover.vcs.branches(AGENT_BRANCHES))
            refs = len(remover.vcs.saved_refs())
            known = {session.branch: session for session in sessions.sessions(self.ctx.db)}
            unlanded = {name for name in names if remover.landed_tip(name, known.get(name)) is None}
        except Refused:  # there is no repository
            return plan
        stay = tuple(name for name in names if name in unlanded or name not in known)
        return plan.replace(branches=stay, unlanded=tuple(sorted(unlanded)), refs=refs)

    def check(self, plan: Removal) -> None:
        """Raise the reason if it must not be removed."""
        if self.backup is not None and os.path.lexists(self.backup):
            raise InvalidInput(f"{self.backup} already exists", hint="choose another file for --keep-backup")
        if self.backup is not None and self._goes(self.backup):
            raise InvalidInput(f"{self.backup} is in what is removed", hint="choose a file elsewhere for --keep-backup")
        if not self.has_database:
            if plan.worktrees:
                raise InvalidState(
                    f"{layout.path(self.root)} has no database, and worktrees are left in it: "
                    f"{', '.join(plan.worktrees)}",
                    hint="save what is in them, and remove them by `git worktree remove`",
                )
            return
        if self.force:
            return
        check_at_rest(self.ctx, "removing the project")
        if plan.unlanded:
            count = len(plan.unlanded)
            branches = plural(count, "agent's branch", "agents' branches")
            raise InvalidState(
                f"work on {branches} has not landed: {', '.join(plan.unlanded[:3])}"
                + (" and more" if count > 3 else ""),
                hint="`rook merge --all` lands what is ready; `rook deinit --force` removes the project, "
                "and keeps the branches",
            )

    def _goes(self, path: str) -> bool:
        """True if a file of that name would be deleted with the state, or with a worktree."""
        folder = os.path.realpath(os.path.dirname(path))
        doomed = [layout.path(self.root), *(elsewhere(self.ctx) if self.has_database else ())]
        return any(is_below(folder, os.path.realpath(top)) for top in doomed)

    def remove(self, plan: Removal) -> Removal:
        """Remove it; safe to repeat after a kill."""
        if self.has_database:
            self._end_work()
            if self.backup is not None:
                copy_to(self.ctx.db, self.backup)
            if plan.hooks:
                session_hooks.uninstall(self.root)
            steps.reached("hooks removed")
            self._remove_worktrees()
            with suppress(Refused):
                plan = plan.replace(branches=tuple(sorted(Remover(self.ctx).vcs.branches(AGENT_BRANCHES))))
            check_at_rest(self.ctx, "removing the project")
            self.ctx.close()
            remove_database(database_path(self.root))
        steps.reached("database removed")
        self._remove_rest(set(plan.kept_files))
        return plan.replace(is_done=True)

    def _end_work(self) -> None:
        for session in sessions.sessions(self.ctx.db, alive=True):
            stop(self.ctx, session.agent, "the project is being removed", by=self.ctx.actor)
        for conflict in open_conflicts.all_open(self.ctx.db):
            conflicts.give_up(Merger(self.ctx, self.ctx.actor), conflict.merge_id)  # saves what was done there
        check_at_rest(self.ctx, "removing the project")

    def _worktrees(self) -> tuple[str, ...]:
        others = elsewhere(self.ctx) if self.has_database else []
        return tuple(sorted([*self._in_state(), *map(os.path.basename, others)]))

    def _in_state(self) -> list[str]:
        folder = layout.path(self.root, layout.WORKTREES)
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def _remove_worktrees(self) -> None:
        """Remove all of them, what is not committed saved first; raises InvalidState if one has to stay."""
        with suppress(NotInitialised):
            cleaned = Cleaner(self.ctx, force=True, actor=self.ctx.actor).clean(everything=True)
            state = layout.path(os.path.realpath(self.root))  # what stays elsewhere is a worktree of git's own
            stay = [worktree for worktree in cleaned if worktree.verdict == KEPT and is_below(worktree.path, state)]
            kept = [f"{worktree.agent}: {worktree.reason}" for worktree in stay]
            if kept or self._in_state():
                names = "; ".join(kept) or ", ".join(self._in_state())
                raise InvalidState(f"worktrees that must stay are in the project: {names}", hint="`rook worktree list`")
            remove_empty(self.ctx)

    def _remove_rest(self, committed: set[str]) -> None:
        """Remove the files, once the daemon and the loop, which write some at their end, have ended."""
        salvage.wait_for_daemon(self.root)
        deadline = time.monotonic() + _PATIENCE
        while True:
            with suppress(StorageFailed):  # a process has written a file at its end
                self._delete(committed)
            left = self._left(committed)
            if not left:
                return
            if time.monotonic() > deadline:
                raise StorageFailed(f"{left[0]} cannot be deleted", hint=f"rm -rf {layout.path(self.root)}")
            calls.sleep(_PAUSE)

    def _delete(self, committed: set[str]) -> None:
        top = layout.path(self.root)
        if not committed:
            delete_tree(top)
            return
        for path in self._left(committed):
            if os.path.isdir(path) and not os.path.islink(path):
                delete_tree(path)
            else:
                os.unlink(path)

    def _left(self, committed: set[str]) -> list[str]:
        """What of the state is still there, beside committed files and the folders of these."""
        top = layout.path(self.root)
        if not committed:
            return [top] if os.path.lexists(top) else []
        names = {name.split("/")[1] for name in committed}
        return [os.path.join(top, name) for name in sorted(os.listdir(top)) if name not in names]
