"""Pure types and rules of landing: entries of the queue, and the states that they go through."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rookery.base.errors import InvalidState, Refused
from rookery.base.record import Record
from rookery.processes.exits import killed_by
from rookery.tasks.model import OutsideFile

QUEUED = "queued"
WAITING = "waiting"
TESTING = "testing"
LANDING = "landing"
LANDED = "landed"
FAILED = "failed"
CANCELLED = "cancelled"
UNDONE = "undone"
STATES = (QUEUED, WAITING, TESTING, LANDING, LANDED, FAILED, CANCELLED, UNDONE)

OPEN = (QUEUED, WAITING, TESTING, LANDING)
"""Not settled: a branch has at most one such entry for a base."""

TRANSITIONS: dict[str, tuple[frozenset[str], str]] = {
    "take": (frozenset({QUEUED, WAITING}), TESTING),
    "put back": (frozenset({TESTING, LANDING}), QUEUED),
    "hold": (frozenset({QUEUED, WAITING, TESTING, LANDING}), WAITING),
    "go ahead": (frozenset({TESTING}), LANDING),
    "land": (frozenset({LANDING}), LANDED),
    "fail": (frozenset({QUEUED, WAITING, TESTING}), FAILED),
    "cancel": (frozenset({QUEUED, WAITING, FAILED}), CANCELLED),
    "retry": (frozenset({FAILED, CANCELLED, WAITING}), QUEUED),
    "undo": (frozenset({LANDED}), UNDONE),
    "resolve": (frozenset({QUEUED, WAITING, FAILED}), WAITING),
}

CLEAN = "clean"
MECHANICAL = "mechanical"
AGENT = "agent"
REIMAGINE = "reimagine"
HUMAN = "human"
UNKNOWN = "unknown"

MERGE, SQUASH, REBASE = "merge", "squash", "rebase"

CONFLICT, GATE, GONE, EMPTY, BUSY, PROTECTED = "conflict", "gate", "gone", "empty", "busy", "protected"
OUTSIDE = "outside"
"""Why something did not land: it conflicts, a gate failed, its branch is gone or empty, a checkout or what git has
begun blocks it, it changes Rookery's own folder, or, without a reason, files that its agent was not given."""
BASE_GATE = "base_gate"
"""The base itself fails a gate, so that no branch can be judged by it: it waits."""
UNDOING = "undoing"
RESOLVING = "resolving"
"""The kind of an entry that waits for a person who resolves its conflict."""


class MergeBusy(Refused):
    """Another merger lands on the same base just now."""

    code = "merge_busy"
    default_hint = "the merger that is at work lands what you queued; `rook merge list` shows it"


class LostLease(Refused):
    """Another merger took over, so this one may change nothing any more."""

    code = "lost_lease"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Record):
    """One branch on its way to one base. In `landing` and after, `candidate` is the commit that the base gets."""

    SHOWN = ("commit",)
    id: str
    branch: str
    base: str
    tip: str
    task_id: str | None
    agent: str | None
    lead: str | None
    run_id: str | None
    priority: int
    state: str = QUEUED
    attempts: int = 0
    tier: str | None = None
    strategy: str | None = None
    base_before: str | None = None
    candidate: str | None = None
    kind: str | None = None
    reason: str | None = None
    files: tuple[str, ...] = ()
    requested_by: str
    created_at: str
    updated_at: str
    landed_at: str | None = None
    cleaned_at: str | None = None
    """When its worktree was removed, or left for a reason."""
    followed_at: str | None = None
    """When those whose work it touches were asked to rebase."""
    forced: bool = False
    """A person landed it although its task was given up or had a later attempt; it completes nothing."""
    outside: tuple[OutsideFile, ...] = ()
    """What it changes outside its agent's files, and why."""
    log: str | None = None
    """The output of the gate that keeps it from landing."""
    last_lines: str = ""
    """The end of that output, where entries are shown; it is not stored."""

    @property
    def is_open(self) -> bool:
        """True until it has landed, failed or been cancelled."""
        return self.state in OPEN

    @property
    def commit(self) -> str | None:
        """The commit that it landed as."""
        return self.candidate if self.state in (LANDED, UNDONE) else None


