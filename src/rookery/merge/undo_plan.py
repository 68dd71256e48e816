"""What an undo would do, found out before anything is changed: by the same functions that then do it.

Landings on one base are undone together, the newest first, by one move of that base.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.db.database import Database
from rookery.merge import store
from rookery.merge.landing import completion, messages
from rookery.merge.merger import Merger
from rookery.merge.model import LANDED, LANDING, QUEUED, TESTING, UNDOING, WAITING, Entry
from rookery.sessions import store as agents
from rookery.tasks.model import Task
from rookery.vcs.git.in_progress import check_free
from rookery.vcs.git.landed import UNDO_TRAILER
from rookery.vcs.git.merging import Merging
from rookery.vcs.git.repository import GitStore
from rookery.vcs.ref_names import HEADS, bring_back

MOVED_BACK, REVERTED = "moved back", "reverted"


@dataclass(frozen=True, slots=True)
class Undone(Record):
    """A landing that is undone."""

    PRINTS = "entry"
    entry: Entry
    how: str
    """`moved back`, or `reverted` by a commit on top."""
    commits: int
    """How many commits it had brought onto the base."""
    commit: str | None = None
    """Where the base is then; None in a plan if that commit is not made yet."""
    rescue: str | None = None
    """The ref that keeps what the base was; None in a plan."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.entry.id


@dataclass(frozen=True, slots=True)
class Kept(Record):
    """A landing of the run that is not undone."""

    entry: Entry
    reason: str


@dataclass(frozen=True, slots=True)
class ReopenedTask(Record):
    """A completed task that is open again."""

    merge_id: str
    """The landing that it is reopened for."""
    id: str
    title: str
    is_above: bool
    """It had no part in the landing: a task under it is reopened."""
    came_with: bool = False
    """It was not landed for this task, but brought its work too, as its branch was built on the task's."""


@dataclass(frozen=True, slots=True)
class UndoMessage(Record):
    """A message about an undone landing."""

    merge_id: str
    to: str
    subject: str


@dataclass(frozen=True, slots=True)
class Undo(Record):
    """All effects of undoing a landing, or the landings of a run."""

    PRINTS = "landings"
    run_id: str | None = None
    is_done: bool = False
    """False: nothing was changed, this is what would be done."""
    landings: tuple[Undone, ...] = ()
    """In the order in which they are undone."""
    withdrawn: tuple[Entry, ...] = ()
    """What is taken out of the queue."""
    tasks: tuple[ReopenedTask, ...] = ()
    mail: tuple[UndoMessage, ...] = ()
    kept: tuple[Kept, ...] = ()

    @property
    def bases(self) -> tuple[str, ...]:
        """The branches that it concerns, in order."""
        entries = (*(landing.entry for landing in self.landings), *self.withdrawn)
        return tuple(dict.fromkeys(entry.base for entry in entries))

    def on(self, base: str) -> Undo:
        """Its effects on one base."""
        landings = tuple(landing for landing in self.landings if landing.entry.base == base)
        ids = {landing.id for landing in landings}
        return self.replace(
            landings=landings,
            withdrawn=tuple(entry for entry in self.withdrawn if entry.base == base),
            tasks=tuple(task for task in self.tasks if task.merge_id in ids),
            mail=tuple(message for message in self.mail if message.merge_id in ids),
            kept=tuple(kept for kept in self.kept if kept.entry.base == base),
        )

    def has_same_effects(self, other: Undo) -> bool:
        """True if a person who agreed to one has agreed to the other."""
        return self._effects() == other._effects()

    def _effects(self) -> object:
        landings = [(landing.id, landing.how, landing.commits) for landing in self.landings]
        return landings, {entry.id for entry in self.withdrawn}, self.tasks, self.mail


class Removal(NamedTuple):
    """One landing taken out of its base, in the object database."""

    entry: Entry
    how: str
    commit: str
    """The base without it."""


class LandingFacts(NamedTuple):
    """What git says of a landing that is taken out of its base."""

    commits: int
    """How many it had brought onto the base."""
    unlanded: tuple[str, ...]
    """The completed tasks whose work is on no base then."""


