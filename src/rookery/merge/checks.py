"""The doctor's checks of landing."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import closing

from rookery.base.check import ERROR, OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.base.text import plural
from rookery.config import layout
from rookery.config.environ import child_environ
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.environment.service import read_if_usable
from rookery.merge import lease_store, queue, store
from rookery.merge.gates import scratch
from rookery.merge.gates.gate_job import read_last_lines
from rookery.merge.gates.service import run_gates_on_base
from rookery.merge.landing.lost import find_lost
from rookery.merge.merger import Merger
from rookery.merge.model import (
    BASE_GATE,
    FLAKY,
    LANDING,
    OPEN,
    PASSED,
    RESOLVING,
    TESTING,
    WAITING,
    GateRun,
    way_out,
)
from rookery.merge.person import closing as closings
from rookery.merge.person import store as persons
from rookery.merge.person.model import name_of, shown_place
from rookery.ops.context import Context
from rookery.vcs.ref_names import bring_back

_CATEGORY = "merge"
_SHOWN_LINES = 10
_MOST_LOST = 20
_SHELL_WORDS = (
    *("alias", "case", "cd", "command", "eval", "exec", "exit", "export", "for", "if", "read", "return", "set"),
    *("test", "time", "trap", "ulimit", "umask", "unset", "until", "wait", "while"),
)
"""What the shell does itself."""


def check_merges(place: Place) -> Iterator[Finding]:
    """Git can merge without a checkout, no landing was cut off, and none waits for the user unseen."""
    if place.root is None or not is_project(place.root):
        return
    try:
        db = Database.open(database_path(place.root))
    except RookError:
        return  # the check of the database reports it
    with closing(db):
        try:
            merger = Merger(Context.at(place.root, db), "doctor")
        except RookError:
            return  # the checks of configuration and version control report it
        yield _base(merger)
        yield from _programs(merger)
        yield _git(merger)
        yield _cut_off(merger, place.root)
        yield _waiting(merger)
        yield from _broken_bases(merger)
        yield _resolving(merger, place.root)
        yield from _lost(merger)
        yield _gates(merger)


def _gates(merger: Merger) -> Finding:
    gates = ", ".join(gate.name for gate in merger.ctx.config.gates)
    if gates:
        return Finding(_CATEGORY, "gates", OK, gates)
    hint = "name the commands that must pass under `gates:` in .rookery/config.yaml"
    return Finding(_CATEGORY, "gates", WARNING, "no gate is set: everything that merges lands", hint)


def _base(merger: Merger) -> Finding:
    """The branch that work starts from and lands on is there."""
    try:
        return Finding(_CATEGORY, "base branch", OK, f"work lands on {merger.base()}")
    except RookError as error:
        named = merger.ctx.config.project.base
        if not named or not merger.vcs.branches():
            return Finding(_CATEGORY, "base branch", WARNING, error.message, error.hint)
        message = f"project.base is {named}, and there is no such branch: nothing can be started or landed"
        hint = f"set project.base in .rookery/config.yaml, or bring it back: `git branch {shlex.quote(named)} COMMIT`"
        return Finding(_CATEGORY, "base branch", ERROR, message, hint)


def _programs(merger: Merger) -> Iterator[Finding]:
    """The program that each gate begins with can be started."""
    root = merger.ctx.root
    stored = read_if_usable(root)
    path = (stored.variables.plain if stored is not None else child_environ()).get("PATH")
    for gate in merger.ctx.config.gates:
        program = _program_of(gate.run)
        place = os.path.join(root, program) if "/" in program else program
        if program and shutil.which(place, path=path) is None:
            hint = "install it, or change the gate in .rookery/config.yaml; `rook doctor --gates` tries it"
            message = f"{program} is not there, or cannot be executed: nothing can land"
            # What is made by a setup command, or is part of another branch, is not in this checkout.
            status = WARNING if "/" in program else ERROR
            yield Finding(_CATEGORY, f"gate {gate.name}", status, message, hint)


def _program_of(command: str) -> str:
    """The program of a command that is simple; empty where a shell is needed to know it."""
    first = command.split(maxsplit=1)[0] if command.strip() else ""
    plain = first.replace("/", "").replace("-", "").replace("_", "").replace(".", "").replace("+", "")
    return first if plain.isalnum() and first not in _SHELL_WORDS else ""


def try_gates(place: Place, ctx: Context) -> Iterator[Finding]:
    """Run every gate on the base, in a checkout of its own; also if it has passed there before.

    With the caller's flags, so that settings can be tried.
    """
    if place.root is None or not is_project(place.root):
        return
    try:
        yield from _try_gates(place.root, ctx)
    except RookError as error:  # whatever else is broken is reported all the same
        problem = f"the gates could not be tried: {error.message}"
        yield Finding(_CATEGORY, "gates on the base", ERROR, problem, error.hint)


def _try_gates(root: str, ctx: Context) -> Iterator[Finding]:
    with closing(Database.open(database_path(root))) as db:
        at_root = Context.at(root, db)
        at_root.flags = ctx.flags
        merger = Merger(at_root, "doctor", ctx.follow)
        if not merger.ctx.config.gates:
            return  # a check says so
        base = merger.base()
        runs = {run.name: run for run in run_gates_on_base(merger, base, fresh=True, goes_on=True).runs}
        for gate in merger.ctx.config.gates:
            yield _tried(base, runs[gate.name]) if gate.name in runs else _untried(base, gate.name)


def _untried(base: str, name: str) -> Finding:
    return Finding(_CATEGORY, f"gate {name}", OK, f"{base} has none of its paths")


def _tried(base: str, run: GateRun) -> Finding:
    message = f"{run.result} on {base} in {run.seconds:.1f} s"
    if run.verdict == PASSED:
        return Finding(_CATEGORY, f"gate {run.name}", OK, message)
    output = _end(run.last_lines)
    message += f"; its output is in {run.log}"
    if run.verdict == FLAKY:
        hint = "it failed and passed on the same files; a branch may fail by chance"
        return Finding(_CATEGORY, f"gate {run.name}", WARNING, message, hint, output=output)
    return Finding(_CATEGORY, f"gate {run.name}", ERROR, message, way_out(base), output=output)


def _end(output: str) -> str:
    return "\n".join(output.splitlines()[-_SHOWN_LINES:])


def _git(merger: Merger) -> Finding:
    try:
        merger.merging.check_can()
    except RookError as error:
        return Finding(_CATEGORY, "git", WARNING, error.message, error.hint)
    return Finding(_CATEGORY, "git", OK, "it merges without a checkout")


def _cut_off(merger: Merger, root: str) -> Finding:
    leases = lease_store.held(merger.ctx.db)
    held = lease_store.bases_at_work(merger.ctx.db, merger.ctx.now())
    left = [*store.select(merger.ctx.db, states=(TESTING, LANDING)), *store.undoing(merger.ctx.db)]
    bases = sorted({*(entry.base for entry in left), *(lease.base for lease in leases)} - held)
    if not bases:
        queued = len(store.select(merger.ctx.db, states=OPEN))
        return Finding(_CATEGORY, "landings", OK, f"{plural(queued, 'branch', 'branches')} in the queue")
    problem = f"a landing on {', '.join(bases)} was cut off"
    return Finding(_CATEGORY, "landings", WARNING, problem, "run `rook doctor --fix`", lambda: _settle(root, bases))


def _waiting(merger: Merger) -> Finding:
    others = (BASE_GATE, RESOLVING)
    waiting = [entry for entry in store.select(merger.ctx.db, states=(WAITING,)) if entry.kind not in others]
    if not waiting:
        return Finding(_CATEGORY, "checkouts", OK, "no landing waits for a checkout")
    hint = "remove the cause (files that block it: commit or stash them), then `rook merge run`"
    return Finding(_CATEGORY, "checkouts", WARNING, f"{len(waiting)} wait: {waiting[0].reason}", hint)


def _broken_bases(merger: Merger) -> Iterator[Finding]:
    waiting = [entry for entry in store.select(merger.ctx.db, states=(WAITING,)) if entry.kind == BASE_GATE]
    for base in dict.fromkeys(entry.base for entry in waiting):
        held = [entry for entry in waiting if entry.base == base]
        problem = f"{len(held)} wait: {held[0].reason}; its output is in {held[0].log}"
        output = _end(read_last_lines(held[0].log or ""))
        yield Finding(_CATEGORY, "base", WARNING, problem, way_out(base, merger.into(base)), output=output)


def _resolving(merger: Merger, root: str) -> Finding:
    conflicts = persons.all_open(merger.ctx.db)
    left = [conflict for conflict in conflicts if closings.is_left(merger, conflict)]
    if left:
        problem = f"{shown_place(left[0].merge_id)} is left of a conflict that no person resolves any more"
        return Finding(_CATEGORY, "conflicts", WARNING, problem, "run `rook doctor --fix`", lambda: _close(root))
    folder, known = layout.path(root, layout.WORKTREES), {name_of(one.merge_id) for one in conflicts}
    names = os.listdir(folder) if os.path.isdir(folder) else []
    strays = sorted(name for name in names if name.startswith(layout.RESOLUTION) and name not in known)
    if strays:
        problem = f"no open conflict is known for {', '.join(strays)}"
        return Finding(_CATEGORY, "conflicts", WARNING, problem, f"see what is in {folder}, and move it away")
    if not conflicts:
        return Finding(_CATEGORY, "conflicts", OK, "no conflict is open for a person")
    places = ", ".join(shown_place(conflict.merge_id) for conflict in conflicts)
    return Finding(_CATEGORY, "conflicts", OK, f"being resolved by a person: {places}")


def _close(root: str) -> str:
    with closing(Database.open(database_path(root))) as db:
        closings.tidy(Merger(Context.at(root, db), "doctor"))
    return "removed the worktrees, and saved what was not handed back"


def _lost(merger: Merger) -> Iterator[Finding]:
    """What completed tasks have done is still on its base."""
    try:
        report = find_lost(merger)
    except RookError as error:
        yield Finding(_CATEGORY, "completed", WARNING, f"whether work has left its base is unknown: {error.message}")
        return
    for lost in report.lost[:_MOST_LOST]:
        branch = shlex.quote(str(lost.task.branch))
        hint = f"`rook task reopen {lost.task.id}`, then `rook merge --branch {branch}` lands it again"
        if lost.kept_by != lost.task.branch:
            back = f"{bring_back(str(lost.task.branch), lost.commit)}; {hint}"
            hint = back if lost.commit else "`rook task reopen` opens the task"
        where = f"{lost.kept_by or lost.commit} holds it" if lost.commit else "no commit here holds it any more"
        problem = f"{lost.task.id} is completed, but its work has left {lost.base}; {where}"
        yield Finding(_CATEGORY, "completed", WARNING, problem, hint)
    more = len(report.lost) - _MOST_LOST
    if more > 0:
        hint = "settle those above, then run `rook doctor` again"
        yield Finding(_CATEGORY, "completed", WARNING, f"the work of {more} more has left its base", hint)
    unknown = f"; of {len(report.unknown)} that is unknown, such as {report.unknown[0]}" if report.unknown else ""
    if not report.lost:
        count = report.looked_at - len(report.unknown)
        yield Finding(
            _CATEGORY, "completed", OK, f"the base has the work of {plural(count, 'completed task')}{unknown}"
        )


def _settle(root: str, bases: list[str]) -> str:
    with closing(Database.open(database_path(root))) as db:
        merger = Merger(Context.at(root, db), "doctor")
        for base in bases:
            queue.recover(merger, base)
        scratch.sweep(merger)
    return "finished what had landed, and put the rest back into the queue"


CHECKS = (check_merges,)
