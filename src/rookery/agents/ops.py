"""What we offer of agents: bring to life, stop, remind."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rookery.agents.reserve import Request
from rookery.agents.sling import sling as sling_agent
from rookery.base.errors import InvalidInput, InvalidState
from rookery.base.record import Record
from rookery.mail import service as mail
from rookery.mail.model import Draft
from rookery.ops.context import Context
from rookery.ops.operation import AGENTS, INTEGER, PATH, TASKS, arg, flag, op, option, options
from rookery.roles.model import PROFILES
from rookery.runtimes.model import HEADLESS, TMUX
from rookery.runtimes.registry import RUNTIMES
from rookery.sessions import store
from rookery.sessions.model import NoSuchAgent, Session, Settings
from rookery.tasks.work import base_commit
from rookery.turns.stop import stop as stop_agent
from rookery.worktrees.cleaning import clean_worktrees

NAME = arg("name", "The agent.")


@dataclass(frozen=True, slots=True)
class Stopped(Record):
    """Who was stopped, and what became of the worktrees."""

    ended: tuple[Session, ...]
    cleaned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Nudged(Record):
    """A reminder that was sent."""

    agent: str
    message_id: str


@op(
    "sling",
    arg("task", "The task that it is to do."),
    option("role", "What kind of agent (builder); `rook agents discover` lists the roles.", default="builder"),
    option("name", "Its name; by default the role and a number."),
    option("runtime", "The program that it runs on (config: agents.runtime).", choices=tuple(RUNTIMES)),
    option("model", "The model that it uses (config: agents.model)."),
    options("files", "A file, folder or pattern that it may change; without any, the whole worktree."),
    option("spec", "A file with its specification; by default what `rook spec write` keeps for the task.", kind=PATH),
    option("parent", "Who it answers to; by default the caller."),
    option("base", "The branch or commit that it starts from (config: project.base)."),
    flag("headless", "It lives turn by turn, without a terminal."),
    flag("tmux", "It lives interactively in tmux."),
    option("profile", "How much it may do unasked; by default the role's.", choices=PROFILES),
    options("tools", "A tool of its role that it may use; without any, all of them."),
    options("sibling", "An agent that works beside it."),
    flag("skip_review", "For a lead: no reviewer is needed."),
    option("max_agents", "For a lead: how many agents it may sling in all.", kind=INTEGER),
    option("instructions", "More that it should know, this time only.", long_text=True),
    needs="agent.write",
    owns={"task": TASKS},
    view="agents.slung",
)
def sling(
    ctx: Context,
    task: str,
    role: str,
    name: str | None,
    runtime: str | None,
    model: str | None,
    files: tuple[str, ...],
    spec: str | None,
    parent: str | None,
    base: str | None,
    headless: bool,
    tmux: bool,
    profile: str | None,
    tools: tuple[str, ...],
    sibling: tuple[str, ...],
    skip_review: bool,
    max_agents: int | None,
    instructions: str | None,
) -> Session:
    """Bring an agent to life on a task, in a worktree and on a branch of its own.

    A headless agent's first turn is queued and the command returns at once; in tmux it returns when the agent is
    ready and has its task. If anything fails, everything is undone.
    """
    if headless and tmux:
        raise InvalidInput("headless and tmux exclude each other", hint="give one of them, or none")
    caller = ctx.caller.name
    ctx.react()  # an agent that a kill has left half made may hold the name or the task
    request = Request(
        task=task,
        role=role,
        caller=caller,
        base_commit=_base_commit(ctx, base),
        name=name,
        runtime=runtime or "",
        model=model or "",
        mode=HEADLESS if headless else TMUX if tmux else "",
        profile=profile or "",
        parent=parent,
        settings=Settings(
            files=_split(files),
            tools=_split(tools),
            spec=_spec_path(ctx, spec),
            siblings=tuple(sibling),
            skip_review=skip_review,
            max_agents=max_agents,
            instructions=instructions or "",
            base=base or ctx.config.project.base,
        ),
    )
    return sling_agent(ctx, request)


@op(
    "stop",
    NAME,
    flag("clean", "Also remove its worktree; uncommitted work is saved first."),
    option("reason", "Why."),
    needs="agent.write",
    owns={"name": AGENTS},
    view="agents.stopped",
)
def stop(ctx: Context, name: str, clean: bool, reason: str | None) -> Stopped:
    """Stop an agent with its whole process tree, and every agent beneath it. What it made is kept."""
    caller = ctx.caller.name
    ended = stop_agent(ctx, name, reason or f"stopped by {caller}", by=caller)
    cleaned: list[str] = []
    if clean:
        cleaned = [each.path for each in clean_worktrees(ctx, names=[one.agent for one in ended])]
    return Stopped(tuple(ended), tuple(cleaned))


@op(
    "nudge",
    NAME,
    arg("message", "What to say (asks for a status).", required=False, long_text=True),
    needs="agent.write",
    owns={},
    view="agents.nudged",
)
def nudge(ctx: Context, name: str, message: str | None) -> Nudged:
    """Remind an agent: it gets a message at its next turn, and a waiting one is woken."""
    if store.living(ctx.db, name) is None:
        if store.latest(ctx.db, name) is None:
            raise NoSuchAgent(f"no agent {name}", hint="`rook status` shows who is there")
        raise InvalidState(f"{name} has ended", hint="`rook sling` brings one to life")
    words = message or "Please say with a status message where you are and what you wait for."
    sent = mail.send(ctx.db, ctx.caller, Draft((name,), "How is it going?", words, "health_check"), ctx.now())
    return Nudged(name, sent.messages[0].id)


def _split(texts: tuple[str, ...]) -> tuple[str, ...]:
    """An option that can be given several times, or once with commas."""
    return tuple(each.strip() for text in texts for each in text.split(",") if each.strip())


def _base_commit(ctx: Context, base: str | None) -> str:
    return base_commit(ctx.vcs(), base or ctx.config.project.base)


def _spec_path(ctx: Context, spec: str | None) -> str | None:
    if spec is None:
        return None
    path = os.path.join(ctx.cwd, spec)
    if not os.path.isfile(path):
        raise InvalidInput(
            f"no specification {path}", hint="`rook spec write TASK` keeps one, or give an existing file"
        )
    return path
