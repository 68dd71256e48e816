"""Bringing a checkout from one commit to another without touching what is not committed: all of it, or nothing.

It happens under git's own lock on the index, so that no other git commits in between: files first, then (by the caller)
the branch, then the index. If a changed, untracked or ignored file would be touched, it is refused before anything is
done.

Beside the index are made, in this order: a note of both commits (`index_claim`); the next index; the files that are
about to be replaced (`backup`); and, once git has written all files, the next index under its final name. If anything
stops git before that, a full disk or a kill, the old files are put back. What cannot be put back at once, the next
caller finishes under the same lock: `repair`.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rookery.base.errors import InvalidState, ProgramFailed, Refused
from rookery.processes.process import Finished
from rookery.vcs import backup
from rookery.vcs.capture import QUIET, copy_index
from rookery.vcs.folders import folders_above
from rookery.vcs.git.index_claim import Claim
from rookery.vcs.git.repository import LITERAL, GitStore
from rookery.vcs.git.tree_diff import TreeChange, tree_changes
from rookery.vcs.model import DirtyCheckout

_SHOWN = 5
_MOST_NAMED = 200
"""So many paths may go into a command line."""
_INDEX = "index"
"""The index that git works with until all files are written."""
_NEXT = "next"
"""The same index once they are."""
_KEPT = "kept"
"""The files that are about to be replaced."""
_PROBE = b"\0" * 64 * 1024
# A second name changes a file's ctime; whether the file itself changed is checked before. Workers of a killed git would
# go on writing for a moment.
_WRITE = (*QUIET, "-c", "core.trustctime=false", "-c", "checkout.workers=1")


class InTheWay(DirtyCheckout):
    """A checkout has files of its own where the new commit has others."""

    code = "checkout_in_the_way"

    def __init__(self, folder: str, paths: Iterable[str]) -> None:
        self.folder = folder
        self.paths = tuple(paths)
        super().__init__(f"{folder} has changes of its own in {_listed(self.paths) or 'files that would change'}")


class CannotWrite(InvalidState):
    """Git could not write the files of a checkout, and they are as they were."""

    code = "checkout_not_written"
    default_hint = "remove the cause (a full disk: make room), then try again"


class HalfWritten(Refused):
    """A checkout is not settled yet: the lock and all that is needed stay, and the next caller goes on."""

    code = "checkout_half_written"


@dataclass(frozen=True, slots=True)
class Forward(Claim):
    """A claimed checkout on its way: its files are those of `new`, its index is still that of `old`."""

    store: GitStore
    old: str
    new: str

    @property
    def own_index(self) -> str:
        """The checkout's own index."""
        return os.path.join(self.git_folder, "index")

    @property
    def changed(self) -> list[TreeChange]:
        """What differs between the two commits."""
        return tree_changes(self.store, self.old, self.new)

    def env(self, index: str = _INDEX) -> dict[str, str]:
        """The environment in which git works with one of the claim's indexes."""
        return {"GIT_INDEX_FILE": self.path(index), "LC_ALL": "C"}

    def finish(self, while_locked: Callable[[], object] = lambda: None) -> None:
        """The branch has moved: let the index follow. Raises HalfWritten if it cannot.

        `while_locked` is called when the index is in its place, and no other git can change it yet.
        """
        with self._given_up_on_error("the branch has moved and the files with it, but the index could not follow"):
            with suppress(FileNotFoundError):  # killed after this step
                os.replace(self.path(_NEXT), self.own_index)
                while_locked()
            self.drop()

    def undo(self) -> list[str]:
        """Put the old files back; returns those that another process has changed. Raises HalfWritten if it cannot."""
        with self._given_up_on_error("it has files of the new commit, and not all of the old ones are back"):
            left = backup.restore(self.store, self.folder, self.changed, self.path(_KEPT))
            self.drop()
        return left

    @contextmanager
    def _given_up_on_error(self, state: str) -> Iterator[None]:
        """Whatever stops this process, the next caller may go on at once."""
        try:
            yield
        except BaseException as error:
            self.give_up()
            if not isinstance(error, OSError | ProgramFailed):
                raise
            raise HalfWritten(
                f"{self.folder} is half changed ({state}): {_message(error)}",
                hint=f"remove the cause (a full disk: make room), then `rook merge run` finishes it; nothing is lost. "
                f"Until then leave {self.lock} where it is, and change nothing there",
            ) from error


