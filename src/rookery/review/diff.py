"""What an agent's work changes: its branch and, where its worktree is still there, what is not committed in it.

It counts from where the branch parted from its base, so that what others landed since does not show. Of work that has
landed it is the landing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rookery.base.errors import InvalidId, InvalidInput, InvalidState, NotFound
from rookery.base.ids import handle
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.merge import store as landings
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED
from rookery.ops.context import Context
from rookery.review.service import author_of
from rookery.sessions import store as sessions
from rookery.sessions.model import ALL_WORK, NoSuchAgent, Session
from rookery.tasks import store as tasks
from rookery.tasks.model import Task
from rookery.tasks.reviews import store as reviews
from rookery.vcs.backend import Vcs
from rookery.vcs.detect import open_vcs
from rookery.vcs.model import FileDiff
from rookery.vcs.ref_names import snapshot_name
from rookery.worktrees import service as worktrees

MOST_LINES = 3000
_REVIEW = "review"
_HEADER = "diff --git "


@dataclass(frozen=True, slots=True)
class Work(Record):
    """Whose work is meant, by an agent's name or by a task."""

    branch: str
    session: Session | None
    task: Task | None


@dataclass(frozen=True, slots=True)
class WorkDiff(Record):
    """What some work changes."""

    PRINTS = "files"
    branch: str
    agent: str | None
    task_id: str | None
    start: str
    """The commit that it is compared with."""
    since: str
    """What that is: `main`, `review`, `turn 3`."""
    commit: str | None
    """The last commit of the work; None if it has none any more."""
    worktree: str | None
    """The worktree whose uncommitted files count too."""
    uncommitted: int
    """How many files are not committed there."""
    landed_on: str | None
    """The base that has it."""
    files: tuple[FileDiff, ...]
    patch: str
    """The changed lines; empty with --stat."""
    left_out: int
    """How many lines of the patch are left out."""


def find_work(db: Database, name: str) -> Work:
    """The work that an agent's name or a task's id stands for; of a task its current attempt."""
    session = sessions.latest(db, name)
    if session is not None:
        return Work(session.branch, session, tasks.existing(db, session.task_id))
    try:
        task = tasks.find(db, name)
    except (NotFound, InvalidId):
        raise NoSuchAgent(
            f"{name!r} is neither an agent nor a task",
            hint=ALL_WORK,
        ) from None
    if task.branch is None:
        raise InvalidState(
            f"{handle(task.id)} has no branch", hint=f"`rook sling {handle(task.id)}` has an agent work on it"
        )
    return Work(task.branch, author_of(db, task), task)


def find_worktree(ctx: Context, name: str) -> str:
    """The folder of the worktree of an agent or of a task's agent; raises if it is not there."""
    work = find_work(ctx.db, name)
    session = work.session
    if session is None:
        folder = _find_checkout(ctx, work.branch)
        if folder is None:
            raise InvalidState(
                f"{work.branch} is in no worktree", hint=f"`git worktree add PATH {work.branch}` opens it"
            )
        return folder
    state = worktrees.inspect(ctx, session.worktree, session.branch, session)
    if not state.is_there:
        hint = f"`rook diff {session.agent}` shows its work"
        if worktrees.open_repository(ctx).branch_tip(session.branch) is not None:
            hint += f"; `rook resume {session.agent}` makes it again"
        raise InvalidState(f"the worktree of {session.agent} is gone", hint=hint)
    return session.worktree


def diff(ctx: Context, name: str, since: str | None, *, with_patch: bool, whole: bool) -> WorkDiff:
    """What the work changes since it parted from its base, or since a review or a turn."""
    work, merger = find_work(ctx.db, name), Merger(ctx, ctx.actor)
    tip = merger.merging.tip(work.branch)
    here = None if tip is None else _open_worktree(ctx, work)
    landed = None if since else _landing(ctx.db, work.branch, tip)
    if landed is not None:
        return _between(work, merger.vcs, *landed, with_patch, whole)
    if tip is None:
        raise InvalidState(f"{work.branch} is gone, and nothing of it has landed", hint=_where_kept(work))
    origin = _start(merger, work, tip)
    start, label = (origin, merger.base()) if since is None else _baseline(ctx, merger.vcs, work, since)
    changes = _Changes(merger.vcs, here, tip)
    files, patch = changes.since(start, with_patch=with_patch)
    if since is not None:
        known = {path for file in changes.since(origin, with_patch=False)[0] for path in (file.path, file.old_path)}
        known |= set(merger.vcs.own_changes(start, _bases(merger, work))[1])
        files, patch = _only(files, patch, known)
    uncommitted = 0 if here is None else len(here.status().changes)
    return _bounded(work, start, label, tip, here, uncommitted, None, files, patch, whole)


class _Changes:
    """The files of a worktree or, without one, of a branch, compared with commits."""

    def __init__(self, vcs: Vcs, here: Vcs | None, tip: str) -> None:
        self._vcs, self._here, self._tip = vcs, here, tip

    def since(self, start: str, *, with_patch: bool) -> tuple[Sequence[FileDiff], str]:
        """What is different from a commit."""
        if self._here is None:
            files = self._vcs.changed_files(start, self._tip)
            return files, self._vcs.changed_patch(start, self._tip) if with_patch else ""
        return self._here.diff(start, exact=True), self._here.patch(start, exact=True) if with_patch else ""


def _find_checkout(ctx: Context, branch: str) -> str | None:
    """Where a person has a branch checked out."""
    folders = (folder for folder, on in ctx.repository().checkouts().items() if on == branch)
    return next(filter(os.path.isdir, folders), None)


