"""What the doctor asks of landing."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.base.check import OK, WARNING, Finding, Place
from rookery.base.errors import RookError
from rookery.config.environ import read_environ
from rookery.config.loader import load_config
from rookery.config.project import database_path, is_project
from rookery.db.database import Database
from rookery.merge import recovery, store
from rookery.merge.desk import Desk
from rookery.merge.gates import scratch
from rookery.merge.model import LANDING, OPEN, TESTING, WAITING
from rookery.processes.holder import is_gone, read
from rookery.sessions.home import Home

_CATEGORY = "merge"


def check_merges(place: Place) -> Iterator[Finding]:
    """Git can merge without a checkout, nothing was cut off, and nothing waits for the user unseen."""
    if place.root is None or not is_project(place.root):
        return
    try:
        db = Database.open(database_path(place.root))
        home = Home(place.root, db, load_config(place.root, read_environ(), {}).config)
        desk = Desk(home, "doctor")
    except RookError:
        return  # the checks of database, configuration and version control say so
    try:
        yield _git(desk)
        yield _cut_off(desk, place.root)
        yield _waiting(desk)
        if not home.config.gates:
            hint = "name the commands that must pass under `gates:` in .rookery/config.yaml"
            yield Finding(_CATEGORY, "gates", WARNING, "no gate is set: whatever merges lands", hint)
        else:
            yield Finding(_CATEGORY, "gates", OK, ", ".join(gate.name for gate in home.config.gates))
    finally:
        db.close()


def _git(desk: Desk) -> Finding:
    try:
        desk.merging.check_can()
    except RookError as error:
        return Finding(_CATEGORY, "git", WARNING, error.message, error.hint)
    return Finding(_CATEGORY, "git", OK, "it merges without a checkout")


def _cut_off(desk: Desk, root: str) -> Finding:
    leases = "SELECT base, pid, pid_start, expires_at <= ? FROM merge_leases WHERE holder IS NOT NULL"
    rows = desk.db.all(leases, (desk.now(),))
    held = {base for base, pid, start, is_over in rows if not is_gone(read(pid, start), lease_is_over=is_over)}
    left = [*store.select(desk.db, states=(TESTING, LANDING)), *store.undoing(desk.db)]
    bases = {each.base for each in left if each.base not in held} | {row[0] for row in rows if row[0] not in held}
    if not bases:
        return Finding(_CATEGORY, "landings", OK, f"{len(store.select(desk.db, states=OPEN))} branches are queued")
    what = f"a landing on {', '.join(sorted(bases))} was cut off"
    return Finding(
        _CATEGORY, "landings", WARNING, what, "run `rook doctor --fix`", lambda: _settle(root, sorted(bases))
    )


def _waiting(desk: Desk) -> Finding:
    waiting = store.select(desk.db, states=(WAITING,))
    if not waiting:
        return Finding(_CATEGORY, "checkouts", OK, "no landing waits for a checkout")
    hint = "remove the cause (files in the way: commit or stash them), then `rook merge run`"
    return Finding(_CATEGORY, "checkouts", WARNING, f"{len(waiting)} wait: {waiting[0].reason}", hint)


def _settle(root: str, bases: list[str]) -> str:
    db = Database.open(database_path(root))
    desk = Desk(Home(root, db, load_config(root, read_environ(), {}).config), "doctor")
    try:
        for base in bases:
            recovery.recover(desk, base)
        scratch.sweep(desk)
    finally:
        db.close()
    return "finished what had landed, and put the rest back into the queue"


CHECKS = (check_merges,)