def begin(store: GitStore, folder: str, old: str, new: str) -> Forward:
    """Change the files of a checkout without changes at these paths, or none of them.

    Raises InTheWay; InvalidState if another git is at work there; CannotWrite, or HalfWritten if even putting back
    what was there fails.
    """
    here = store.at(folder)
    forward = Forward(folder, here.own_folder(), here, old, new)
    with forward.alone():
        _repair(here, folder, old)
        try:
            forward.take(old, new)
            _prepare(forward)
        except (OSError, ProgramFailed) as error:
            raise _cannot_write(forward, _message(error)) from error
    try:
        _write_files(forward)
    except (OSError, ProgramFailed) as error:
        raise _cannot_write(forward, _message(error), forward.undo()) from error
    except BaseException:
        forward.undo()
        raise
    return forward


def end(begun: Iterable[Forward], *, has_moved: bool) -> None:
    """Let the indexes of checkouts follow their branch, or put their files back if it has not moved."""
    for forward in begun:
        if has_moved:
            forward.finish()
        else:
            forward.undo()


def repair(store: GitStore, folder: str, branch_at: str) -> bool:
    """Finish or undo what another process left in a checkout; True if there was something."""
    here = store.at(folder)
    claim = Claim(folder, here.own_folder())
    if not claim.exists:
        return False
    with claim.alone():
        return _repair(here, folder, branch_at)


def _repair(here: GitStore, folder: str, branch_at: str) -> bool:
    claim = Claim(folder, here.own_folder())
    if not claim.exists or claim.is_owned():
        return False
    old, new = claim.commits()
    forward = Forward(folder, claim.git_folder, here, old, new)
    # Without the lock, or before the files were kept, there is nothing to settle: no file was touched, or a person has
    # removed the lock and gone on.
    if not claim.is_locked() or not old or not os.path.isdir(forward.path(_KEPT)):
        forward.drop()
    elif branch_at == new and not os.path.exists(forward.path(_INDEX)):
        if os.path.exists(forward.path(_NEXT)):
            _complete_files(forward)
        forward.finish()
    else:
        forward.undo()
    return True


def _prepare(forward: Forward) -> None:
    """Do everything before the first file is touched: find the files that block it, and keep what it replaces."""
    try:
        if not copy_index(forward.own_index, forward.path(_INDEX)):
            forward.store.write(*QUIET, "read-tree", "--empty", env=forward.env())
        _check_unchanged(forward)
        backup.keep(forward.folder, forward.changed, forward.path(_KEPT))
    except BaseException:
        forward.drop()
        raise


def _write_files(forward: Forward) -> None:
    """Let git write. Before it touches a file it checks all that will change, and refuses if one differs."""
    done = forward.store.run(*_WRITE, "read-tree", "-m", "-u", forward.old, forward.new, env=forward.env())
    if not done.ok:
        raise _refusal(forward, done) or ProgramFailed(_cause(forward, done))
    os.rename(forward.path(_INDEX), forward.path(_NEXT))


def _complete_files(forward: Forward) -> None:
    """The branch has moved, and so the files had been written: write again what is missing or cut off since."""
    env = forward.env(_NEXT)
    forward.store.run(*QUIET, "update-index", "-q", "--refresh", env=env)
    differ = set(forward.store.read_list(*QUIET, "diff-files", "-z", "--name-only", env=env))
    changed = [change for change in forward.changed if change.path in differ]
    absent = {change.path for change in changed if not os.path.lexists(os.path.join(forward.folder, change.path))}
    ours = absent | backup.written_by_git(forward.store, forward.folder, changed)
    forward.store.write(
        *(*QUIET, "checkout-index", "-z", "--force", "--index", "--stdin"),
        stdin="".join(f"{path}\0" for path in sorted(ours)),
        env=env,
    )


