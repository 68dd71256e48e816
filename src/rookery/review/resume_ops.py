"""`rook resume`: an agent that has ended goes on. Of work in review it is asked for changes."""

from __future__ import annotations

from typing import Annotated, Any

from rookery.agents.resume import Resumption, find_ended, find_unfinished, resume
from rookery.base.errors import InvalidInput, InvalidState
from rookery.base.ids import handle
from rookery.base.text import check_text
from rookery.config.environ import HUMAN
from rookery.mail import store as messages
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, LONG_TEXT, PROCESS, Doc, Owns, op
from rookery.review.model import Resumed
from rookery.review.service import Decision, check_is_text
from rookery.runtimes.model import HEADLESS, TMUX
from rookery.sessions import store
from rookery.tasks import store as tasks
from rookery.tasks.model import APPROVED, PENDING_REVIEW
from rookery.tasks.reviews.decisions import check_comment

_ASKED = (PENDING_REVIEW, APPROVED)


@op("resume", needs="agent.write", long=True, touches=PROCESS, view="reviews.resumed")
def resume_agent(
    ctx: Context,
    name: Annotated[str, Owns(AGENTS), Doc("The agent.")],
    text: Annotated[str | None, LONG_TEXT, Doc("What it should do; by default, go on with its task.")] = None,
    *,
    model: Annotated[str | None, Doc("Another model.")] = None,
    headless: Annotated[bool, Doc("It runs turn by turn, without a terminal.")] = False,
    tmux: Annotated[bool, Doc("It runs interactively in tmux.")] = False,
    share: Annotated[bool, Doc("Other living agents may change some of the same files.")] = False,
) -> Resumed:
    """Start an agent again that was stopped, crashed or finished: same branch, worktree and conversation.

    A worktree that was removed is made again from the branch, and what was not committed in it is put back. Its task is
    in progress again. If its work is in review, a text or mail that it has not read asks for changes, as
    `rook review request-changes` does.
    """
    if headless and tmux:
        raise InvalidInput("headless and tmux exclude each other", hint="give one of them, or none")
    check_text("the text", text or "")
    check_is_text(ctx.db, "the text", text or "", "resume")
    ctx.react()  # a stop or a sling that a kill has left half done is finished first
    earlier = find_ended(ctx.db, name)
    mode = HEADLESS if headless else TMUX if tmux else ""
    options: dict[str, Any] = {"model": model or "", "mode": mode, "share": share}
    task = tasks.existing(ctx.db, earlier.task_id)
    is_in_review = task is not None and task.branch == earlier.branch and task.state in _ASKED and ctx.actor == HUMAN
    asked = (text or _read_request(ctx, name)) if is_in_review else ""
    if asked and task is not None:
        decided = Decision(ctx, task.id, "request changes", check_comment(asked)).request_changes(**options)
        if decided.session is None:
            raise InvalidState(decided.problem, hint=f"{handle(task.id)} is open again: `rook sling {handle(task.id)}`")
        return describe(ctx, decided.session.id, earlier.id).replace(sent_back=asked)
    session = resume(ctx, Resumption(name, ctx.caller.name, text or "", **options))
    return describe(ctx, session.id, earlier.id)


def _read_request(ctx: Context, name: str) -> str:
    """What a person has asked an agent that has ended by mail; empty if nothing."""
    message_id = next(iter(messages.new_ids(ctx.db, name, 1, sender=HUMAN)), None)
    return "" if message_id is None else f"As I wrote to you: {messages.get(ctx.db, message_id).subject}"


def describe(ctx: Context, session_id: str, earlier_id: str) -> Resumed:
    """What a resumed agent has got back."""
    session, earlier = store.session(ctx.db, session_id), store.session(ctx.db, earlier_id)
    settings = session.settings
    has_conversation = earlier.runtime_session is not None
    workers = tuple(worker.agent for worker in find_unfinished(ctx.db, earlier))
    return Resumed(session, earlier, settings.is_new, settings.restored or None, has_conversation, workers=workers)
