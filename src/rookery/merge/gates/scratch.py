"""Scratch folders: a candidate checked out apart, provisioned as agents' worktrees are, and deleted afterwards.

They are in `.rookery/scratch/<name>`, with a note of their holder (`processes/owned_folders.py`), to find what a kill
left. Beside them are the temporary folders of git (`vcs/temporary.py`), which are swept together with them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from rookery.base.errors import StorageFailed
from rookery.base.record import Record
from rookery.config import layout
from rookery.config.model import VcsConfig
from rookery.environment.service import project_environ
from rookery.merge.gates import jobs
from rookery.merge.merger import Merger
from rookery.ops.context import Context
from rookery.processes import owned_folders
from rookery.processes.holder import HolderId
from rookery.processes.proctable import SCRATCH
from rookery.processes.proctree import end_tree
from rookery.sandbox.model import OFF, ON, NoSandbox
from rookery.sandbox.probe import probe
from rookery.vcs.folders import delete_tree
from rookery.vcs.git import scratch as git_scratch
from rookery.vcs.model import GIT
from rookery.worktrees.place import elsewhere
from rookery.worktrees.provision import provision


@dataclass(frozen=True, slots=True)
class Scratch(Record):
    """A folder to try something in."""

    name: str
    folder: str
    """Its files: a checkout that shares nothing with the project's but git's objects."""
    env: dict[str, str]
    """The whole environment for what runs in it, with its mark."""
    cage: tuple[str, ...] = ()
    """Words in front of a program that keep it from writing into the project; nothing where there is no sandbox."""


@contextmanager
def open_scratch(
    merger: Merger, name: str, commit: str, *, base: str, at: str, is_set_up: bool = True
) -> Iterator[Scratch]:
    """Check a commit out in a folder of its own and provision it; afterwards, also on an error, delete the folder.

    The setup command runs the commit's own code, so it is kept from the project as gates are; without `is_set_up` it is
    left out. Raises SetupFailed.
    """
    top, folder, settings = merger.scratch(name), folder_of(merger, name), merger.ctx.config.provision
    private, temporary = (os.path.join(top, part) for part in ("private", "tmp"))
    try:
        owned_folders.make(top)
        os.mkdir(temporary)
        git_scratch.make(merger.merging.store, folder, commit, branch=base, at=at)
        cage = _cage(merger, top)

        def environ(provided: dict[str, str]) -> dict[str, str]:
            return _environ(merger, top, folder, temporary, provided)

        provided = provision(
            merger.ctx.root,
            folder,
            settings if is_set_up else replace(settings, setup=""),
            vcs_config=VcsConfig(backend=GIT, timeout=merger.ctx.config.vcs.timeout),
            session_folder=private,
            enclose=lambda argv, provided: ((*cage, *argv), environ(provided)),
            hides=lambda paths: git_scratch.hide(folder, paths),
        )
        yield Scratch(name, folder, environ(provided), cage)
    finally:
        _delete(top)


def _cage(merger: Merger, top: str) -> tuple[str, ...]:
    """The machine as it is, but the project can only be read: its files, its repository and its state.

    What provisioning links to is the project's own, and stays writable: programs keep caches there.
    """
    mode = merger.ctx.config.sandbox.mode
    if mode == OFF:
        return ()
    bubblewrap = probe()
    if not bubblewrap.works:
        if mode == ON:
            reason = f"sandbox.mode is on, and nothing can be sandboxed: {bubblewrap.reason}"
            raise NoSandbox(reason, hint=bubblewrap.hint)
        return ()
    root = os.path.realpath(merger.ctx.root)
    store = os.path.dirname(merger.merging.store.objects)
    linked = [os.path.join(root, os.path.normpath(path.removesuffix("?"))) for path in merger.ctx.config.provision.link]
    words = [bubblewrap.words[0], "--dev-bind", "/", "/", "--die-with-parent"]
    words += [word for path in dict.fromkeys((root, store)) for word in ("--ro-bind", path, path)]
    others = dict.fromkeys(os.path.dirname(path) for path in elsewhere(merger.ctx))
    words += [word for path in others for word in ("--ro-bind-try", path, path)]
    words += [word for path in (*linked, os.path.realpath(top)) for word in ("--bind-try", path, path)]
    return (*words, "--")


def sweep(merger: Merger) -> None:
    """Delete what killed processes left and no job needs."""
    for name in names(merger.ctx):
        drop_left(merger, name)


def names(ctx: Context) -> list[str]:
    """Every folder that no job needs; the others go when their job is settled."""
    folders = owned_folders.names(ctx.path(layout.SCRATCH))
    needed = jobs.places(ctx.root) if folders else set()
    return [name for name in folders if name not in needed]


def drop_left(merger: Merger, name: str) -> None:
    """Delete a folder whose owner is gone."""
    top = merger.scratch(name)
    if is_left(merger.ctx, name):
        _delete(top)


def folder_of(merger: Merger, name: str) -> str:
    """The checkout in a scratch folder."""
    return os.path.join(merger.scratch(name), "tree")


def is_left(ctx: Context, name: str) -> bool:
    """True if the folder's owner is gone, or was never written down."""
    return owned_folders.is_left(ctx.path(layout.SCRATCH, name), ctx.clock())


def drop_all(top: str) -> None:
    """Delete the scratch folders of a copy of the project. What runs in those of the original goes on."""
    for name in owned_folders.names(top):
        delete_tree(os.path.join(top, name))
        owned_folders.forget(os.path.join(top, name))


def _mark(top: str) -> tuple[str, str]:
    """By the folder's path: a copy of the project has folders of the same name."""
    return SCRATCH, os.path.realpath(top)


def _delete(top: str) -> None:
    end_tree(None, _mark(top), 0)
    try:
        delete_tree(top)
    except StorageFailed:
        # Something that was being ended wrote once more.
        end_tree(None, _mark(top), 0)
        delete_tree(top)
    owned_folders.forget(top)


def _environ(merger: Merger, top: str, folder: str, temporary: str, provided: dict[str, str]) -> dict[str, str]:
    """The project's environment, but no variable of git leads out of the folder."""
    env = {key: value for key, value in project_environ(merger.ctx.root).items() if not key.startswith("GIT_")}
    return env | {
        "CI": "true",
        "TERM": "dumb",  # that of the caller is not recorded, and scripts that ask for one fail without any
        "TMPDIR": temporary,
        "GIT_CEILING_DIRECTORIES": os.path.dirname(folder),
        "GIT_TERMINAL_PROMPT": "0",
        **provided,
        **dict([_mark(top)]),
    }


def owner_of(ctx: Context, name: str) -> HolderId | None:
    """Whose folder it is; None if that cannot be read."""
    return owned_folders.owner_of(ctx.path(layout.SCRATCH, name))
