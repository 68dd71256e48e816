"""Earlier attempts at a task: what a new agent is told of them, and where one starts that continues another's work."""

from __future__ import annotations

from rookery.base.errors import InvalidState
from rookery.ops.context import Context
from rookery.sessions import store
from rookery.sessions.model import FAILED, NoSuchAgent, Session, last_by
from rookery.tasks import store as tasks
from rookery.turns.instructions import Attempt
from rookery.vcs.backend import Vcs
from rookery.vcs.ref_names import SAVED
from rookery.worktrees import reopening


def find_attempts(ctx: Context, task_id: str, *, without: str = "") -> list[Attempt]:
    """The attempts at a task, in the order in which they began; slings that failed did nothing, and are none."""
    sessions = [session for session in store.sessions(ctx.db, task_id=task_id) if session.outcome != FAILED]
    last = last_by("branch", (session for session in sessions if session.id != without))
    vcs = ctx.repository()
    return [describe_attempt(ctx, vcs, session) for session in last.values()]


def describe_attempt(ctx: Context, vcs: Vcs, session: Session) -> Attempt:
    """What is left of an attempt: its branch, and the newest ref that holds more than the branch does."""
    tip = vcs.branch_tip(session.branch)
    saved = "" if tip is None else _find_saved(ctx, vcs, session, tip)
    return Attempt(
        session.agent,
        session.role,
        session.branch if tip is not None else "",
        session.base_commit,
        session.outcome or session.state,
        session.reason or "",
        saved,
    )


def find_start(ctx: Context, text: str, agent: str) -> tuple[Session, str, str]:
    """Where an attempt at a task starts that continues an agent's work: its session, the commit, and what that holds.

    What the agent had not committed becomes one commit on top of its branch.
    """
    session = store.latest(ctx.db, agent)
    if session is None:
        raise NoSuchAgent(f"no agent {agent}", hint="`rook status --all` lists all agents, also those that have ended")
    task_id = tasks.resolve(ctx.db, text)
    if session.task_id != task_id:
        raise InvalidState(
            f"{agent} worked on {session.task_id or 'no task'}, not on {task_id}",
            hint=f"`--base {session.branch}` starts from its branch all the same",
        )
    if session.is_alive:
        raise InvalidState(f"{agent} is {session.state}", hint=f"`rook stop {agent}` first")
    vcs = ctx.repository()
    tip = vcs.branch_tip(session.branch)
    if tip is None:
        raise InvalidState(f"the branch {session.branch} of {agent} is gone", hint="leave --from out")
    saved = _find_saved(ctx, vcs, session, tip)
    if not saved:
        return session, tip, f"the branch of {agent}"
    merging = vcs.merging()
    commit = merging.commit(merging.tree(saved), [tip], f"What {agent} had not committed\n\nTask: {task_id}\n")
    return session, commit, f"the branch of {agent}, and what it had not committed ({saved})"


def _find_saved(ctx: Context, vcs: Vcs, session: Session, tip: str) -> str:
    """The ref that keeps what an attempt had not committed on its branch as it is; empty if none does."""
    name = reopening.kept_under(ctx, vcs, session)
    commit = vcs.saved_refs(name).get(name) if name else None
    is_more = commit not in (None, tip) and vcs.merging().store.find_commit(f"{commit}^") == tip
    return SAVED + name if is_more else ""
