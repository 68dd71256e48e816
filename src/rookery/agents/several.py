"""Slinging several agents by one call, each a saga of its own: one that fails leaves the others as they are.

Nothing is held over all of them: killed in between, those that have started go on, and the rest was never begun.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from rookery.agents.reservation import Request
from rookery.agents.sling import sling
from rookery.base.errors import InvalidId, InvalidInput, NotFound, Refused, RookError
from rookery.base.record import Record
from rookery.guard.ownership import check_one
from rookery.ops.context import Context
from rookery.ops.operation import PLACES
from rookery.roles.catalog import read_role
from rookery.roles.rights import reach_of
from rookery.sessions import store
from rookery.sessions.model import Session
from rookery.tasks import service
from rookery.tasks import store as tasks
from rookery.tasks.model import NotReady
from rookery.tasks.service import Draft
from rookery.tasks.store import Author

_LIKE_AN_ID = re.compile(r"task_.*|(?=.*\d)[0-9a-hjkmnp-tv-z]{4,26}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NotStarted(Record):
    """A task on which no agent was started, and why."""

    task: str
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Slung(Record):
    """The agents that were started by one call, and the tasks on which none was."""

    PRINTS = "agents"
    agents: tuple[Session, ...]
    failed: tuple[NotStarted, ...] = ()

    @property
    def exit_status(self) -> int:
        """1 if an agent was not started."""
        return int(bool(self.failed))


def sling_several(ctx: Context, request: Request, wanted: Iterable[str], *, is_new: bool = False) -> Slung:
    """Start an agent on each of these tasks. If only one is wanted, its failure is raised.

    A text with a space in it, or with `is_new` any text, becomes a task first.
    """
    texts = list(dict.fromkeys(wanted))
    for text in texts:
        if not is_new and not _is_text(text):
            _check_known(ctx, text)  # one that is mistyped refuses them all, before anything has happened
    started: list[Session] = []
    failed: list[NotStarted] = []
    for text in texts:
        try:
            started.append(_sling_one(ctx, _in_run(request, started), text, is_new=is_new or _is_text(text)))
        except RookError as error:
            if len(texts) == 1:
                raise
            failed.append(NotStarted(text, error.code, error.message, error.hint))
    return Slung(tuple(started), tuple(failed))


def sling_next(ctx: Context, request: Request, most: int) -> Slung:
    """Start agents on the next tasks that are ready, up to so many; no two callers get the same one.

    The first failure ends it, because the same task would be the next one again.
    """
    started: list[Session] = []
    while len(started) < most:
        try:
            started.append(sling(ctx, _in_run(request.replace(task=None), started)))
        except NotReady:
            if not started:
                raise
            break
        except RookError as error:
            if not started:
                raise
            return Slung(tuple(started), (NotStarted("next", error.code, error.message, error.hint),))
    return Slung(tuple(started))


def _check_known(ctx: Context, text: str) -> None:
    """Raise NotFound or InvalidId, with what else the word may mean, if it is no task."""
    try:
        tasks.resolve(ctx.db, text)
    except (InvalidId, NotFound) as error:
        if _LIKE_AN_ID.fullmatch(text):
            raise
        hint = f"`rook task list` shows the tasks, `rook sling --new {shlex.quote(text)}` makes a new one of that title"
        if store.latest(ctx.db, text) is not None:
            hint = f"{text} is an agent: `rook resume {text}` starts it again"
        raise type(error)(error.message, hint=hint) from None


def _in_run(request: Request, started: list[Session]) -> Request:
    """All that one call starts is in one run: that of the first."""
    return request.replace(run=started[0].run_id) if started else request


def _is_text(text: str) -> bool:
    """True for what becomes a task: a text with a space that is no mistyped id, and no list of ids in one word."""
    words = text.split()
    if len(words) < 2:
        return False
    if all(map(_LIKE_AN_ID.fullmatch, words)):
        raise InvalidInput(f"{text!r} looks like several ids in one word", hint="give each id as a word of its own")
    if words[0].lower().startswith("task_"):
        raise InvalidInput(f"{text!r} looks like an id", hint="an id has no space; `--new` takes any text for a title")
    return True


def _sling_one(ctx: Context, request: Request, text: str, *, is_new: bool) -> Session:
    if not is_new:
        return sling(ctx, request.replace(task=text))
    title, _, description = text.strip().partition("\n")
    if not ctx.caller.is_human:
        role = read_role(ctx.root, ctx.caller.role)
        check_one(ctx.db, ctx.caller, PLACES, None, reach_of(role, "task.write"))
    author = Author(ctx.actor, ctx.now())
    task_id = service.create(ctx.db, Draft(title, description.strip()), author).task.id
    try:
        return sling(ctx, request.replace(task=task_id))
    except BaseException:
        with suppress(Refused):  # another agent has it already
            service.delete(ctx.db, task_id, author)
        raise
