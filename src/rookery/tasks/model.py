"""Pure types and rules of the task graph.

The transitions are data: every change of a task's state is a step of the table, and the documentation is drawn from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, cast, get_type_hints

from typing_extensions import TypedDict

from rookery.base.errors import InvalidInput, InvalidState, Refused
from rookery.base.ids import handle
from rookery.base.record import Record
from rookery.base.text import in_words

PENDING = "PENDING"
IN_PROGRESS = "IN_PROGRESS"
PENDING_REVIEW = "PENDING_REVIEW"
NEEDS_REBASE = "NEEDS_REBASE"
APPROVED = "APPROVED"
AWAITING_HUMAN_REVIEW = "AWAITING_HUMAN_REVIEW"
COMPLETED = "COMPLETED"
CANCELLED = "CANCELLED"
FAILED = "FAILED"

STATES = (
    PENDING,
    IN_PROGRESS,
    PENDING_REVIEW,
    NEEDS_REBASE,
    APPROVED,
    AWAITING_HUMAN_REVIEW,
    COMPLETED,
    CANCELLED,
    FAILED,
)

# Three questions that look alike and are not. Only completed work satisfies a blocker: a cancelled blocker still
# blocks, because what the blocked task waits for was not done.
ACTIVE = frozenset({PENDING, IN_PROGRESS})
FINISHED = frozenset({COMPLETED, CANCELLED})
SATISFIES_BLOCKER = frozenset({COMPLETED})
_UNFINISHED = frozenset(STATES) - FINISHED
IN_REVIEW = frozenset({PENDING_REVIEW, NEEDS_REBASE})
"""Handed in, and not approved."""

TRANSITIONS: dict[str, tuple[frozenset[str], str]] = {
    "claim": (frozenset({PENDING, IN_PROGRESS}), IN_PROGRESS),
    "start": (frozenset({PENDING, IN_PROGRESS}), IN_PROGRESS),
    "release": (frozenset({IN_PROGRESS}), PENDING),
    "submit": (frozenset({IN_PROGRESS, NEEDS_REBASE}), PENDING_REVIEW),
    "request changes": (frozenset({PENDING_REVIEW, NEEDS_REBASE, APPROVED, AWAITING_HUMAN_REVIEW}), IN_PROGRESS),
    "request rebase": (frozenset({PENDING_REVIEW, APPROVED}), NEEDS_REBASE),
    "approve": (frozenset({PENDING_REVIEW, APPROVED}), APPROVED),
    "approve landed": (frozenset({PENDING_REVIEW, NEEDS_REBASE}), APPROVED),
    "hand over": (frozenset({IN_PROGRESS}), AWAITING_HUMAN_REVIEW),
    "complete": (frozenset({PENDING, IN_PROGRESS, APPROVED, AWAITING_HUMAN_REVIEW}), COMPLETED),
    "fail": (_UNFINISHED - {FAILED}, FAILED),
    "cancel": (_UNFINISHED, CANCELLED),
    "reopen": (frozenset({COMPLETED, CANCELLED, FAILED}), PENDING),
}

EVENTS = {
    "claim": "task.claimed",
    "start": "task.started",
    "release": "task.released",
    "submit": "task.submitted",
    "request changes": "task.changes_requested",
    "request rebase": "task.rebase_requested",
    "approve": "task.approved",
    "approve landed": "task.approved",
    "hand over": "task.handed_over",
    "complete": "task.completed",
    "fail": "task.failed",
    "cancel": "task.cancelled",
    "reopen": "task.reopened",
}
"""What each step is called when it is done."""

MAX_DEPTH = 2
_LEVELS = ("own", "parent", "epic")
KINDS = ("epic", "task", "subtask")
MOST_URGENT, DEFAULT_PRIORITY, LEAST_URGENT = 1, 3, 5


class ParentNotFound(Refused):
    """The parent that is named does not exist."""

    code = "parent_not_found"


class BlockerNotFound(Refused):
    """The blocker that is named does not exist."""

    code = "blocker_not_found"


class TooDeep(Refused):
    """A subtask can have no children."""

    code = "max_depth"
    default_hint = "an epic has tasks, a task has subtasks, and that is all"


class ParentCycle(Refused):
    """A task would be its own ancestor."""

    code = "parent_cycle"


class BlockerCycle(Refused):
    """Tasks would wait for each other for ever."""

    code = "blocker_cycle"


class InvalidRelation(Refused):
    """A task cannot block its own ancestor or descendant."""

    code = "invalid_relation"


class PendingChildren(Refused):
    """A parent finishes after its children."""

    code = "pending_children"


class NotReady(Refused):
    """The task, or one above it, waits for something."""

    code = "not_ready"


class AlreadyClaimed(Refused):
    """Another agent holds the task."""

    code = "already_claimed"


class ImportInvalid(Refused):
    """The file is damaged, foreign or contradicts itself; nothing was imported."""

    code = "import_invalid"


@dataclass(frozen=True, slots=True)
class Task(Record):
    """A task as it is stored."""

    id: str
    parent_id: str | None
    title: str
    description: str
    context: str
    design: str
    priority: int
    state: str
    result: str | None
    assignee: str | None
    lease_until: str | None
    attempts: int
    branch: str | None
    commit: str | None
    start_commit: str | None
    created_at: str
    updated_at: str
    started_at: str | None
    completed_at: str | None
    archived_at: str | None

    @property
    def is_finished(self) -> bool:
        """True if its parent need not wait for it any longer."""
        return self.state in FINISHED

    def is_available(self, now: str) -> bool:
        """True if an agent may take it: it is pending, or the lease of its holder has run out."""
        if self.state == PENDING:
            return True
        return self.state == IN_PROGRESS and self.lease_until is not None and self.lease_until <= now

    def is_held(self, now: str) -> bool:
        """True if an agent is at work on it: until its lease runs out or, without a lease, until it says so."""
        return self.state == IN_PROGRESS and not self.is_available(now)


@dataclass(frozen=True, slots=True)
class Learning(Record):
    """Something that was found out, where it is kept and which task it came from."""

    id: str
    task_id: str
    content: str
    source_task_id: str | None
    created_at: str


class ContextChain(TypedDict):
    """A task's context, and what it inherits."""

    own: str
    parent: str | None
    epic: str | None


