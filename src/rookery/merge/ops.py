"""What we offer of landing."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidInput, Refused
from rookery.config.environ import HUMAN
from rookery.merge import predict, queue, service
from rookery.merge import undo as undoing
from rookery.merge.landing.attempts import Survey, add_queue, skip, survey
from rookery.merge.merger import Merger
from rookery.merge.model import Entry, Explained, Outcome, Predicted
from rookery.merge.undo import Undone
from rookery.ops.context import Context
from rookery.ops.operation import BRANCHES, MERGES, NOTHING, PROCESS, Doc, Owns, Ref, op

MergeArg = Annotated[
    str, Ref(MERGES), Doc("The entry's id, or the beginning of it; a branch or an agent stands for its newest.")
]
IntoOption = Annotated[str | None, Ref(BRANCHES), Doc("The branch to land on, instead of the project's base.")]
ForceFlag = Annotated[
    bool, Doc("Also a branch whose task was given up or has a later attempt; it completes no task. Only for people.")
]


@op("merge", needs="merge.write", long=True, touches=PROCESS, view="merges.outcome")
def merge(
    ctx: Context,
    *,
    branch: Annotated[str | None, Owns(BRANCHES), Doc("A branch, or the agent whose branch it is.")] = None,
    all: Annotated[bool, Doc("Every branch whose work is finished, with what is queued.")] = False,
    into: IntoOption = None,
    dry_run: Annotated[bool, Doc("Change nothing; say what would become of it.")] = False,
    force: ForceFlag = False,
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
    merger = _merger(ctx)
    base = merger.base(into)
    found = Survey((branch,), ()) if branch else survey(merger, base)
    if dry_run:
        found = found if branch else add_queue(merger, base, found)
        drafts = [service.draft(merger, each, base, force=force) for each in found.ready]
        refused = [skip(merger.ctx.db, each) for each in drafts]
        predicted = predict.predict_all(
            merger, [each for each, why in zip(drafts, refused, strict=True) if why is None]
        )
        skipped = [predict.skipped(each, base) for each in (*refused, *found.skipped) if each is not None]
        return Outcome(base, (), 0, predicted=(*predicted, *skipped))
    if branch:
        return queue.land_branches(merger, found.ready, base, force=force)
    only = {each.id for each in service.enqueue(merger, found.ready, base, force=force)}
    found = add_queue(merger, base, found)
    only |= {each.id for each in service.listing(merger) if each.base == base and each.branch in found.ready}
    if not only and found.skipped:
        return Outcome(base, (), 0, skipped=found.skipped)
    service.check_something(list(only), base)
    return queue.work(merger, base, only).replace(skipped=found.skipped)


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
    limit: Annotated[int, Doc("How many at most.")] = 50,
) -> list[Entry]:
    """List the queue in the order in which it lands."""
    return service.listing(_merger(ctx), everything=all, limit=limit)


@op("merge predict", needs="vcs.read", long=True, view="merges.predictions")
def predict_branches(
    ctx: Context,
    branch: Annotated[tuple[str, ...], Ref(BRANCHES), Doc("Branches, or the agents whose branches they are.")],
    *,
    into: IntoOption = None,
) -> list[Predicted]:
    """Say what would become of branches if they were landed now, in this order: by which tier, and which files."""
    merger = _merger(ctx)
    base = merger.base(into)
    return predict.predict_all(merger, [service.draft(merger, each, base) for each in branch])


@op("merge run", needs="merge.write", long=True, touches=PROCESS, owns=NOTHING, view="merges.outcome")
def run(ctx: Context, *, into: IntoOption = None) -> Outcome:
    """Work through the queue until nothing is left that can land."""
    merger = _merger(ctx)
    return queue.work(merger, merger.base(into))


@op("merge cancel", needs="merge.write", long=True, touches=PROCESS, view="merges.one")
def cancel(ctx: Context, merge: Annotated[MergeArg, Owns(BRANCHES)]) -> Entry:
    """Take an entry out of the queue."""
    merger = _merger(ctx)
    return service.cancel(merger, service.find(merger, merge).id)


@op("merge retry", needs="merge.write", long=True, touches=PROCESS, view="merges.one")
def retry(ctx: Context, merge: Annotated[MergeArg, Owns(BRANCHES)]) -> Entry:
    """Queue an entry again that failed, waits or was taken back."""
    return service.retry(_merger(ctx), merge)


@op("merge explain", needs="vcs.read", long=True, view="merges.explained")
def explain(ctx: Context, merge: MergeArg) -> Explained:
    """Tell what was done to bring an entry in: each conflict, by which rule, and why that is safe."""
    return service.explain(_merger(ctx), merge)


@op("merge undo", needs="merge.write", long=True, touches=PROCESS, view="merges.undone")
def undo(ctx: Context, merge: Annotated[MergeArg, Owns(BRANCHES)]) -> list[Undone]:
    """Take a landing back: the base moves back if it is still the tip, else the change is reversed on top of it."""
    merger = _merger(ctx)
    return undoing.undo(merger, [service.find_undoable(merger, merge)])


def _check_force(ctx: Context, force: bool, named: object) -> None:
    if force and not named:
        raise InvalidInput("--force is for branches that are named", hint="`rook merge --branch NAME --force`")
    if force and ctx.actor != HUMAN:
        raise Refused("only a person may land rejected or replaced work", hint="ask a person by mail")


def _merger(ctx: Context) -> Merger:
    return Merger(ctx, ctx.actor, ctx.follow)
