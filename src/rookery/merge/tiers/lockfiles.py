"""Lock files made again by the programs that own them, in a scratch folder in which everything else is settled.

Only the lock file is taken. A program that has to change its manifest, too, has made a decision that is not ours.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence

from rookery.base.draft import unique
from rookery.base.errors import ProgramFailed
from rookery.base.lockfiles import Lockfile, lockfile_of
from rookery.environment.masking import mask, secret_values
from rookery.environment.service import own_environ
from rookery.merge.gates import scratch
from rookery.merge.gates.scratch import Scratch
from rookery.merge.merger import Merger
from rookery.merge.model import DECLINED, MECHANICAL, RESOLVED, FileOutcome
from rookery.merge.tiers.case import Case, why_unfinished
from rookery.processes.child import ended_with_block, start
from rookery.processes.proctable import SCRATCH
from rookery.vcs.git import scratch as git_scratch
from rookery.vcs.git.merge_tree import REGULAR, Conflict, Side

_TIMEOUT = 600.0
_TICK = 0.2
_SHOWN = 3
_MOST_OUTPUT = 1_000
_ENVIRON = {
    "npm_config_ignore_scripts": "true",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "YARN_IGNORE_SCRIPTS": "true",
    "YARN_ENABLE_SCRIPTS": "false",
    "POETRY_VIRTUALENVS_CREATE": "false",
    "PIPENV_VENV_IN_PROJECT": "1",
    "PIPENV_IGNORE_VIRTUALENVS": "1",
}
"""Such a program runs no script of a package, asks for no more than it needs, and leaves nothing in the user's home."""
_UNSET = frozenset({"CI", "VIRTUAL_ENV"})
"""What it does not see: many write no lock file under CI, and the caller's environment is not the project's."""


def can_regenerate(merger: Merger, path: str) -> bool:
    """True if the program that owns a lock file is here."""
    lock, search = lockfile_of(path), own_environ(merger.ctx.root).get("PATH", os.defpath)
    return lock is not None and shutil.which(lock.program, path=search) is not None


def regenerate(merger: Merger, case: Case, locks: Sequence[Conflict]) -> tuple[dict[str, Side], list[FileOutcome]]:
    """The new lock files by their paths, and what was done to each."""
    # Where the two sides conflict, the program begins with the base's own file.
    begin = merger.merging.replace_files(case.tree, {lock.path: lock.ours for lock in locks})
    commit = merger.merging.commit(begin, [case.onto], "rook: to make lock files again")
    settled: dict[str, Side] = {}
    outcomes = []
    name = f"lock-{case.entry.id}-{unique()}"
    # Without the setup command: many, such as `npm ci`, fail while the lock file does not fit.
    with scratch.open_scratch(merger, name, commit, base=case.entry.base, at=case.onto, is_set_up=False) as place:
        for conflict in locks:
            outcome = FileOutcome(conflict.path, conflict.kind, MECHANICAL, DECLINED, "")
            lock = lockfile_of(conflict.path)
            assert lock is not None  # noqa: S101 - the caller has asked
            command = " ".join(lock.command)
            try:
                content = _make(merger, lock, conflict.path, place, {other.path for other in locks})
            except ProgramFailed as error:
                outcomes.append(outcome.replace(why=f"`{command}` could not make it again: {error.message}"))
                continue
            settled[conflict.path] = Side(REGULAR[0], merger.merging.write_blob(content))
            why = f"made again by `{command}`, never merged as text"
            outcomes.append(outcome.replace(outcome=RESOLVED, why=why))
    return settled, outcomes


def _make(merger: Merger, lock: Lockfile, path: str, place: Scratch, locks: set[str]) -> bytes:
    """The content of a lock file after its program has run; raises ProgramFailed."""
    folder = os.path.join(place.folder, os.path.dirname(path))
    if not any(os.path.isfile(os.path.join(folder, manifest)) for manifest in lock.manifests):
        raise ProgramFailed(f"{' or '.join(lock.manifests)} is not beside it")
    timeout = merger.ctx.config.vcs.timeout
    before = git_scratch.changed_files(place.folder, timeout)
    _run(merger, lock, folder, place)
    others = git_scratch.changed_files(place.folder, timeout) - before - locks
    if others:
        raise ProgramFailed(f"it would change {', '.join(sorted(others)[:_SHOWN])}, too")
    target = os.path.join(place.folder, path)
    if os.path.islink(target) or not os.path.isfile(target):
        raise ProgramFailed("it did not write it")
    with open(target, "rb") as file:
        content = file.read()
    unfinished = why_unfinished(path, content)
    if unfinished:
        raise ProgramFailed(unfinished)
    return content


def _run(merger: Merger, lock: Lockfile, folder: str, place: Scratch) -> None:
    """Run the program to its end, within the bounds of a gate; raises ProgramFailed."""
    env = {name: value for name, value in place.env.items() if name not in _UNSET} | _ENVIRON
    if shutil.which(lock.program, path=env.get("PATH")) is None:
        raise ProgramFailed(f"{lock.program} is not installed")
    deadline = time.monotonic() + _TIMEOUT
    child = start((*place.cage, *lock.command), cwd=folder, env=env)
    output = b""
    with ended_with_block(child, (SCRATCH, env[SCRATCH])):
        for chunk in child.chunks(lambda: _TICK):
            merger.beat()
            output = (output + chunk)[-_MOST_OUTPUT:]
            if time.monotonic() > deadline:
                raise ProgramFailed(f"it did not end within {_TIMEOUT:g} s")
        status = child.wait(_TICK)
        if status != 0:
            last = child.last_output or output.decode("utf-8", "replace").strip()
            raise ProgramFailed(f"it exited with {status}: {mask(last, secret_values(env)) or 'no output'}")
