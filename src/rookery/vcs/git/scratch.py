"""A repository of its own for trying things out: the objects of another, and nothing else of it.

A gate or an agent that commits, switches or rewrites history in there reaches no ref, index or setting of the real
repository.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from rookery.vcs.git.repository import NO_HOOKS, GitStore, open_store
from rookery.vcs.ref_names import HEADS

# What changes how files look in a checkout, and who commits.
_TAKEN = r"^(core\.(autocrlf|eol|filemode|symlinks|ignorecase|safecrlf|precomposeunicode)|user\..*|filter\..*|lfs\..*)$"
_SETTINGS = {"user.name": "Rookery demo", "user.email": "demo@example.org", "commit.gpgsign": "false"}


def make(store: GitStore, folder: str, commit: str, *, branch: str, at: str) -> None:
    """Check a commit out in a new folder, on no branch; the repository also has `branch`, where the real one is."""
    os.makedirs(folder)
    form = store.read("rev-parse", "--show-object-format").strip()
    inner = open_store(folder, store.timeout)
    inner.write("init", "--quiet", "--template=", f"--object-format={form}", "--initial-branch=rook-scratch")
    alternates = os.path.join(folder, ".git", "objects", "info", "alternates")
    with open(alternates, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(store.objects + "\n")
    settings = store.ask("config", "-z", "--get-regexp", _TAKEN) or ""
    for entry in settings.split("\0")[:-1]:
        key, _, value = entry.partition("\n")
        inner.write("config", "--add", key, value)
    inner.write("update-ref", HEADS + branch, at)
    inner.write(*NO_HOOKS, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit)


def hide(folder: str, paths: list[str]) -> None:
    """Keep files out of what `write_tree` takes."""
    info = os.path.join(folder, ".git", "info")
    os.makedirs(info, exist_ok=True)
    with open(os.path.join(info, "exclude"), "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write("".join(f"{path}\n" for path in paths))


def changed_files(folder: str, timeout: float) -> set[str]:
    """The files of the commit that is checked out which are no longer as it has them."""
    words = ("-c", "core.fsmonitor=false", "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "HEAD", "--")
    return set(open_store(folder, timeout).read_list(*NO_HOOKS, *words))


def write_tree(store: GitStore, folder: str, commit: str) -> str:
    """All files of a scratch folder, in which a commit was checked out, as a tree of the real repository.

    What was committed or switched in there does not count: only the files do.
    """
    inner = open_store(folder, store.timeout)
    env = {"GIT_OBJECT_DIRECTORY": store.objects, "GIT_INDEX_FILE": os.path.join(folder, ".git", "rookery-index")}
    inner.write("read-tree", commit, env=env)
    inner.write(*NO_HOOKS, "-c", "core.fsmonitor=false", "add", "--all", env=env)
    return inner.read("write-tree", env=env).strip()


def make_example(folder: str, files: Mapping[str, str], *, branch: str, message: str, timeout: float) -> None:
    """Make a repository of its own in a new folder, with one commit that has these files.

    It needs no identity, hook or setting of the user's.
    """
    os.makedirs(folder)
    store = open_store(folder, timeout)
    store.write("init", "--quiet", "--template=", f"--initial-branch={branch}")
    for key, value in _SETTINGS.items():
        store.write("config", key, value)
    store.write("config", "core.hooksPath", os.path.join(folder, ".git", "hooks"))
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    store.write(*NO_HOOKS, "add", "--all")
    store.write(*NO_HOOKS, "commit", "--quiet", "-m", message)
