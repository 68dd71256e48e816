"""Operations of agents: sling, remind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from rookery.agents.attempts import find_start
from rookery.agents.reservation import Request
from rookery.agents.several import Slung, sling_next, sling_several
from rookery.base.errors import InvalidInput
from rookery.base.file_scope import check_patterns
from rookery.base.record import Record
from rookery.mail import service as mail
from rookery.mail.model import Draft
from rookery.ops.context import Context
from rookery.ops.operation import (
    AGENTS,
    BRANCHES,
    FILE,
    LONG_TEXT,
    NOTHING,
    PROCESS,
    ROLES,
    RUNS,
    TASKS,
    Choices,
    Doc,
    Owns,
    Ref,
    Short,
    op,
)
from rookery.roles.model import PROFILES
from rookery.runtimes.model import HEADLESS, TMUX
from rookery.runtimes.registry import RUNTIMES
from rookery.sessions import store
from rookery.sessions.model import Settings

NameArg = Annotated[str, Ref(AGENTS), Doc("The agent.")]


@dataclass(frozen=True, slots=True)
class Nudged(Record):
    """A reminder that was sent."""

    PRINTS = "agent"
    agent: str
    message_id: str


@op("sling", needs="agent.write", long=True, touches=PROCESS, view="agents.slung")
def sling(
    ctx: Context,
    task: Annotated[
        tuple[str, ...],
        Owns(TASKS),
        Doc(
            "The task to work on; with several, each gets its own agent. A text with a space in it becomes a new task."
        ),
    ] = (),
    *,
    new: Annotated[bool, Doc("Every text becomes a new task, also one without a space.")] = False,
    next: Annotated[bool, Doc("Take the next task that is ready; no two callers get the same one.")] = False,
    number: Annotated[int | None, Short("n"), Doc("With --next: how many agents, each on a task of its own.")] = None,
    epic: Annotated[
        str | None,
        Owns(TASKS),
        Doc("With --next: only under this epic or task; for an agent, its own task by default."),
    ] = None,
    role: Annotated[
        str, Ref(ROLES), Doc("What kind of agent (builder); `rook agents discover` lists the roles.")
    ] = "builder",
    name: Annotated[str | None, Ref(AGENTS), Doc("Its name; by default the role and a number.")] = None,
    runtime: Annotated[
        str | None, Choices(tuple(RUNTIMES)), Doc("The program that it runs on (config: agents.runtime).")
    ] = None,
    model: Annotated[str | None, Doc("The model that it uses (config: agents.model).")] = None,
    files: Annotated[
        tuple[str, ...], Doc("A file, folder or pattern that it may change; without any, the whole worktree.")
    ] = (),
    share: Annotated[bool, Doc("Other living agents may change some of the same files.")] = False,
    spec: Annotated[
        str | None, FILE, Doc("A file with its specification; by default what `rook spec write` keeps for the task.")
    ] = None,
    parent: Annotated[str | None, Ref(AGENTS), Doc("The agent that it answers to; by default the caller.")] = None,
    base: Annotated[
        str | None, Ref(BRANCHES), Doc("The branch or commit that it starts from (config: project.base).")
    ] = None,
    from_: Annotated[
        str | None, Ref(AGENTS), Doc("Continue the work of this earlier agent, also what it had not committed.")
    ] = None,
    run: Annotated[str | None, Ref(RUNS), Doc("The run to join; by default a new one, or its parent's.")] = None,
    headless: Annotated[bool, Doc("It runs turn by turn, without a terminal.")] = False,
    tmux: Annotated[bool, Doc("It runs interactively in tmux.")] = False,
    profile: Annotated[str | None, Choices(PROFILES), Doc("How much it may do unasked; by default the role's.")] = None,
    tools: Annotated[tuple[str, ...], Doc("A tool of its role that it may use; without any, all of them.")] = (),
    sibling: Annotated[tuple[str, ...], Ref(AGENTS), Doc("An agent that works beside it.")] = (),
    skip_review: Annotated[bool, Doc("For a lead: no reviewer is needed.")] = False,
    max_agents: Annotated[int | None, Doc("For a lead: how many agents it may sling in all.")] = None,
    instructions: Annotated[str | None, LONG_TEXT, Doc("Further instructions, for this session only.")] = None,
) -> Slung:
    """Start an agent on a task, in a worktree and on a branch of its own.

    A headless agent's first turn is queued and the command returns at once; in tmux it returns when the agent is
    ready and has its task. If anything fails, everything of that agent is undone. All that one call starts is in one
    run; if one of several fails, the others are started anyway, and the exit status is 1.
    """
    _check_words(task, new=new, next=next, number=number, epic=epic, name=name)
    if headless and tmux:
        raise InvalidInput("headless and tmux exclude each other", hint="give one of them, or none")
    ctx.react()  # an agent that a kill has left half made may hold the name or the task
    start, source, base_commit = "", "", None
    if from_ is not None:
        if base is not None or next or new or len(set(task)) != 1:
            raise InvalidInput(
                "--from goes with one task, and without --base",
                hint="`rook sling TASK --from NAME`, of an earlier agent",
            )
        earlier, start, source = find_start(ctx, task[0], from_)
        base, base_commit = earlier.settings.base, earlier.base_commit
    base = base or ctx.config.project.base
    request = Request(
        task=None,
        role=role,
        caller=ctx.caller.name,
        base_commit=base_commit or ctx.vcs().base_commit(base),
        name=name,
        runtime=runtime or "",
        model=model or "",
        mode=HEADLESS if headless else TMUX if tmux else "",
        profile=profile or "",
        parent=parent,
        run=run,
        share=share,
        under=epic or ctx.caller.task_id,
        settings=Settings(
            files=check_patterns(_split("--files", files)),
            tools=_split("--tools", tools),
            spec=_spec_path(ctx, spec),
            siblings=tuple(sibling),
            skip_review=skip_review,
            max_agents=max_agents,
            instructions=instructions or "",
            base=base,
            start=start,
            source=source,
        ),
    )
    return sling_next(ctx, request, number or 1) if next else sling_several(ctx, request, task, is_new=new)


def _check_words(
    tasks: tuple[str, ...], *, new: bool, next: bool, number: int | None, epic: str | None, name: str | None
) -> None:
    """Raise InvalidInput for words that contradict each other."""
    how = '`rook sling TASK`, `rook sling --next` or `rook sling "What has to be done"`'
    if next and (tasks or new):
        raise InvalidInput("--next takes the next task that is ready, so it goes with no task", hint=how)
    if not next and (number is not None or epic is not None):
        raise InvalidInput("--number and --epic go with --next", hint="`rook sling --next -n 3`")
    if not next and not tasks:
        raise InvalidInput("no task is named", hint=how)
    if number is not None and number < 1:
        raise InvalidInput("--number is at least 1", hint="`rook sling --next -n 3`")
    if name and (len(set(tasks)) > 1 or (number or 1) > 1):
        raise InvalidInput("several agents cannot have one name", hint="leave --name out: each gets its own")


@op("nudge", needs="agent.write", long=True, touches=PROCESS, owns=NOTHING, view="agents.nudged")
def nudge(
    ctx: Context,
    name: NameArg,
    message: Annotated[str | None, LONG_TEXT, Doc("What to say (asks for a status).")] = None,
) -> Nudged:
    """Remind an agent: it gets a message at its next turn, and a waiting one is woken."""
    store.find_living(ctx.db, name)
    body = message or "Please say with a status message where you are and what you wait for."
    sent = mail.send(ctx.db, ctx.caller, Draft((name,), "How is it going?", body, "health_check"), ctx.now())
    return Nudged(name, sent.messages[0].id)


def _split(option: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """An option that can be given several times, or once with commas. Without any, an agent is bounded by nothing."""
    parts = tuple(part.strip() for text in texts for part in text.split(",") if part.strip())
    if texts and not parts:
        raise InvalidInput(f"{option} is empty", hint=f"name something, or leave {option} out")
    return parts


def _spec_path(ctx: Context, spec: str | None) -> str | None:
    if spec is None:
        return None
    path = os.path.join(ctx.cwd, spec)
    if not os.path.isfile(path):
        hint = "`rook spec write TASK` keeps one, or give an existing file"
        raise InvalidInput(f"no specification {path}", hint=hint)
    return path
