"""An agent's worktree: created on a branch of its own, inspected, and removed again if nothing was done in it.

Where it lies is said by `worktrees/place.py`. Its state is compared with what it should be, because an agent in a wrong
folder or on a wrong branch does harm that no one notices.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState, NoRepository, Refused
from rookery.base.record import Record
from rookery.base.text import plural
from rookery.config import steps
from rookery.config.model import VcsConfig
from rookery.ops.context import Context
from rookery.processes.proctable import SLING
from rookery.processes.proctree import end_tree
from rookery.sessions import store
from rookery.sessions.model import RESERVED, NameTaken, Session, check_new_name
from rookery.vcs.backend import Vcs
from rookery.vcs.detect import open_vcs
from rookery.vcs.git.porcelain import UNTRACKED
from rookery.vcs.model import RefMoved, ignore_line
from rookery.worktrees import provision
from rookery.worktrees.place import make_parent


class WrongWorktree(InvalidState):
    """A worktree is not what it was created as."""

    code = "wrong_worktree"


@dataclass(frozen=True, slots=True)
class WorktreeState(Record):
    """What is in a worktree, and what it stands on."""

    path: str
    is_missing: bool = False
    is_symlink: bool = False
    is_broken: bool = False
    """It is there, and is no checkout of this repository any more."""
    lock: str | None = None
    """Why the user locked it; None if it is not locked."""
    branch: str | None = None
    """The branch that it is on, which need not be the one that it was created for."""
    is_other_branch: bool = False
    commit: str | None = None
    uncommitted: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Ignored files that neither Rookery nor the setup command made."""
    unmerged: int = 0
    """Commits that the base does not contain."""
    inner: tuple[str, ...] = ()
    """Repositories inside it, submodules included."""
    step: str | None = None
    """A merge, rebase or the like that has begun and not ended."""

    @property
    def is_there(self) -> bool:
        """True if it is a checkout that can be looked into."""
        return not (self.is_missing or self.is_symlink or self.is_broken)

    @property
    def is_clean(self) -> bool:
        """True if everything that git would keep is committed."""
        return not self.uncommitted and not self.untracked and self.step is None


def open_repository(ctx: Context) -> Vcs:
    """The project's repository, also where it has no checkout of its own."""
    return ctx.repository()


def create(ctx: Context, session: Session) -> None:
    """Make the session's branch at its base, and a worktree on it; there already, untouched, is fine."""
    check_new_name(session.agent)
    path, vcs = session.worktree, open_repository(ctx)
    make_parent(ctx.root, path)
    was_there = os.path.lexists(path)
    _check_unused(ctx, vcs, session)
    vcs.create_branch(session.branch, session.start_commit)
    steps.reached("branch made")
    vcs.add_checkout(path, session.branch)
    steps.reached("worktree made")
    here = check(path, ctx.config.vcs, branch=session.branch, commit=session.start_commit)
    changes = here.status().changes if was_there else ()
    if changes:
        raise WrongWorktree(
            f"{path} was there already, and holds {plural(len(changes), 'change')}",
            hint="`rook worktree clean` saves them",
        )


def _check_unused(ctx: Context, vcs: Vcs, session: Session) -> None:
    """Raise NameTaken if an earlier session has left its work on the branch."""
    tip = vcs.branch_tip(session.branch)
    if tip in (None, session.start_commit):
        return
    earlier = [one for one in store.of_agent(ctx.db, session.agent) if one.id != session.id][-1:]
    hint = f"choose another --name; `--base {session.branch}` starts from it"
    if earlier and earlier[0].branch == session.branch:
        hint = f"continue with `rook resume {session.agent}`, or choose another --name"
    is_unused = bool(earlier) and tip == earlier[0].start_commit
    raise NameTaken(f"{session.branch} already {'exists' if is_unused else 'has commits'}", hint=hint)


def check(path: str, settings: VcsConfig, *, branch: str, commit: str | None = None) -> Vcs:
    """Open a worktree that is a checkout of its own, on its branch and at the commit, if one is named."""
    here = open_vcs(path, settings)
    if here.root != os.path.realpath(path) or os.path.islink(path):
        raise WrongWorktree(f"{path} is not a checkout: it belongs to {here.root}", hint="`rook worktree clean`")
    current = here.current_branch()
    if current != branch:
        hint = f"`git -C {shlex.quote(path)} switch {branch}` brings it back"
        raise WrongWorktree(f"{path} is on {current or 'no branch'}, not on {branch}", hint=hint)
    head = here.current_commit()
    if commit is not None and head != commit:
        where = (head or "no commit")[:12]
        raise WrongWorktree(f"{path} is at {where}, not at {commit[:12]}", hint="find out what moved it")
    return here


def discard_unfinished(ctx: Context, session: Session) -> None:
    """Remove the half of a worktree whose making was killed; a whole one stays.

    Files that no checkout wrote raise InvalidState, and all stays. Under `removal.alone`.
    """
    # A git that outlives a killed command would go on with the worktree.
    end_tree(None, (SLING, session.id), 0)
    # Its creation was not finished, and no folder was there before.
    is_new = session.step == RESERVED and session.settings.is_new
    open_repository(ctx).discard_unfinished(session.worktree, session.branch, is_new=is_new)


