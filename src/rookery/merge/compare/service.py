"""Compares the attempts at a task, and makes the branch of one the task's branch, in review."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.base.clock import seconds_of
from rookery.base.errors import InvalidInput, InvalidState
from rookery.base.record import Record
from rookery.base.text import in_words
from rookery.costs.store import Spent, spent
from rookery.merge import store
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED
from rookery.sessions import store as agents
from rookery.sessions.model import FAILED, Session, TaskTaken, last_by
from rookery.tasks import lifecycle
from rookery.tasks import store as tasks
from rookery.tasks.model import ACTIVE, APPROVED, IN_REVIEW, PENDING, PENDING_REVIEW, Task
from rookery.tasks.store import Author
from rookery.vcs.git.merging import Merging
from rookery.vcs.model import FileDiff
from rookery.worktrees import service as worktrees


@dataclass(frozen=True, slots=True)
class ComparedAttempt(Record):
    """One attempt in numbers."""

    PRINTS = "agent"
    agent: str
    branch: str
    state: str
    """Its outcome, or its state while it is alive."""
    is_current: bool
    """Its branch is the task's."""
    has_landed: bool
    """It is on its base, and the numbers are of what landed."""
    commits: int
    files: int
    added: int
    deleted: int
    uncommitted: int
    """How many files in its worktree are not committed. The numbers before this one are of commits."""
    gates: tuple[str, ...]
    """What the gates said of the same content: each gate and its verdict; none if none has run on it, or if it holds
    no commit of its own."""
    conflicts: tuple[str, ...] | None
    """The files in which it conflicts with the base; None if its branch is gone."""
    dollars: float
    turns: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Comparison(Record):
    """The attempts at a task, in the order in which they began."""

    PRINTS = "attempts"
    task_id: str
    title: str
    state: str
    base: str
    attempts: tuple[ComparedAttempt, ...]


def compare(merger: Merger, text: str, base: str) -> Comparison:
    """Compare the attempts at a task; slings that failed are none. New objects are thrown away."""
    ctx, now = merger.ctx, merger.ctx.clock()
    task = tasks.get(ctx.db, agents.task_named(ctx.db, text))
    sessions = list(_attempts(merger, task).values())
    used = spent(ctx.db, [session.id for session in sessions])
    with merger.merging.on_trial() as trial:
        attempts = [
            _compare_one(merger, trial, session, base, task, used.get(session.id, Spent()), now) for session in sessions
        ]
    return Comparison(task.id, task.title, task.state, base, tuple(attempts))


def _attempts(merger: Merger, task: Task) -> dict[str, Session]:
    sessions = agents.sessions(merger.ctx.db, task_id=task.id)
    return last_by("branch", (session for session in sessions if session.outcome != FAILED))


def _compare_one(
    merger: Merger, trial: Merging, session: Session, base: str, task: Task, used: Spent, now: float
) -> ComparedAttempt:
    tip, onto = trial.tip(session.branch), trial.tip(base)
    commits = 0
    changed: Sequence[FileDiff] = ()
    gates: tuple[str, ...] = ()
    conflicts: tuple[str, ...] | None = None
    landing = _landing(merger, trial, session, tip)
    if landing is not None:
        before, tip, landed = landing
        commits, conflicts = len(trial.own_commits([before], tip)), ()
        changed = merger.vcs.changed_files(before, landed)
        gates = _verdicts(merger, [trial.tree(landed)], trial.tree(tip))
    elif tip is not None and onto is not None:
        commits = len(trial.own_commits([session.base_commit], tip))
        changed = merger.vcs.changed_files(trial.fork_point(session.base_commit, tip) or session.base_commit, tip)
        merged = trial.merge(onto, tip)
        conflicts = tuple(dict.fromkeys(conflict.path for conflict in merged.conflicts))
        if commits:  # else it has the content of the base, and so the verdicts of that
            gates = _verdicts(merger, [merged.tree] if merged.is_clean else [], trial.tree(tip))
    ended = now if session.ended_at is None else seconds_of(session.ended_at)
    return ComparedAttempt(
        session.agent,
        session.branch,
        session.outcome or session.state,
        task.branch == session.branch,
        landing is not None,
        commits,
        len(changed),
        sum(file.added or 0 for file in changed),
        sum(file.deleted or 0 for file in changed),
        _uncommitted(merger, session),
        gates,
        conflicts,
        used.dollars,
        used.turns,
        round(ended - seconds_of(session.created_at), 3),
    )


