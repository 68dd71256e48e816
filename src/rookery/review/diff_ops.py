"""Looking at an agent's work: what it changed, where it lies, and an editor there."""

from __future__ import annotations

import shlex
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from rookery.base.errors import InvalidInput, InvalidState, ProgramFailed
from rookery.base.record import Record
from rookery.ops.context import Context
from rookery.ops.operation import NOTHING, PROCESS, WORK, Doc, Ref, op
from rookery.processes.spawning import become
from rookery.review.diff import MOST_LINES as MOST_LINES
from rookery.review.diff import WorkDiff, diff, find_worktree

NameArg = Annotated[str, Ref(WORK), Doc("An agent, or the id of a task.")]


@dataclass(frozen=True, slots=True)
class Place(Record):
    """Where an agent works."""

    PRINTS = "path"
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Editing(Record):
    """The command that opens an editor in an agent's worktree."""

    path: str
    command: tuple[str, ...]


@op("diff", needs="vcs.read", long=True, view="reviews.difference")
def show_diff(
    ctx: Context,
    name: NameArg,
    *,
    stat: Annotated[bool, Doc("Only the files, with how many lines were added and deleted.")] = False,
    since: Annotated[
        str | None,
        Doc('Only what changed since the last decision of a `review`, or since the end of "turn 3".'),
    ] = None,
    all: Annotated[bool, Doc(f"All lines of a patch with more than {MOST_LINES:,} lines.")] = False,
) -> WorkDiff:
    """Show what an agent's work changes against its base, uncommitted files included.

    What others have landed on the base since does not show. Of work that has landed it is the landing, also when the
    worktree and the branch are gone.
    """
    return diff(ctx, name, since, with_patch=not stat, whole=all)


@op("path", needs="agent.read", long=True, view="reviews.place")
def path(ctx: Context, name: NameArg) -> Place:
    """Print the folder of an agent's worktree: `cd "$(rook path bee)"`."""
    return Place(name, find_worktree(ctx, name))


@op("edit", needs="terminal.write", long=True, touches=PROCESS, owns=NOTHING, view="reviews.editing")
def edit(ctx: Context, name: NameArg) -> Editing:
    """Open your editor in an agent's worktree: $VISUAL, $EDITOR, or the one that git uses."""
    folder = find_worktree(ctx, name)
    editor = ctx.environ.editor or ""
    if not editor:
        with suppress(ProgramFailed):  # git knows none for a terminal that is dumb
            editor = (ctx.repository().merging().store.ask("var", "GIT_EDITOR") or "").strip()
    _check_editor(editor)
    # As git does: the variable may hold options, quotes and variables of the shell.
    command = ("sh", "-c", f'cd "$1" && {editor} .', "sh", folder)
    if ctx.is_interactive:
        ctx.close()
        become(command)
    return Editing(folder, command)


def _check_editor(editor: str) -> None:
    try:
        words = shlex.split(editor)
    except ValueError as error:
        raise InvalidInput(f"the editor {editor!r} is no command: {error}", hint="set EDITOR to one") from error
    if not words:
        raise InvalidState("no editor is set", hint="set EDITOR, for example `EDITOR=vim`")
    if shutil.which(words[0]) is None and "$" not in words[0] and "=" not in words[0]:
        raise InvalidState(f"the editor {words[0]} is not installed", hint="set EDITOR to one that is")
