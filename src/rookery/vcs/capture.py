"""Snapshots: a commit of all that lies in a checkout, made beside it and without touching it.

Git does the work for both backends, with an index of its own in a temporary folder: neither the checkout's index nor
its lock, branch, files or hooks are touched, and a merge may be under way. A repository inside the checkout is left
out, and of a submodule only its commit is taken.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rookery.base.errors import InvalidState
from rookery.base.record import Record
from rookery.vcs.git.repository import GitStore, failure
from rookery.vcs.model import check_message, moved
from rookery.vcs.ref_names import SAVED
from rookery.vcs.temporary import temporary_folder

Env = Mapping[str, str]

# What the user has set up for his own index must not reach ours, nor his hooks hear of it.
QUIET = tuple(
    word
    for setting in (
        *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.splitIndex=false"),
        *("core.safecrlf=false", "submodule.recurse=false", "advice.addEmbeddedRepo=false"),
    )
    for word in ("-c", setting)
)


@dataclass(frozen=True, slots=True)
class Checkout(Record):
    """What a snapshot is made of: the store with its files, the commit beneath, and an index to begin with."""

    store: GitStore
    head: str | None
    index: str
    """May be missing; with it, files that have not changed need not be read."""
    outside: tuple[str, ...] = ()
    """Paths that never belong to a snapshot."""


def take(
    checkout: Checkout, name: str, message: str, *, include_ignored: Collection[str] = (), replace: bool = False
) -> str | None:
    """Keep all that is in the checkout under `refs/rookery/<name>`; the commit beneath it if nothing differs."""
    check_message(message)
    checkout.store.check_saved_name(name)
    with _index(checkout, include_ignored) as env:
        return _keep(checkout, env, name, message, replace)


def restore(checkout: Checkout, commit: str, rescue: str) -> str | None:
    """Make the files equal to those of a commit, after keeping what is there under `refs/rookery/<rescue>`."""
    store = checkout.store
    store.check_saved_name(rescue)
    wanted = store.get_commit(commit)
    paths = set(store.read("ls-tree", "-r", "-z", "--name-only", "--full-tree", wanted).split("\0")) - {""}
    with _index(checkout, paths) as env:
        kept = _keep(checkout, env, rescue, f"Before restoring {wanted}", replace=False)
        before = store.read(*QUIET, "write-tree", env=env).strip()
        store.write(*QUIET, "read-tree", "-m", "-u", before, f"{wanted}^{{tree}}", env=env)
    return kept


def ignored_files(checkout: Checkout) -> list[str]:
    """Every file that is ignored here."""
    listed = checkout.store.read("ls-files", "-z", "--others", "--ignored", "--exclude-standard").split("\0")
    outside = tuple(f"{each}/" for each in checkout.outside)
    return [path for path in listed if path and not path.endswith("/") and not path.startswith(outside or "\0")]


def inner_repositories(checkout: Checkout) -> list[str]:
    """Folders with a repository of their own that this one does not track."""
    listed = checkout.store.read("ls-files", "-z", "--others", "--exclude-standard").split("\0")
    return [path.rstrip("/") for path in listed if path.endswith("/")]


def select(paths: Iterable[str], patterns: Collection[str]) -> list[str]:
    """The paths that one of the patterns names: the path itself, a folder above it, or a glob that fits it."""
    plain = {pattern.rstrip("/") for pattern in patterns}
    globs = [pattern for pattern in plain if any(char in pattern for char in "*?[")]
    return [path for path in paths if _is_named(path, plain) or any(fnmatchcase(path, each) for each in globs)]


def _is_named(path: str, names: Collection[str]) -> bool:
    while path:
        if path in names:
            return True
        path = os.path.dirname(path)
    return False


@contextmanager
def _index(checkout: Checkout, include_ignored: Collection[str]) -> Iterator[Env]:
    """The environment in which git uses an index that holds everything in the checkout."""
    with temporary_folder(checkout.store.folder, "index") as folder:
        env = {"GIT_INDEX_FILE": os.path.join(folder, "index"), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        copied = copy_index(checkout.index, env["GIT_INDEX_FILE"])
        if not copied or not _add_all(checkout, env):
            _begin(checkout, env)
            if not _add_all(checkout, env):
                raise InvalidState("the checkout could not be read whole", hint="see who owns its files")
        wanted = select(ignored_files(checkout), include_ignored) if include_ignored else []
        if wanted:
            checkout.store.write(
                *(*QUIET, "add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"),
                stdin="\0".join(wanted),
                env={**env, "GIT_LITERAL_PATHSPECS": "1"},
            )
        yield env


def _begin(checkout: Checkout, env: Env) -> None:
    """A fresh index with what the commit beneath holds."""
    if os.path.lexists(env["GIT_INDEX_FILE"]):
        os.unlink(env["GIT_INDEX_FILE"])
    checkout.store.write(*QUIET, "read-tree", *(("--empty",) if checkout.head is None else (checkout.head,)), env=env)


def _add_all(checkout: Checkout, env: Env) -> bool:
    """Take in everything; False if the index to begin with is broken. A file that cannot be read is an error."""
    done = checkout.store.run("ls-files", "-z", "--others", "--exclude-standard", env=env)
    if not done.ok:
        return False
    inner = [path.rstrip("/") for path in done.stdout.split("\0") if path.endswith("/")]
    without = [f":(top,exclude,literal){path}" for path in (*inner, *checkout.outside)]
    added = checkout.store.run(*QUIET, "add", "--all", "--sparse", "--", ":/", *without, env=env)
    if not added.ok and "index file" in added.stderr:
        return False
    if not added.ok:
        raise failure(added, ("add", "--all"))
    return True


def _keep(checkout: Checkout, env: Env, name: str, message: str, replace: bool) -> str | None:
    store = checkout.store
    tree = store.read(*QUIET, "write-tree", env=env).strip()
    beneath = None if checkout.head is None else store.read("rev-parse", f"{checkout.head}^{{tree}}").strip()
    current = store.find_commit(SAVED + name)
    if tree == beneath or (checkout.head is None and tree == store.empty_tree()):
        commit = checkout.head
    elif current is not None and _is_same(store, current, tree, checkout.head):
        return current  # made before a kill
    else:
        commit = _commit(store, tree, checkout.head, message)
    if commit is None or commit == current:
        return commit
    if current is None:
        store.create_ref(SAVED + name, commit)
    elif replace:
        store.replace_ref(SAVED + name, commit, current)
    else:
        raise moved(name, commit, current)
    return commit


def _is_same(store: GitStore, commit: str, tree: str, head: str | None) -> bool:
    shown = store.read("rev-parse", f"{commit}^{{tree}}", f"{commit}^@").split()
    return shown == [tree, *([] if head is None else [head])]


def _commit(store: GitStore, tree: str, parent: str | None, message: str) -> str:
    who = [word for key, value in store.identity().items() for word in ("-c", f"{key}={value}")]
    parents = [] if parent is None else ["-p", parent]
    return store.read(*who, "commit-tree", tree, *parents, "-F", "-", stdin=message).strip()


def copy_index(source: str, target: str) -> bool:
    """Copy an index with its time: git trusts a file's own time only against that of the index.

    False if there is none. What lies in its place may be a link or a pipe of somebody else's making.
    """
    try:
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as old:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return False
        with open(target, "wb") as new:
            new.write(old.read())
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    return True