def _uncommitted(merger: Merger, session: Session) -> int:
    state = worktrees.inspect(merger.ctx, session.worktree, session.branch, session)
    is_open = state.is_there and not state.is_other_branch
    return len(state.uncommitted) + len(state.untracked) if is_open else 0


def _landing(merger: Merger, trial: Merging, session: Session, tip: str | None) -> tuple[str, str, str] | None:
    """Where an attempt landed, if its branch has not moved since: the base before it, its tip, and the base after."""
    entry = next(iter(store.select(merger.ctx.db, states=(LANDED,), branch=session.branch, limit=1)), None)
    if entry is None or tip not in (None, entry.tip) or entry.base_before is None or entry.candidate is None:
        return None
    if not all(trial.store.find_commit(commit) for commit in (entry.base_before, entry.candidate)):
        return None  # the base was rewritten, and git has removed what it had
    return entry.base_before, trial.store.find_commit(entry.tip) or entry.candidate, entry.candidate


def _verdicts(merger: Merger, trees: list[str], own: str) -> tuple[str, ...]:
    for tree in (*trees, own):
        runs = store.gate_runs(merger.ctx.db, tree=tree)
        if runs:
            newest = {run.name: run.verdict for run in reversed(runs)}
            return tuple(f"{name}: {verdict}" for name, verdict in newest.items())
    return ()


def keep(merger: Merger, text: str, agent: str) -> None:
    """Make an attempt's branch the task's branch, in review; the other branches stay as they are."""
    db, actor = merger.ctx.db, merger.actor
    task = tasks.get(db, agents.task_named(db, text))
    session = next((one for one in reversed(_attempts(merger, task).values()) if one.agent == agent), None)
    if session is None:
        raise InvalidInput(f"{agent} has not worked on {task.id}", hint=f"`rook compare {task.id}` shows who has")
    tip = merger.merging.tip(session.branch)
    if tip is None or tip == session.base_commit:
        problem = "is gone" if tip is None else "holds no commit of its own"
        raise InvalidState(f"the branch {session.branch} {problem}", hint=f"`rook compare {task.id}` shows the others")
    with db.write():
        task, author = tasks.get(db, task.id), Author(actor, merger.ctx.now())
        for living in agents.sessions(db, alive=True, task_id=task.id):
            raise TaskTaken(f"{living.agent} is at work on {task.id}", hint=f"`rook stop {living.agent}` first")
        if task.is_held(author.now) and task.assignee not in (agent, actor):
            raise TaskTaken(f"{task.assignee} holds {task.id}", hint=f"`rook task release {task.id}` first")
        if task.branch == session.branch and task.state in (*IN_REVIEW, APPROVED) and task.commit == tip:
            return
        if task.state == APPROVED:
            raise InvalidState(
                f"{task.id} is approved with {task.branch}",
                hint=f"`rook task fail {task.id}` and `rook task reopen {task.id}` first",
            )
        if task.state not in (*ACTIVE, *IN_REVIEW):
            raise InvalidState(f"{task.id} is {in_words(task.state)}", hint=f"`rook task reopen {task.id}` first")
        if task.state == PENDING_REVIEW:
            task = tasks.take_step(db, task, "request changes", author)
        if task.state == PENDING:
            task = lifecycle.begin(db, task, "start", author, assignee=agent, lease_until=None)
        changes = {"branch": session.branch, "start_commit": session.base_commit, "assignee": agent}
        task = tasks.change(db, task, "task.branched", author, **changes)
        lifecycle.submit(db, task, author, commit=tip)
