"""Pure types and rules of agents: sessions, turns and the states that they go through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rookery.base.errors import InvalidInput, InvalidState, Refused
from rookery.base.record import Record
from rookery.base.text import check_name

BOOTING = "booting"
WORKING = "working"
WAITING = "waiting"
ENDED = "ended"
STATES = (BOOTING, WORKING, WAITING, ENDED)

COMPLETED = "completed"
FAILED = "failed"
STOPPED = "stopped"
CRASHED = "crashed"
SUPERSEDED = "superseded"
OUTCOMES = (COMPLETED, FAILED, STOPPED, CRASHED, SUPERSEDED)

TRANSITIONS: dict[str, tuple[frozenset[str], str]] = {
    "begin turn": (frozenset({BOOTING, WORKING, WAITING}), WORKING),
    "wait": (frozenset({BOOTING, WORKING}), WAITING),
    "end": (frozenset({BOOTING, WORKING, WAITING}), ENDED),
}

# The steps of a sling, in order. The session's row has the last one that is done; a later one is undone or repeated.
RESERVED = "reserved"
CHECKED_OUT = "checked_out"
PROVISIONED = "provisioned"
INSTRUCTED = "instructed"
LAUNCHED = "launched"
READY = "ready"

TURN_RUNNING = "running"
TURN_DONE = "done"
TURN_FAILED = "failed"
TURN_LOST = "lost"
TURN_INTERRUPTED = "interrupted"


ALL_WORK = "`rook status --all` lists agents, `rook task list` tasks"
"""Where to look for what a command takes that accepts an agent as well as a task."""


class NoSuchAgent(Refused):
    """No agent of that name is or was here."""

    code = "no_such_agent"


class NameTaken(Refused):
    """An agent of that name is alive."""

    code = "name_taken"


class TaskTaken(Refused):
    """Another agent is at work on the task."""

    code = "task_taken"


class ScopeTaken(Refused):
    """Another agent may change some of the same files."""

    code = "scope_taken"


class CapReached(Refused):
    """One more agent would be too many."""

    code = "cap_reached"


class NotAllowedToSpawn(Refused):
    """The role, or the depth, does not allow more agents below it."""

    code = "not_allowed_to_spawn"


@dataclass(frozen=True, slots=True)
class Settings(Record):
    """The options that the agent was slung with, beyond its task."""

    HIDDEN = ("umask", "limits", "replaced")
    files: tuple[str, ...] = ()
    spec: str | None = None
    siblings: tuple[str, ...] = ()
    skip_review: bool = False
    max_agents: int | None = None
    instructions: str = ""
    base: str = ""
    """The branch that it started from, and may take in again."""
    tools: tuple[str, ...] = ()
    """The only tools of its role that it may use this time; all of them if empty."""
    ends_with: tuple[str, ...] = ("worker_done",)
    """The types of messages that end its work, as its instructions say."""
    ports: tuple[int, int] | None = None
    """First port and how many."""
    sandbox: str = ""
    """`bubblewrap` if it is in force, else why it is not."""
    umask: int = 0o022
    limits: dict[str, Any] = field(default_factory=dict)
    """The umask, resource limits and nice value of the shell that it was slung from, for its turns."""
    is_new: bool = False
    """The path of its worktree was free when it was slung: what a killed sling leaves there is its own."""
    resumed_from: str = ""
    """The session of the same agent that it continues."""
    prompt: str = ""
    """What a resumed agent is asked in its first turn."""
    restored: str = ""
    """The ref with uncommitted work that was put back when its worktree was made again."""
    replaced: tuple[str | None, str | None] | None = None
    """The branch that the task had before, and the commit that it began at: a sling that fails puts them back."""
    start: str = ""
    """The commit that its branch began at, if that holds the work of an earlier attempt; else empty."""
    source: str = ""
    """What that commit holds, for people."""


PAUSED, TAKEN_OVER = "paused", "taken over"


@dataclass(frozen=True, slots=True)
class Hold(Record):
    """An agent is paused, or a person works in its place: no turn of it begins."""

    by: str
    kind: str
    """`paused` or `taken over`."""
    at: str
    commit: str = ""
    """The commit under its worktree when it was taken over."""
    snapshot: str = ""
    """A commit of all that was in the worktree then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(Record):
    """One session of an agent: from its sling to its end."""

    PRINTS = "agent"
    HIDDEN = ("token_hash", "swept_at", "nudged")
    id: str
    agent: str
    role: str
    task_id: str | None
    run_id: str
    parent: str
    depth: int
    runtime: str
    model: str
    mode: str
    profile: str
    state: str = BOOTING
    outcome: str | None = None
    reason: str | None = None
    step: str = RESERVED
    worktree: str
    branch: str
    base_commit: str
    settings: Settings
    token_hash: str
    runner_pid: int | None = None
    runner_start: str | None = None
    runtime_session: str | None = None
    created_at: str
    updated_at: str
    active_at: str
    ended_at: str | None = None
    swept_at: str | None = None
    """When Rookery ended the processes that it may have left."""
    nudged: int = 0
    """The number of the last message that was announced in its terminal."""
    hold: Hold | None = None
    """Who has paused it, or works in its place."""

    @property
    def is_alive(self) -> bool:
        """True until it has ended."""
        return self.state != ENDED

    @property
    def start_commit(self) -> str:
        """The commit that its branch began at; what it has beyond `base_commit` is its own work."""
        return self.settings.start or self.base_commit

    @property
    def terminal(self) -> str:
        """The name of its session in tmux, where it has one."""
        return f"rook-{self.agent}"


