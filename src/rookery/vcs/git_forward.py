"""Bringing a checkout from one commit to another without touching what is not committed.

It happens under git's own lock on the index, so that nobody commits in between: files first, then (by the caller) the
branch, then the index. Everything that would touch a changed, untracked or ignored file is refused before anything is
done. A note beside the index says what was under way, so that the next one can finish or take back what a kill left.
"""

from __future__ import annotations

import json
import os
import time

from rookery.base.errors import InvalidState, ProgramFailed
from rookery.base.proctable import Identity, read_one
from rookery.base.record import Record
from rookery.vcs.model import DirtyCheckout
from rookery.vcs.snapshots import QUIET, copy_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rookery.vcs.git_store import GitStore

_NOTE = "rookery-forward"
_PATIENCE = 3.0
_SHOWN = 5


class InTheWay(DirtyCheckout):
    """A checkout has files of its own where the new commit has others."""

    code = "checkout_in_the_way"

    def __init__(self, folder: str, paths: Iterable[str]) -> None:
        self.folder = folder
        self.paths = tuple(paths)
        named = ", ".join(self.paths[:_SHOWN]) + (" …" if len(self.paths) > _SHOWN else "")
        super().__init__(f"{folder} has changes of its own in {named or 'files that would change'}")


class Forward(Record):
    """A checkout on its way: its files are those of `new`, its index is still that of `old`."""

    store: GitStore
    folder: str
    git_folder: str
    old: str
    new: str

    @property
    def lock(self) -> str:
        """Git's lock on the index, which is the next index."""
        return os.path.join(self.git_folder, "index.lock")

    def finish(self) -> None:
        """The branch has moved: let the index follow."""
        os.replace(self.lock, os.path.join(self.git_folder, "index"))
        _forget(self.git_folder)

    def take_back(self) -> None:
        """The branch has not moved: let the files be as they were."""
        try:
            _read_tree(self, self.new, self.old)
        except InTheWay:  # somebody wrote into one of the files meanwhile: that one stays as it is
            _settle_files(self, self.old)
        os.unlink(self.lock)
        _forget(self.git_folder)


def begin(store: GitStore, folder: str, old: str, new: str) -> Forward:
    """Change the files of a clean-enough checkout; raises InTheWay, or InvalidState if another git is at work there."""
    here, git_folder = store.at(folder), _git_folder(store, folder)
    forward = Forward(here, folder, git_folder, old, new)
    _write_note(forward)
    try:
        _take_lock(forward)
    except BaseException:
        _forget(git_folder)
        raise
    try:
        _check_foreign_files(forward)
        _read_tree(forward, old, new)
    except BaseException:
        os.unlink(forward.lock)
        _forget(git_folder)
        raise
    return forward


def mend(store: GitStore, folder: str, branch_at: str) -> bool:
    """Finish or take back what a killed process left in a checkout; True if there was something."""
    here, git_folder = store.at(folder), _git_folder(store, folder)
    note = _read_note(git_folder)
    if note is None:
        return False
    owner = read_one(note["pid"])
    if owner is not None and owner.identity == Identity(note["pid"], note["start"]) and not owner.is_dead:
        return False
    forward = Forward(here, folder, git_folder, note["old"], note["new"])
    if os.path.exists(forward.lock):
        target = note["new"] if branch_at == note["new"] else note["old"]
        _settle_files(forward, target)
        os.replace(forward.lock, os.path.join(git_folder, "index"))
    if os.path.exists(forward.lock + ".lock"):
        os.unlink(forward.lock + ".lock")
    _forget(git_folder)
    return True


def _git_folder(store: GitStore, folder: str) -> str:
    """The folder that git keeps for a checkout; it is plain to see in the main one."""
    plain = os.path.join(folder, ".git")
    if os.path.isdir(plain) and not os.path.islink(plain):
        return plain
    return store.at(folder).read("rev-parse", "--absolute-git-dir").rstrip("\n")


