"""A claim on a checkout: git's own lock on its index, and a folder beside it that says what is under way and by whom.

The lock is a second name of the note in that folder. So it is known to be ours, and which process took it for what:
after a kill, and also after another git has taken a lock of the same name.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rookery.base import call as calls
from rookery.base.draft import write_whole
from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.processes import holder as holders
from rookery.vcs.folders import read_text
from rookery.vcs.git import locks as git_locks
from rookery.vcs.git.locks import CLAIM, NOTE
from rookery.vcs.git.pointers import linked_worktrees, store_folder

_PATIENCE = 4.0
_OWNER = "owner"
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
        return os.path.isdir(self.path())

    def path(self, name: str = "") -> str:
        """The folder that says what is under way, or something in it."""
        return os.path.join(self.git_folder, CLAIM, name)

    def take(self, old: str, new: str) -> None:
        """Say what is about to happen, and take git's lock; raises InvalidState if another process has one of them."""
        self._discard()
        os.mkdir(self._unused)
        me = holders.myself()
        write_whole(os.path.join(self._unused, _OWNER), json.dumps({"pid": me.pid, "start": me.text}))
        note = {"old": old, "new": new, "pid": me.pid, "by": me.text, "at": time.time_ns()}
        write_whole(os.path.join(self._unused, NOTE), json.dumps(note))
        try:
            os.rename(self._unused, self.path())
        except OSError as error:
            self._discard()
            if not self.exists:
                raise
            raise InvalidState(
                f"another process is just changing {self.folder}", hint="wait for it, then try again"
            ) from error
        try:
            self._take_lock()
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Let go of the lock, and forget what was under way."""
        if self.is_locked():
            os.unlink(self.lock)
        # In one step, so that a kill leaves all of it or something that no process reads.
        self._discard()
        os.rename(self.path(), self._unused)
        self._discard()

    def give_up(self) -> None:
        """Leave everything as it is, and let the next process go on with it at once."""
        with suppress(OSError):
            os.unlink(self.path(_OWNER))

    def is_owned(self) -> bool:
        """True if its process is alive and has not given up; one that cannot be seen from here has it for a while."""
        owner = _read_json(self.path(_OWNER))
        try:
            holder = holders.read(owner["pid"], owner["start"])
            age = time.time() - os.stat(self.path(_OWNER)).st_mtime
        except (KeyError, OSError):
            return False
        return not holders.is_gone(holder, lease_is_over=age > _LEASE)

    def commits(self) -> tuple[str, str]:
        """From which commit to which; empty if the machine went down before that was on the disk."""
        note = _read_json(self.path(NOTE))
        return note.get("old", ""), note.get("new", "")

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
                        f"another git is at work in {self.folder}: {self.lock} is there, and {held[0].reason}",
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

    @property
    def _unused(self) -> str:
        """Where the folder is while it is made or removed."""
        return os.path.join(self.git_folder, f"{CLAIM}.new")

    def _discard(self) -> None:
        if os.path.isdir(self._unused):
            shutil.rmtree(self._unused)


def give_up_all(root: str) -> None:
    """Free all claims on the checkouts of the project at `root`: their owners are processes of another project."""
    common = store_folder(root)
    for git_folder in () if common is None else (common, *linked_worktrees(common)):
        Claim(root, git_folder).give_up()


def _read_json(path: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        content = json.loads(read_text(path))
        return content if isinstance(content, dict) else {}
    return {}
