"""Taking worktrees away without losing anything.

What is not committed is saved under `refs/rookery/rescue/<agent>/<time>` first, a branch goes only if the base
contains it, and what cannot be saved stays, with the reason. The order of the steps makes a kill harmless: the rescue
first, then the folder and the branch, and the event last (`worktrees/removal.py`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.base.errors import InvalidState, Refused
from rookery.base.record import Record
from rookery.config import layout, steps
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import COMPLETED, NoSuchAgent, Session
from rookery.vcs.detect import detect, open_vcs
from rookery.vcs.folders import aside_of, tree_size
from rookery.vcs.git.checkout import Git
from rookery.vcs.model import GIT, RefMoved, Vcs
from rookery.vcs.ref_names import AGENT_BRANCHES, RESCUE, SAVED, rescue_name
from rookery.worktrees import removal
from rookery.worktrees import service as worktrees
from rookery.worktrees.service import WorktreeState
from rookery.worktrees.store import pending

REMOVED = "removed"
REMOVABLE = "removable"
KEPT = "kept"
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Place(Record):
    """A worktree and whose it is."""

    agent: str
    path: str
    branch: str
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class Listed(Record):
    """A worktree as it is listed. `state` and `outcome` are those of its agent's last session."""

    agent: str
    path: str
    branch: str
    state: str | None
    outcome: str | None
    worktree: WorktreeState
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Cleaned(Record):
    """What became of a worktree, or would."""

    agent: str
    path: str
    verdict: str
    """`removed`, `kept`, or with a dry run `removable`."""
    reason: str = ""
    branch: str = ""
    branch_deleted: bool = False
    rescue: str | None = None
    """The whole name of the ref under which its work was saved."""
    restore_with: str = ""
    """A command that brings the saved work back."""
    ignored: int = 0
    """Ignored files of the agent that went with it, unsaved."""


@dataclass(frozen=True, slots=True)
class Wish(Record):
    """How a cleaning is to be done."""

    saves_ignored: bool = False
    force: bool = False
    dry_run: bool = False


def list_worktrees(project: Context, *, size: bool = False) -> list[Listed]:
    """Every agent's worktree, with what is in it."""
    vcs = worktrees.open_repository(project.root, project.config.vcs)
    base = removal.base_of(project, vcs)
    found = []
    for place in _places(project, vcs, base):
        session = place.session
        state = _inspect(project, place, base)
        found.append(
            Listed(
                place.agent,
                place.path,
                place.branch,
                None if session is None else session.state,
                None if session is None else session.outcome,
                state,
                tree_size(place.path) if size and state.is_there else None,
            )
        )
    return found


def clean_worktrees(
    project: Context,
    *,
    names: Sequence[str] = (),
    completed: bool = False,
    everything: bool = False,
    ignored: bool = False,
    force: bool = False,
    dry_run: bool = False,
    actor: str = "human",
) -> list[Cleaned]:
    """Take away the worktrees of the named agents, or of all that have ended; what cannot go is kept, with the reason.

    `completed` takes those only that completed their work, `everything` also worktrees of no known agent. A named
    agent that is alive is refused before anything is touched.
    """
    vcs = worktrees.open_repository(project.root, project.config.vcs)
    base = removal.base_of(project, vcs)
    wish = Wish(ignored, force, dry_run)
    chosen = _choose(_places(project, vcs, base), names, completed=completed, everything=everything)
    if dry_run:
        return [_clean(project, vcs, place, base, wish, actor) for place in chosen]
    found = []
    for place in chosen:
        with removal.alone(project.root):
            found.append(_clean(project, vcs, place, base, wish, actor))
    return found


