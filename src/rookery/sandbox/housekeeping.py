"""Git's housekeeping outside, while an agent is in its sandbox: keeps what is mounted there the same as what git uses.

`git gc` packs refs and removes folders that are empty then; it writes reflogs and packed refs again, as other files of
the same name. A mount leads to the old file, and is gone with its folder.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress

from rookery.base.call import sleep
from rookery.base.draft import draft_name
from rookery.processes.inotify import DELETED, MOVED_HERE, Watch, watch_folders

# Git ignores names with a dot, among refs and among reflogs.
_MARK = ".rook"
_RETRY = 0.5
"""Seconds between two looks at the files, where no notification works or the disk is full."""


class Housekeeping:
    """Follows what git does to a repository in which one agent works."""

    def __init__(self, packed: tuple[str, str], branch: str, logs: tuple[str, ...]) -> None:
        self._branch = Branch(branch, packed[0])
        self._packed = Packed(*packed, self._branch)
        self._logs = [Log(path) for path in logs]
        # Git writes another file and gives it the name.
        self._folders = {os.path.dirname(path): MOVED_HERE for path in (packed[0], *logs)}
        self._folders |= {os.path.dirname(branch): DELETED} if branch else {}

    def begin(self) -> None:
        """Follow git from now on."""
        self._branch.hold()
        for log in self._logs:
            log.hold()
        watch = watch_folders(self._folders)
        self._look()
        threading.Thread(target=self._follow, args=(watch,), daemon=True).start()

    def end(self) -> None:
        """Remove what was only there for the mounts."""
        self._branch.release()
        for log in self._logs:
            log.release()

    def _follow(self, watch: Watch | None) -> None:
        has_failed = False
        while True:
            if watch is None:
                sleep(_RETRY)
            elif select.select([watch], [], [], _RETRY if has_failed else None)[0]:
                watch.read()
            try:
                self._look()
                has_failed = False
            except OSError:  # a full disk, or git holds the branch
                has_failed = True

    def _look(self) -> None:
        self._branch.unpack()
        self._packed.refresh()
        for log in self._logs:
            log.put_back()


class Branch:
    """The agent's branch, which is kept as a file of its own in a folder that is mounted."""

    def __init__(self, path: str, packed: str) -> None:
        self._path = path
        self._packed = packed
        self._mark = os.path.join(os.path.dirname(path), _MARK)
        self.name = os.path.relpath(path, os.path.dirname(packed)) if path else ""

    def hold(self) -> None:
        """Keep the folder: packing refs empties it, and git would remove it."""
        if self._path:
            os.close(os.open(self._mark, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644))

    def unpack(self) -> None:
        """Write the branch's file again if git has packed it; raises FileExistsError while git holds its lock."""
        if not self._path or os.path.lexists(self._path):
            return
        lock = f"{self._path}.lock"  # git's own
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        try:
            value = _find(_read_lines(self._packed), self.name)
            with open(handle, "wb") as file:
                file.write(value + b"\n")
            if value and not os.path.lexists(self._path):
                os.replace(lock, self._path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(lock)

    def read(self) -> bytes:
        """The id in its file, or nothing."""
        return b"".join(_read_lines(self._path)).strip() if self._path else b""

    def release(self) -> None:
        """Let git remove the folder again."""
        if self._path:
            with suppress(OSError):
                os.unlink(self._mark)


class Packed:
    """The copy of the packed refs that the agent sees. It is written again whenever git packs refs.

    In the moment between git's packing and ours, the agent's branch would be missing or older than it is, and git
    within would commit without the right parent. So the copy names a commit for it that does not exist: git refuses
    instead. The branch's own file goes before it, and is always there otherwise.
    """

    def __init__(self, source: str, copy: str, branch: Branch) -> None:
        self._source = source
        self._copy = copy
        self._branch = branch
        self._seen: tuple[int, int, int] | None = None

    def refresh(self) -> None:
        """Copy the file if it has changed: in place, because this very file is mounted."""
        try:
            state = os.stat(self._source)
            seen = (state.st_ino, state.st_mtime_ns, state.st_size)
        except FileNotFoundError:
            seen = (0, 0, 0)
        if seen == self._seen:
            return
        lines = _with_no_commit(_read_lines(self._source), self._branch.name, self._branch.read())
        with open(self._copy, "r+b") as file:
            file.write(b"".join(lines))
            file.truncate()
        self._seen = seen


class Log:
    """A reflog that is mounted. When git outside writes another one, it is put back, so that both go on with the same.

    What git removed from it comes back with that, until the next housekeeping. Without the entries that the agent
    adds, git would take what it amended or reset for garbage.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # Each log has its own mark: two could lie in one folder.
        self._mark = os.path.join(os.path.dirname(path), f"{_MARK}-{os.path.basename(path)}")

    def hold(self) -> None:
        """Keep the file that is mounted, whatever becomes of its name."""
        self.release()  # a host that was killed may have left its own
        with suppress(OSError):  # a file system without links: the log outside then lacks entries
            os.link(self._path, self._mark, follow_symlinks=False)

    def put_back(self) -> None:
        """Give the file its name again, if another one has it."""
        with suppress(FileNotFoundError):
            if not os.path.samefile(self._mark, self._path):
                draft = draft_name(self._mark)
                os.link(self._mark, draft)
                os.replace(draft, self._path)

    def release(self) -> None:
        """Forget the file."""
        with suppress(OSError):
            os.unlink(self._mark)


def _read_lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read().splitlines(keepends=True)
    except FileNotFoundError:
        return []


def _find(lines: list[bytes], name: str) -> bytes:
    """The id that a ref has among packed ones, or nothing."""
    end = b" " + os.fsencode(name)
    return next((line.split(b" ")[0] for line in lines if line.rstrip(b"\n").endswith(end)), b"")


def _with_no_commit(lines: list[bytes], name: str, value: bytes) -> list[bytes]:
    """The same packed refs, in git's order, with an id of no commit for a branch that is at `value`."""
    if not name:
        return lines
    own = os.fsencode(name)
    head = [line for line in lines if line.startswith(b"#")] or [b"# pack-refs with: peeled fully-peeled sorted \n"]
    refs: list[tuple[bytes, bytes]] = []
    for line in lines:
        if line.startswith(b"^") and refs:  # what the tag before it leads to
            refs[-1] = (refs[-1][0], refs[-1][1] + line)
        elif not line.startswith(b"#"):
            refs.append((line.rstrip(b"\n").partition(b" ")[2], line))
    # As long as git's ids are here: SHA-1 or SHA-256.
    nothing = b"f" * len(refs[0][1].partition(b" ")[0] if refs else value)
    others = [(ref, line) for ref, line in refs if ref != own]
    return head + [line for _, line in sorted([*others, (own, nothing + b" " + own + b"\n")])] if nothing else lines
