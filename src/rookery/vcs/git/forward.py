"""Bringing a checkout from one commit to another without touching what is not committed: all of it, or nothing.

It happens under git's own lock on the index, so that no other git commits in between: files first, then (by the caller)
the branch, then the index. Everything that would touch a changed, untracked or ignored file is refused before anything
is done.

Beside the index there is, in the order in which it comes to be: a note of both commits (`index_claim`); the next index;
the files that are about to be replaced (`backup`); and, once git has written all files, the next index by its final
name. Whatever stops git before that, a full disk or a kill, the files are put back. What cannot be put back at once is
finished by the next caller, under the same lock: `repair`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rookery.base.errors import InvalidState, ProgramFailed, Refused
from rookery.base.record import Record
from rookery.config.project import git_folder
from rookery.processes.process import Finished
from rookery.vcs import backup
from rookery.vcs.capture import QUIET, copy_index
from rookery.vcs.git.index_claim import Claim
from rookery.vcs.git.pointers import linked_worktrees
from rookery.vcs.git.repository import GitStore
from rookery.vcs.git.tree_diff import TreeChange, tree_changes
from rookery.vcs.model import DirtyCheckout

_SHOWN = 5
_MOST_NAMED = 200
"""A command takes only so many words."""
_PROBE = b"\0" * 64 * 1024
# A second name changes a file's ctime; whether the file itself was changed has been asked before. Workers of a git that
# is killed would go on writing for a moment.
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
    """A checkout could not be settled yet: the lock and all that is needed stay, and the next caller goes on."""

    code = "checkout_half_written"


@dataclass(frozen=True, slots=True)
class Forward(Record):
    """A checkout on its way: its files are those of `new`, its index is still that of `old`."""

    store: GitStore
    claim: Claim
    old: str
    new: str

    @property
    def folder(self) -> str:
        """The checkout."""
        return self.claim.folder

    @property
    def lock(self) -> str:
        """Git's lock on the index, which is held all the while."""
        return self.claim.lock

    @property
    def index(self) -> str:
        """The index that git works with, until all files are written."""
        return self.claim.path("index")

    @property
    def next(self) -> str:
        """The same, once they are."""
        return self.claim.path("next")

    @property
    def own_index(self) -> str:
        """The checkout's own index."""
        return os.path.join(self.claim.git_folder, "index")

    @property
    def kept(self) -> str:
        """What is about to be replaced."""
        return self.claim.path("kept")

    def finish(self, while_locked: Callable[[], object] = lambda: None) -> None:
        """The branch has moved: let the index follow. Raises HalfWritten if it cannot.

        `while_locked` is called when the index is in its place, and no other git can change it yet.
        """
        with _given_up_on_error(self, "the branch has moved and the files with it, but the index could not follow"):
            with suppress(FileNotFoundError):  # killed after this step
                os.replace(self.next, self.own_index)
                while_locked()
            self.claim.drop()

    def take_back(self) -> list[str]:
        """Let the files be as they were; gives those that someone else has changed. Raises HalfWritten if it cannot."""
        with _given_up_on_error(self, "files of the commit that was to come are left, and the old ones not yet back"):
            changed = tree_changes(self.store, self.old, self.new)
            left = backup.restore(self.store, self.folder, changed, self.kept)
            self.claim.drop()
        return left


@contextmanager
def _given_up_on_error(forward: Forward, state: str) -> Iterator[None]:
    """Whatever stops this process, the next caller may go on at once."""
    try:
        yield
    except BaseException as error:
        forward.claim.give_up()
        if not isinstance(error, OSError | ProgramFailed):
            raise
        raise HalfWritten(
            f"{forward.folder} is half changed ({state}): {_words(error)}",
            hint=f"remove the cause (a full disk: make room), then `rook merge run` settles it; nothing is lost. Until "
            f"then leave {forward.lock} where it is, and change nothing there",
        ) from error