def together(parts: Iterable[Undo]) -> Undo:
    """Several undos as one."""
    whole = Undo()
    for part in parts:
        whole = part.replace(
            landings=whole.landings + part.landings,
            withdrawn=whole.withdrawn + part.withdrawn,
            tasks=whole.tasks + part.tasks,
            mail=whole.mail + part.mail,
            kept=whole.kept + part.kept,
        )
    return whole


def plan_landing(merger: Merger, entry: Entry) -> Undo:
    """What undoing one landing would do; raises why it cannot be undone."""
    if entry.state != LANDED or entry.candidate is None or entry.base_before is None:
        raise InvalidState(f"{entry.id} is {entry.state}", hint="only what Rookery has landed can be undone")
    with merger.merging.on_trial() as trial:
        removals, _ = remove(trial, [entry], is_alone=True)
        return describe(merger, None, removals, (), look_at(merger, trial.store, removals, {}))


def plan_run(merger: Merger, run_id: str) -> Undo:
    """What undoing a run would do; raises why it cannot be undone."""
    db = merger.ctx.db
    check_ended(db, run_id)
    entries = store.select(db, run_id=run_id, states=(LANDED, QUEUED, WAITING, TESTING, LANDING))
    for entry in entries:
        if entry.state in (TESTING, LANDING) or entry.kind == UNDOING:
            step = "undone" if entry.kind == UNDOING else "landed"
            raise InvalidState(
                f"{entry.branch} is being {step} on {entry.base} just now",
                hint="try again soon; `rook loop run` settles what a killed process has left",
            )
    landed = [entry for entry in entries if entry.state == LANDED]
    queued = sorted((entry for entry in entries if entry.state != LANDED), key=lambda entry: entry.id)
    parts: list[Undo] = []
    reopened: set[str] = set()
    tips: dict[str, str] = {}
    with merger.merging.on_trial() as trial:
        for base in dict.fromkeys(entry.base for entry in (*_newest_first(landed), *queued)):
            on_base = [entry for entry in landed if entry.base == base]
            removals, kept = remove(trial, on_base) if on_base else ([], [])
            waiting = [entry for entry in queued if entry.base == base]
            facts = look_at(merger, trial.store, removals, tips)
            tips.update((base, removal.commit) for removal in removals)
            part = describe(merger, run_id, removals, waiting, facts, frozenset(reopened))
            reopened.update(task.id for task in part.tasks)
            parts.append(part.replace(kept=tuple(one for one in kept if one.entry.task_id not in reopened)))
    return together([Undo(run_id), *parts])


def check_ended(db: Database, run_id: str) -> None:
    """Raise InvalidState if an agent of a run is alive: it would go on from what is undone."""
    alive = [session.agent for session in agents.sessions(db, alive=True, run_id=run_id)]
    if alive:
        raise InvalidState(f"still alive: {', '.join(alive)}", hint="`rook stop` them, or wait")


def remove(merging: Merging, entries: Sequence[Entry], *, is_alone: bool = False) -> tuple[list[Removal], list[Kept]]:
    """Take landings out of their one base, the newest first, without moving it; each result is on top of the last.

    What the base has lost already is kept as it is or, for one that is alone, the reason is raised.
    """
    base = entries[0].base
    check_free(merging.store, base)
    tip = merging.tip(base)
    if tip is None:
        raise InvalidState(f"there is no branch {base} any more", hint="its commits are kept by refs/rookery")
    removals: list[Removal] = []
    kept: list[Kept] = []
    left = _newest_first(entries)
    while left:
        # Those of one batch have landed at the same time.
        entry = next((entry for entry in left if entry.candidate == tip), left[0])
        left.remove(entry)
        reason = _why_lost(merging, entry, tip)
        if reason:
            if is_alone:
                hint = f"`rook merge --branch {entry.branch}` lands it again; `rook task reopen` opens its task"
                if merging.tip(entry.branch) is None:
                    hint = f"{bring_back(entry.branch, entry.tip)}; then {hint}"
                raise InvalidState(f"{entry.branch}: {reason}", hint=hint)
            kept.append(Kept(entry, reason))
            continue
        if tip == entry.candidate and not _is_elsewhere(merging, entry):
            tip, how = str(entry.base_before), MOVED_BACK
        else:
            tip, how = _revert(merging, entry, tip), REVERTED
        removals.append(Removal(entry, how, tip))
    return removals, kept


