"""The operations of landing, with what it adds to runs and worktrees."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidInput, Refused, UsageError
from rookery.base.page import Page
from rookery.config.environ import HUMAN
from rookery.merge import predict, push, queue, rebase, service, store, undo, undo_plan
from rookery.merge.landing.eligibility import Survey, survey
from rookery.merge.merger import Merger
from rookery.merge.model import Entry, Explained, Outcome, Predicted
from rookery.merge.person import service as person
from rookery.merge.person.model import Resolving
from rookery.merge.rebase import Rebased
from rookery.merge.undo_plan import Undo
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, BRANCHES, MERGES, NOTHING, PROCESS, RUNS, Doc, Owns, Ref, op
from rookery.sessions import store as agents

MergeArg = Annotated[
    str, Ref(MERGES), Doc("The entry's id, or its beginning or end; or a branch or an agent, for its newest entry.")
]
IntoOption = Annotated[str | None, Ref(BRANCHES), Doc("The branch to land on, instead of the project's base.")]
ForceFlag = Annotated[
    bool, Doc("Also a branch whose task was given up or has a later attempt; it completes no task. Only for people.")
]

DryUndoFlag = Annotated[bool, Doc("Change nothing; show what would be undone, opened again, withdrawn and sent.")]
YesFlag = Annotated[bool, Doc("Do not ask.")]


@op("merge", needs="merge.write", long=True, touches=PROCESS, view="merges.outcome")
def merge(
    ctx: Context,
    *,
    branch: Annotated[str | None, Owns(BRANCHES), Doc("A branch, or the agent whose branch it is.")] = None,
    all: Annotated[bool, Doc("Every branch whose work is finished, with what is queued.")] = False,
    into: IntoOption = None,
    dry_run: Annotated[bool, Doc("Change nothing; show what would happen.")] = False,
    force: ForceFlag = False,
    outside: Annotated[
        str | None,
        Doc("Why it may change files that its agent was not given (`sling --files`). For people and agents above it."),
    ] = None,
) -> Outcome:
    """Land a branch, or all that are finished: gates first, then the base moves.

    With --all, the current attempt of every task that is in review or approved lands; the rest is listed with the
    reason.

    Nothing is merged in your checkout. A checkout of the base follows by a fast-forward that touches no file with
    changes of its own; where it would, the landing waits and says so.
    """
    if bool(branch) == all:
        raise InvalidInput("say either --branch NAME or --all", hint="`rook merge list` shows what is queued")
    _check_force(ctx, force, branch)
    if outside is not None and not branch:
        raise InvalidInput("--outside is for one branch", hint="`rook merge --branch NAME --outside WHY`")
    merger = _merger(ctx)
    base = merger.base(into)
    if dry_run:
        surveyed = Survey((branch,)) if branch else survey(merger, base)
        return Outcome(base, (), 0, predicted=tuple(predict.predict_survey(merger, base, surveyed, force=force)))
    if branch:
        landed = queue.land_branch(merger, branch, base, force=force, why_outside=outside)
    else:
        landed = queue.land_finished(merger, base)
    return push.after_landing(merger, landed)


@op("merge enqueue", needs="merge.write", long=True, touches=PROCESS, view="merges.listing")
def enqueue(
    ctx: Context,
    branch: Annotated[tuple[str, ...], Owns(BRANCHES), Doc("Branches, or the agents whose branches they are.")],
    *,
    into: IntoOption = None,
    priority: Annotated[int | None, Doc("From 1, most urgent, to 5; the task's own unless given.")] = None,
    force: ForceFlag = False,
) -> list[Entry]:
    """Queue branches to land; `rook merge run` lands them."""
    _check_force(ctx, force, branch)
    merger = _merger(ctx)
    return service.enqueue(merger, branch, merger.base(into), priority=priority, force=force)


@op("merge list", needs="vcs.read", view="merges.listing")
def list_entries(
    ctx: Context,
    *,
    all: Annotated[bool, Doc("Also what has landed, failed or been cancelled.")] = False,
    limit: Annotated[int, Doc("How many at most (50; 0 for all).")] = 50,
    cursor: Annotated[str | None, Doc("The last entry of the page before: go on after it.")] = None,
) -> Page[Entry]:
    """List the queue in the order in which it lands."""
    return service.listing(ctx.db, everything=all, limit=limit, cursor=cursor)


@op("merge predict", needs="vcs.read", long=True, view="merges.predictions")
def predict_branches(
    ctx: Context,
    branch: Annotated[tuple[str, ...], Ref(BRANCHES), Doc("Branches, or the agents whose branches they are.")],
    *,
    into: IntoOption = None,
) -> list[Predicted]:
    """Predict how branches would land now, in this order: by which tier, and with which files."""
    merger = _merger(ctx)
    base = merger.base(into)
    return predict.predict_all(merger, [service.draft(merger, name, base) for name in branch])


@op("merge run", needs="merge.write", long=True, touches=PROCESS, owns=NOTHING, view="merges.outcome")
def run(ctx: Context, *, into: IntoOption = None) -> Outcome:
    """Land everything in the queue that can land."""
    merger = _merger(ctx)
    return push.after_landing(merger, queue.work(merger, merger.base(into)))


@op("merge cancel", needs="merge.write", long=True, touches=PROCESS, view="merges.one")
def cancel(ctx: Context, merge: Annotated[MergeArg, Owns(BRANCHES)]) -> Entry:
    """Take an entry out of the queue."""
    return service.cancel(_merger(ctx), merge)


@op("merge retry", needs="merge.write", long=True, touches=PROCESS, view="merges.one")
def retry(ctx: Context, merge: Annotated[MergeArg, Owns(BRANCHES)]) -> Entry:
    """Queue an entry again after it failed, waited, or was cancelled or undone."""
    return service.retry(_merger(ctx), merge)


@op("merge explain", needs="vcs.read", long=True, view="merges.explained")
def explain(ctx: Context, merge: MergeArg) -> Explained:
    """Explain how an entry was merged: every conflict, the rule that settled it, and why that is safe."""
    return service.explain(_merger(ctx), merge)


@op("merge resolve", needs="merge.write", long=True, touches=PROCESS, view="merges.resolving")
def resolve(
    ctx: Context,
    merge: Annotated[MergeArg, Owns(BRANCHES)],
    *,
    done: Annotated[bool, Doc("Hand back what is committed there: it is checked, gated and landed.")] = False,
    accept_loss: Annotated[bool, Doc("With --done: lines of one side that the result leaves out may go.")] = False,
    abort: Annotated[bool, Doc("Give up: remove the worktree; what was done there is saved first.")] = False,
) -> Resolving:
    """Open a conflict in a worktree of its own, to resolve it by hand. For people.

    The merge of the branch into the base is under way there as after `git merge`; what rules can settle is settled.
    Both sides are explained, file by file. Commit there; the result lands with --done, or with the next
    `rook merge run`. If the base or the branch moves meanwhile, only what conflicts then is asked again.
    """
    if done and abort:
        raise InvalidInput("--done lands it, --abort gives up: say one of them", hint="see `rook merge resolve --help`")
    if accept_loss and not done:
        raise InvalidInput("--accept-loss belongs to --done", hint=f"`rook merge resolve {merge} --done --accept-loss`")
    merger = _merger(ctx)
    if done:
        return person.hand_back(merger, merge, accept_loss=accept_loss)
    return person.give_up(merger, merge) if abort else person.open_conflict(merger, merge)


@op("merge undo", needs="merge.write", long=True, touches=PROCESS, view="merges.undone")
def undo_landing(
    ctx: Context,
    merge: Annotated[MergeArg, Owns(BRANCHES)],
    *,
    dry_run: DryUndoFlag = False,
    yes: YesFlag = False,
) -> Undo:
    """Undo a landing: the base moves back if the landing is still its tip, else a commit on top reverses the change.

    Its task is open again, with each whose work came with it. On a terminal you see all of it first, and are asked.
    """
    merger = _merger(ctx)
    entry = service.find_undoable(merger, merge)

    def make() -> Undo:
        return undo_plan.plan_landing(merger, store.get(ctx.db, entry.id))

    if dry_run:
        return make()
    return undo.undo(merger, make, lambda plan: yes or not ctx.is_interactive or ctx.confirm(plan, "Undo this?"))


@op("run undo", needs="run.write", long=True, touches=PROCESS, owns=NOTHING, view="merges.undone")
def undo_run(
    ctx: Context,
    run: Annotated[str, Ref(RUNS), Doc("The run's id, or its beginning or end.")],
    *,
    dry_run: DryUndoFlag = False,
    yes: YesFlag = False,
) -> Undo:
    """Undo all that a run has landed, the newest first, and take what it has queued out of the queue.

    Its tasks are open again, and every agent concerned gets a message. You see all of it first, and are asked. What
    was on the base stays kept under `refs/rookery/rescue/undo/`.
    """
    run_id = agents.find_run(ctx.db, run).id
    if not (dry_run or yes or ctx.is_interactive):
        raise UsageError(
            "undoing a run asks first, and there is no terminal to ask on",
            hint=f"`rook run undo {run_id} --dry-run` shows what it would do, `rook run undo {run_id} --yes` does it",
        )
    merger = _merger(ctx)
    undo_plan.check_ended(ctx.db, run_id)
    if dry_run:
        return undo_plan.plan_run(merger, run_id)
    for base in store.unsettled_bases(ctx.db):
        queue.recover(merger, base)
    return undo.undo(
        merger,
        lambda: undo_plan.plan_run(merger, run_id),
        agree=lambda plan: yes or ctx.confirm(plan, "Undo all this?"),
    )


@op("worktree rebase", needs="vcs.write", long=True, touches=PROCESS, view="worktrees.rebased")
def rebase_worktree(
    ctx: Context,
    name: Annotated[str, Owns(AGENTS), Doc("The agent whose worktree it is.")],
    *,
    onto: Annotated[str | None, Doc("The branch to rebase on, instead of the project's base.")] = None,
) -> Rebased:
    """Bring an agent's branch onto its base as it is now, in place.

    The worktree must be clean. Where a commit conflicts, the files are named and nothing is changed. The branch as it
    was stays kept under `refs/rookery/rescue/`.
    """
    merger = _merger(ctx)
    return rebase.rebase(merger, name, merger.base(onto))


def _check_force(ctx: Context, force: bool, named: object) -> None:
    if force and not named:
        raise InvalidInput("--force is for branches that are named", hint="`rook merge --branch NAME --force`")
    if force and ctx.actor != HUMAN:
        raise Refused("only a person may land rejected or replaced work", hint="ask a person by mail")


def _merger(ctx: Context) -> Merger:
    return Merger(ctx, ctx.actor, ctx.follow)