def begin(store: GitStore, folder: str, old: str, new: str) -> Forward:
    """Change the files of a clean-enough checkout, or none of them.

    Raises InTheWay; InvalidState if another git is at work there; CannotWrite, or HalfWritten if even putting back
    what was there fails.
    """
    repair(store, folder, old)
    forward = Forward(store.at(folder), Claim(folder, _git_folder(store, folder)), old, new)
    try:
        forward.claim.take(old, new)
        _prepare(forward)
    except (OSError, ProgramFailed) as error:
        raise _cannot_write(forward, _words(error)) from error
    try:
        _write_files(forward)
    except (OSError, ProgramFailed) as error:
        raise _cannot_write(forward, _words(error), forward.take_back()) from error
    except BaseException:
        forward.take_back()
        raise
    return forward


def end(begun: Iterable[Forward], *, has_moved: bool) -> None:
    """Let the indexes of checkouts follow their branch, or put their files back if it has not moved."""
    for each in begun:
        if has_moved:
            each.finish()
        else:
            each.take_back()


def repair(store: GitStore, folder: str, branch_at: str) -> bool:
    """Finish or undo what another process left in a checkout; True if there was something."""
    claim = Claim(folder, _git_folder(store, folder))
    if not claim.exists or claim.is_owned():
        return False
    old, new = claim.commits()
    forward = Forward(store.at(folder), claim, old, new)
    # Without the lock, or before the files were kept, there is nothing to settle: no file was touched, or a person has
    # removed the lock and gone on.
    if not claim.is_locked() or not old or not os.path.isdir(forward.kept):
        forward.claim.drop()
    elif branch_at == new and not os.path.exists(forward.index):
        if os.path.exists(forward.next):
            _complete_files(forward)
        forward.finish()
    else:
        forward.take_back()
    return True


def _git_folder(store: GitStore, folder: str) -> str:
    """The folder that git keeps for a checkout; it is plain to see in the main one and in linked worktrees."""
    plain = os.path.join(folder, ".git")
    if os.path.isdir(plain) and not os.path.islink(plain):
        return plain
    own = git_folder(folder)
    if own is not None and own in linked_worktrees(store.common):
        return own
    return store.at(folder).read("rev-parse", "--absolute-git-dir").rstrip("\n")


def _prepare(forward: Forward) -> None:
    """Everything before the first file is touched: what is in the way, and what has to be kept."""
    try:
        _keep_files(forward)
    except BaseException:
        forward.claim.drop()
        raise


def _keep_files(forward: Forward) -> None:
    if not copy_index(forward.own_index, forward.index):
        forward.store.write(*QUIET, "read-tree", "--empty", env=_env(forward))
    changed = tree_changes(forward.store, forward.old, forward.new)
    foreign = _foreign_files(forward, changed)
    if foreign:
        raise InTheWay(forward.folder, foreign)
    _check_unchanged(forward, changed)
    backup.keep(forward.folder, changed, forward.kept)


def _write_files(forward: Forward) -> None:
    """Let git write. It looks at all files that are to change before it touches one, and refuses if one differs."""
    done = forward.store.run(*_WRITE, "read-tree", "-m", "-u", forward.old, forward.new, env=_env(forward))
    if not done.ok:
        changed = tree_changes(forward.store, forward.old, forward.new)
        raise _refusal(forward, changed, done) or ProgramFailed(_cause(forward, done))
    os.rename(forward.index, forward.next)


def _complete_files(forward: Forward) -> None:
    """The branch has moved, and so the files had been written: write again what is missing or cut off since."""
    env = {"GIT_INDEX_FILE": forward.next, "LC_ALL": "C"}
    forward.store.run(*QUIET, "update-index", "-q", "--refresh", env=env)
    differ = set(forward.store.read(*QUIET, "diff-files", "-z", "--name-only", env=env).split("\0"))
    changed = [each for each in tree_changes(forward.store, forward.old, forward.new) if each.path in differ]
    absent = {each.path for each in changed if not os.path.lexists(os.path.join(forward.folder, each.path))}
    ours = absent | backup.written_by_git(forward.store, forward.folder, changed)
    forward.store.write(
        *(*QUIET, "checkout-index", "-z", "--force", "--index", "--stdin"),
        stdin="".join(f"{path}\0" for path in sorted(ours)),
        env=env,
    )


