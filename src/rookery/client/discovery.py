"""Which project a call is for, and where its daemon listens. Only the common cases: `config.project` knows the rest."""

import posix

_STATE = b"/.rookery/rookery.db"
_LOCK = b"/.rookery/run/daemon.lock"
_LONGEST = 4096
_FILE = 0o100000


def find_project(words: list[str], environ: dict[bytes, bytes]) -> bytes | None:
    """The root of the project that a call is for; None in unusual cases, which are `config.project`'s.

    A checkout that leads to another one (a linked worktree, a second workspace) is left to `config.project`.
    """
    root = environ.get(b"ROOKERY_ROOT")
    if root:
        return root if root.startswith(b"/") and _kind(root + _STATE) else None
    try:
        folder = posix.getcwdb()
    except OSError:
        return None
    if words and words[0] in ("-C", "--directory"):
        if len(words) < 2:
            return None
        folder = _join(folder, words[1].encode("utf-8", "surrogateescape"))
    while True:
        if _FILE in (_kind(folder + b"/.git"), _kind(folder + b"/.jj/repo")):  # linked to another checkout
            return None
        if _kind(folder + _STATE):
            return folder or b"/"
        if not folder or _kind(folder + b"/.git") or _kind(folder + b"/.jj"):
            return None
        folder = folder.rpartition(b"/")[0]


def read_socket(root: bytes) -> bytes | None:
    """Where the project's daemon says that it listens; None if there has been none, or it is not this user's."""
    try:
        file = posix.open(root + _LOCK, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW)
    except OSError:
        return None
    try:
        status = posix.fstat(file)
        if status.st_uid != posix.geteuid():
            return None
        line, end, _ = posix.read(file, _LONGEST).partition(b"\n")
    except OSError:
        return None
    finally:
        posix.close(file)
    named, _, path = line.partition(b" ")
    is_copy = named != b"%d:%d" % (status.st_dev, status.st_ino)  # the project was copied with this file in it
    return path if end and not is_copy and path.startswith(b"/") else None


def _join(folder: bytes, path: bytes) -> bytes:
    """An absolute path without `.` and `..`, from which the parents can be read."""
    parts = b"" if path.startswith(b"/") else folder
    for part in path.split(b"/"):
        if part == b"..":
            parts = parts.rpartition(b"/")[0]
        elif part not in (b"", b"."):
            parts += b"/" + part
    return parts


def _kind(path: bytes) -> int:
    """What is at a path: a file, a folder or something else, as in its mode; 0 if nothing is."""
    try:
        return posix.stat(path).st_mode & 0o170000
    except OSError:
        return 0
