"""The review queue: what was handed in and has not landed, and the decisions about it.

A decision, the mail that tells of it and the new session of the author that goes on commit together. So killed anywhere
it has been made or not, and the loop undoes a resume that did not come to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rookery.agents.resume import Resumption, resume
from rookery.base.errors import InvalidInput, InvalidState, NotFound, Refused, RookError
from rookery.base.ids import handle
from rookery.base.page import Page
from rookery.base.text import in_words, one_line
from rookery.db.database import Database
from rookery.mail import service as mail
from rookery.mail import store as messages
from rookery.mail.model import Draft
from rookery.merge import predict, push, queue, store
from rookery.merge import service as merging
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, UNDONE, Entry, GateRun, Predicted
from rookery.ops.context import Context
from rookery.review.model import Decided, Review, ReviewDetails
from rookery.sessions import store as sessions
from rookery.sessions.model import Session
from rookery.tasks import store as tasks
from rookery.tasks.model import (
    APPROVED,
    AWAITING_HUMAN_REVIEW,
    NEEDS_REBASE,
    PENDING_REVIEW,
    Task,
    attempt_numbers,
    next_state,
)
from rookery.tasks.reviews import decisions
from rookery.tasks.reviews import store as reviews
from rookery.tasks.scope import store as scope_store
from rookery.tasks.store import Author
from rookery.vcs.model import FileDiff

STATES = (PENDING_REVIEW, NEEDS_REBASE, APPROVED, AWAITING_HUMAN_REVIEW)
_GATES = 20
_SUBJECT_WIDTH = 200


def listing(ctx: Context, *, limit: int = 0, cursor: str | None = None) -> Page[Review]:
    """The reviews in the order in which they were handed in."""
    merger = Merger(ctx, ctx.actor)
    waiting = tasks.in_states(ctx.db, *STATES)
    at = reviews.submitted_at(ctx.db, [task.id for task in waiting])
    waiting.sort(key=lambda task: (at.get(task.id, task.updated_at), task.id))
    if cursor is not None:
        after = tasks.resolve(ctx.db, cursor)
        place = next((place for place, task in enumerate(waiting, 1) if task.id == after), 0)
        waiting = waiting[place:]
    shown = waiting[: limit or None]
    listed = [Review(**_facts(merger, task, at.get(task.id, task.updated_at))) for task in shown]
    return Page(listed, shown[-1].id if len(shown) < len(waiting) else None)


def details(ctx: Context, text: str) -> ReviewDetails:
    """One review at length; also of work that was sent back, or has landed."""
    merger, db = Merger(ctx, ctx.actor), ctx.db
    task = _find(db, text)
    steps = reviews.steps(db, task.id)
    if task.state not in STATES and not steps:
        problem = f"{handle(task.id)} was not handed in: it is {in_words(task.state)}"
        raise NotFound(problem, hint="`rook review list` shows what was")
    at = max((step.at for step in steps if step.action == reviews.SUBMITTED), default=task.updated_at)
    tip = _tip(merger, task)
    landing = next(iter(store.select(db, branch=task.branch, limit=1)), None) if task.branch else None
    return ReviewDetails(
        **_facts(merger, task, at),
        description=task.description,
        base=merger.base(),
        changes=tuple(_changes(merger, tip, landing)),
        predicted=_predict(merger, task, tip),
        gates=tuple(_gate_runs(merger, tip, None if landing is None else landing.candidate)),
        landing=landing,
        steps=tuple(steps),
    )


def check_is_text(db: Database, what: str, text: str, command: str) -> None:
    """Raise InvalidInput if a comment or text is just the name of a task or an agent, as in `review approve A B`."""
    word = text.strip()
    try:
        task_id = tasks.resolve(db, word)
    except RookError:
        task_id = ""
    is_task = task_id != "" and word.lower() in (task_id.lower(), handle(task_id))
    if is_task or sessions.latest(db, word) is not None:
        raise InvalidInput(
            f"{what} is just the name of {'a task' if is_task else 'an agent'}: {word}",
            hint=f"give one at a time, each in its own `rook {command}`; {what} takes more than a name",
        )


def _find(db: Database, text: str) -> Task:
    """The task of that id, or of the agent of that name, whose work then has to be the task's current attempt."""
    task = tasks.get(db, sessions.task_named(db, text))
    agent = sessions.latest(db, text)
    if agent is not None and agent.task_id == task.id and agent.branch != task.branch:
        name = handle(task.id)
        raise InvalidState(
            f"{agent.branch} is not the current attempt at {name}, but {task.branch or 'no branch'}",
            hint=f"`rook review show {name}` shows that; `rook compare {name} --keep {text}` takes this one instead",
        )
    return task


