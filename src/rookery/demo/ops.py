"""`rook demo`: the main job on a temporary repository, with agents that follow a script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from rookery.base.draft import write_whole
from rookery.base.ids import handle
from rookery.config import layout
from rookery.demo import story
from rookery.demo.stage import Scene, Stage, scenes
from rookery.ops.context import Context
from rookery.ops.operation import NOTHING, PROCESS, Doc, op
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
) -> Iterator[Scene]:
    """Show the main job in under a minute: a lead, three builders, a question, a conflict, landing, undo.

    Everything is real, in a temporary repository that is removed again; only the agents follow a script, so no key and
    no network is needed. Nothing of yours is read or changed.
    """
    stage = Stage(_PAUSE if ctx.is_interactive and not fast else 0)
    yield from scenes(stage, keep, _play)


def _play(stage: Stage) -> Iterator[Scene]:
    sandbox = probe()
    make_example(stage.root, story.FILES, branch="main", message="A shop", timeout=_GIT_SECONDS)
    yield stage.say("A project in a repository, with a gate that work has to pass")
    if not sandbox.works:
        yield stage.say(f"(There is no sandbox on this machine, so agents run without one: {sandbox.reason})")
    yield stage.show("init", "--yes", "--no-gates", "--quiet")
    write_whole(layout.path(stage.root, layout.LOCAL_CONFIG), story.SETTINGS)

    yield stage.say("An epic with three tasks, and a lead that gets all of it")
    epic = str(stage.query("epic", "create", story.EPIC)["id"])
    scripts = story.scripts()
    tasks = {
        name: str(stage.query("task", "create", title, "--parent", epic, "--description", scripts[name])["id"])
        for name, title in story.TASKS.items()
    }
    stage.query("epic", "update", epic, "--description", story.lead_script(tasks))
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