def _choose(places: list[Place], names: Sequence[str], *, completed: bool, everything: bool) -> list[Place]:
    known = {place.agent: place for place in places}
    for name in names:
        if name not in known:
            raise NoSuchAgent(f"{name} has no worktree", hint="`rook worktree list` shows what there is")
        session = known[name].session
        if session is not None and session.is_alive:
            raise InvalidState(f"{name} is {session.state} in its worktree", hint=f"`rook stop {name}` first")
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    return [
        place
        for place in places
        if (everything if place.session is None else not place.session.is_alive)
        and (not completed or (place.session is not None and place.session.outcome == COMPLETED))
    ]


def _places(project: Context, vcs: Vcs, base: str | None) -> list[Place]:
    """Every worktree that is there, is registered, is being removed, or has left a branch that the base contains."""
    last = {session.agent: session for session in store.sessions(project.db)}
    registered, branches = vcs.checkouts(), vcs.branches(AGENT_BRANCHES)
    parent = layout.path(os.path.realpath(project.root), layout.WORKTREES)
    on_disk = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    folders = {name.removeprefix(".").removesuffix(".removed") if name[0] == "." else name for name in on_disk}
    folders |= {os.path.basename(each.path) for each in pending(project.db)}
    places = []
    for name in sorted(folders | set(last)):
        path, session = os.path.join(parent, name), last.get(name)
        branch = session.branch if session is not None else registered.get(path, "")
        is_left = base is not None and branch in branches and branch not in registered.values()
        if name in folders or path in registered or (is_left and removal.has_landed(vcs, branch, str(base), session)):
            places.append(Place(name, path, branch, session))
    return places


def _clean(project: Context, vcs: Vcs, place: Place, base: str | None, wish: Wish, actor: str) -> Cleaned:
    """Take one worktree away, or say why not."""
    verdict = Cleaned(place.agent, place.path, KEPT, branch=place.branch)
    try:
        cut_off = None if wish.dry_run else removal.settle_left(project, vcs, place.path, base)
        if cut_off is not None and not os.path.lexists(place.path):
            stays = _why_branch_stays(vcs, place.branch, base)
            return _removed(vcs, verdict, cut_off.rescue, stays or "what a killed cleaning had begun is finished")
        state = _inspect(project, place, base)
        reason = _why_kept(project, place, state, wish)
        if reason:
            return verdict.replace(reason=reason)
        if not wish.dry_run and not _is_left(vcs, place, state, base):
            return verdict.replace(verdict=REMOVED, reason="another process has removed it just now")
        lost = 0 if wish.saves_ignored else len(state.ignored)
        if wish.dry_run:
            what = "its work would be saved" if _needs_rescue(vcs, state, base, wish) else "nothing in it is unsaved"
            return verdict.replace(verdict=REMOVABLE, reason=what, ignored=lost)
        rescue = _save(project, vcs, place, state, base, wish)
        steps.reached("rescued")
        if _is_worktree_left(vcs, place, state):
            is_deleted = removal.take_away(
                project, vcs, place.path, place.agent, place.branch, base=base, rescue=rescue, actor=actor
            )
        else:
            is_deleted = removal.delete_branch(vcs, place.branch, base, place.session)
    except Refused as error:
        return verdict.replace(reason=error.message)
    reason = _why_branch_stays(vcs, place.branch, base) if not is_deleted else f"{place.branch} landed on {base}"
    return _removed(vcs, verdict, rescue, reason).replace(branch_deleted=is_deleted, ignored=lost)


def _removed(vcs: Vcs, verdict: Cleaned, rescue: str | None, reason: str) -> Cleaned:
    restore_with = "" if rescue is None else _command(vcs, verdict.agent, rescue)
    return verdict.replace(verdict=REMOVED, reason=reason, rescue=rescue, restore_with=restore_with)


def _is_left(vcs: Vcs, place: Place, state: WorktreeState, base: str | None) -> bool:
    """True if there is something to take away: the worktree, or a landed branch."""
    if _is_worktree_left(vcs, place, state):
        return True
    tip = vcs.branch_tip(place.branch) if place.branch else None
    return tip is not None and base is not None and removal.has_landed(vcs, tip, base, place.session)