def _facts(merger: Merger, task: Task, submitted_at: str) -> dict[str, Any]:
    """What a list shows of a review."""
    tip = _tip(merger, task)
    landing = next(iter(store.select(merger.ctx.db, branch=task.branch, limit=1)), None) if task.branch else None
    author = author_of(merger.ctx.db, task)
    changes = _changes(merger, tip, landing)
    runs = _gate_runs(merger, tip, None if landing is None else landing.candidate)
    return {
        "task_id": task.id,
        "title": task.title,
        "state": task.state,
        "branch": task.branch,
        "agent": task.assignee if author is None else author.agent,
        "submitted_at": submitted_at,
        **attempt_numbers(task),
        "commit": tip,
        "is_moved": tip is not None and bool(decisions.why_moved(task, tip)),
        "files": len(changes),
        "added": sum(file.added or 0 for file in changes),
        "deleted": sum(file.deleted or 0 for file in changes),
        "gate": _verdict(runs),
        "outside": scope_store.explained(merger.ctx.db, [task.branch]).get(task.branch, ()) if task.branch else (),
        "result": task.result or (None if author is None else _report(merger.ctx.db, author)),
    }


def _tip(merger: Merger, task: Task) -> str | None:
    return None if task.branch is None else merger.merging.tip(task.branch)


def _changes(merger: Merger, tip: str | None, landing: Entry | None) -> Sequence[FileDiff]:
    """What a branch changes since it parted from its base; of one that has landed, what that changed."""
    if landing is not None and landing.state in (LANDED, UNDONE) and tip in (None, landing.tip):
        before, after = landing.base_before, landing.candidate
        if before and after and merger.merging.store.find_commit(after) is not None:
            return merger.vcs.changed_files(before, after)
    start = None if tip is None else merger.vcs.fork_point(merger.base(), tip)
    return () if start is None or tip is None else merger.vcs.changed_files(start, tip)


def _gate_runs(merger: Merger, tip: str | None, candidate: str | None) -> list[GateRun]:
    """The last runs of gates on what would land: the merge with the base if one was built, else the branch itself."""
    git = merger.merging.store
    commits = [commit for commit in (candidate, tip) if commit is not None and git.find_commit(commit) is not None]
    for commit in commits:
        runs = store.gate_runs(merger.ctx.db, tree=merger.merging.tree(commit), limit=_GATES)
        if runs:
            newest: dict[str, GateRun] = {}
            for run in runs:
                newest.setdefault(run.name, run)
            return list(newest.values())
    return []


def _verdict(runs: Sequence[GateRun]) -> str | None:
    failed = next((run for run in runs if not run.is_ok), None)
    return None if not runs else "passed" if failed is None else f"{failed.name} {failed.result}"


def _predict(merger: Merger, task: Task, tip: str | None) -> Predicted | None:
    """How the branch would land now; None if there is none."""
    if task.branch is None or tip is None:
        return None
    return predict.predict_all(merger, [merging.draft(merger, task.branch, merger.base())])[0]


def author_of(db: Database, task: Task) -> Session | None:
    """The last session that worked on a task's branch."""
    on_branch = [] if task.branch is None else sessions.sessions(db, branch=task.branch)
    began = [session for session in on_branch if session.outcome != "failed"]
    return began[-1] if began else None


def _report(db: Database, author: Session) -> str | None:
    """What an agent said when it handed its work in."""
    message = messages.terminal_message(db, author)
    return None if message is None else message.body or message.subject


