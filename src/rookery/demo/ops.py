"""`rook demo`: the main job on a temporary repository, with agents that follow a script."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated

from rookery.base.draft import write_whole
from rookery.base.errors import InvalidInput
from rookery.base.ids import handle
from rookery.config import layout
from rookery.demo import story
from rookery.demo.stage import Scene, Stage, scenes
from rookery.ops.context import Context
from rookery.ops.operation import FILE, NOTHING, PROCESS, Doc, op
from rookery.sandbox.probe import probe
from rookery.vcs.git.scratch import make_example

_PAUSE = 1.0
_GIT_SECONDS = 60.0


@op("demo", needs="project.write", long=True, touches=PROCESS, owns=NOTHING, view="project.scene")
def demo(
    ctx: Context,
    *,
    keep: Annotated[bool, Doc("Keep the repository, to look around in it.")] = False,
    fast: Annotated[bool, Doc("Make no pauses to read.")] = False,
    practice: Annotated[
        str | None,
        FILE,
        Doc("A new folder: make the repository there, start a lead and five builders, and let you go on."),
    ] = None,
) -> Iterator[Scene]:
    """Show the main job in under a minute: a lead, three builders, a question, a conflict, landing, undo.

    Everything is real, in a temporary repository that is removed again; only the agents follow a script, so no key and
    no network is needed. Nothing of yours is read or changed.

    With `--practice FOLDER` you do the work of the person yourself: one agent asks, one crashes, two change the same
    line, and one needs a second look.
    """
    if practice is None:
        yield from scenes(Stage(_PAUSE if ctx.is_interactive and not fast else 0), keep, _play)
        return
    folder = os.path.abspath(os.path.join(ctx.cwd, practice))
    if os.path.lexists(folder):
        raise InvalidInput(f"{folder} already exists", hint="give --practice a folder that does not exist yet")
    yield from _prepare(Stage(0, folder))


def _prepare(stage: Stage) -> Iterator[Scene]:
    """Make the exercise's repository and its plan, and start the lead."""
    make_example(stage.root, story.FILES, branch="main", message="A shop", timeout=_GIT_SECONDS)
    stage.query("init", "--yes", "--no-gates")
    write_whole(layout.path(stage.root, layout.LOCAL_CONFIG), story.SETTINGS)
    epic = _plan(stage, story.PRACTICE, story.practice_scripts())
    stage.query("sling", epic, "--role", "lead", "--name", "lead")
    yield stage.say(f"A shop is in {stage.root}. A lead has five tasks and starts five builders; you are the person.")
    yield stage.say("Go there, and begin with `rook status` and `rook inbox`.")


def _plan(stage: Stage, titles: Mapping[str, str], scripts: Mapping[str, str]) -> str:
    """An epic with a task for each builder, and what the lead does with them; the epic's id."""
    epic = str(stage.query("epic", "create", story.EPIC)["id"])
    tasks = {
        name: str(stage.query("task", "create", title, "--parent", epic, "--description", scripts[name])["id"])
        for name, title in titles.items()
    }
    stage.query("epic", "update", epic, "--description", story.lead_script(tasks))
    return epic


def _play(stage: Stage) -> Iterator[Scene]:
    sandbox = probe()
    make_example(stage.root, story.FILES, branch="main", message="A shop", timeout=_GIT_SECONDS)
    yield stage.say("A project in a repository, with a gate that work has to pass")
    if not sandbox.works:
        yield stage.say(f"(There is no sandbox on this machine, so agents run without one: {sandbox.reason})")
    yield stage.show("init", "--yes", "--no-gates", "--quiet")
    write_whole(layout.path(stage.root, layout.LOCAL_CONFIG), story.SETTINGS)

    yield stage.say("An epic with three tasks, and a lead that gets all of it")
    epic = _plan(stage, story.TASKS, story.scripts())
    yield stage.show("sling", handle(epic), "--role", "lead", "--name", "lead", "--quiet")

    yield stage.say("The lead slings three builders. Each has a worktree and a branch of its own")
    stage.wait(lambda: stage.question() is not None)
    yield stage.show("status")

    yield stage.say("One of them asks a person, and waits. The answer wakes it")
    yield stage.show("mail", "list", "--to", "human")
    yield stage.show("mail", "reply", handle(str(stage.question())), "--body", story.ANSWER, "--quiet")
    stage.wait(lambda: stage.outcomes()["lead"] == "completed")
    yield stage.show("task", "tree", handle(epic))

    yield stage.say("Land it. ann and bob changed the same lines; a safe rule keeps both")
    yield stage.show("merge", "--all")
    yield stage.show("task", "tree", handle(epic))

    yield stage.say("And one landing is undone: the base moves back, the task is open again")
    yield stage.show("merge", "undo", "cat", "--yes")
    yield stage.show("task", "tree", handle(epic))
    yield stage.say("Your turn: go to a repository of yours, `rook init`, and read `rook --help`")
