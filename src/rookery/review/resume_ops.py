"""`rook resume`: an agent that has ended goes on. Of work in review it is asked for changes."""

from __future__ import annotations

from typing import Annotated

from rookery.agents.resume import Resumption, find_ended, resume
from rookery.base.errors import InvalidInput
from rookery.base.text import check_text
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, LONG_TEXT, PROCESS, Doc, Owns, op
from rookery.review.model import Resumed
from rookery.runtimes.model import HEADLESS, TMUX
from rookery.sessions import store


@op("resume", needs="agent.write", long=True, touches=PROCESS, view="reviews.resumed")
def resume_agent(
    ctx: Context,
    name: Annotated[str, Owns(AGENTS), Doc("The agent.")],
    text: Annotated[str | None, LONG_TEXT, Doc("What it is asked; without it, to go on.")] = None,
    *,
    model: Annotated[str | None, Doc("Another model.")] = None,
    headless: Annotated[bool, Doc("It runs turn by turn, without a terminal.")] = False,
    tmux: Annotated[bool, Doc("It runs interactively in tmux.")] = False,
    share: Annotated[bool, Doc("Other living agents may change some of the same files.")] = False,
) -> Resumed:
    """Start an agent again that was stopped, crashed or finished: same branch, worktree and conversation.

    A worktree that was removed is made again from the branch, and what was not committed in it is put back. Its task is
    in progress again. Work that is in review is sent back by `rook review request-changes`, which resumes its agent.
    """
    if headless and tmux:
        raise InvalidInput("headless and tmux exclude each other", hint="give one of them, or none")
    check_text("the text", text or "")
    ctx.react()  # a stop or a sling that a kill has left half done is finished first
    earlier = find_ended(ctx.db, name)
    mode = HEADLESS if headless else TMUX if tmux else ""
    request = Resumption(name, ctx.caller.name, text or "", model=model or "", mode=mode, share=share)
    return describe(ctx, resume(ctx, request).id, earlier.id)


def describe(ctx: Context, session_id: str, earlier_id: str) -> Resumed:
    """What a resumed agent has got back."""
    session, earlier = store.session(ctx.db, session_id), store.session(ctx.db, earlier_id)
    settings = session.settings
    has_conversation = earlier.runtime_session is not None
    return Resumed(session, earlier, settings.is_new, settings.restored or None, has_conversation)