def _is_worktree_left(vcs: Vcs, place: Place, state: WorktreeState) -> bool:
    """True if the folder, what is left of it or its registration is there."""
    if state.is_there or state.is_symlink or os.path.lexists(aside_of(place.path)):
        return True
    return place.path in vcs.checkouts()


def _inspect(project: Context, place: Place, base: str | None) -> WorktreeState:
    folder = None if place.session is None else project.session_folder(place.session.id)
    return worktrees.inspect(
        project.root, project.config.vcs, path=place.path, branch=place.branch, base=base, session_folder=folder
    )


def _why_kept(project: Context, place: Place, state: WorktreeState, wish: Wish) -> str:
    if place.session is not None and place.session.is_alive:
        return f"{place.agent} is {place.session.state}"
    if state.lock is not None:
        return f"it is locked: {state.lock}" if state.lock else "it is locked"
    if state.is_broken:
        return "it is no checkout any more; move its files away"
    for name in state.inner:
        reason = _why_inner_stays(project, os.path.join(place.path, name))
        if reason:
            return f"the repository {name} in it {reason}"
    if wish.saves_ignored and not wish.force:
        size = sum(os.lstat(os.path.join(place.path, each)).st_size for each in state.ignored)
        limit = project.config.worktrees.rescue_limit
        if size > limit * _MEGABYTE:
            return f"its ignored files take {size / _MEGABYTE:.0f} MB, more than {limit}; --force saves them"
    return ""


def _why_inner_stays(project: Context, path: str) -> str:
    """What a repository inside a worktree holds that is nowhere else: no snapshot of ours reaches into it."""
    found = detect(path)
    if found is None or found != (GIT, os.path.realpath(path)):
        return "cannot be looked into"
    inner = Git(found[1], project.config.vcs.timeout)
    if not inner.status().is_clean:
        return "has changes that are not committed"
    count = inner.unpushed_commits()
    if count:
        return f"has {count} commits that no remote has"
    return "holds repositories of its own" if inner.inner_repositories() else ""


def _needs_rescue(vcs: Vcs, state: WorktreeState, base: str | None, wish: Wish) -> bool:
    if not state.is_there:
        return False
    if not state.is_clean or (wish.saves_ignored and state.ignored):
        return True
    # On no branch, its commits hang on this worktree alone.
    is_loose = state.branch is None and state.commit is not None
    return is_loose and (base is None or not vcs.has_landed(str(state.commit), base))


def _save(project: Context, vcs: Vcs, place: Place, state: WorktreeState, base: str | None, wish: Wish) -> str | None:
    """Keep what is not committed; returns the whole name of its ref. After a kill it is not done twice."""
    if not _needs_rescue(vcs, state, base, wish):
        return None
    here = open_vcs(place.path, project.config.vcs)
    wanted = frozenset(state.ignored) if wish.saves_ignored else frozenset[str]()
    message = f"What {place.agent} had not committed in {place.path}"
    earlier = sorted(vcs.saved_refs(f"{RESCUE}{place.agent}/"))
    if earlier:
        try:
            here.snapshot(earlier[-1], message, include_ignored=wanted)
        except RefMoved:
            pass
        else:
            return SAVED + earlier[-1]
    name = rescue_name(place.agent, project.now())
    here.snapshot(name, message, include_ignored=wanted)
    return SAVED + name


def _why_branch_stays(vcs: Vcs, branch: str, base: str | None) -> str:
    if not branch or vcs.branch_tip(branch) is None:
        return ""
    if base is None:
        return f"{branch} stays: there is no base to compare it with"
    count = vcs.count_commits(branch, base)
    if count:
        return f"{branch} stays: {base} lacks {count} of its commits"
    return f"{branch} stays: it is in use, or its landing was reverted"


def _command(vcs: Vcs, agent: str, rescue: str) -> str:
    if vcs.kind == GIT:
        return f"git switch -c rescued-{agent} {rescue}"
    return f"git --git-dir=$(jj git root) branch rescued-{agent} {rescue} && jj git import"