@dataclass(frozen=True, slots=True)
class Skipped(Record):
    """A branch that `merge --all` leaves alone, and why."""

    branch: str
    agent: str
    task_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Predicted(Record):
    """How a branch would land."""

    PRINTS = "branch"
    JSON_NAMES = {"tier": "predicted_tier"}
    SHOWN = ("would_require_agent",)
    branch: str
    base: str
    tier: str
    """clean, mechanical, agent, reimagine, human, landed (it is there already), skipped, protected, outside (it changes
    files that its agent was not given, and there is no reason), or unknown."""
    reason: str
    files: tuple[str, ...] = ()
    """The files that would change on the base, or that conflict."""
    conflicts: tuple[dict[str, str], ...] = ()
    outside: tuple[OutsideFile, ...] = ()
    """What it changes outside its agent's files, and why."""

    @property
    def would_require_agent(self) -> bool:
        """Also if the prediction failed: it may well take one."""
        return self.tier in (AGENT, REIMAGINE, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Pushed(Record):
    """What became of pushing a base to its upstream."""

    state: str
    """`pushed`, `failed` (it was tried), or `left` (it was not tried)."""
    upstream: str
    """As in `origin/main`; empty if there is none."""
    commit: str | None = None
    """The base's commit that was pushed, or would have been."""
    commits: int = 0
    """How many commits the upstream did not have."""
    reason: str = ""
    """Why it was not pushed."""


PUSHED, NOT_PUSHED, LEFT = "pushed", "failed", "left"


@dataclass(frozen=True, slots=True)
class Outcome(Record):
    """What one pass through the queue did."""

    PRINTS = "entries"
    base: str
    entries: tuple[Entry, ...]
    """Everything that was settled or held, in that order."""
    gate_runs: int
    flaky: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    """What `merge --all` left alone."""
    predicted: tuple[Predicted, ...] = ()
    """What would become of every branch, with `--dry-run`; then nothing else was done."""
    failed_gates: tuple[FailedGate, ...] = ()
    """For every entry that a gate kept from landing, its run."""
    push: Pushed | None = None
    """What became of the push that follows a landing, if `remote.push` is `always`."""
    resolved: tuple[str, ...] = ()
    """Other branches that wait, and whose conflicts persons have resolved meanwhile."""

    @property
    def exit_status(self) -> int:
        """1 if something did not land that was to. Branches that were skipped were not tried."""
        return 1 if any(entry.state != LANDED for entry in self.entries) else 0


@dataclass(frozen=True, slots=True)
class FileOutcome(Record):
    """What one tier did to one conflicted file."""

    path: str
    kind: str
    tier: str
    outcome: str
    """`resolved`, `declined` or `refused` (it was resolved, and a check refused the result)."""
    why: str
    hunks: tuple[dict[str, Any], ...] = ()


RESOLVED, DECLINED, REFUSED = "resolved", "declined", "refused"


@dataclass(frozen=True, slots=True)
class Explained(Record):
    """An entry and everything that was done to bring it in."""

    PRINTS = "entry"
    entry: Entry
    outcomes: tuple[FileOutcome, ...]
    gates: tuple[GateRun, ...]
    events: tuple[dict[str, Any], ...]
    resolving: str | None = None
    """The worktree in which a person resolves its conflict, if one is open."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.entry.id


@dataclass(frozen=True, slots=True)
class GateRun(Record):
    """One run of one gate."""

    name: str
    tree: str
    verdict: str
    """`passed`, `failed`, `flaky` (failed, then passed), `timeout`, `overran` (it wrote too much) or `memory`."""
    status: int | None
    seconds: float
    log: str
    at: str
    is_cached: bool = False
    last_lines: str = ""

    @property
    def is_ok(self) -> bool:
        """True if work may land with this verdict."""
        return self.verdict in (PASSED, FLAKY)

    @property
    def result(self) -> str:
        """Its verdict in a sentence."""
        if killed := killed_by(self.status):
            return f"{VERDICTS[self.verdict]}: {killed}"
        return f"{VERDICTS[self.verdict]} (exit status {self.status})" if self.status else VERDICTS[self.verdict]


@dataclass(frozen=True, slots=True)
class FailedGate(Record):
    """The run of a gate that kept an entry from landing."""

    merge_id: str
    branch: str
    is_base: bool
    """It ran on the base itself, and fails there too."""
    run: GateRun


def way_out(base: str, into: str = "") -> str:
    """What a person does about a base that fails a gate; `into` is the option that names it, if it is needed."""
    return (
        f"fix {base}, or land the branch that does by name (`rook merge --branch NAME{into}`); if something is missing "
        "in a fresh checkout, such as installed packages, name the command that makes it in `provision.setup`. Then "
        f"`rook merge run{into}` lands what waits"
    )


def is_alike(one: GateRun, other: GateRun) -> bool:
    """True if two runs of one gate seem to fail for the same reason: the same end of output, but for numbers."""
    return _pattern(one) == _pattern(other)


def _pattern(run: GateRun) -> tuple[str, str, int | None, str]:
    # Names of scratch folders, commits, times and counts differ from run to run.
    same = re.sub(r"gate-\w+-\w+|\b(?:0x)?[0-9a-f]{7,}\b|/tmp/\S+|\d+", "#", run.last_lines)
    return run.name, run.verdict, run.status, same


PASSED, FAILED_GATE, FLAKY, TIMEOUT, OVERRAN, MEMORY = "passed", "failed", "flaky", "timeout", "overran", "memory"
VERDICTS = {
    PASSED: "passed",
    FLAKY: "passed at the second try",
    FAILED_GATE: "failed",
    TIMEOUT: "did not end in time",
    OVERRAN: "wrote too much",
    MEMORY: "used too much memory",
}
"""The verdicts in a sentence."""


def next_state(step: str, entry: Entry) -> str:
    """The state that a step leads to; raises InvalidState where the table does not allow it."""
    sources, target = TRANSITIONS[step]
    if entry.state not in sources:
        allowed = ", ".join(name for name, (states, _) in TRANSITIONS.items() if entry.state in states)
        raise InvalidState(
            f"cannot {step} {entry.id}: it is {entry.state}", hint=f"from here: {allowed or 'nothing more'}"
        )
    return target
