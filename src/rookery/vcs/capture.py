"""Snapshots: a commit of all that lies in a checkout, made beside it and without touching it.

Git does the work for both backends, with an index of its own in a temporary folder: neither the checkout's index nor
its lock, branch, files or hooks are touched, and a merge may be under way. A repository inside the checkout is left
out, and a submodule is recorded by its commit alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha1, sha256

from rookery.base.errors import InvalidState, ProgramFailed
from rookery.base.record import Record
from rookery.vcs.git.repository import LITERAL, Env, GitStore, failure
from rookery.vcs.model import check_message, moved
from rookery.vcs.ref_names import SAVED
from rookery.vcs.temporary import temporary_folder

# What the user has set up for his own index must not change ours, and no hook of his runs.
QUIET = tuple(
    word
    for setting in (
        *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.splitIndex=false"),
        *("core.safecrlf=false", "submodule.recurse=false", "advice.addEmbeddedRepo=false"),
    )
    for word in ("-c", setting)
)
_USELESS_INDEX = ("index file", "does not have a commit checked out")
"""What git says of a broken index, and of one in which a submodule is in conflict that is not checked out."""


@dataclass(frozen=True, slots=True)
class Checkout(Record):
    """What a snapshot is made of: the store with its files, the commit under it, and an index to begin with."""

    store: GitStore
    head: str | None
    index: str
    """May be missing; with it, files that have not changed need not be read."""
    outside: tuple[str, ...] = ()
    """Paths that never belong to a snapshot."""
    always_has_index: bool = False
    """Without an index that can be read, the checkout is damaged or was never finished: what is missing in it was not
    deleted."""


def take(
    checkout: Checkout, name: str, message: str, *, include_ignored: Collection[str] = (), replace: bool = False
) -> str | None:
    """Keep all that is in the checkout under `refs/rookery/<name>`; the commit under it if nothing differs."""
    check_message(message)
    with _index(checkout, include_ignored) as env:
        return _keep(checkout, env, name, message, replace)


def restore(checkout: Checkout, commit: str, rescue: str) -> str | None:
    """Make the files equal to those of a commit, after keeping what is there under `refs/rookery/<rescue>`."""
    store = checkout.store
    wanted = store.get_commit(commit)
    with _index(checkout, set(store.tree_paths(wanted))) as env:
        kept = _keep(checkout, env, rescue, f"Before restoring {wanted}", replace=False)
        before = store.read(*QUIET, "write-tree", env=env).strip()
        store.write(*QUIET, "read-tree", "-m", "-u", before, f"{wanted}^{{tree}}", env=env)
    return kept


def ignored_files(checkout: Checkout) -> list[str]:
    """Every file that is ignored here."""
    return [path for path in ignored_paths(checkout) if not path.endswith("/")]


def ignored_paths(checkout: Checkout) -> list[str]:
    """The same, and with a `/` at its end every ignored folder that is a repository of its own."""
    paths = checkout.store.read_list("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    outside = tuple(f"{folder}/" for folder in checkout.outside)
    return [path for path in paths if not path.startswith(outside)]


def inner_repositories(store: GitStore, env: Env | None = None) -> list[str]:
    """Folders with a repository of their own that this one does not track."""
    return [path.rstrip("/") for path in store.untracked(env=env) if path.endswith("/")]


def select(paths: Iterable[str], patterns: Collection[str]) -> list[str]:
    """The paths that one of the patterns names: the path itself, a folder above it, or a glob that fits it."""
    plain = {pattern.rstrip("/") for pattern in patterns}
    globs = [pattern for pattern in plain if any(char in pattern for char in "*?[")]
    return [path for path in paths if _is_named(path, plain) or any(fnmatchcase(path, glob) for glob in globs)]


def _is_named(path: str, names: Collection[str]) -> bool:
    """True if the names hold the path or a folder above it."""
    return bool(path) and (path in names or _is_named(os.path.dirname(path), names))


@contextmanager
def _index(checkout: Checkout, include_ignored: Collection[str]) -> Iterator[Env]:
    """The environment in which git uses an index that holds everything in the checkout."""
    with temporary_folder(checkout.store.folder, "index") as folder:
        env = {"GIT_INDEX_FILE": os.path.join(folder, "index"), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        copied = copy_index(checkout.index, env["GIT_INDEX_FILE"])
        if not copied or not _is_whole(env["GIT_INDEX_FILE"]) or not _add_all(checkout, env):
            _begin(checkout, env)
            if not _add_all(checkout, env, with_deletions=not checkout.always_has_index):
                raise InvalidState("the checkout could not be read whole", hint="see who owns its files")
        wanted = select(ignored_files(checkout), include_ignored) if include_ignored else []
        if wanted:
            checkout.store.write(
                *(*QUIET, "add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"),
                stdin="\0".join(wanted),
                env={**env, **LITERAL},
            )
        yield env


def _is_whole(index: str) -> bool:
    """True if an index ends with its checksum, or with none: git itself looks only at what it needs."""
    with open(index, "rb") as file:
        data = file.read()
    sums = {sha1(data[:-20], usedforsecurity=False).digest(), sha256(data[:-32]).digest(), bytes(20), bytes(32)}
    return data.startswith(b"DIRC") and bool(sums & {data[-20:], data[-32:]})


def _begin(checkout: Checkout, env: Env) -> None:
    """A fresh index with what the commit under the checkout holds."""
    if os.path.lexists(env["GIT_INDEX_FILE"]):
        os.unlink(env["GIT_INDEX_FILE"])
    checkout.store.write(*QUIET, "read-tree", checkout.head or "--empty", env=env)


def _add_all(checkout: Checkout, env: Env, *, with_deletions: bool = True) -> bool:
    """Add everything; False if the index to begin with is of no use. A file that cannot be read is an error."""
    try:
        inner = inner_repositories(checkout.store, env)
    except ProgramFailed:
        return False
    without = [f":(top,exclude,literal){path}" for path in (*inner, *checkout.outside)]
    how = "--all" if with_deletions else "--ignore-removal"
    added = checkout.store.run(*QUIET, "add", how, "--sparse", "--", ":/", *without, env=env)
    if not added.ok and any(words in added.stderr for words in _USELESS_INDEX):
        return False
    if not added.ok:
        raise failure(added, ("add", how))
    return True


def _keep(checkout: Checkout, env: Env, name: str, message: str, replace: bool) -> str | None:
    store = checkout.store
    store.check_saved_name(name)
    tree = store.read(*QUIET, "write-tree", env=env).strip()
    parents = [] if checkout.head is None else [checkout.head]
    before = store.read("rev-parse", f"{checkout.head}^{{tree}}").strip() if parents else store.empty_tree()
    current = store.find_commit(SAVED + name)
    if tree == before:
        commit = checkout.head
    elif current and store.read("rev-parse", f"{current}^{{tree}}", f"{current}^@").split() == [tree, *parents]:
        return current  # made before a kill
    else:
        commit = store.commit_tree(tree, parents, message)
    if commit is None or commit == current:
        return commit
    if current is not None and not replace:
        raise moved(name, commit, current)
    store.change_ref(SAVED + name, old=current, new=commit)
    return commit


def copy_index(source: str, target: str) -> bool:
    """Copy an index with its time: git trusts a file's own time only against that of the index.

    False if there is none. In its place an agent may have put a link or a pipe.
    """
    try:
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as old:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return False
        with open(target, "wb") as new:
            new.write(old.read())
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return True