def _take_lock(forward: Forward) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            os.close(os.open(forward.lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise InvalidState(
                    f"another git is at work in {forward.folder}",
                    hint=f"wait for it; if none runs, it was killed: remove {forward.lock}",
                ) from None
            time.sleep(0.02)
    if not copy_index(os.path.join(forward.git_folder, "index"), forward.lock):
        os.unlink(forward.lock)
        forward.store.write(*QUIET, "read-tree", "--empty", env={"GIT_INDEX_FILE": forward.lock})


def _check_foreign_files(forward: Forward) -> None:
    """Raise if the new commit would put its own in place of files that git never tracked, ignored ones included."""
    found = _foreign_files(forward)
    if found:
        raise InTheWay(forward.folder, found)


def _foreign_files(forward: Forward) -> list[str]:
    listed = forward.store.read(
        "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", forward.old, forward.new
    )
    added = [path for path in listed.split("\0") if path]
    found: list[str] = []
    tracked: set[str] | None = None
    for path in added:
        for place in _line(path):
            full = os.path.join(forward.folder, place)
            is_folder = os.path.isdir(full) and not os.path.islink(full)
            if not os.path.lexists(full) or (is_folder and place != path):
                continue
            if tracked is None:
                tracked = _tracked(forward)
            found += [
                each for each in (_beneath(forward.folder, place) if is_folder else [place]) if each not in tracked
            ]
            break
    return list(dict.fromkeys(found))


def _line(path: str) -> list[str]:
    """The folders above a path, from the top, and the path."""
    parts = path.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def _beneath(top: str, folder: str) -> list[str]:
    found = []
    for place, _, names in os.walk(os.path.join(top, folder)):
        found += [os.path.relpath(os.path.join(place, name), top) for name in names]
    return found


def _tracked(forward: Forward) -> set[str]:
    env = {"GIT_INDEX_FILE": forward.lock}
    return set(forward.store.read("ls-files", "-z", env=env).split("\0"))


def _read_tree(forward: Forward, old: str, new: str) -> None:
    """Git's own two-way merge of a checkout: it looks at every file first, and refuses before it touches one."""
    env = {"GIT_INDEX_FILE": forward.lock, "LC_ALL": "C"}
    done = forward.store.run(*QUIET, "read-tree", "-m", "-u", old, new, env=env)
    if not done.ok:
        # Perhaps only the times of files have changed: git looks into them when it is told to.
        forward.store.run(*QUIET, "update-index", "-q", "--refresh", env=env)
        done = forward.store.run(*QUIET, "read-tree", "-m", "-u", old, new, env=env)
    if not done.ok:
        raise InTheWay(forward.folder, _named(forward, done.stderr, old, new))


def _named(forward: Forward, said: str, old: str, new: str) -> list[str]:
    """The files that git names in its refusal."""
    changed = forward.store.read("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new).split("\0")
    return [path for path in changed if path and f"'{path}'" in said]


def _settle_files(forward: Forward, target: str) -> None:
    """After a kill: let the files that were being changed be those of one commit, and leave what is somebody's own."""
    env = {"GIT_INDEX_FILE": forward.lock, "LC_ALL": "C"}
    # The lock holds the index of before or, once git was through, of after: begin from what is known.
    copy_index(os.path.join(forward.git_folder, "index"), forward.lock)
    listed = forward.store.read("diff-tree", "-r", "-z", "--name-only", "--no-renames", forward.old, forward.new)
    paths = [path for path in listed.split("\0") if path]
    ours = [path for path in paths if _is_of_ours(forward, path)]
    if target != forward.old:
        forward.store.write(*QUIET, "read-tree", "-i", "-m", forward.old, target, env=env)
    kept = set(forward.store.read("ls-tree", "-r", "-z", "--name-only", "--full-tree", target).split("\0"))
    for path in ours:
        full = os.path.join(forward.folder, path)
        if path not in kept and os.path.lexists(full):
            os.unlink(full)
            _remove_empty(os.path.dirname(full), forward.folder)
    wanted = [path for path in ours if path in kept]
    if wanted:
        forward.store.write(
            *(*QUIET, "checkout-index", "-z", "--force", "--stdin"), stdin="".join(f"{p}\0" for p in wanted), env=env
        )
    forward.store.run(*QUIET, "update-index", "-q", "--refresh", env=env)


def _is_of_ours(forward: Forward, path: str) -> bool:
    """True if what lies at a path is what one of the two commits has there, or a part of it that git was writing."""
    full = os.path.join(forward.folder, path)
    if not os.path.lexists(full):
        return True
    if os.path.isdir(full) and not os.path.islink(full):
        return False
    if os.path.islink(full):
        content = os.readlink(full).encode("utf-8", "surrogateescape")
    else:
        with open(full, "rb") as file:
            content = file.read()
    for commit in (forward.old, forward.new):
        try:
            if forward.store.read_bytes("cat-file", "--filters", f"{commit}:{path}").startswith(content):
                return True
        except ProgramFailed:  # this commit has no file there
            continue
    return False


def _remove_empty(folder: str, top: str) -> None:
    while folder != top and not os.listdir(folder):
        os.rmdir(folder)
        folder = os.path.dirname(folder)


def _write_note(forward: Forward) -> None:
    me = read_one(os.getpid())
    note = {"old": forward.old, "new": forward.new, "pid": os.getpid(), "start": me.identity.start if me else ""}
    path = os.path.join(forward.git_folder, _NOTE)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(note, file)
    os.replace(f"{path}.new", path)


def _read_note(git_folder: str) -> dict[str, Any] | None:
    try:
        with open(os.path.join(git_folder, _NOTE), encoding="utf-8") as file:
            found = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _forget(git_folder: str) -> None:
    try:
        os.unlink(os.path.join(git_folder, _NOTE))
    except FileNotFoundError:
        return
