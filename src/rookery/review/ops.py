"""What we offer of reviews."""

from __future__ import annotations

from typing import Annotated

from rookery.base.errors import InvalidInput, Refused
from rookery.base.page import Page
from rookery.base.text import check_text
from rookery.config.environ import HUMAN
from rookery.ops.context import Context
from rookery.ops.operation import LONG_TEXT, PROCESS, WORK, Doc, Owns, Ref, op
from rookery.review import service
from rookery.review.model import Decided, Review, ReviewDetails
from rookery.tasks.reviews.decisions import check_comment

OwnTaskArg = Annotated[str, Owns(WORK), Doc("The task's id, or the agent that works on it.")]
DEFAULT_LIMIT = 50


@op("review list", needs="task.read", long=True, view="reviews.listing")
def list_reviews(
    ctx: Context,
    *,
    limit: Annotated[int, Doc(f"How many at most ({DEFAULT_LIMIT}; 0 for all).")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Doc("The last task of the page before: go on after it.")] = None,
) -> Page[Review]:
    """List the work that was handed in and has not landed, in the order in which it was handed in."""
    if limit < 0:
        raise InvalidInput("the limit is negative", hint="0 lists all")
    return service.listing(ctx, limit=limit, cursor=cursor)


@op("review show", needs="task.read", long=True, view="reviews.details")
def show(
    ctx: Context, task: Annotated[str, Ref(WORK), Doc("The task's id, or the agent that works on it.")]
) -> ReviewDetails:
    """Show what a reviewer needs to decide: the task, what changed, the gates, earlier rounds and their comments."""
    return service.details(ctx, task)


@op("review approve", needs="review.write", long=True, touches=PROCESS, view="reviews.decided")
def approve(
    ctx: Context,
    task: OwnTaskArg,
    comment: Annotated[str | None, LONG_TEXT, Doc("A comment; it is kept with the decision.")] = None,
    *,
    merge: Annotated[bool, Doc("Also land it at once. Only for people.")] = False,
) -> Decided:
    """Approve work that was handed in, as its branch is now.

    After another commit it has to be approved again before `rook merge --all` lands it.
    """
    if merge and ctx.actor != HUMAN:
        raise Refused("only a person may approve and land at once", hint="leave --merge out")
    decision = service.Decision(ctx, task, "approve", check_text("the comment", comment or ""))
    return decision.approve(lands=merge)


@op("review request-changes", needs="review.write", long=True, touches=PROCESS, view="reviews.decided")
def request_changes(
    ctx: Context, task: OwnTaskArg, comment: Annotated[str, LONG_TEXT, Doc("What has to change.")]
) -> Decided:
    """Send work back to its agent, with a comment. If the agent has ended, it is resumed.

    Until it is handed in again the branch does not land. If its agent cannot be resumed, the task is open for others.
    """
    return service.Decision(ctx, task, "request changes", check_comment(comment)).request_changes()


@op("review request-rebase", needs="review.write", long=True, touches=PROCESS, view="reviews.decided")
def request_rebase(
    ctx: Context,
    task: OwnTaskArg,
    comment: Annotated[str | None, LONG_TEXT, Doc("A comment; it is kept with the decision.")] = None,
) -> Decided:
    """Ask the agent of a branch to bring it onto the base as it is now. When it hands it in, it is in review again."""
    decision = service.Decision(ctx, task, "request rebase", check_text("the comment", comment or ""))
    return decision.request_rebase()
