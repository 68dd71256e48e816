"""What an agent sees of the machine: the system read-only, no secrets, and its own worktree, branch and home.

Sockets can be connected to on a read-only file system, so folders that may hold some (/run, /tmp, the home, the
project's own state) are not read-only but hidden, and what programs need of them is mounted again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rookery.base import secret_paths
from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.config import layout
from rookery.sandbox.model import BLANK, HIDE, RO, RW, Mount

# The sandbox has its own /dev, so that shared memory is hidden too.
_HIDDEN = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108

# Only these folders of ~/.local hold programs; beside them lie keyrings and the data of applications.
_LOCAL = ("bin", "lib", "share/uv", "share/pipx", "share/claude", "share/mise", "share/pnpm")

# What every worktree of a repository shares.
_SHARED = (
    *("HEAD", "branches", "config", "config.worktree", "hooks", "info"),
    *("lfs", "modules", "refs", "shallow"),
)

# Files of a worktree's own that git obeys, whether they exist yet or not.
_OBEYED = ("config.worktree", "rookery-exclude")


@dataclass(frozen=True, slots=True)
class Repository(Record):
    """The folders in which git keeps what belongs to one worktree, and what belongs to all."""

    common: str
    own: str
    branch: str

    @property
    def packed_refs(self) -> str:
        """The file of packed refs."""
        return os.path.join(self.common, "packed-refs")

    @property
    def branch_file(self) -> str:
        """The file of the branch, which is there unless the branch is packed."""
        return os.path.join(self.common, "refs", "heads", self.branch)

    @property
    def branch_folder(self) -> str:
        """The folder with the refs of this agent alone."""
        return os.path.dirname(self.branch_file)

    @property
    def logs(self) -> tuple[str, str]:
        """The reflogs of its branch and of its HEAD."""
        return os.path.join(self.common, "logs", "refs", "heads", self.branch), os.path.join(self.own, "logs", "HEAD")


def find_repository(worktree: str, branch: str) -> Repository:
    """Find the repository of a linked worktree, without asking git."""
    own = _read_line(os.path.join(worktree, ".git")).removeprefix("gitdir:").strip()
    common = os.path.join(own, _read_line(os.path.join(own, "commondir")))
    if os.path.isdir(os.path.join(common, "reftable")):
        raise InvalidState("refs in a reftable cannot be separated by agent", hint="use sandbox.mode off")
    if "/" not in branch:
        raise InvalidState(f"{branch} has no folder of its own", hint="agents' branches are rook/NAME/TASK")
    return Repository(os.path.realpath(common), os.path.realpath(own), branch)


def shared_mounts(root: str, homes: Sequence[str], search: str, read: Sequence[str]) -> Iterator[Mount]:
    """The machine as every agent of the project sees it."""
    hidden = [*_HIDDEN, *(home for home in homes if _can_hide(home))]
    hidden = [path for path in dict.fromkeys(hidden) if os.path.isdir(path)]
    yield from (Mount(HIDE, path) for path in hidden)
    shown = [root, *_programs(homes, search), *read, os.path.realpath("/etc/resolv.conf")]
    shown = [path for path in dict.fromkeys(shown) if _is_under(path, hidden)]
    yield from (Mount(RO, path) for path in sorted(shown))
    # Hidden also where the project or `sandbox.read` shows the folder around them.
    in_homes = (os.path.join(home, name) for home in homes for name in secret_paths.IN_HOME)
    for path in (*(path for path in in_homes if _is_under(path, shown)), *secret_paths.OF_THE_SYSTEM):
        if os.path.lexists(path) and not os.path.islink(path):
            yield Mount(HIDE if os.path.isdir(path) else BLANK, path)
    yield Mount(HIDE, layout.path(root))


def own_mounts(
    worktree: str, repository: Repository, packed: str, folders: Sequence[str] = (), fixed: Sequence[str] = ()
) -> Iterator[Mount]:
    """What belongs to the agent, and the part of it that it cannot change: `fixed`, and what git would obey.

    Git makes a lock in the repository's folder whenever it deletes a ref, so that one must be writable, and the real
    one cannot be: what the repository shares is mounted into an empty one, with `packed` for its packed refs.
    """
    git, own = repository.common, repository.own
    yield Mount(HIDE, git)
    yield from (Mount(RO, os.path.join(git, name)) for name in _SHARED)
    # Mounted, it cannot be replaced: packing refs within would lose the agent's own branch outside.
    yield Mount(RO, repository.packed_refs, packed)
    yield Mount(RW, worktree)
    yield Mount(RW, os.path.join(git, "objects"))
    yield from (Mount(RO, os.path.join(git, "objects", name)) for name in ("info", "pack"))
    yield Mount(RW, own)
    # A mounted file can be neither replaced nor removed, and its folder not be renamed.
    yield from (Mount(RO, os.path.join(own, name)) for name in (*_OBEYED, "commondir", "gitdir"))
    yield Mount(RW, repository.branch_folder)
    # The files and not their folders: git outside appends to them, and would follow a link. They are mounted into empty
    # folders, because the kernel takes a mount away when the file under it is replaced: `git gc` outside does that.
    yield Mount(HIDE, os.path.join(own, "logs"))
    yield from (Mount(RW, path) for path in repository.logs)
    yield Mount(RO, os.path.join(worktree, ".git"))
    yield from (Mount(RW, path) for path in folders)
    yield from (Mount(RO, path) for path in fixed)


def create_mount_points(repository: Repository) -> None:
    """Create what bubblewrap mounts, also what git would create later, so that the agent cannot do so."""
    objects = (os.path.join(repository.common, "objects", name) for name in ("info", "pack"))
    for folder in (repository.branch_folder, *(os.path.dirname(path) for path in repository.logs), *objects):
        os.makedirs(folder, exist_ok=True)
    for path in (*(os.path.join(repository.own, name) for name in _OBEYED), *repository.logs):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644))


def _programs(homes: Sequence[str], search: str) -> Iterator[str]:
    """The trees that programs on PATH run from, Python's and our own."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    interpreter = os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, package, interpreter)
    for entry in search.split(os.pathsep):
        if os.path.isabs(entry):
            yield from _tree_of(os.path.normpath(entry), homes)


def _tree_of(entry: str, homes: Sequence[str]) -> Iterator[str]:
    above = os.path.dirname(entry)
    for home in homes:
        if above == os.path.join(home, ".local"):
            yield from (os.path.join(above, name) for name in _LOCAL)
            return
        if above == os.path.join(home, ".cargo"):
            yield os.path.join(home, ".rustup")
    # `~/bin` must not show the whole home, nor `/tmp/bin` the whole of /tmp.
    is_tree = os.path.basename(entry) in ("bin", "sbin", "shims") and above not in (*homes, *_HIDDEN, "/")
    yield above if is_tree else entry


def _can_hide(home: str) -> bool:
    return os.path.isabs(home) and os.path.realpath(home) not in ("/", "/usr", "/etc", "/var", "/home")


def _is_under(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)


def _read_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip()
    except OSError as error:
        raise InvalidState(f"{path} cannot be read: {error.strerror}", hint="a sandbox needs a git worktree") from error