class LearningChain(TypedDict):
    """A task's learnings, and what it inherits, each learning once."""

    own: tuple[Learning, ...]
    parent: tuple[Learning, ...]
    epic: tuple[Learning, ...]


if TYPE_CHECKING:

    class _TaskFields(TypedDict):
        """What `Task` has; its types are needed when a schema is drawn."""

else:
    _TYPES = get_type_hints(Task)
    _TaskFields = TypedDict("_TaskFields", {name: _TYPES[name] for name in Task.field_names() if name != "design"})


class TaskJson(_TaskFields):
    """A task as every interface gives it."""

    kind: str
    depth: int
    context_chain: ContextChain
    learnings: LearningChain
    is_blocked: bool
    blocked_by: tuple[str, ...]
    blocks: tuple[str, ...]
    design: NotRequired[str]
    """Only epics have one."""
    outside: tuple[OutsideFile, ...]
    attempt: int
    """The number of the present attempt, which `--attempt` takes; 0 before the first. `attempts` counts the others."""


def attempt_numbers(task: Task) -> dict[str, int]:
    """The number of a task's present attempt, and how many came before it, as every interface gives them."""
    return {"attempt": task.attempts, "attempts": max(0, task.attempts - 1)}


@dataclass(frozen=True, slots=True)
class OutsideFile(Record):
    """A file that a branch changes although its agent was not given it, and why; no reason, and it does not land."""

    path: str
    """Quoted as in JSON if it holds anything but printable characters."""
    reason: str | None = None
    by: str | None = None
    """Who gave the reason."""


@dataclass(frozen=True, slots=True)
class TaskView(Record):
    """A task with everything that follows from its place in the graph."""

    PRINTS = "task"
    task: Task
    depth: int
    ancestors: tuple[Task, ...]
    """Its parent and its epic, nearest first."""
    learnings: tuple[tuple[Learning, ...], ...]
    """Its own, its parent's and its epic's, each learning once."""
    blocked_by: tuple[str, ...]
    blocks: tuple[str, ...]
    waits_for: tuple[str, ...]
    """The unfinished blockers of the task and of everything above it."""
    outside: tuple[OutsideFile, ...] = ()
    """What its branch was handed in with outside its agent's files."""

    @property
    def kind(self) -> str:
        """epic, task or subtask."""
        return KINDS[self.depth]

    @property
    def is_blocked(self) -> bool:
        """True if it, or something above it, waits for a task that is not completed."""
        return bool(self.waits_for)

    def to_json(self) -> TaskJson:
        """The task as every interface gives it."""
        task = self.task
        contexts = (task.context, *(above.context for above in self.ancestors), None, None)
        data: dict[str, Any] = {
            **{name: value for name, value in task.as_dict().items() if name != "design"},
            "kind": self.kind,
            "depth": self.depth,
            "context_chain": dict(zip(_LEVELS, contexts, strict=False)),
            "learnings": dict(zip(_LEVELS, self.learnings, strict=True)),
            "is_blocked": self.is_blocked,
            "blocked_by": self.blocked_by,
            "blocks": self.blocks,
            "outside": self.outside,
            **attempt_numbers(task),
        }
        if self.depth == 0:
            data["design"] = task.design
        return cast("TaskJson", data)


