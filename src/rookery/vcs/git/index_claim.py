"""A claim on a checkout: git's own lock on its index, and a folder beside it that says what is under way and by whom.

The folder has a note of its holder beside it (`processes/owned_folders.py`). The lock is a second name of the note in
the folder. So it is known to be ours, and for what it was taken: after a kill, and also after another git has taken a
lock of the same name.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rookery.base import call as calls
from rookery.base.draft import unique, write_whole
from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.processes import owned_folders
from rookery.vcs.folders import read_text
from rookery.vcs.git import locks as git_locks
from rookery.vcs.git.locks import CLAIM, NOTE
from rookery.vcs.git.pointers import linked_worktrees, store_folder

_PATIENCE = 4.0
_LEASE = 600.0
"""How long, in seconds, a claim holds if its process cannot be seen from here; one takes moments."""


@dataclass(frozen=True, slots=True)
class Claim(Record):
    """The claim on the checkout whose index lies in a folder of git's."""

    folder: str
    git_folder: str

    @property
    def lock(self) -> str:
        """Git's lock on the index."""
        return os.path.join(self.git_folder, "index.lock")

    @property
    def exists(self) -> bool:
        """True if something is under way, or was when a process was killed."""
        return os.path.isdir(self.place) or os.path.lexists(self.place + owned_folders.NOTE)

    @property
    def place(self) -> str:
        """The folder that says what is under way."""
        return os.path.join(self.git_folder, CLAIM)

    def path(self, name: str) -> str:
        """Something in that folder."""
        return os.path.join(self.place, name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process at a time look who holds the claim, repair what is left of it, and take it."""
        folder = os.open(self.git_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            calls.lock(folder)
            yield
        finally:
            os.close(folder)

    def take(self, old: str, new: str) -> None:
        """Say what is about to happen, and take git's lock; raises InvalidState if another process has one of them."""
        try:
            owned_folders.make(self.place)
        except FileExistsError as error:
            raise InvalidState(
                f"another process is just changing {self.folder}", hint="wait for it, then try again"
            ) from error
        try:
            write_whole(self.path(NOTE), json.dumps({"old": old, "new": new, "id": unique()}))
            self._take_lock()
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Let go of the lock, and forget what was under way: without the lock what a kill leaves is nothing."""
        if self.is_locked():
            os.unlink(self.lock)
        if os.path.isdir(self.place):
            shutil.rmtree(self.place)
        owned_folders.forget(self.place)

    def give_up(self) -> None:
        """Leave everything as it is, and let the next process go on with it at once."""
        with suppress(OSError):
            owned_folders.forget(self.place)

    def is_owned(self) -> bool:
        """True if its process is alive and has not given up; one that cannot be seen from here has it for a while."""
        return not owned_folders.is_left(self.place, time.time(), lease=_LEASE)

    def commits(self) -> tuple[str, str]:
        """From which commit to which; empty if the machine went down before that was on the disk."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(read_text(self.path(NOTE)))
            return note["old"], note["new"]
        return "", ""

    def is_locked(self) -> bool:
        """True if git's lock is the one that was taken with it."""
        return git_locks.is_of_ours(self.lock)

    def _take_lock(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._make_lock()
            except FileExistsError:
                held = git_locks.remove_dead([self.lock], patience=deadline - time.monotonic())
                if held and time.monotonic() > deadline:
                    raise InvalidState(
                        f"another git is at work in {self.folder}: {self.lock} is there, and {held[self.lock]}",
                        hint=f"wait for it; if none runs, it was killed: rm '{self.lock}'",
                    ) from None
                calls.sleep(0.02)
            else:
                return

    def _make_lock(self) -> None:
        try:
            os.link(self.path(NOTE), self.lock)
        except FileExistsError:
            raise
        except OSError:  # a filesystem without links
            with open(self.path(NOTE), "rb") as note, open(self.lock, "xb") as file:
                file.write(note.read())


def give_up_all(root: str) -> None:
    """Free all claims on the checkouts of the project at `root`: their owners are processes of another project."""
    common = store_folder(root)
    for git_folder in () if common is None else (common, *linked_worktrees(common)):
        Claim(root, git_folder).give_up()
