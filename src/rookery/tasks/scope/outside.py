"""What a branch changes outside the files that its agent was given: found by git, and let through with a reason.

Every gate on the way to the base asks here: `worker_done` and `merge_ready`, `rook task submit`, and the landing. The
guard stops an agent's own writes, but not those of the programs that it runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.base.errors import InvalidInput, Refused
from rookery.base.file_scope import outside_scope, quote_name
from rookery.base.record import Record
from rookery.base.text import check_text, one_line
from rookery.db.database import Database
from rookery.tasks.model import OutsideFile
from rookery.tasks.scope import store as scope_store
from rookery.tasks.scope.store import BranchScope
from rookery.vcs.backend import Vcs

MAX_REASON = 4_000
_SHOWN = 10
_NAMED = 3


class OutsideFiles(Refused):
    """A branch changes files that its agent was not given, and there is no reason for it."""

    code = "outside_files"


@dataclass(frozen=True, slots=True)
class Outside(Record):
    """What a branch changes outside its agent's scope: nothing, if there are no files."""

    scope: BranchScope
    start: str
    """The commit from which the branch's own work is counted."""
    files: tuple[OutsideFile, ...]

    @property
    def unexplained(self) -> tuple[str, ...]:
        """The files for which there is no reason yet."""
        return tuple(file.path for file in self.files if file.reason is None)

    def explain(self, reason: str, by: str) -> Outside:
        """With a reason for the files that have none; for all of them if none lacks one."""
        reason = check_text("the reason", reason.strip(), limit=MAX_REASON)
        if not reason:
            raise InvalidInput("the reason is empty", hint="say why the work needs these files")
        missing = set(self.unexplained) or {file.path for file in self.files}
        explained = [file.replace(reason=reason, by=by) if file.path in missing else file for file in self.files]
        return self.replace(files=tuple(explained))

    def describe(self) -> str:
        """The files without a reason, in a sentence."""
        return f"it changes {list_names(self.unexplained)}, outside of {self.scope.agent}'s files ({self.allowed})"

    @property
    def allowed(self) -> str:
        """The agent's own files."""
        return list_names([quote_name(pattern) for pattern in self.scope.files])

    @property
    def put_back(self) -> str:
        """The command that makes files what they were where the branch began; new ones go."""
        names = self.unexplained
        is_short = len(names) <= _NAMED and not any(name.startswith('"') for name in names)
        words = " ".join(map(shlex.quote, names)) if is_short else "FILE…"
        return f"git checkout --no-overlay {self.start[:12]} -- {words}"


def list_names(names: Sequence[str], most: int = _SHOWN) -> str:
    """The first of some names, and how many there are besides."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def describe_files(files: Sequence[OutsideFile]) -> list[str]:
    """Files outside a scope with the reasons for them, on one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for file in files:
        why = "no reason yet" if file.reason is None else f"{one_line(file.reason)} ({file.by})"
        reasons.setdefault(why, []).append(file.path)
    return [f"{list_names(names)}: {why}" for why, names in reasons.items()]


def find_outside(
    db: Database, vcs: Vcs, branch: str, tip: str, base: str | None, known: Sequence[str]
) -> Outside | None:
    """What a branch with that tip changes outside its agent's scope; None if it has no scope.

    `known` are the commits of the base whose work is not the branch's own. Nor is what came from where its agent began,
    which may be the branch of another one.
    """
    scope = scope_store.find(db, branch)
    if scope is None:
        return None
    other = vcs.branch_tip(scope.base) if scope.base not in ("", branch, base) else None
    start, changed = vcs.own_changes(tip, [*known, scope.base_commit, *([other] if other else [])])
    explained = {file.path: file for file in scope_store.explained(db, [branch]).get(branch, ())}
    names = [quote_name(path) for path in outside_scope(changed, scope.files)]
    return Outside(scope, start, tuple(explained.get(name, OutsideFile(name)) for name in names))


def check_hand_in(
    db: Database, vcs: Vcs, branch: str, base: str, *, reason: str | None, by: str, how: str
) -> Outside | None:
    """What a branch that is handed in changes outside its agent's scope, with reasons; raises OutsideFiles without.

    Call it before the transaction of the hand-in, and `keep` its result within. `base` is the name of the branch that
    it lands on (config: project.base, empty for the default one), `how` says how a reason is given there.
    """
    if scope_store.find(db, branch) is None:
        return None  # most agents have no scope, and then git need not be asked
    tip, name = vcs.branch_tip(branch), base or vcs.default_branch()
    onto = vcs.branch_tip(name) if name else None
    outside = None if tip is None else find_outside(db, vcs, branch, tip, name, [onto] if onto else [])
    if outside is None or not outside.files:
        return None
    if reason is not None:
        return outside.explain(reason, by)
    if outside.unexplained:
        raise OutsideFiles(
            f"{branch} is not handed in: {outside.describe()}",
            hint=f"put them back and commit: `{outside.put_back}`; or say why they have to change: {how}",
        )
    return outside


def keep(db: Database, outside: Outside | None, *, actor: str, at: str) -> None:
    """Within a transaction: keep the reasons, if there are new ones."""
    if outside is not None:
        known = scope_store.explained(db, [outside.scope.branch]).get(outside.scope.branch, ())
        files = tuple(file for file in outside.files if file.reason is not None)
        if files != known:
            scope_store.keep(db, outside.scope, files, actor=actor, at=at)
