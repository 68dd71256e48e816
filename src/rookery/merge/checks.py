"""What the doctor asks of landing."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.merge import lease_store, recovery, store
from rookery.merge.gates import scratch
from rookery.merge.merger import Merger
from rookery.merge.model import LANDING, OPEN, TESTING, WAITING
from rookery.ops.context import Context
from rookery.processes.holder import is_gone

_CATEGORY = "merge"


def check_merges(place: Place) -> Iterator[Finding]:
    """Git can merge without a checkout, nothing was cut off, and nothing waits for the user unseen."""
    if place.root is None or not is_project(place.root):
        return
    try:
        db = Database.open(database_path(place.root))
        ctx = Context.at(place.root, db)
        merger = Merger(ctx, "doctor")
    except RookError:
        return  # the checks of database, configuration and version control say so
    try:
        yield _git(merger)
        yield _cut_off(merger, place.root)
        yield _waiting(merger)
        if not ctx.config.gates:
            hint = "name the commands that must pass under `gates:` in .rookery/config.yaml"
            yield Finding(_CATEGORY, "gates", WARNING, "no gate is set: whatever merges lands", hint)
        else:
            yield Finding(_CATEGORY, "gates", OK, ", ".join(gate.name for gate in ctx.config.gates))
    finally:
        db.close()


def _git(merger: Merger) -> Finding:
    try:
        merger.merging.check_can()
    except RookError as error:
        return Finding(_CATEGORY, "git", WARNING, error.message, error.hint)
    return Finding(_CATEGORY, "git", OK, "it merges without a checkout")


def _cut_off(merger: Merger, root: str) -> Finding:
    leases = lease_store.held(merger.ctx.db)
    now = merger.ctx.now()
    held = {each.base for each in leases if not is_gone(each.process, lease_is_over=each.expires_at <= now)}
    left = [*store.select(merger.ctx.db, states=(TESTING, LANDING)), *store.undoing(merger.ctx.db)]
    bases = {*(each.base for each in left), *(each.base for each in leases)} - held
    if not bases:
        return Finding(
            _CATEGORY, "landings", OK, f"{len(store.select(merger.ctx.db, states=OPEN))} branches are queued"
        )
    what = f"a landing on {', '.join(sorted(bases))} was cut off"
    return Finding(
        _CATEGORY, "landings", WARNING, what, "run `rook doctor --fix`", lambda: _settle(root, sorted(bases))
    )


def _waiting(merger: Merger) -> Finding:
    waiting = store.select(merger.ctx.db, states=(WAITING,))
    if not waiting:
        return Finding(_CATEGORY, "checkouts", OK, "no landing waits for a checkout")
    hint = "remove the cause (files in the way: commit or stash them), then `rook merge run`"
    return Finding(_CATEGORY, "checkouts", WARNING, f"{len(waiting)} wait: {waiting[0].reason}", hint)


def _settle(root: str, bases: list[str]) -> str:
    db = Database.open(database_path(root))
    merger = Merger(Context.at(root, db), "doctor")
    try:
        for base in bases:
            recovery.recover(merger, base)
        scratch.sweep(merger)
    finally:
        db.close()
    return "finished what had landed, and put the rest back into the queue"


CHECKS = (check_merges,)