def _newest_first(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (entry.landed_at or "", entry.id), reverse=True)


def _why_lost(merging: Merging, entry: Entry, tip: str) -> str:
    """Why there is nothing of a landing that could be undone; empty if there is."""
    if entry.base_before is None:
        return f"{entry.base} had its work already: merged by hand, or with another branch"
    if not merging.store.contains(str(entry.candidate), tip):
        return f"{entry.base} was rewritten, and no longer contains {str(entry.candidate)[:12]}"
    if tip == entry.candidate:
        return ""
    merged = merging.merge_trees(str(entry.candidate), tip, str(entry.base_before))
    is_lost = merged.is_clean and merged.tree == merging.tree(tip)
    return f"{entry.base} has lost it already: a later commit reverted it" if is_lost else ""


def _is_elsewhere(merging: Merging, entry: Entry) -> bool:
    """True if a branch, a tag or a remote has the landing too: it would come back with that, as if never undone."""
    return bool(merging.refs_with(str(entry.candidate)) - {HEADS + entry.base})


def _revert(merging: Merging, entry: Entry, tip: str) -> str:
    """The base without what one landing brought: a merge of its inverse."""
    candidate = str(entry.candidate)
    merged = merging.merge_trees(candidate, tip, str(entry.base_before))
    if not merged.is_clean:
        paths = ", ".join(conflict.path for conflict in merged.conflicts[:5])
        raise InvalidState(
            f"later work changed the same lines in {paths}, so {entry.branch} cannot be undone by itself",
            hint="undo the later landings first (`rook merge list --all`), or revert it by hand",
        )
    # Git's own words, so that every reader of the history recognises a revert.
    message = f"Revert: {entry.branch}\n\nThis reverts commit {candidate}.\n\n{UNDO_TRAILER}{entry.id}\n"
    return merging.commit(merged.tree, [tip], message)


def describe(
    merger: Merger,
    run_id: str | None,
    removals: Sequence[Removal],
    queued: Sequence[Entry],
    facts: Mapping[str, LandingFacts],
    reopened: frozenset[str] = frozenset(),
) -> Undo:
    """The effects of removals on tasks and mail, by the rows as they are now; `reopened` names tasks that are open
    by then. It starts no git."""
    db = merger.ctx.db
    opened = set(reopened)
    tasks: list[ReopenedTask] = []
    mail: list[UndoMessage] = []
    for entry, *_ in removals:
        unlanded = facts[entry.id].unlanded
        line = [task for task in completion.to_reopen(db, unlanded) if task.id not in opened]
        opened.update(task.id for task in line)
        tasks += reopened_tasks(entry, line, unlanded)
        subject = messages.undone_subject(entry)
        mail += [UndoMessage(entry.id, name, subject) for name in messages.concerned(db, entry)]
    return Undo(
        run_id,
        False,
        tuple(
            Undone(entry, how, facts[entry.id].commits, commit if how == MOVED_BACK else None)
            for entry, how, commit in removals
        ),
        tuple(queued),
        tuple(tasks),
        tuple(mail),
    )


def reopened_tasks(entry: Entry, line: Iterable[Task], unlanded: Collection[str]) -> list[ReopenedTask]:
    """How tasks that are opened again are shown."""
    beside = {*unlanded} - {entry.task_id}
    return [ReopenedTask(entry.id, task.id, task.title, task.id not in unlanded, task.id in beside) for task in line]


def look_at(
    merger: Merger, git: GitStore, removals: Sequence[Removal], tips: Mapping[str, str]
) -> dict[str, LandingFacts]:
    """What git says of landings that are taken out of one base; `tips` has other bases that are changed before it."""
    after = {**tips, **{entry.base: commit for entry, _, commit in removals}}
    unlanded = completion.find_unlanded(merger, git, [entry for entry, *_ in removals], after)
    counts = {entry.id: git.count_commits(str(entry.candidate), str(entry.base_before)) for entry, *_ in removals}
    return {merge_id: LandingFacts(count, unlanded[merge_id]) for merge_id, count in counts.items()}