def _open_worktree(ctx: Context, work: Work) -> Vcs | None:
    """The worktree of the work, if it is there and on its branch."""
    session = work.session
    if session is None:
        folder = _find_checkout(ctx, work.branch)
        return None if folder is None else open_vcs(folder, ctx.config.vcs)
    if session.branch != work.branch:
        return None
    state = worktrees.inspect(ctx, session.worktree, session.branch, session)
    return open_vcs(session.worktree, ctx.config.vcs) if state.is_there and not state.is_other_branch else None


def _landing(db: Database, branch: str, tip: str | None) -> tuple[str, str, str] | None:
    """What a branch landed as, if it has not moved since: the base before it, the commit, and the base's name."""
    entry = next(iter(landings.select(db, states=(LANDED,), branch=branch, limit=1)), None)
    if entry is None or tip not in (None, entry.tip) or entry.base_before is None or entry.candidate is None:
        return None
    return entry.base_before, entry.candidate, entry.base


def _between(work: Work, vcs: Vcs, start: str, commit: str, base: str, with_patch: bool, whole: bool) -> WorkDiff:
    files, patch = _Changes(vcs, None, commit).since(start, with_patch=with_patch)
    return _bounded(work, start, base, commit, None, 0, base, files, patch, whole)


def _bases(merger: Merger, work: Work) -> list[str]:
    """The commits whose work is not this one's: the base as it is now, and where the work began."""
    names = [merger.base(), "" if work.session is None else work.session.settings.base]
    tips = [merger.merging.tip(name) for name in names if name and name != work.branch]
    began = None if work.task is None else work.task.start_commit
    if work.session is not None:
        began = work.session.base_commit
    return list(dict.fromkeys(filter(None, [*tips, began])))


def _start(merger: Merger, work: Work, tip: str) -> str:
    """Where the work parted from its base; where it began, if the base has all of it."""
    start = merger.vcs.own_changes(tip, _bases(merger, work))[0]
    if start == tip and work.session is not None:
        return merger.vcs.fork_point(work.session.base_commit, tip) or start
    return start


def _baseline(ctx: Context, vcs: Vcs, work: Work, since: str) -> tuple[str, str]:
    """The commit that `--since` names, and what to call it."""
    word, _, number = since.strip().lower().rpartition(" ")
    if since.strip().lower() == _REVIEW:
        return _reviewed(ctx.db, work), _REVIEW
    if word not in ("", "turn") or not number.isdecimal():
        raise InvalidInput(f"{since!r} names no point to compare with", hint='--since review, or --since "turn 3"')
    if work.session is None:
        raise InvalidInput(f"no agent made {work.branch}, so it has no turns", hint="--since review, or no --since")
    for session in reversed(sessions.sessions(ctx.db, agent=work.session.agent, branch=work.branch)):
        name = snapshot_name(session.agent, session.id, int(number))
        commit = vcs.saved_refs(name).get(name)
        if commit is not None:
            return commit, f"turn {int(number)}"
    agent = work.session.agent
    raise NotFound(f"{agent} has no snapshot of turn {number}", hint=f"`rook worktree snapshots {agent}` lists them")


def _reviewed(db: Database, work: Work) -> str:
    """The commit that was last decided about or, without a decision, last handed in."""
    steps = [] if work.task is None else [step for step in reviews.steps(db, work.task.id) if step.commit]
    steps = [step for step in steps if step.branch == work.branch]
    decided = [step for step in steps if step.action != reviews.SUBMITTED] or steps
    if not decided or decided[-1].commit is None:
        name = work.branch if work.task is None else handle(work.task.id)
        raise NotFound(f"{name} was not handed in yet", hint="leave --since out: that shows all of it")
    return decided[-1].commit


def _only(files: Sequence[FileDiff], patch: str, paths: Iterable[str | None]) -> tuple[Sequence[FileDiff], str]:
    """The part of a difference that is about some paths: a rebase in between also brings what others changed."""
    known = set(filter(None, paths))
    keeps = [file.path in known or file.old_path in known for file in files]
    sections = _sections(patch)
    if sections and len(sections) == len(files):
        patch = "".join(section for section, keep in zip(sections, keeps, strict=True) if keep)
    return [file for file, keep in zip(files, keeps, strict=True) if keep], patch


def _sections(patch: str) -> list[str]:
    """A patch by files: no line of a file's content begins as their headers do, and only a line feed ends a line."""
    sections: list[list[str]] = []
    for row in re.findall(r"[^\n]*\n|[^\n]+", patch):
        if row.startswith(_HEADER) or not sections:
            sections.append([])
        sections[-1].append(row)
    return ["".join(rows) for rows in sections]


def _where_kept(work: Work) -> str:
    if work.session is not None:
        return f"`rook worktree snapshots {work.session.agent}` lists what is kept of each turn"
    commit = None if work.task is None else work.task.commit
    return f"`git show {commit}` may still show its last commit" if commit else "`rook merge list` shows what landed"


def _bounded(
    work: Work,
    start: str,
    since: str,
    commit: str,
    here: Vcs | None,
    uncommitted: int,
    landed_on: str | None,
    files: Sequence[FileDiff],
    patch: str,
    whole: bool,
) -> WorkDiff:
    """The result, with so many lines of the patch as fit."""
    rows = patch.split("\n")
    left_out = 0 if whole else max(0, len(rows) - MOST_LINES)
    return WorkDiff(
        branch=work.branch,
        agent=None if work.session is None else work.session.agent,
        task_id=None if work.task is None else work.task.id,
        start=start,
        since=since,
        commit=commit,
        worktree=None if here is None else here.root,
        uncommitted=uncommitted,
        landed_on=landed_on,
        files=tuple(files),
        patch="\n".join(rows[:MOST_LINES]) if left_out else patch,
        left_out=left_out,
    )