def undo(ctx: Context, session: Session) -> str:
    """Remove a worktree in which nothing was done, with its branch; else keep both, and say why.

    A resumed agent keeps its branch, and a worktree that was there before.
    """
    is_resumed = bool(session.settings.resumed_from)
    if is_resumed and not session.settings.is_new:
        return ""
    vcs = open_repository(ctx)
    path, branch = session.worktree, session.branch
    try:
        discard_unfinished(ctx, session)
    except InvalidState as error:
        return f"{error.message}, so it and {branch} are kept"
    if not session.settings.is_new:
        return ""  # it is that of an earlier session
    tip = vcs.branch_tip(branch)
    if tip is None and not os.path.lexists(path):
        vcs.remove_checkout(path)  # a registration may be left
        return ""
    if tip not in (None, session.start_commit) and not is_resumed:
        return f"{branch} holds commits, so it and {path} are kept"
    reason = _why_kept(inspect(ctx, path, branch, session))
    if reason:
        return f"{path} {reason}, so it and {branch} are kept"
    try:
        vcs.remove_checkout(path)
        steps.reached("worktree undone")
        if tip is not None and not is_resumed:
            vcs.delete_branch(branch, session.start_commit)
    except (RefMoved, InvalidState) as error:
        return f"not all was undone: {error.message}"
    return ""


def count_unmerged(vcs: Vcs, branches: Sequence[str], base: str | None) -> dict[str, int]:
    """How many commits of each branch the base does not contain; 0 where there is no base or no branch."""
    tips = {branch: tip for branch in branches if branch and (tip := vcs.branch_tip(branch)) is not None}
    counts = {} if base is None else vcs.count_many(tips.values(), base)
    return {branch: counts.get(tips.get(branch, ""), 0) for branch in branches}


def inspect(
    ctx: Context, path: str, branch: str, session: Session | None = None, *, unmerged: int = 0
) -> WorktreeState:
    """What is in a worktree, beside the commits that the caller has counted. A link in its place is not followed.

    What was created for the session, and has not changed since, does not count among the ignored files.
    """
    vcs = open_repository(ctx)
    state = WorktreeState(path, lock=vcs.lock_state(path), unmerged=unmerged)
    if os.path.islink(path):
        return state.replace(is_symlink=True)
    if not os.path.lexists(path):
        return state.replace(is_missing=True)
    try:
        here = open_vcs(path, ctx.config.vcs)
        if here.root != os.path.realpath(path) or not is_same_repository(here, vcs):
            return state.replace(is_broken=True)
        contents = here.contents()
    except NoRepository:
        return state.replace(is_broken=True)
    status = contents.status
    return state.replace(
        lock=here.lock_state(path),
        branch=status.branch,
        is_other_branch=status.branch != branch,
        commit=status.commit,
        uncommitted=tuple(change.path for change in status.changes if change.kind != UNTRACKED),
        untracked=tuple(change.path for change in status.changes if change.kind == UNTRACKED),
        ignored=_own_ignored(here, contents.ignored, None if session is None else ctx.session_folder(session.id)),
        inner=_own_inner(ctx, here, contents.inner, session),
        step=here.running_step(),
    )


def is_same_repository(here: Vcs, vcs: Vcs) -> bool:
    """True if two checkouts have one repository; one of git's may lie beside the workspaces of jj, on its git store."""
    if here.kind == vcs.kind:
        return here.main_root() == vcs.main_root()
    return os.path.realpath(here.merging().store.common) == os.path.realpath(vcs.merging().store.common)


def write_instructions(settings: VcsConfig, worktree: str, name: str, text: str) -> None:
    """Write a generated file into a worktree, out of sight of commits, also where the repository tracks that file."""
    target = os.path.join(worktree, name)
    inside = os.path.realpath(worktree)
    if os.path.commonpath([inside, os.path.realpath(target)]) != inside:
        raise Refused(f"{name} leads out of the worktree", hint="a link in the repository points elsewhere")
    open_vcs(worktree, settings).exclude([ignore_line(name)])
    os.makedirs(os.path.dirname(target), exist_ok=True)
    write_whole(target, text)


def _why_kept(state: WorktreeState) -> str:
    """Why the worktree cannot be removed without a rescue."""
    if state.is_missing:
        return ""
    if state.is_symlink:
        return "is a link"
    if state.is_broken:
        return "is no longer a checkout"
    if state.lock is not None:
        return "is locked"
    if not state.is_clean:
        step = f" and a {state.step} in progress" if state.step else ""
        return f"holds {plural(len(state.uncommitted) + len(state.untracked), 'change')}{step}"
    if state.ignored:
        return f"holds {plural(len(state.ignored), 'ignored file')} that Rookery did not create"
    return "holds repositories of their own" if state.inner else ""


def _own_ignored(here: Vcs, ignored: Sequence[str], session_folder: str | None) -> tuple[str, ...]:
    """Ignored files that are neither generated nor left unchanged since provisioning."""
    if not ignored:
        return ()
    manifest = provision.read_manifest(session_folder)
    generated = set(here.excluded()) - {ignore_line(path) for path in manifest.excluded}
    return tuple(
        path for path in ignored if ignore_line(path) not in generated and not manifest.covers(here.root, path)
    )


def _own_inner(ctx: Context, here: Vcs, inner: Sequence[str], session: Session | None) -> tuple[str, ...]:
    """Repositories inside a worktree, but for those that are as the setup command left them."""
    if not inner or session is None or not session.settings.is_new:
        return tuple(inner)
    manifest = provision.read_manifest(ctx.session_folder(session.id))
    return tuple(path for path in inner if not manifest.covers_folder(here.root, path))