@dataclass(frozen=True, slots=True)
class TaskTree(Record):
    """A task and what is under it."""

    PRINTS = "task"
    task: TaskView
    children: tuple[TaskTree, ...]
    left_out: int = 0
    """How many tasks under it are not in this tree."""


@dataclass(frozen=True, slots=True)
class Deleted(Record):
    """What was deleted: a task, and everything under it."""

    deleted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress(Record):
    """How far a part of the graph is. Every task counts once, under its state; ready and blocked count beside it."""

    total: int
    completed: int
    cancelled: int
    failed: int
    in_progress: int
    in_review: int
    pending: int
    ready: int
    blocked: int
    percent: int


def check_priority(priority: int) -> int:
    """The priority, if it is one."""
    if not MOST_URGENT <= priority <= LEAST_URGENT:
        raise InvalidInput(
            f"priority {priority} is not between {MOST_URGENT} and {LEAST_URGENT}", hint="1 is most urgent, 5 least"
        )
    return priority


def contradiction(task: Task) -> str:
    """What the task lacks for the state that it is in, which no step of ours leads to; empty if it lacks nothing."""
    if task.state == IN_PROGRESS and task.assignee is None:
        return f"is {in_words(IN_PROGRESS)}, and no agent holds it"
    if task.state == APPROVED and task.branch is None:
        return f"is {in_words(APPROVED)}, and has no branch"
    return ""


def next_state(step: str, task: Task) -> str:
    """The state that a step leads to; raises InvalidState where the table does not allow it."""
    sources, target = TRANSITIONS[step]
    if task.state not in sources:
        standing = in_words(task.state) if task.state == NEEDS_REBASE else f"is {in_words(task.state)}"
        what = f"{step} of" if step.startswith("request") else step
        raise InvalidState(f"cannot {what} {task.id}: it {standing}", hint=_hint_instead(step, task))
    return target


def _hint_instead(step: str, task: Task) -> str:
    """What to do instead of a step that the task's state does not allow: commands that work in that state."""
    name = handle(task.id)
    if task.state == COMPLETED and step == "complete":
        return "it is done already"
    is_review = step in ("request changes", "request rebase", "approve")
    if task.state == COMPLETED and is_review:
        again = f"`rook task reopen {name}`, then `rook sling {name}`, does it again"
        return again if task.branch is None else f"{again}; `rook merge undo {task.branch}` reverts it"
    if task.state in (COMPLETED, CANCELLED, FAILED):
        return f"`rook task reopen {name}` first"
    if task.state in ACTIVE and step == "reopen":
        return f"it is open: `rook task get {name}` shows it"
    if task.state in ACTIVE and is_review:
        way = f"task submit {name}` hands its branch in" if task.branch else f"sling {name}` gives it to an agent"
        return f"it is not handed in (`rook task get {name}` shows more): `rook {way}"
    if task.state in ACTIVE:
        return (
            f"`rook task submit {name}` hands its branch in"
            if task.branch and step != "submit"
            else f"`rook task start {name}` begins it"
        )
    if step == "complete" and task.branch is not None and task.state != AWAITING_HUMAN_REVIEW:
        return f"`rook merge --branch {task.branch}` lands it, and that completes it"
    sends_back = f'`rook review request-changes {name} "…"` sends it back'
    shown = f"`rook review show {name}` shows what was handed in, {sends_back}"
    if step != "start":
        return shown
    beside = f"`rook task fail {name}`, `rook task reopen {name}`, `rook sling {name}`"
    return f"{shown}; for a second attempt beside it: {beside}"