class Decision:
    """One decision about a task in review, by the caller, for its branch as it is now."""

    def __init__(self, ctx: Context, text: str, step: str, comment: str) -> None:
        self.ctx = ctx
        self.merger = Merger(ctx, ctx.actor, ctx.follow)
        self.task = _find(ctx.db, text)
        self.step = step
        check_is_text(ctx.db, "the comment", comment, f"review {step.replace(' ', '-')}")
        self.comment = comment
        self.author = Author(ctx.actor, ctx.now())
        next_state(step, self.task)
        decisions.check_reviewer(self.task, self.author)
        self.tip = _tip(self.merger, self.task)
        self.made_by = author_of(ctx.db, self.task)
        self.problem = self._why_not_reached()
        self.base = ""
        self.withdrawn: tuple[str, ...] = ()

    def _current(self, db: Database) -> Task:
        """The task, if it is still at the attempt that the decision is about."""
        task = tasks.get(db, self.task.id)
        if (task.branch, task.attempts) != (self.task.branch, self.task.attempts):
            raise InvalidState(
                f"{handle(task.id)} was begun again meanwhile", hint=f"`rook review show {handle(task.id)}` shows it"
            )
        return task

    def approve(self, *, lands: bool) -> Decided:
        """The work may land as it is; with `lands` it lands at once."""
        if self.tip is None:
            name = self.task.branch or "its branch"
            hint = self._complete() if self._has_landed() else self._send_back()
            raise InvalidState(f"there is no branch {name} any more", hint=hint)
        with self.ctx.db.write() as db:
            task = self._current(db)
            if not (lands and task.state == APPROVED and task.commit == self.tip):  # a kill came before the landing
                task = decisions.approve(db, task, self.author, commit=self.tip, comment=self.comment)
        decided = self._decided(task, reviews.APPROVED)
        if not lands or task.branch is None:
            return decided
        base = self.merger.base()
        outcome = push.after_landing(self.merger, queue.land_branch(self.merger, task.branch, base))
        landed = next((entry for entry in outcome.entries if entry.branch == task.branch), None)
        state, failed = tasks.get(self.ctx.db, task.id).state, outcome.failed_gates
        return decided.replace(landed=landed, state=state, failed_gates=failed)

    def request_changes(self, **options: Any) -> Decided:
        """The work is sent back to its author, which is resumed if it has ended; else the task is open for others."""
        why = "Your work was handed in and sent back: the changes that are asked for are in your mail."
        return self._send(reviews.CHANGES_REQUESTED, why, **options)

    def request_rebase(self) -> Decided:
        """The author is asked to bring its branch onto the base as it is now, and to hand it in again."""
        self.base = self.merger.base()
        why = (
            f"Your work was handed in, and {self.base} has moved since. Run `rook worktree rebase "
            f"{self.made_by.agent if self.made_by else 'NAME'}`, run your checks again, and hand it in again."
        )
        return self._send(reviews.REBASE_REQUESTED, why)

    def _send(self, action: str, why: str, **options: Any) -> Decided:
        author = self.made_by
        if author is None or self.problem:
            return self._without_author(action, self.problem)
        with self.ctx.db.write() as db:
            is_told = sessions.session(db, author.id).is_alive  # it may have ended since
            if is_told:
                task = self._send_back_to(db, action, author.agent)
        if is_told:
            return self._decided(task, action).replace(is_told=True)
        request = Resumption(author.agent, self.ctx.actor, why=why, **options)
        try:
            session = resume(self.ctx, request, lambda db: self._send_back_to(db, action, author.agent))
        except RookError as error:
            return self._without_author(action, f"{author.agent} could not be resumed: {error.message}")
        return self._decided(tasks.get(self.ctx.db, self.task.id), action).replace(session=session)

    def _why_not_reached(self) -> str:
        """Why the agent that made the branch cannot be asked."""
        author = self.made_by
        if author is None:
            return f"no agent of Rookery's made {self.task.branch or 'its work'}"
        latest = sessions.latest(self.ctx.db, author.agent)
        if latest is not None and latest.id != author.id:
            return f"{author.agent} has begun another task since"
        return ""

    def _without_author(self, action: str, problem: str) -> Decided:
        """Keep a decision for work whose author does not go on. Without an author its holder keeps the task.

        A resume that failed after it was reserved has kept the decision already.
        """
        with self.ctx.db.write() as db:
            task, last = tasks.get(db, self.task.id), reviews.last(db, self.task.id)
            own = (action, self.author.name, self.author.now, self.comment)
            if last is None or (last.action, last.actor, last.at, last.comment) != own:
                holder = self.task.assignee if self.made_by is None else None
                task = self._send_back_to(db, action, holder)
        return self._decided(task, action).replace(problem=problem)

    def _send_back_to(self, db: Database, action: str, holder: str | None) -> Task:
        """Within a transaction: the decision, the mail that tells of it, and nothing of it in a queue any more."""
        task = self._current(db)
        if task.branch is not None:
            self.withdrawn = tuple(entry.id for entry in merging.withdraw(self.merger, task.branch))
        if action == reviews.CHANGES_REQUESTED:
            task = decisions.request_changes(
                db, task, self.author, commit=self.tip, comment=self.comment, holder=holder
            )
        else:
            task = decisions.request_rebase(db, task, self.author, commit=self.tip, comment=self.comment)
        if self.made_by is not None and not self.problem:
            mail.send(db, self.ctx.caller, self._message(action, self.made_by), self.ctx.now())
        return task

    def _message(self, action: str, author: Session) -> Draft:
        """The comment as mail, in the thread in which the work was handed in."""
        last = messages.terminal_message(self.ctx.db, author)
        title, task_id = one_line(self.task.title, _SUBJECT_WIDTH), self.task.id
        if action == reviews.CHANGES_REQUESTED:
            kind, payload = "status", None
            subject, body = f"Changes requested: {title}", self.comment
        else:
            kind, payload = "rebase_request", {"branch": author.branch, "base": self.base}
            subject = f"Please rebase: {title}"
            body = "\n\n".join(
                part for part in (self.comment, f"`rook worktree rebase {author.agent}` does it.") if part
            )
        body += f"\n\n(About task {task_id}, {author.branch} at {(self.tip or 'no commit')[:12]}.)"
        return Draft((author.agent,), subject, body, kind, "high", payload, None if last is None else last.id)

    def _send_back(self) -> str:
        return f'`rook review request-changes {handle(self.task.id)} "…"` opens the task again'

    def _complete(self) -> str:
        short = handle(self.task.id)
        return f"its work is on {self.merger.base()}: `rook task complete {short}` says so"

    def _has_landed(self) -> bool:
        """True if the work that was handed in is on the base, however it came there."""
        task = self.task
        if task.commit is None or task.commit == task.start_commit:
            return False
        with suppress(Refused):  # the commit, or the base, is gone
            return self.merger.vcs.has_landed(task.commit, self.merger.base(), since=task.start_commit)
        return False

    def _decided(self, task: Task, action: str) -> Decided:
        agent = None if self.made_by is None else self.made_by.agent
        return Decided(task.id, action, task.state, task.branch, self.tip, agent, withdrawn=self.withdrawn)