def _foreign_files(forward: Forward) -> list[str]:
    """Files that git never tracked, ignored ones included, where the new commit would put its own."""
    there: list[str] = []
    for path in [change.path for change in forward.changed if change.is_added]:
        for place in (*folders_above(path), path):
            full = os.path.join(forward.folder, place)
            is_folder = os.path.isdir(full) and not os.path.islink(full)
            if os.path.lexists(full) and (place == path or not is_folder):
                there += _files_in(forward.folder, place)
                break
    tracked = set(forward.store.read_list("ls-files", "-z", env=forward.env())) if there else set()
    return [path for path in dict.fromkeys(there) if path not in tracked]


def _files_in(top: str, path: str) -> list[str]:
    """The files in a folder and below it; a file itself."""
    full = os.path.join(top, path)
    if os.path.islink(full) or not os.path.isdir(full):
        return [path]
    return [os.path.relpath(os.path.join(place, name), top) for place, _, names in os.walk(full) for name in names]


def _check_unchanged(forward: Forward) -> None:
    """Raise InTheWay if a file that will change is not git's, or if it or its entry in the index differs from the old
    commit.
    """
    foreign = _foreign_files(forward)
    if foreign:
        raise InTheWay(forward.folder, foreign)
    paths = [change.path for change in forward.changed]
    words = (*QUIET, "diff-index", "-z", "--name-only", forward.old, "--", *paths)
    if len(paths) <= _MOST_NAMED and not forward.store.read(*words, env=forward.env() | LITERAL):
        return
    # Perhaps they have the new content already, or only the times of files have changed. Git's own two-way merge
    # knows, but it reads every object of the repository.
    words = (*QUIET, "read-tree", "-n", "-m", "-u", forward.old, forward.new)
    done = forward.store.run(*words, env=forward.env())
    if not done.ok:
        forward.store.run(*QUIET, "update-index", "-q", "--refresh", env=forward.env())
        done = forward.store.run(*words, env=forward.env())
    if not done.ok:
        raise _refusal(forward, done) or _cannot_write(forward, _cause(forward, done))


def _refusal(forward: Forward, done: Finished) -> InTheWay | None:
    """The files of which git says that they block it; None if it failed for another reason."""
    named = [change.path for change in forward.changed if f"'{change.path}'" in done.stderr]
    return InTheWay(forward.folder, named) if named or "untracked" in done.stderr.lower() else None


def _cannot_write(forward: Forward, cause: str, left: Sequence[str] = ()) -> CannotWrite:
    but = f" but for {_listed(left)}, which another process changed meanwhile" if left else ""
    return CannotWrite(f"git could not write the files of {forward.folder}: {cause}; they are as they were{but}")


def _cause(forward: Forward, done: Finished) -> str:
    """Why git failed, in its own words. It does not say why it could not write a file, so we try to write one."""
    if done.status < 0:
        return f"it was ended by {signal.Signals(-done.status).name}"
    lines = [line for line in done.stderr.splitlines() if line.startswith(("fatal: ", "error: "))]
    lines.sort(key=lambda line: line.startswith("error: "))  # what it died of says most
    first = (lines or done.last_output.splitlines() or [f"exit status {done.status}"])[0]
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    why = _write_error(forward.folder)
    return first + more + (f": {why}" if why and why not in first else "")


def _write_error(folder: str) -> str:
    """The system's error when a file of a moderate size is written there; empty if there is none."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_PROBE)
    except OSError as error:
        return error.strerror or ""
    return ""


def _message(error: OSError | ProgramFailed) -> str:
    return error.message if isinstance(error, ProgramFailed) else f"{error.filename}: {error.strerror}"


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (" …" if len(paths) > _SHOWN else "")