def _env(forward: Forward) -> dict[str, str]:
    return {"GIT_INDEX_FILE": forward.index, "LC_ALL": "C"}


def _foreign_files(forward: Forward, changed: Sequence[TreeChange]) -> list[str]:
    """Files that git never tracked, ignored ones included, where the new commit would put its own."""
    found: list[str] = []
    tracked: set[str] | None = None
    for path in [each.path for each in changed if each.is_added]:
        for place in _line(path):
            full = os.path.join(forward.folder, place)
            is_folder = os.path.isdir(full) and not os.path.islink(full)
            if not os.path.lexists(full) or (is_folder and place != path):
                continue
            if tracked is None:
                tracked = set(forward.store.read("ls-files", "-z", env=_env(forward)).split("\0"))
            inside = _files_in(forward.folder, place) if is_folder else [place]
            found += [each for each in inside if each not in tracked]
            break
    return list(dict.fromkeys(found))


def _line(path: str) -> list[str]:
    """The folders above a path, from the top, and the path."""
    parts = path.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _files_in(top: str, folder: str) -> list[str]:
    found = []
    for place, _, names in os.walk(os.path.join(top, folder)):
        found += [os.path.relpath(os.path.join(place, name), top) for name in names]
    return found


def _check_unchanged(forward: Forward, changed: Sequence[TreeChange]) -> None:
    """Raise InTheWay if a file that is to change differs from the old commit, or its entry in the index does."""
    paths = [each.path for each in changed]
    if len(paths) <= _MOST_NAMED and not _differing(forward, paths):
        return
    # Perhaps they have the new content already, or only the times of files have changed. Git's own two-way merge
    # knows, but it looks at every object of the repository.
    words = (*QUIET, "read-tree", "-n", "-m", "-u", forward.old, forward.new)
    done = forward.store.run(*words, env=_env(forward))
    if not done.ok:
        forward.store.run(*QUIET, "update-index", "-q", "--refresh", env=_env(forward))
        done = forward.store.run(*words, env=_env(forward))
    if not done.ok:
        raise _refusal(forward, changed, done) or _cannot_write(forward, _cause(forward, done))


def _differing(forward: Forward, paths: Sequence[str]) -> str:
    """Those of the paths whose file or entry in the index may differ from the old commit; a name is a literal path."""
    env = _env(forward) | {"GIT_LITERAL_PATHSPECS": "1"}
    return forward.store.read(*QUIET, "diff-index", "-z", "--name-only", forward.old, "--", *paths, env=env)


def _refusal(forward: Forward, changed: Sequence[TreeChange], done: Finished) -> InTheWay | None:
    """What git says is in its way; None if it failed for another reason."""
    named = [each.path for each in changed if f"'{each.path}'" in done.stderr]
    return InTheWay(forward.folder, named) if named or "untracked" in done.stderr.lower() else None


def _cannot_write(forward: Forward, cause: str, left: Sequence[str] = ()) -> CannotWrite:
    but = f" but for {_listed(left)}, which someone changed meanwhile" if left else ""
    return CannotWrite(f"git could not write the files of {forward.folder}: {cause}; they are as they were{but}")


def _cause(forward: Forward, done: Finished) -> str:
    """Why git failed, in its own words; of a file that it could not write it does not say why, so that is tried."""
    if done.status < 0:
        return f"it was ended by {signal.Signals(-done.status).name}"
    lines = [line for line in done.stderr.splitlines() if line.startswith(("fatal: ", "error: "))]
    lines.sort(key=lambda line: line.startswith("error: "))  # what it died of says most
    words = (lines or done.last_words.splitlines() or [f"exit status {done.status}"])[0]
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    why = _write_error(forward.folder)
    return words + more + (f": {why}" if why and why not in words else "")


def _write_error(folder: str) -> str:
    """What the system says to a file of a moderate size there; empty if it can be written."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(_PROBE)
    except OSError as error:
        return error.strerror or ""
    return ""


def _words(error: OSError | ProgramFailed) -> str:
    return error.message if isinstance(error, ProgramFailed) else f"{error.filename}: {error.strerror}"


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (" …" if len(paths) > _SHOWN else "")