@dataclass(frozen=True, slots=True)
class Turn(Record):
    """One prompt-to-answer run."""

    id: str
    session_id: str
    number: int
    cause: str
    state: str
    pid: int | None
    pid_start: str | None
    exit_status: int | None
    last_words: str | None
    snapshot: str | None
    started_at: str
    ended_at: str | None


@dataclass(frozen=True, slots=True)
class TurnEnd(Record):
    """How a turn ended."""

    state: str
    exit_status: int | None = None
    last_words: str | None = None
    """The last lines of its output, or the error that it reported."""
    interrupted_by: str = ""
    problem: dict[str, Any] = field(default_factory=dict)
    """What is known of a failure beyond its text."""
    usage: Sequence[dict[str, Any]] = ()
    snapshot: str | None = None


@dataclass(frozen=True, slots=True)
class Run(Record):
    """Everything that was slung for one goal. It is under way while one of its agents is alive."""

    id: str
    title: str
    started_by: str
    created_at: str
    completed_at: str | None
    """When a person, or a coordinator, said that its goal is reached; no agent joins it after that."""
    agents: int = 0
    """How many agents were slung in it."""
    alive: int = 0
    """How many of them are alive."""
    ended_at: str | None = None
    """When the last of its agents ended; None while one is alive."""


def last_by(field: str, sessions: Iterable[Session]) -> dict[str, Session]:
    """The last session of each `agent` or `branch`; a sling that failed counts only where there is nothing else."""
    last: dict[str, Session] = {}
    for session in sessions:
        key = getattr(session, field)
        if session.outcome != FAILED or key not in last or last[key].outcome == FAILED:
            last[key] = session
    return last


STOPPING = "stopping"


def is_stopping(session: Session) -> bool:
    """True if a process stops the agent, or died while it did."""
    return session.reason is not None and session.reason.startswith(STOPPING)


def check_not_taken(session: Session, actor: str) -> None:
    """Raise InvalidState if another caller works in the agent's worktree."""
    hold = session.hold
    if hold is not None and hold.kind == TAKEN_OVER and hold.by != actor:
        raise InvalidState(
            f"{hold.by} works in the worktree of {session.agent}", hint=f"`rook handback {session.agent}` ends that"
        )


def next_state(step: str, session: Session) -> str:
    """The state that a step leads to; raises InvalidState where the table does not allow it."""
    sources, target = TRANSITIONS[step]
    if session.state not in sources:
        hint = "`rook status` shows who does what"
        raise InvalidState(f"cannot {step}: {session.agent} is {session.state}", hint=hint)
    return target


def check_new_name(name: str) -> str:
    """The name itself, if a new agent can have it; raises InvalidInput."""
    check_name("an agent", name)
    if name.lower() in RESERVED_NAMES:
        raise InvalidInput(f"{name!r} is reserved by Rookery", hint="choose another")
    return name


RESERVED_NAMES = frozenset({"human", "rook", "none", "all", "parent"})
